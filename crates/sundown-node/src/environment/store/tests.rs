//! What is in the cache and what is not.

use anyhow::Result;

use super::*;

fn in_directory(path: &Path) -> Environments {
    Environments::new(path.to_owned(), Rules::default())
}

#[tokio::test]
async fn an_environment_without_its_mark_is_not_there() -> Result<()> {
    let home = tempfile::tempdir()?;
    let environments = in_directory(home.path());
    let image = "rayproject/ray:2.52.0-py311";
    assert_eq!(environments.standing(image).await, Standing::Missing);
    let path = home.path().join("ray-2.52.0-py3.11");
    fs::create_dir_all(path.join("bin"))?;
    assert_eq!(environments.standing(image).await, Standing::Missing);
    let mark = serde_json::json!({
        "requirements": ["ray[default]==2.52.0"], "python": [3, 11], "prefix": home.path(),
    });
    fs::write(path.join(MARK), mark.to_string())?;
    let Standing::Ready(environment) = environments.standing(image).await else {
        panic!("not ready");
    };
    assert_eq!(environment.binds, [path.clone(), home.path().to_owned()]);
    assert!(
        environment.variables[0]
            .1
            .starts_with(&format!("{}/bin:", path.display()))
    );
    let [entry] = &environments.list()?[..] else {
        panic!("not one");
    };
    assert!(entry.is_whole && entry.python == "3.11");
    Ok(())
}

/// The decision alone is tested: no removal is ever handed a name that it must refuse.
#[test]
fn names_cannot_lead_out_of_the_cache() {
    let cache = Path::new("/cache");
    for name in [
        "/",
        "",
        ".",
        "..",
        "../precious",
        "/etc",
        "a/b",
        "a/../../b",
    ] {
        assert_eq!(victim(cache, name), None, "{name:?}");
    }
    assert_eq!(
        victim(cache, "ray-2.52.0-py3.11"),
        Some(cache.join("ray-2.52.0-py3.11"))
    );
}

#[tokio::test]
async fn tools_of_the_host_are_there_or_named() -> Result<()> {
    let home = tempfile::tempdir()?;
    let environments = in_directory(home.path());
    assert!(matches!(
        environments.standing("busybox").await,
        Standing::Ready(_)
    ));
    let Standing::Unavailable(why) = environments.standing("acme/none:1").await else {
        panic!("it is known");
    };
    assert!(why.contains("acme/none:1"));
    Ok(())
}

#[tokio::test]
async fn a_missing_python_is_named_with_what_to_install() -> Result<()> {
    let home = tempfile::tempdir()?;
    let environments = in_directory(home.path());
    let made = environments
        .make("rayproject/ray:2.52.0-py399", &mut |_| {})
        .await;
    let why = made.unwrap_err().to_string();
    assert!(
        why.contains("Python 3.99") && why.contains("uv python install 3.99"),
        "{why}"
    );
    Ok(())
}

/// Two rules of one package each, both like `python`, shared one environment: whoever came second ran
/// in that of the first.
#[test]
fn other_packages_make_another_environment() {
    let environments = in_directory(Path::new("/cache"));
    let path = |name: &str, requirements: &[&str]| {
        let requirements: Vec<String> = requirements.iter().map(|&it| it.to_owned()).collect();
        environments.path(name, &requirements, None)
    };
    let plain = path("ray-1.0", &["ray[default]==1.0"]);
    assert_eq!(plain, Path::new("/cache/ray-1.0-py3"));
    let latest = path("ray-latest", &["ray[default]"]);
    assert_eq!(latest, Path::new("/cache/ray-latest-py3"));
    let all = [
        plain,
        latest,
        path("ray-1.0", &["ray[default]==1.0", "torch"]),
        path("python", &["numpy"]),
        path("python", &["pandas"]),
        path("python", &["ray[default]==1.0"]),
        path("python", &["ray[default]==2.0"]),
    ];
    let different: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len(), "{all:?}");
}

#[tokio::test]
async fn an_environment_with_other_packages_is_not_the_one() -> Result<()> {
    let home = tempfile::tempdir()?;
    let environments = in_directory(home.path());
    let path = home.path().join("ray-2.52.0-py3");
    fs::create_dir_all(&path)?;
    let mark = serde_json::json!({
        "requirements": ["ray[default]==2.9.0"], "python": [3, 11], "prefix": home.path(),
    });
    fs::write(path.join(MARK), mark.to_string())?;
    let standing = environments.standing("rayproject/ray:2.52.0").await;
    assert_eq!(standing, Standing::Missing);
    Ok(())
}

/// `env prune` took an environment away from the one who was just making it.
#[tokio::test]
async fn what_is_being_made_is_not_removed() -> Result<()> {
    let home = tempfile::tempdir()?;
    let environments = in_directory(home.path());
    let name = "ray-2.52.0-py3.11";
    assert_eq!(environments.remove(name)?, Removal::NotThere);
    let path = home.path().join(name);
    fs::create_dir_all(path.join("bin"))?;
    let making = environments.lock(&path).await?;
    assert!(environments.list()?[0].is_being_made);
    assert_eq!(environments.remove(name)?, Removal::BeingMade);
    assert!(path.join("bin").is_dir());
    drop(making);
    assert!(!environments.list()?[0].is_being_made);
    assert_eq!(environments.remove(name)?, Removal::Removed);
    assert!(!path.exists());
    Ok(())
}
