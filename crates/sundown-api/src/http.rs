//! Requests and responses as plain data. Sockets, TLS and chunking are the shell's business.

/// An HTTP request, whoever brought it: the HTTPS server, the in-process client, the simulator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    /// Percent-decoded path, without query.
    pub path: String,
    /// Decoded query parameters, in order.
    pub query: Vec<(String, String)>,
    /// Content-Type, if sent.
    pub content_type: Option<String>,
    /// Accept, if sent.
    pub accept: Option<String>,
    /// User-Agent, if sent.
    pub user_agent: Option<String>,
    pub body: Vec<u8>,
}

/// The methods that the API has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status code; a Status body carries the same number, so the core has to know it.
    pub code: u16,
    pub content_type: &'static str,
    /// Texts of `Warning: 299` headers.
    pub warnings: Vec<String>,
    pub body: Vec<u8>,
}

impl Request {
    /// The first query parameter of this name.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}
