//! Who gets in over HTTPS, and the file that lets one in.

use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, Result};
use kube::Client;
use kube::api::{ListParams, PostParams};
use sundown_server::{Credential, write_private};

use crate::world::{World, a_config_map, config_maps, connect};

async fn check_refused(client: Client) -> Result<()> {
    let error = config_maps(client).list(&ListParams::default()).await;
    let kube::Error::Api(status) = error.err().context("was let in")? else {
        anyhow::bail!("not a Status");
    };
    assert_eq!((status.code, status.reason.as_str()), (401, "Unauthorized"));
    assert_eq!(status.message, "Unauthorized");
    Ok(())
}

#[tokio::test]
async fn refuses_a_wrong_token() -> Result<()> {
    let mut world = World::new()?;
    let (_, url) = world.listen().await?;
    let kubeconfig = world.identity.kubeconfig(&url, Credential::Token);
    let wrong = "0".repeat(world.identity.token().len());
    check_refused(connect(&kubeconfig.replace(world.identity.token(), &wrong)).await?).await
}

#[tokio::test]
async fn refuses_strangers_but_tells_them_its_health() -> Result<()> {
    let mut world = World::new()?;
    let (_, url) = world.listen().await?;
    let kubeconfig = world.identity.kubeconfig(&url, Credential::Token);
    let token = format!("    token: {}\n", world.identity.token());
    let client = connect(&kubeconfig.replace(&token, "    {}\n")).await?;
    check_refused(client.clone()).await?;
    let health = client
        .request_text(http::Request::get("/healthz").body(Vec::new())?)
        .await?;
    assert_eq!(health, "ok");
    Ok(())
}

#[tokio::test]
async fn trusts_the_administrators_certificate() -> Result<()> {
    let mut world = World::new()?;
    let (_, url) = world.listen().await?;
    let client = connect(&world.identity.kubeconfig(&url, Credential::Certificate)).await?;
    config_maps(client)
        .create(&PostParams::default(), &a_config_map("a"))
        .await?;
    Ok(())
}

#[tokio::test]
async fn refuses_a_certificate_of_another_authority() -> Result<()> {
    let mut world = World::new()?;
    let (_, url) = world.listen().await?;
    let stranger = World::new()?
        .identity
        .kubeconfig(&url, Credential::Certificate);
    let ours = world.identity.kubeconfig(&url, Credential::Token);
    let authority = |kubeconfig: &str| {
        let line = kubeconfig
            .lines()
            .find(|line| line.contains("certificate-authority-data"));
        line.map(str::to_owned).context("no authority")
    };
    // Knows our authority, so that the connection can only fail for the certificate it shows.
    let kubeconfig = stranger.replace(&authority(&stranger)?, &authority(&ours)?);
    let refused = config_maps(connect(&kubeconfig).await?)
        .list(&ListParams::default())
        .await;
    assert!(
        !matches!(refused, Ok(_) | Err(kube::Error::Api(_))),
        "{refused:?}"
    );
    Ok(())
}

#[test]
fn writes_kubeconfigs_that_only_the_owner_can_read() -> Result<()> {
    let directory = std::env::temp_dir().join(format!("sundown-server-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let path = directory.join("kubeconfig");
    std::fs::write(&path, "old, and readable by all")?;
    write_private(&path, "new")?;
    assert_eq!(std::fs::read_to_string(&path)?, "new");
    assert_eq!(
        std::fs::metadata(&path)?.permissions().mode() & 0o777,
        0o600
    );
    let names: Vec<_> = std::fs::read_dir(&directory)?.collect::<Result<_, _>>()?;
    assert_eq!(names.len(), 1, "nothing temporary is left: {names:?}");
    write_private(&directory.join("absent/kubeconfig"), "new").expect_err("no such directory");
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}
