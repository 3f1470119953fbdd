//! Containers from their start to their record.

use std::time::Duration;

use anyhow::{Result, ensure};
use sundown_node::{ContainerState, ExitReason, RunAs};
use sundown_testing::BOUND;

use crate::world::{World, a_container, a_pod, block_on, key, processes_with, sh};

pub(crate) fn exit_codes_and_signals_are_recorded() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        for (uid, script, code, signal) in [
            ("zero", "echo out; echo err >&2", 0, None),
            ("three", "exit 3", 3, None),
            ("term", "kill -TERM $$", 143, Some(15)),
            ("kill", "kill -KILL $$", 137, Some(9)),
        ] {
            let (exit, log) = world.script(uid, script).await?;
            ensure!(
                (exit.code, exit.signal) == (code, signal),
                "{uid}: {exit:?}"
            );
            ensure!(exit.kubelet_code() == code, "{uid}: {exit:?}");
            ensure!(exit.started_at <= exit.finished_at, "{uid}: {exit:?}");
            let reason = if code == 0 {
                ExitReason::Completed
            } else {
                ExitReason::Error
            };
            ensure!(exit.reason == reason, "{uid}: {exit:?}");
            if uid == "zero" {
                ensure!(log.contains("out") && log.contains("err"), "{log}");
            }
        }
        world.close().await
    })
}

pub(crate) fn a_command_that_is_not_there_says_so() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        for (uid, program, code, message) in [
            (
                "name",
                "no-such-program",
                127,
                "exec: \"no-such-program\": executable file not found in $PATH",
            ),
            (
                "path",
                "/no/such",
                127,
                "exec: \"/no/such\": stat /no/such: no such file or directory",
            ),
            (
                "text",
                "/etc/hosts",
                126,
                "exec: \"/etc/hosts\": permission denied",
            ),
        ] {
            let state = world.run(a_pod(uid), a_container(&[program])).await?;
            let Some(ContainerState::Exited(exit)) = state.container("main") else {
                anyhow::bail!("{state:?}");
            };
            ensure!(exit.code == code && exit.kubelet_code() == 128, "{exit:?}");
            ensure!(
                exit.reason == ExitReason::StartError && exit.message == message,
                "{exit:?}"
            );
        }
        world.close().await
    })
}

pub(crate) fn attempts_are_started_once() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let pod = a_pod("again");
        let first = world.run(pod.clone(), sh("echo once; exit 1")).await?;
        ensure!(world.node.create_pod(pod).await?.address == first.address);
        world.end("again").await?;
        let same = world
            .node
            .start_container("again", sh("echo twice"))
            .await?;
        ensure!(
            same.container("main")
                .and_then(ContainerState::exit)
                .is_some_and(|exit| exit.code == 1)
        );
        let mut next = sh("echo twice; sleep 1000");
        next.attempt = 1;
        let state = world.node.start_container("again", next.clone()).await?;
        ensure!(
            state.containers["main"].attempt == 1 && state.containers["main"].state.is_running()
        );
        next.attempt = 2;
        ensure!(
            world.node.start_container("again", next).await.is_err(),
            "attempt 1 still runs"
        );
        ensure!(world.log("again")? == "once");
        world.close().await
    })
}

pub(crate) fn a_pod_that_ignores_sigterm_is_removed() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let mark = format!("ignore-{}", std::process::id());
        let script = format!("trap '' TERM; echo ready; : {mark}; while :; do sleep 1000; done");
        world.run(a_pod("stubborn"), sh(&script)).await?;
        world.says("stubborn", "ready").await?;
        world.node.signal(key("stubborn"), 15).await?;
        let still = world
            .node
            .exec("stubborn", "main", vec!["true".into()], BOUND, 100);
        ensure!(still.await?.code == Some(0));
        ensure!(!processes_with(&mark).is_empty());
        world.node.remove_pod("stubborn").await?;
        ensure!(
            processes_with(&mark).is_empty(),
            "{:?}",
            processes_with(&mark)
        );
        world.close().await
    })
}

pub(crate) fn a_double_fork_dies_with_its_container() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let mark = format!("8{}", std::process::id());
        let script =
            format!("(setsid sh -c 'sleep {mark} & sleep {mark}' >/dev/null 2>&1 &) ; sleep 0.2");
        world.run(a_pod("forks"), sh(&script)).await?;
        let exit = world.end("forks").await?;
        ensure!(exit.code == 0, "{exit:?}");
        let left = processes_with(&format!("sleep\0{mark}"));
        ensure!(left.is_empty(), "left: {left:?}");
        world.close().await
    })
}

pub(crate) fn signals_reach_the_command() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let script = "trap 'echo hup' HUP; trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done";
        world.run(a_pod("signals"), sh(script)).await?;
        for (signal, log) in [(1, "ready"), (15, "ready\nhup")] {
            world.says("signals", log).await?;
            world.node.signal(key("signals"), signal).await?;
        }
        let (exit, log) = world.finish("signals").await?;
        ensure!(exit.code == 7 && log == "ready\nhup\nbye", "{exit:?} {log}");
        ensure!(
            world.node.signal(key("killed"), 99).await.is_err(),
            "no such signal"
        );
        world
            .run(a_pod("killed"), sh("trap '' TERM; sleep 1000"))
            .await?;
        world.node.signal(key("killed"), 9).await?;
        let exit = world.end("killed").await?;
        ensure!((exit.code, exit.signal) == (137, Some(9)), "{exit:?}");
        world.node.signal(key("killed"), 15).await?;
        world.close().await
    })
}

