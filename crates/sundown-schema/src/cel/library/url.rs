//! URLs as Go's `ParseRequestURI` reads them, as far as rules ask about them.

use std::rc::Rc;

use super::super::value::Val;

/// A URL: absolute, or a path that begins with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

impl Url {
    /// Reads a URL.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if text.is_empty() || text.chars().any(|c| c.is_ascii_control() || c == ' ') {
            return None;
        }
        let (scheme, rest) = if text.starts_with('/') {
            ("", text)
        } else {
            text.split_once(':')
                .filter(|(scheme, _)| is_scheme(scheme))?
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
            Some(rest) => {
                let end = rest.find('/').unwrap_or(rest.len());
                rest.split_at(end)
            }
            None => ("", rest),
        };
        let host = host.rsplit('@').next().unwrap_or("");
        let is_host = |c: char| c.is_alphanumeric() || "-._~!$&'()*+,;=:[]%".contains(c);
        if !host.chars().all(is_host) || !escapes_hold(path) {
            return None;
        }
        let url = Self {
            scheme: scheme.to_lowercase(),
            host: host.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
        };
        let port = url.port();
        port.bytes().all(|it| it.is_ascii_digit()).then_some(url)
    }

    fn port(&self) -> &str {
        let after = self.host.rsplit(']').next().unwrap_or("");
        after.rsplit_once(':').map_or("", |(_, port)| port)
    }

    fn hostname(&self) -> &str {
        let host = self.host.strip_suffix(self.port()).unwrap_or(&self.host);
        let host = host.strip_suffix(':').unwrap_or(host);
        host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn call<'a>(&self, name: &str, args: &[Val<'a>]) -> Option<Val<'a>> {
        if !args.is_empty() {
            return None;
        }
        let text = match name {
            "getScheme" => &self.scheme,
            "getHost" => &self.host,
            "getHostname" => self.hostname(),
            "getPort" => self.port(),
            "getEscapedPath" => &self.path,
            "getQuery" => return Some(self.query()),
            _ => return None,
        };
        Some(Val::owned(text.to_owned()))
    }

    fn query<'a>(&self) -> Val<'a> {
        let mut found: Vec<(String, Vec<Val<'a>>)> = Vec::new();
        for pair in self.query.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = Val::owned(unescaped(value));
            let name = unescaped(name);
            match found.iter_mut().find(|(own, _)| *own == name) {
                Some((_, values)) => values.push(value),
                None => found.push((name, vec![value])),
            }
        }
        let entries = found
            .into_iter()
            .map(|(name, values)| (Val::owned(name), Val::list(values)));
        Val::Map(Rc::new(entries.collect()))
    }
}

fn is_scheme(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(is_sign)
}

fn escapes_hold(text: &str) -> bool {
    let is_hex =
        |part: &str| part.len() >= 2 && part.bytes().take(2).all(|it| it.is_ascii_hexdigit());
    text.split('%').skip(1).all(is_hex)
}

fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let code = text
            .get(at + 1..at + 3)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (byte, code) {
            (b'%', Some(code)) => {
                out.push(code);
                at += 3;
                continue;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(*byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::Url;

    #[test]
    fn takes_urls_apart() {
        let url = Url::read("https://user@example.com:8080/a%20b?k=1&k=2").unwrap();
        assert_eq!(
            (url.scheme.as_str(), url.host.as_str()),
            ("https", "example.com:8080")
        );
        assert_eq!((url.hostname(), url.port()), ("example.com", "8080"));
        assert_eq!(url.path, "/a%20b");
        let six = Url::read("http://[::1]:80/").unwrap();
        assert_eq!((six.hostname(), six.port()), ("::1", "80"));
        assert!(Url::read("/only/a/path").is_some());
        for text in [
            "",
            "nothing",
            "1http://x",
            "http://a b",
            "http://x:y/",
            "http://x/%zz",
        ] {
            assert!(Url::read(text).is_none(), "{text}");
        }
    }
}
