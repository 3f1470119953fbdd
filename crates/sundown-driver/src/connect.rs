//! A client from a kubeconfig, as the engine wants it: every answer of the server reaches the
//! engine, and nobody below it repeats a request.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

/// A client, and where it leads.
#[derive(Clone)]
pub struct Connection {
    pub client: Client,
    pub url: String,
    /// The namespace of the kubeconfig's context.
    pub namespace: String,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig is missing or malformed.
    #[error("read the kubeconfig{}", path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default())]
    Kubeconfig {
        path: Option<PathBuf>,
        #[source]
        source: KubeconfigError,
    },
    /// What the kubeconfig asks for cannot be done.
    #[error("set up the connection to {url}")]
    Client {
        url: String,
        #[source]
        source: Box<kube::Error>,
    },
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("url", &self.url)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// Sets up a client from a kubeconfig, or from `$KUBECONFIG` and the usual place without one.
/// Nothing is sent yet.
pub async fn connect(path: Option<&Path>) -> Result<Connection, ConnectError> {
    let failed = |source| ConnectError::Kubeconfig {
        path: path.map(Path::to_owned),
        source,
    };
    let kubeconfig = path.map_or_else(Kubeconfig::read, Kubeconfig::read_from);
    let kubeconfig = kubeconfig.map_err(failed)?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(failed)?;
    // Back-off and repetition are decided by the engine, which would not see a hidden retry.
    config.default_retry = false;
    if is_this_machine(&config.cluster_url) {
        // Whatever proxy the environment names, it does not lead here.
        config.proxy_url = None;
    }
    let url = config.cluster_url.to_string();
    let url = url.trim_end_matches('/').to_owned();
    let namespace = config.default_namespace.clone();
    match Client::try_from(config) {
        Ok(client) => Ok(Connection {
            client,
            url,
            namespace,
        }),
        Err(source) => Err(ConnectError::Client {
            url,
            source: Box::new(source),
        }),
    }
}

fn is_this_machine(url: &http::Uri) -> bool {
    let host = url.host().unwrap_or_default();
    let address: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
