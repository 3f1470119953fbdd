//! Keys of the kernel: the session keyring of the process that started the node reaches no container, and
//! containers do not share one.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};
use keyutils_raw::{
    KEY_SPEC_SESSION_KEYRING, KEY_TYPE_USER, KeyringSerial, add_key, keyctl_get_keyring_id,
    keyctl_join_session_keyring, keyctl_read, keyctl_search,
};
use sundown_node::{ContainerSpec, HostPathKind, PodSpec, VolumeSource};
use sundown_testing::BOUND;

use crate::world::{World, a_pod, block_on, mount, sh, volume};

/// The argument by which the test binary tells which keys it has; the number of a key follows.
const SEES_KEYS: &str = "__sees-keys";

/// The key that the starter of the node has in its session.
const KEY: &str = "sundown-test-key";

/// Where containers find the test binary.
const BINARY: &str = "/it";

/// A program that looks for a key: by its name in the session keyring, and by its number.
pub(crate) fn role() -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    arguments.next().filter(|it| it == SEES_KEYS)?;
    let number = arguments.next()?.parse().ok()?;
    let key = KeyringSerial::new(number)?;
    let session = keyctl_get_keyring_id(KEY_SPEC_SESSION_KEYRING, false);
    let found = keyctl_search(KEY_SPEC_SESSION_KEYRING, KEY_TYPE_USER, KEY, None);
    println!(
        "session {} found {} read {}",
        session.map_or(0, KeyringSerial::get),
        found.is_ok(),
        keyctl_read(key, None).is_ok()
    );
    Some(ExitCode::SUCCESS)
}

/// What the program of [`role`] saw.
#[derive(Debug, PartialEq, Eq)]
struct Sight {
    session: i32,
    has_key: bool,
}

impl Sight {
    fn read(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["session", session, "found", found, "read", read] = words[..] else {
            anyhow::bail!("not a sight: {line:?}");
        };
        Ok(Self {
            session: session.parse()?,
            has_key: found.parse::<bool>()? || read.parse::<bool>()?,
        })
    }
}

/// A pod in which the test binary is, and a container that looks for the key and stays.
fn a_looking_pod(uid: &str, look: &str) -> Result<(PodSpec, ContainerSpec)> {
    let mut pod = a_pod(uid);
    let path = std::env::current_exe()?;
    let kind = HostPathKind::File;
    pod.volumes
        .push(volume("it", VolumeSource::HostPath { path, kind }));
    let mut container = sh(&format!("{look}; sleep 1000"));
    container.mounts = vec![mount("it", BINARY)];
    Ok((pod, container))
}

pub(crate) fn keys_of_the_starter_reach_no_container() -> Result<()> {
    // Of this thread, which starts the node. A machine without keys has nothing to hide.
    let joined = keyctl_join_session_keyring(None);
    let added = joined.and_then(|_| {
        let payload = b"secret";
        add_key(KEY_TYPE_USER, KEY, payload, KEY_SPEC_SESSION_KEYRING)
    });
    let key = match added {
        Ok(key) => key.get().to_string(),
        Err(error) => {
            println!("skipped: this machine keeps no keys: {error}");
            return Ok(());
        }
    };
    let mut look = Command::new(std::env::current_exe()?);
    let here = sundown_testing::output(look.args([SEES_KEYS, &key]))?;
    let here = Sight::read(&String::from_utf8(here.stdout)?)?;
    ensure!(here.has_key, "the test itself is blind: {here:?}");
    block_on(async {
        let world = World::new().await?;
        let look = format!("{BINARY} {SEES_KEYS} {key}");
        let mut sessions = vec![here.session];
        for uid in ["one", "two"] {
            let (pod, container) = a_looking_pod(uid, &look)?;
            world.run(pod, container).await?;
            let argv = ["sh", "-c", &look].map(str::to_owned).to_vec();
            let later = world.node.exec(uid, "main", argv, BOUND, 10_000).await?;
            sundown_testing::eventually(format!("{uid} to look"), || {
                world.log(uid).is_ok_and(|log| !log.is_empty())
            })
            .await?;
            for line in [world.log(uid)?, later.output] {
                let sight = Sight::read(&line).with_context(|| uid.to_owned())?;
                ensure!(!sight.has_key, "{uid}: {sight:?}");
                ensure!(
                    !sessions.contains(&sight.session),
                    "{uid}: {sight:?} is shared with one of {sessions:?}"
                );
                sessions.push(sight.session);
            }
        }
        world.close().await
    })
}
