//! What counts as ours, and what happens to it.

use anyhow::Result;
use tempfile::tempdir;

use super::*;

fn a_mark(prefix: &Path) -> Mark {
    Mark {
        requirements: vec!["ray[default]==2.52.0".to_owned()],
        python: (3, 11),
        prefix: prefix.to_owned(),
        sources: Some(Sources::usual().list().to_vec()),
        bytes: None,
    }
}

#[test]
fn only_a_mark_or_our_proof_makes_a_directory_ours() -> Result<()> {
    let home = tempdir()?;
    let at = |name: &str| home.path().join(name);
    assert_eq!(Found::at(&at("none")), Found::Nothing);
    fs::create_dir_all(at("theirs/bin"))?;
    fs::write(at("theirs.lock"), "")?;
    fs::write(at("a file"), "")?;
    fs::create_dir(at("empty"))?;
    fs::create_dir(at("interrupted"))?;
    fs::write(at("interrupted.lock"), "")?;
    fs::create_dir(at("odd"))?;
    fs::write(at("odd/sundown.json"), "{}")?;
    begin(&at("begun"))?;
    std::os::unix::fs::symlink(at("begun"), at("link"))?;
    fs::create_dir(at("borrowed"))?;
    std::os::unix::fs::symlink(at("begun").join(PROOF), at("borrowed").join(PROOF))?;
    begin(&at("whole"))?;
    finish(&at("whole"), &a_mark(home.path()))?;
    begin(&at("lonely"))?;
    finish(&at("lonely"), &a_mark(&at("gone")))?;
    for (name, expect) in [
        ("theirs", Found::Foreign),
        ("a file", Found::Foreign),
        ("empty", Found::Foreign),
        ("interrupted", Found::Empty),
        ("odd", Found::Foreign),
        ("link", Found::Foreign),
        ("borrowed", Found::Foreign),
        ("begun", Found::Unfinished),
        ("whole", Found::Whole(a_mark(home.path()))),
        ("lonely", Found::WithoutPython(a_mark(&at("gone")))),
    ] {
        assert_eq!(Found::at(&at(name)), expect, "{name}");
        assert_eq!(Found::at(&at(name)).is_ours(), expect != Found::Foreign);
    }
    Ok(())
}

#[test]
fn nothing_that_is_whole_or_foreign_is_removed_to_make_room() {
    let whole = Found::Whole(a_mark(Path::new("/")));
    let alone = Found::WithoutPython(a_mark(Path::new("/gone")));
    for (found, fits, expect) in [
        (Found::Nothing, false, Way::Make),
        (Found::Foreign, false, Way::Refuse),
        (Found::Empty, false, Way::RemoveEmptyFirst),
        (Found::Unfinished, false, Way::RemoveFirst),
        (alone.clone(), true, Way::RemoveFirst),
        (alone, false, Way::RemoveFirst),
        (whole.clone(), true, Way::Take),
        (whole, false, Way::SetAsideFirst),
    ] {
        assert_eq!(found.way(|_| fits), expect, "{found:?} {fits}");
    }
}

/// Versions before this one noted no sources, and took those of the working directory.
#[test]
fn an_environment_fits_only_with_the_sources_that_it_was_made_of() -> Result<()> {
    let usual = Sources::usual();
    let mark = a_mark(Path::new("/"));
    assert!(mark.fits(&mark.requirements, &usual));
    assert!(!mark.fits(&["ray".to_owned()], &usual));
    let other = Some(vec!["https://a.example".to_owned()]);
    for sources in [None, other] {
        let mark = Mark {
            sources,
            ..mark.clone()
        };
        assert!(!mark.fits(&mark.requirements, &usual), "{mark:?}");
    }
    let before = r#"{"requirements": ["ray"], "python": [3, 11], "prefix": "/usr"}"#;
    let before: Mark = serde_json::from_str(before)?;
    assert_eq!((before.sources, before.bytes), (None, None));
    Ok(())
}

#[test]
fn what_is_set_aside_is_kept_under_a_name_of_its_own() -> Result<()> {
    let home = tempdir()?;
    let path = home.path().join("ray-2.52.0-py3");
    for expect in ["ray-2.52.0-py3.old", "ray-2.52.0-py3.old2"] {
        begin(&path)?;
        fs::write(path.join("kept"), expect)?;
        let aside = set_aside(&path)?;
        assert_eq!(aside, home.path().join(expect));
        assert_eq!(fs::read_to_string(aside.join("kept"))?, expect);
        assert!(is_aside(expect) && !path.exists());
    }
    assert!(!is_aside("ray-2.52.0-py3") && !is_aside("a.older"));
    Ok(())
}

/// Full disks fail at any step. What had been begun kept the place, and the environment of before lay
/// aside, where nothing but a prune finds it.
#[test]
fn what_was_set_aside_comes_back_over_what_was_only_begun() -> Result<()> {
    let home = tempdir()?;
    let path = home.path().join("ray-2.52.0-py3");
    fs::write(lock_file(&path), "")?;
    for (begun, is_back) in [
        ("nothing", true),
        ("empty", true),
        ("unfinished", true),
        ("whole", false),
        ("foreign", false),
    ] {
        begin(&path)?;
        fs::write(path.join("kept"), begun)?;
        let aside = set_aside(&path)?;
        match begun {
            "empty" => fs::create_dir(&path)?,
            "unfinished" => begin(&path)?,
            "whole" => {
                begin(&path)?;
                finish(&path, &a_mark(home.path()))?;
            }
            "foreign" => fs::write(&path, "mine")?,
            _ => {}
        }
        put_back(&aside, &path)?;
        let kept = fs::read_to_string(path.join("kept"));
        assert_eq!(kept.is_ok_and(|it| it == begun), is_back, "{begun}");
        assert_eq!(aside.exists(), !is_back, "{begun}");
        fs::rename(&path, home.path().join(begun))?;
    }
    Ok(())
}

#[test]
fn room_is_counted_without_following_links() -> Result<()> {
    let home = tempdir()?;
    let path = home.path().join("a");
    fs::create_dir_all(path.join("b/c"))?;
    fs::write(path.join("b/c/x"), [0; 1000])?;
    fs::write(path.join("y"), [0; 24])?;
    fs::write(home.path().join("outside"), [0; 4096])?;
    fs::create_dir(home.path().join("much"))?;
    fs::write(home.path().join("much/z"), [0; 4096])?;
    std::os::unix::fs::symlink(home.path().join("much"), path.join("link"))?;
    let link = fs::symlink_metadata(path.join("link"))?.len();
    assert_eq!(bytes(&path), 1024 + link);
    Ok(())
}
