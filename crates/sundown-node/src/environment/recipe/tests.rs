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
    ];
    for (text, why) in wrong {
        let error = Rules::parse(text, "rules".to_owned())
            .unwrap_err()
            .to_string();
        assert!(error.contains(why), "{error}");
    }
}