pub(crate) fn what_the_starter_ignores_reaches_containers() -> Result<()> {
    block_on(async {
        let world = World::started_behind_a_shell().await?;
        let (_, log) = world
            .script("asks", "grep SigIgn /proc/self/status")
            .await?;
        let mask = log.split_whitespace().last().unwrap_or_default();
        let mask = u64::from_str_radix(mask, 16)?;
        // Two above the usual ones belong to the C library.
        ensure!(mask.trailing_zeros() >= 31, "{log}");
        world.close().await
    })
}

pub(crate) fn a_log_without_end_is_bounded() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let script = "yes 0123456789012345678901234567890123456789012345678901234567890123456789 \
            | head -c 67108864; echo; echo last";
        world.run(a_pod("chatty"), sh(script)).await?;
        world.end("chatty").await?;
        let path = world.node.pod_paths("chatty").log("main", 0);
        let old = path.with_extension("log.1");
        for file in [&path, &old] {
            let length = std::fs::metadata(file)?.len();
            ensure!(length <= 10 << 20, "{}: {length}", file.display());
        }
        ensure!(std::fs::metadata(&old)?.len() > 9 << 20);
        ensure!(world.log("chatty")?.ends_with("\nlast"));
        world.close().await
    })
}

pub(crate) fn commands_run_inside_a_container() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let mut container = sh("echo inside > /tmp/file; echo ready; sleep 1000");
        container.env.push(("COLOUR".to_owned(), "blue".to_owned()));
        world.run(a_pod("shell"), container).await?;
        world.says("shell", "ready").await?;
        let exec = async |script: &str, timeout| {
            let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
            world.node.exec("shell", "main", argv, timeout, 10).await
        };
        let patient = BOUND;
        let found = exec("cat /tmp/file; hostname >&2; exit 4", patient).await?;
        ensure!(
            found.code == Some(4) && found.output == "inside\nshe" && found.is_truncated,
            "{found:?}"
        );
        let found = exec("echo $COLOUR; ps ax | grep -c pod", patient).await?;
        ensure!(found.output.starts_with("blue"), "{found:?}");
        let found = exec("yes", Duration::from_millis(300)).await?;
        ensure!(found.code.is_none(), "{found:?}");
        // Out of its group, so that only the process itself can be reached.
        let leaves = "import os, time; os.setpgid(0, 1); time.sleep(1000)";
        let leaves = ["python3", "-c", leaves].map(str::to_owned).to_vec();
        let timeout = Duration::from_secs(2);
        let found = world.node.exec("shell", "main", leaves, timeout, 100);
        let found = found.await?;
        ensure!(found.code.is_none(), "{found:?}");
        let missing = world
            .node
            .exec("shell", "main", vec!["nothing".into()], patient, 100)
            .await?;
        ensure!(missing.code == Some(127), "{missing:?}");
        ensure!(
            world
                .node
                .exec("shell", "other", vec!["true".into()], patient, 100)
                .await
                .is_err()
        );
        world.close().await
    })
}

pub(crate) fn the_choice_of_isolation_is_told() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let isolation = world.node.isolation().clone();
        ensure!(
            isolation.rootless != rustix::process::geteuid().is_root(),
            "{isolation:?}"
        );
        println!("isolation: {}", isolation.reason);
        let (_, log) = world
            .script(
                "who",
                "id -u; hostname; cat /proc/sys/kernel/hostname; grep -c . /proc/self/uid_map",
            )
            .await?;
        ensure!(log == "0\nwho\nwho\n1", "{log}");
        world.close().await
    })
}

pub(crate) fn a_container_knows_its_home_and_its_name() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let asks = "echo $HOME $HOSTNAME; cd && pwd; grep -c named.set.default.svc /etc/hosts";
        let mut pod = a_pod("named");
        pod.domain = Some("set.default.svc.cluster.local".to_owned());
        world.run(pod, sh(asks)).await?;
        let (_, log) = world.finish("named").await?;
        ensure!(log == "/root named\n/root\n1", "{log}");
        let mut container = sh("echo $HOME $HOSTNAME; grep told /etc/hosts | cut -f2-");
        for (name, value) in [("HOME", "/tmp"), ("HOSTNAME", "mine")] {
            container.env.push((name.to_owned(), value.to_owned()));
        }
        world.run(a_pod("told"), container).await?;
        let (_, log) = world.finish("told").await?;
        ensure!(log == "/tmp mine\ntold", "{log}");
        world.close().await
    })
}

pub(crate) fn another_user_runs_where_there_is_one() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let mut container = sh(
            "id -u; id -g; echo out > /dev/stdout; touch /tmp/mine; test -x /root && echo through",
        );
        container.run_as = Some(RunAs {
            user: 1000,
            group: 1001,
        });
        world.run(a_pod("other"), container).await?;
        let exit = world.end("other").await?;
        if world.node.isolation().rootless {
            ensure!(exit.reason == ExitReason::StartError, "{exit:?}");
        } else {
            ensure!(exit.code == 0, "{exit:?}");
            ensure!(world.log("other")? == "1000\n1001\nout\nthrough");
        }
        world.close().await
    })
}
