//! A recorded flight is flown again and is the same; secrets are not in it.

use anyhow::{Context, Result, bail};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use sundown_driver::read_flight;
use sundown_embedded::controllers::Selection;
use sundown_engine::flight::{self, Record, Replayed};

use crate::world::{a_world, config_maps, create, create_finished_job, delete, jobs};
use sundown_testing::{BOUND, TestBound};

const SECRET: &str = "hunter2-in-the-clear";

#[tokio::test]
async fn a_flight_replays_the_same_and_holds_no_secret() -> Result<()> {
    let _bound = TestBound::of_this_test();
    let directory = tempfile::tempdir()?;
    let embedded = a_world().flight_record(directory.path()).start().await?;
    let api = config_maps(embedded.client());
    let owner = create(&api, "owner", &[]).await?;
    create(&api, "child", &[&owner]).await?;
    keep_a_secret(&embedded).await?;
    create_finished_job(&jobs(embedded.client()), "done", 60).await?;
    tells_no_secret(&embedded).await?;
    delete(&api, "owner", &DeleteParams::orphan()).await?;
    embedded.until_at_rest(BOUND).await?;
    embedded.stop().await?;

    let mut turn_count = 0;
    let flight = read_flight(directory.path())?;
    assert!(flight.cut_off.is_empty());
    let mut engine = None;
    for record in flight.records {
        if let Record::Begin { controllers, .. } = &record {
            let selection = Selection::only(controllers.iter().map(String::as_str))?;
            engine = Some(selection.engine_with_server(sundown_engine::Config::default()));
        }
        let engine = engine.as_mut().context("a flight has a beginning")?;
        match flight::replay(engine, record).map_err(anyhow::Error::msg)? {
            None => {}
            Some(Replayed::Same { .. }) => turn_count += 1,
            Some(Replayed::Differs { recorded, now, .. }) => {
                bail!("recorded {recorded:?}, now {now:?}")
            }
        }
    }
    assert!(turn_count > 5, "{turn_count} turns");

    for file in std::fs::read_dir(directory.path())? {
        let text = std::fs::read_to_string(file?.path())?;
        assert!(text.contains("child"), "the record tells of objects");
        assert!(!text.contains(SECRET));
        assert!(
            !text.contains("aHVudGVyMi1pbi10aGUtY2xlYXI="),
            "nor in base64"
        );
    }
    Ok(())
}

/// Neither Events nor what the controllers say of an object.
async fn tells_no_secret(embedded: &sundown_embedded::Embedded) -> Result<()> {
    embedded.until_at_rest(BOUND).await?;
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::all(embedded.client());
    let events = events.list(&kube::api::ListParams::default()).await?;
    let told = serde_json::to_string(&events.items)?;
    assert!(!told.contains(SECRET), "{told}");
    Ok(())
}

/// In a Secret, and in every text of a Job.
async fn keep_a_secret(embedded: &sundown_embedded::Embedded) -> Result<()> {
    let secrets: Api<k8s_openapi::api::core::v1::Secret> =
        Api::default_namespaced(embedded.client());
    let secret = json!({ "metadata": { "name": "keys" }, "stringData": { "password": SECRET } });
    let params = PostParams::default();
    secrets
        .create(&params, &serde_json::from_value(secret)?)
        .await?;
    let job = json!({
        "metadata": {
            "name": "job", "labels": { "team": SECRET }, "annotations": { "note": SECRET },
        },
        "spec": { "template": { "metadata": { "annotations": { "note": SECRET } }, "spec": {
            "restartPolicy": "Never", "containers": [{
                "name": "main", "image": "busybox", "command": ["sh", "-c", SECRET], "args": [SECRET],
                "env": [{ "name": "KEY", "value": SECRET }],
                "livenessProbe": { "httpGet": {
                    "path": SECRET, "port": 80, "httpHeaders": [{ "name": "A", "value": SECRET }],
                } },
            }],
        } } },
    });
    jobs(embedded.client())
        .create(&params, &serde_json::from_value(job)?)
        .await?;
    Ok(())
}
