//! Which image stands for what.

use super::*;

fn recipe(image: &str) -> Result<Recipe, Unknown> {
    Rules::default().recipe(image)
}

fn ray(version: &str, requirement: &str, python: Option<PythonVersion>) -> Recipe {
    Recipe::Packages {
        name: format!("ray-{version}"),
        requirements: vec![requirement.to_owned()],
        python,
    }
}

#[test]
fn the_images_of_ray_are_its_packages() {
    let plain = ray("2.52.0", "ray[default]==2.52.0", None);
    assert_eq!(recipe("rayproject/ray:2.52.0"), Ok(plain));
    let chosen = ray("2.52.0", "ray[default]==2.52.0", Some((3, 11)));
    assert_eq!(
        recipe("rayproject/ray:2.52.0-py311-cpu"),
        Ok(chosen.clone())
    );
    assert_eq!(recipe("docker.io/rayproject/ray:2.52.0-py311"), Ok(chosen));
    assert_eq!(
        recipe("rayproject/ray"),
        Ok(ray("latest", "ray[default]", None))
    );
    assert!(recipe("rayproject/ray:nightly").is_err());
    assert!(recipe("rayproject/ray:2.52.0;rm").is_err(), "no version");
}

/// A version becomes a part of the name of a directory; one of 250 digits once ended the control plane.
#[test]
fn a_version_that_cannot_name_a_directory_is_refused_by_name() {
    let longest = "1".repeat(VERSION_LEN_MAX);
    assert!(recipe(&format!("rayproject/ray:{longest}")).is_ok());
    for (length, expect) in [
        (
            65,
            "names no version of Ray: that has 65 characters, and 64 is the most",
        ),
        (
            300,
            "names no version of Ray: that has 300 characters, and 64 is the most",
        ),
        (
            3_000,
            "is not a valid image name: it has 3015 characters, and 512 is the most",
        ),
        (
            100_000,
            "is not a valid image name: it has 100015 characters",
        ),
    ] {
        let image = format!("rayproject/ray:{}", "1".repeat(length));
        let text = recipe(&image).unwrap_err().to_string();
        assert!(text.contains(expect), "{length}: {text}");
        assert!(text.contains("\"rayproject/ray:1111"), "{length}: {text}");
        assert!(text.len() < 200, "{length}: {text}");
    }
    let rules = r#"[{"image": "mine", "like": "rayproject/ray:LONG"}]"#;
    let rules = rules.replace("LONG", &"1".repeat(80));
    let rules = Rules::parse(&rules, "images.json".to_owned()).unwrap();
    let text = rules.recipe("mine").unwrap_err().to_string();
    assert!(text.contains("names no version of Ray"), "{text}");
}

#[test]
fn small_images_are_the_tools_of_the_host() {
    let Ok(Recipe::Host { program, command }) = recipe("busybox:1.36") else {
        panic!("not the host");
    };
    assert_eq!((&*program, command), ("sh", vec!["sh".to_owned()]));
    assert_eq!(
        recipe("python:3.11-slim"),
        Ok(Recipe::Python {
            python: Some((3, 11))
        })
    );
    assert_eq!(recipe("python:3"), Ok(Recipe::Python { python: None }));
}

#[test]
fn an_unknown_image_is_told_with_the_rule_to_add() {
    let rules = Rules::parse("[]", "/home/me/images.json".to_owned()).unwrap();
    let text = rules.recipe("acme/train:3").unwrap_err().to_string();
    assert!(text.contains("/home/me/images.json"), "{text}");
    assert!(text.contains(r#""image": "acme/train:3""#), "{text}");
}

#[test]
fn the_rules_of_the_user_come_first_and_may_add_packages() {
    let text = r#"[
        {"image": "acme/*", "like": "rayproject/ray:2.52.0", "packages": ["torch==2.9"]},
        {"image": "busybox", "prefix": "/opt/tools"}
    ]"#;
    let rules = Rules::parse(text, "rules".to_owned()).unwrap();
    let Ok(Recipe::Packages { requirements, .. }) = rules.recipe("acme/train:3") else {
        panic!("no packages");
    };
    assert_eq!(requirements, ["ray[default]==2.52.0", "torch==2.9"]);
    let path = PathBuf::from("/opt/tools");
    assert_eq!(rules.recipe("busybox:1"), Ok(Recipe::Prefix { path }));
}

#[test]
fn malformed_rules_are_named() {
    let wrong = [
        ("{}", "not a list of rules"),
        (r#"[{"image": "a", "lik": "b"}]"#, "not a list of rules"),
        (r#"[{"image": "a"}]"#, "needs either"),
        (
            r#"[{"image": "a", "like": "b", "prefix": "/c"}]"#,
            "needs either",
        ),
        (r#"[{"image": "a", "prefix": "venv"}]"#, "absolute path"),
    ];
    for (text, why) in wrong {
        let error = Rules::parse(text, "rules".to_owned())
            .unwrap_err()
            .to_string();
        assert!(error.contains(why), "{error}");
    }
}
