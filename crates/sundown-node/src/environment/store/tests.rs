//! What is in the cache and what is not.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use anyhow::Result;

use super::*;

mod failed;

fn in_directory(path: &Path) -> Environments {
    Environments::new(path.to_owned(), Rules::default())
}

async fn ray(environments: &Environments, python: Option<PythonVersion>) -> Wanted {
    let requirements = vec!["ray[default]==2.52.0".to_owned()];
    let wanted = environments.wanted("ray-2.52.0", requirements, python);
    wanted.await.expect("a version of usual length")
}

fn room(environments: &Environments, path: &Path, way: Way) -> Result<(), MakeError> {
    make_room(&environments.directory, environments.limits, path, way).map(drop)
}

fn a_mark(wanted: &Wanted, prefix: &Path) -> Mark {
    Mark {
        requirements: wanted.requirements.clone(),
        python: (3, 11),
        prefix: prefix.to_owned(),
        sources: Some(wanted.sources.list().to_vec()),
        bytes: Some(7),
    }
}

#[tokio::test]
async fn an_environment_without_its_mark_is_not_there() -> Result<()> {
    let home = tempfile::tempdir()?;
    let environments = in_directory(home.path());
    let image = "rayproject/ray:2.52.0-py311";
    assert_eq!(environments.standing(image).await, Standing::Missing);
    let wanted = ray(&environments, Some((3, 11))).await;
    let path = wanted.path.clone();
    mark::begin(&path)?;
    fs::create_dir(path.join("bin"))?;
    assert_eq!(environments.standing(image).await, Standing::Missing);
    mark::finish(&path, &a_mark(&wanted, home.path()))?;
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
    assert!(entry.is_whole && entry.is_current && entry.is_ours && entry.python == "3.11");
    assert_eq!(entry.sources, wanted.sources.list());
    Ok(())
}

#[tokio::test]
async fn a_name_that_no_directory_can_have_is_unavailable() -> Result<()> {
    let home = tempfile::tempdir()?;
    let environments = in_directory(home.path());
    for length in [250, 300, 3_000, 100_000] {
        let image = format!("rayproject/ray:{}", "1".repeat(length));
        let standing = environments.standing(&image).await;
        assert!(matches!(standing, Standing::Unavailable(_)), "{standing:?}");
        let made = environments.make(&image, &mut |_| {}).await;
        assert!(matches!(made, Err(MakeError::Unavailable(_))), "{made:?}");
    }
    for name in ["a/b", "..", ".hidden", &"a".repeat(300)] {
        assert_eq!(environments.path(name, &[], None), None, "{name:?}");
    }
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
    assert_eq!(plain.as_deref(), Some(Path::new("/cache/ray-1.0-py3")));
    let latest = path("ray-latest", &["ray[default]"]);
    assert_eq!(latest.as_deref(), Some(Path::new("/cache/ray-latest-py3")));
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
    let wanted = ray(&environments, None).await;
    mark::begin(&wanted.path)?;
    let fitting = a_mark(&wanted, home.path());
    let other = |sources: Option<Vec<String>>| Mark {
        sources,
        ..fitting.clone()
    };
    let image = "rayproject/ray:2.52.0";
    for (mark, is_the_one) in [
        (fitting.clone(), true),
        (other(None), false),
        (
            other(Some(vec!["https://checkout.example".to_owned()])),
            false,
        ),
        (
            Mark {
                requirements: vec!["ray[default]==2.9.0".to_owned()],
                ..fitting.clone()
            },
            false,
        ),
    ] {
        mark::finish(&wanted.path, &mark)?;
        let standing = environments.standing(image).await;
        assert_eq!(standing != Standing::Missing, is_the_one, "{mark:?}");
    }
    Ok(())
}

/// What a checkout's index left in the cache served every later project.
#[test]
fn another_index_makes_another_environment() {
    let environments = in_directory(Path::new("/cache"));
    let path = |of: &[&str]| {
        let told: Vec<String> = of.iter().map(|&it| it.to_owned()).collect();
        let path = environments.path("ray-1.0", &told, None);
        path.expect("a version of usual length")
    };
    let usual = path(&["ray[default]==1.0"]);
    let one = path(&["ray[default]==1.0", "from https://a.example"]);
    let other = path(&["ray[default]==1.0", "from https://b.example"]);
    assert_eq!(usual, Path::new("/cache/ray-1.0-py3"));
    assert!(one != usual && other != usual && one != other);
}

