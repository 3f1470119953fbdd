//! A server with a clock that stands still, and the ways to reach it.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use anyhow::{Context, Result};
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use sundown_server::{
    ApiService, Credential, Entropy, Https, Identity, ManualClock, Shared, Tasks,
};
use sundown_testing::{BOUND, TestBound, within};
use tower::ServiceExt as _;

pub(crate) struct World {
    pub(crate) shared: Arc<Shared>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) identity: Identity,
    pub(crate) tasks: Tasks,
    _bound: TestBound,
}

pub(crate) type Events = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Send>>;

impl World {
    pub(crate) fn new() -> Result<Self> {
        Self::with(sundown_api::Config::default())
    }

    pub(crate) fn with(config: sundown_api::Config) -> Result<Self> {
        let clock = Arc::new(ManualClock::new(Timestamp::constant(1_800_000_000, 0)));
        let shared = Shared::new(config, Arc::clone(&clock) as _, Entropy::system());
        Ok(Self {
            shared: Arc::new(shared),
            clock,
            identity: Identity::generate(&[])?,
            tasks: Tasks::new(),
            _bound: TestBound::of_this_test(),
        })
    }

    pub(crate) fn in_process(&self) -> Client {
        let service = ApiService::trusted(Arc::clone(&self.shared), self.tasks.signal());
        let bounded = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let what = format!("an answer to {} {}", request.method(), request.uri());
            let answer = service.clone().oneshot(request);
            async move { anyhow::Ok(within(what, answer).await??) }
        });
        Client::new(bounded, "default")
    }

    /// Starts HTTPS on a free port.
    pub(crate) async fn listen(&mut self) -> Result<(SocketAddr, String)> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let https = Https::bind(Arc::clone(&self.shared), &self.identity, address).await?;
        let bound = (https.address(), https.url());
        self.tasks.spawn("https", https.serve(self.tasks.signal()));
        Ok(bound)
    }

    /// Starts HTTPS with so many places and connects with the rendered kubeconfig.
    pub(crate) async fn with_places(&mut self, count: usize) -> Result<(SocketAddr, Client)> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let https = Https::bind(Arc::clone(&self.shared), &self.identity, address).await?;
        let https = https.connections_max(count);
        let (address, url) = (https.address(), https.url());
        self.tasks.spawn("https", https.serve(self.tasks.signal()));
        let kubeconfig = self.identity.kubeconfig(&url, Credential::Token);
        Ok((address, connect(&kubeconfig).await?))
    }

    /// Starts HTTPS and connects with the rendered kubeconfig.
    pub(crate) async fn over_https(&mut self) -> Result<Client> {
        let (_, url) = self.listen().await?;
        connect(&self.identity.kubeconfig(&url, Credential::Token)).await
    }
}

pub(crate) async fn connect(kubeconfig: &str) -> Result<Client> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    // Whatever proxy the machine has, it does not lead to us.
    config.proxy_url = None;
    config.connect_timeout = Some(BOUND);
    config.read_timeout = Some(BOUND);
    Ok(Client::try_from(config)?)
}

pub(crate) fn config_maps(client: Client) -> Api<ConfigMap> {
    Api::default_namespaced(client)
}

pub(crate) fn a_config_map(name: &str) -> ConfigMap {
    let mut config_map = ConfigMap::default();
    config_map.metadata.name = Some(name.to_owned());
    config_map
}

pub(crate) fn revision(config_map: &ConfigMap) -> Result<u64> {
    Ok(config_map
        .resource_version()
        .context("no revision")?
        .parse()?)
}

pub(crate) async fn watch(api: &Api<ConfigMap>) -> Result<Events> {
    let params = WatchParams::default().timeout(290).disable_bookmarks();
    Ok(api.watch(&params, "0").await?.boxed())
}

/// The next event as `ADDED name`; `END` at the end.
pub(crate) async fn next(events: &mut Events) -> Result<String> {
    let event = within("an event", events.next()).await?;
    Ok(match event.transpose()? {
        None => "END".to_owned(),
        Some(WatchEvent::Added(object)) => format!("ADDED {}", object.name_any()),
        Some(WatchEvent::Modified(object)) => format!("MODIFIED {}", object.name_any()),
        Some(WatchEvent::Deleted(object)) => format!("DELETED {}", object.name_any()),
        Some(WatchEvent::Bookmark(_)) => "BOOKMARK".to_owned(),
        Some(WatchEvent::Error(status)) => format!("ERROR {}", status.code),
    })
}
