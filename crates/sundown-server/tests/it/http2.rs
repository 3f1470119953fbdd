//! HTTP/2 as client-go speaks it: every watch on one connection.

use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::future::try_join_all;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::api::PostParams;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use sundown_testing::{BOUND, within};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::world::{World, a_config_map, config_maps};

const WATCH_COUNT: usize = 1000;

async fn connect(
    world: &mut World,
    connection: &mut JoinSet<hyper::Result<()>>,
) -> Result<SendRequest<Empty<Bytes>>> {
    let (address, _) = world.listen().await?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(
        world.identity.ca_pem().as_bytes(),
    )?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("kubernetes.default.svc")?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?;
    let (client, driver) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    connection.spawn(driver);
    Ok(client)
}

async fn open_watch(mut client: SendRequest<Empty<Bytes>>, token: &str) -> Result<Incoming> {
    let uri = "https://localhost/api/v1/namespaces/default/configmaps?watch=true";
    let request = http::Request::get(uri).header("authorization", format!("Bearer {token}"));
    let response = client.send_request(request.body(Empty::new())?).await?;
    assert_eq!(response.status(), 200);
    Ok(response.into_body())
}

async fn first_line(mut body: Incoming) -> Result<String> {
    let frame = within("the first line of a watch", body.frame())
        .await?
        .context("ended")??;
    let line = frame.into_data().ok().context("trailers")?;
    Ok(String::from_utf8(line.to_vec())?)
}

#[tokio::test]
async fn serves_a_thousand_watches_on_one_connection() -> Result<()> {
    let mut world = World::new()?;
    let mut connection = JoinSet::new();
    let client = connect(&mut world, &mut connection).await?;
    let token = world.identity.token();
    let watches = (0..WATCH_COUNT).map(|_| open_watch(client.clone(), token));
    let watches = try_join_all(watches).await?;

    let api = config_maps(world.in_process());
    api.create(&PostParams::default(), &a_config_map("a"))
        .await?;
    for line in try_join_all(watches.into_iter().map(first_line)).await? {
        assert!(
            line.starts_with(r#"{"type":"ADDED""#) && line.ends_with('\n'),
            "{line}"
        );
    }
    world.tasks.stop(BOUND).await?;
    Ok(())
}