/// `env prune` took an environment away from the one who was just making it.
#[tokio::test]
async fn what_is_being_made_is_not_removed() -> Result<()> {
    let home = tempfile::tempdir()?;
    let environments = in_directory(home.path());
    let name = "ray-2.52.0-py3.11";
    assert_eq!(environments.remove(name)?, Removal::NotThere);
    let path = home.path().join(name);
    mark::begin(&path)?;
    fs::create_dir(path.join("bin"))?;
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

/// `env prune` removed every directory in the cache that had no mark of ours.
#[test]
fn a_directory_of_the_user_is_neither_listed_as_ours_nor_removed() -> Result<()> {
    let home = tempfile::tempdir()?;
    let environments = in_directory(home.path());
    fs::create_dir_all(home.path().join("thesis/chapters"))?;
    fs::write(home.path().join("thesis.lock"), "")?;
    let [entry] = &environments.list()?[..] else {
        panic!("not one");
    };
    assert!(!entry.is_ours && !entry.is_whole);
    assert_eq!(environments.remove("thesis")?, Removal::Foreign);
    assert!(home.path().join("thesis/chapters").is_dir());
    Ok(())
}

/// A process that was killed before the proof was written, or after it went, left an empty directory that
/// kept its name from being used for ever.
#[tokio::test]
async fn what_an_interrupted_making_or_removal_left_empty_is_made_again_or_removed() -> Result<()> {
    let home = tempfile::tempdir()?;
    let environments = in_directory(home.path());
    let wanted = ray(&environments, None).await;
    let interrupt = async || {
        drop(environments.lock(&wanted.path).await?);
        anyhow::Ok(fs::create_dir(&wanted.path)?)
    };
    interrupt().await?;
    let way = environments.ready(&wanted).unwrap_err();
    room(&environments, &wanted.path, way)?;
    assert!(!wanted.path.exists());
    interrupt().await?;
    let [entry] = &environments.list()?[..] else {
        panic!("not one");
    };
    assert!(entry.is_ours && !entry.is_whole && !entry.is_being_made);
    assert_eq!(environments.remove(&entry.name)?, Removal::Removed);
    assert!(!wanted.path.exists());
    Ok(())
}

/// What is put into it between the look and the removal stays.
#[tokio::test]
async fn a_directory_that_is_not_empty_any_more_stays() -> Result<()> {
    let home = tempfile::tempdir()?;
    let environments = in_directory(home.path());
    let wanted = ray(&environments, None).await;
    fs::create_dir(&wanted.path)?;
    fs::write(wanted.path.join("chapter"), "mine")?;
    let made = room(&environments, &wanted.path, Way::RemoveEmptyFirst);
    assert!(made.is_err());
    assert_eq!(fs::read_to_string(wanted.path.join("chapter"))?, "mine");
    Ok(())
}

#[tokio::test]
async fn a_directory_of_the_user_is_not_made_into_an_environment() -> Result<()> {
    let home = tempfile::tempdir()?;
    let environments = in_directory(home.path());
    let wanted = ray(&environments, None).await;
    fs::create_dir_all(wanted.path.join("chapters"))?;
    let way = environments.ready(&wanted).unwrap_err();
    let why = room(&environments, &wanted.path, way).unwrap_err();
    assert!(why.to_string().contains("was not made by Sundown"), "{why}");
    assert!(wanted.path.join("chapters").is_dir());
    Ok(())
}

/// Pods may run in one that does not fit any more: it is moved, and what is unfinished goes.
#[tokio::test]
async fn what_is_whole_is_set_aside_and_what_is_unfinished_is_removed() -> Result<()> {
    let home = tempfile::tempdir()?;
    let environments = in_directory(home.path());
    let wanted = ray(&environments, None).await;
    let before = Mark {
        sources: None,
        ..a_mark(&wanted, home.path())
    };
    mark::begin(&wanted.path)?;
    mark::finish(&wanted.path, &before)?;
    let way = environments.ready(&wanted).unwrap_err();
    room(&environments, &wanted.path, way)?;
    let [entry] = &environments.list()?[..] else {
        panic!("not one");
    };
    assert!(entry.is_whole && !entry.is_current && mark::is_aside(&entry.name));
    mark::begin(&wanted.path)?;
    let way = environments.ready(&wanted).unwrap_err();
    room(&environments, &wanted.path, way)?;
    assert!(!wanted.path.exists());
    Ok(())
}

#[tokio::test]
async fn a_full_cache_makes_nothing_more_and_removes_nothing() -> Result<()> {
    let home = tempfile::tempdir()?;
    let limits = Limits {
        count_max: 1,
        ..Limits::default()
    };
    let environments = in_directory(home.path()).limited(limits);
    let wanted = ray(&environments, None).await;
    room(&environments, &wanted.path, Way::Make)?;
    let there = home.path().join("ray-2.9.0-py3");
    mark::begin(&there)?;
    mark::finish(&there, &a_mark(&wanted, home.path()))?;
    // A directory of the user does not count.
    fs::create_dir(home.path().join("thesis"))?;
    let why = room(&environments, &wanted.path, Way::Make).unwrap_err();
    let why = why.to_string();
    assert!(why.contains("1 of at most 1 environments"), "{why}");
    let way = Way::SetAsideFirst;
    assert!(room(&environments, &there, way).is_err());
    assert!(why.contains("ray-2.9.0-py3"), "{why}");
    assert!(there.is_dir());
    Ok(())
}

/// Rules were read when a control plane began, while the advice was to add one.
#[tokio::test]
async fn a_rule_that_is_added_counts_at_the_next_look() -> Result<()> {
    let home = tempfile::tempdir()?;
    let rules = home.path().join("images.json");
    let environments = Environments::new(home.path().join("cache"), Rules::read(&rules)?);
    let Standing::Unavailable(why) = environments.standing("mine").await else {
        panic!("there is no rule");
    };
    assert!(why.contains("nothing stands for image"), "{why}");
    let write = |rule: serde_json::Value| fs::write(&rules, rule.to_string());
    write(serde_json::json!([{ "image": "mine", "like": "busybox" }]))?;
    let standing = environments.standing("mine").await;
    assert!(
        !matches!(&standing, Standing::Unavailable(why) if why.contains("nothing stands")),
        "{standing:?}"
    );
    write(serde_json::json!({ "image": "mine" }))?;
    let Standing::Unavailable(why) = environments.standing("mine").await else {
        panic!("the file is no list");
    };
    assert!(why.contains("are not a list of rules"), "{why}");
    Ok(())
}

#[tokio::test]
async fn a_rule_cannot_show_the_home_directory_to_pods() -> Result<()> {
    let home = tempfile::tempdir()?;
    let rules = home.path().join("images.json");
    let rule = serde_json::json!([{ "image": "mine", "prefix": home.path() }]);
    fs::write(&rules, rule.to_string())?;
    let hidden = Hidden::new([("the home directory", home.path().join("me"))]);
    let cache = home.path().join("cache");
    let environments = Environments::new(cache, Rules::read(&rules)?).hiding(hidden);
    let Standing::Unavailable(why) = environments.standing("mine").await else {
        panic!("pods would see it");
    };
    assert!(why.contains("holds the home directory"), "{why}");
    Ok(())
}

/// Its Python is run on the host, as the user of the control plane: who can replace it could do so too.
#[tokio::test]
async fn an_environment_that_others_may_write_is_not_asked_what_it_is() -> Result<()> {
    let home = tempfile::tempdir()?;
    let (prefix, marker) = (home.path().join("mine"), home.path().join("marker"));
    fs::create_dir_all(prefix.join("bin"))?;
    let python = prefix.join("bin/python");
    let script = format!("#!/bin/sh\ntouch {}\n", marker.display());
    sundown_testing::write_program(&python, &script)?;
    let rules = home.path().join("images.json");
    let rule = serde_json::json!([{ "image": "mine", "prefix": prefix }]);
    fs::write(&rules, rule.to_string())?;
    let environments = Environments::new(home.path().join("cache"), Rules::read(&rules)?);
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    // Else nothing below it is in reach of others.
    mode(home.path(), 0o755)?;
    for open in [&prefix, &prefix.join("bin"), &python] {
        mode(open, 0o777)?;
        let Standing::Unavailable(why) = environments.standing("mine").await else {
            panic!("others may write {}", open.display());
        };
        assert!(why.contains("cannot be trusted"), "{why}");
        assert!(why.contains(&*open.display().to_string()), "{why}");
        assert!(!marker.exists(), "a program that others may write was run");
        mode(open, 0o755)?;
    }
    let standing = environments.standing("mine").await;
    assert!(matches!(standing, Standing::Ready(_)), "{standing:?}");
    assert!(marker.exists(), "one that nobody else may write is asked");
    Ok(())
}

/// Everything below `/etc` was taken for shown; pods see a part of it, and a Python there was missing.
#[test]
fn only_what_pods_do_not_see_anyway_is_bound() {
    let of = |prefix: &str| virtual_environment(Path::new("/cache/e"), Path::new(prefix)).binds;
    for (prefix, is_bound) in [
        ("/usr", false),
        ("/opt/python", false),
        ("/lib/python", false),
        ("/etc/alternatives", false),
        ("/etc/profiles/python", true),
        ("/home/me/.pyenv/versions/3.11.7", true),
    ] {
        let binds = of(prefix);
        assert_eq!(binds.contains(&PathBuf::from(prefix)), is_bound, "{prefix}");
        assert!(binds.contains(&PathBuf::from("/cache/e")));
    }
}
