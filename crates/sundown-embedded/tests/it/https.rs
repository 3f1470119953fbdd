//! The way in from outside.

use std::path::Path;

use anyhow::{Context, Result};
use kube::Client;
use kube::api::DeleteParams;
use sundown_embedded::{Embedded, Listen};

use crate::world::{config_maps, create, delete, identities};
use sundown_testing::{BOUND, TestBound};

async fn connect(kubeconfig: &Path) -> Result<Client> {
    Ok(sundown_driver::connect(Some(kubeconfig)).await?.client)
}

#[tokio::test]
async fn the_written_kubeconfig_lets_one_in_and_goes_with_the_server() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("kubeconfig");
    let listen = Listen {
        kubeconfigs: vec![path.clone()],
        ..Listen::default()
    };
    let embedded = Embedded::builder().listen(listen).start().await?;
    assert_eq!(embedded.kubeconfig_path(), Some(path.as_path()));
    let url = embedded.url().context("no address")?;
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");

    let api = config_maps(connect(&path).await?);
    let owner = create(&api, "owner", &[]).await?;
    create(&api, "child", &[&owner]).await?;
    delete(&api, "owner", &DeleteParams::background()).await?;
    embedded.until_at_rest(BOUND).await?;
    assert_eq!(identities(&api).await?, []);

    embedded.stop().await?;
    assert!(!path.exists());
    Ok(())
}

#[tokio::test]
async fn a_kubeconfig_of_somebody_else_stays_as_it_is() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), "kind: Config\n")?;
    let listen = Listen {
        kubeconfigs: vec![file.path().to_owned()],
        ..Listen::default()
    };
    let error = Embedded::builder()
        .listen(listen)
        .start()
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("not a kubeconfig of sundown"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(file.path())?, "kind: Config\n");
    Ok(())
}
