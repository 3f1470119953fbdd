//! What a container sees of the host, and its volumes.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use sundown_node::{HostPathKind, PodState, VolumeSource};

use crate::world::{World, a_pod, block_on, files, mount, sh, volume};

const ON_DISK: VolumeSource = VolumeSource::EmptyDir {
    in_memory: false,
    bytes_max: None,
};

pub(crate) fn mount_paths_need_not_exist_on_the_host() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let places = [
            "/usr/share/sundown-test/deep/er",
            "/usr/sundown-test",
            "/home/ray/samples",
            "/opt/data",
            "/var/run/secrets/kubernetes.io/serviceaccount",
            "/brand/new",
            "/etc/config",
        ];
        let mut pod = a_pod("places");
        pod.volumes.push(volume(
            "script",
            files(&[("job.py", "print(1)"), ("sub/two", "2")]),
        ));
        let list = places
            .map(|place| format!("cat {place}/job.py {place}/sub/two; echo;"))
            .join(" ");
        let script = format!(
            "{list} ls /usr/share/doc > /dev/null && ls /usr/bin/env && touch /usr/x 2>/dev/null; echo $?
            for d in /usr /usr/share /usr/share/sundown-test; do touch $d/y 2>/dev/null && echo wrote $d; done; true"
        );
        let mut container = sh(&script);
        container.mounts = places.iter().map(|place| mount("script", place)).collect();
        world.run(pod, container).await?;
        let (exit, log) = world.finish("places").await?;
        ensure!(exit.code == 0, "{exit:?} {log}");
        let expected = "print(1)2\n".repeat(places.len()) + "/usr/bin/env\n";
        ensure!(log.starts_with(&expected) && log.ends_with("\n1"), "{log}");
        for place in places {
            ensure!(
                !PathBuf::from(place).join("job.py").exists(),
                "{place} is on the host"
            );
        }
        world.close().await
    })
}

pub(crate) fn the_host_is_read_only_and_homes_are_fresh() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let script = "for f in /usr/x /etc/x /opt/x /bin/x /sys/x /proc/sys/kernel/hostname; do
                (echo 1 > $f) 2>/dev/null && echo wrote $f; done
            mount -o remount,rw /usr 2>/dev/null && echo remounted
            mount -t tmpfs none /mnt 2>/dev/null && echo mounted
            ls -A /home /root /tmp; for d in home root tmp var/tmp run dev/shm; do touch /$d/a || echo $d; done; echo fresh
            stat -f -c %T /dev/shm; ls /dev/null /dev/pts/ptmx /dev/fd/0; echo > /dev/null";
        let (exit, log) = world.script("fresh", script).await?;
        let expected =
            "/home:\n\n/root:\n\n/tmp:\nfresh\ntmpfs\n/dev/fd/0\n/dev/null\n/dev/pts/ptmx";
        ensure!(exit.code == 0 && log == expected, "{exit:?} {log}");
        world.close().await
    })
}

pub(crate) fn secrets_are_on_no_disk() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let mark = format!("secret-{}", std::process::id());
        let mut pod = a_pod("secretive");
        pod.volumes
            .push(volume("secret", files(&[("token", &mark)])));
        let mut container =
            sh("stat -f -c %T /etc/token/token; cat /etc/token/token | wc -c; sleep 1000");
        container.mounts.push(mount("secret", "/etc/token"));
        container.env.push(("PASSWORD".to_owned(), mark.clone()));
        world.run(pod, container).await?;
        let size = format!("tmpfs\n{}", mark.len());
        world.says("secretive", &size).await?;
        ensure!(
            search(world.path(), &mark)?.is_none(),
            "{:?}",
            search(world.path(), &mark)?
        );
        world.close().await
    })
}

/// A file below a directory that holds a mark.
fn search(directory: &std::path::Path, mark: &str) -> Result<Option<PathBuf>> {
    let entries = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            if let Some(found) = search(&path, mark)? {
                return Ok(Some(found));
            }
        } else if path.is_file() {
            let content = std::fs::read(&path).with_context(|| path.display().to_string())?;
            if String::from_utf8_lossy(&content).contains(mark) {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

pub(crate) fn containers_share_volumes_and_shm() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let mut pod = a_pod("shared");
        pod.volumes.push(volume("disk", ON_DISK));
        let in_memory = VolumeSource::EmptyDir {
            in_memory: true,
            bytes_max: Some(1 << 20),
        };
        pod.volumes.push(volume("memory", in_memory));
        let mut writer = sh(
            "echo a > /data/f; echo b > /memory/f; echo c > /dev/shm/f; echo d > /tmp/f
            head -c 2000000 /dev/zero > /memory/big 2>/dev/null || echo full; rm -f /memory/big",
        );
        writer.mounts = vec![mount("disk", "/data"), mount("memory", "/memory")];
        world.run(pod, writer).await?;
        world.end("shared").await?;
        ensure!(world.log("shared")? == "full");
        let mut reader = sh("cat /data/f /memory/f /dev/shm/f; ls /tmp
            for at in /data /memory; do (echo x > $at/g) 2>/dev/null || echo sealed; done");
        "second".clone_into(&mut reader.name);
        reader.mounts = vec![mount("disk", "/data"), mount("memory", "/memory")];
        for each in &mut reader.mounts {
            each.read_only = true;
        }
        world.node.start_container("shared", reader).await?;
        world
            .until("shared", |pod| {
                pod.container("second")
                    .is_some_and(|each| !each.is_running())
            })
            .await?;
        let log = std::fs::read_to_string(world.node.pod_paths("shared").log("second", 0))?;
        let words: Vec<&str> = log
            .lines()
            .filter_map(|line| line.rsplit(' ').next())
            .collect();
        ensure!(words == ["a", "b", "c", "sealed", "sealed"], "{log}");
        world.close().await
    })
}

pub(crate) fn host_paths_are_checked() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let here = tempfile::tempdir()?;
        std::fs::write(here.path().join("file"), "from the host")?;
        let source = |name: &str, kind| VolumeSource::HostPath {
            path: here.path().join(name),
            kind,
        };
        let mut pod = a_pod("hosted");
        pod.volumes
            .push(volume("file", source("file", HostPathKind::File)));
        pod.volumes.push(volume(
            "made",
            source("made/here", HostPathKind::DirectoryOrCreate),
        ));
        let mut container = sh("cat /in/file; echo back > /out/file");
        container.mounts = vec![mount("file", "/in/file"), mount("made", "/out")];
        world.run(pod, container).await?;
        let (exit, log) = world.finish("hosted").await?;
        ensure!(exit.code == 0 && log == "from the host", "{exit:?} {log}");
        ensure!(std::fs::read_to_string(here.path().join("made/here/file"))? == "back\n");
        for (name, kind, words) in [
            ("file", HostPathKind::Directory, "is not a directory"),
            ("made", HostPathKind::File, "is not a file"),
            ("nothing", HostPathKind::Any, "No such file"),
        ] {
            let mut pod = a_pod("wrong");
            pod.volumes.push(volume("it", source(name, kind)));
            let error = world.node.create_pod(pod).await.unwrap_err().to_string();
            ensure!(
                error.contains("set up volume it") && error.contains(words),
                "{error}"
            );
        }
        ensure!(world.node.snapshot().await?.is_empty());
        world.close().await
    })
}

/// A link is made to lead elsewhere after the pod was made: what counts is what is mounted.
pub(crate) fn a_link_does_not_lead_around_the_closed_paths() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let here = tempfile::tempdir()?;
        let at = |name: &str| here.path().join(name);
        for name in ["closed/inner", "project"] {
            std::fs::create_dir_all(at(name))?;
        }
        symlink("/", at("root"))?;
        symlink(at("closed"), at("link"))?;
        symlink(at("project"), at("turns"))?;
        let hosted = |uid: &str, name: &str, kind| {
            let mut pod = a_pod(uid);
            pod.closed.close("the data directory", at("closed"));
            let path = at(name);
            let source = VolumeSource::HostPath { path, kind };
            pod.volumes.push(volume("host", source));
            pod
        };
        for (name, kind) in [
            ("root", HostPathKind::Any),
            ("link", HostPathKind::Directory),
            ("link/inner", HostPathKind::Any),
            ("link/new", HostPathKind::DirectoryOrCreate),
            ("closed/../link/file", HostPathKind::FileOrCreate),
        ] {
            let refused = world.node.create_pod(hosted("refused", name, kind)).await;
            let error = refused.unwrap_err().to_string();
            ensure!(error.contains("is refused: it "), "{name}: {error}");
        }
        let left: Vec<_> = std::fs::read_dir(at("closed"))?.collect::<Result<_, _>>()?;
        ensure!(left.len() == 1, "nothing was made: {left:?}");
        let pod = hosted("turned", "turns", HostPathKind::Directory);
        let mut container = sh("echo x > /data/file");
        container.mounts = vec![mount("host", "/data")];
        world.run(pod, container.clone()).await?;
        ensure!(world.end("turned").await?.code == 0);
        ensure!(at("project/file").exists());
        std::fs::remove_file(at("turns"))?;
        symlink(at("closed"), at("turns"))?;
        container.attempt = 1;
        let state = world.node.start_container("turned", container).await?;
        let exit = state.container("main").and_then(|each| each.exit());
        let message = exit.map(|exit| exit.message.clone()).unwrap_or_default();
        ensure!(message.contains("it is the data directory"), "{message}");
        ensure!(!at("closed/file").exists());
        world.close().await
    })
}

pub(crate) fn a_sub_path_cannot_leave_its_volume() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let here = tempfile::tempdir()?;
        symlink("/etc", here.path().join("out"))?;
        let mut pod = a_pod("sub");
        let path = here.path().to_owned();
        let kind = HostPathKind::Directory;
        pod.volumes
            .push(volume("host", VolumeSource::HostPath { path, kind }));
        pod.volumes
            .push(volume("script", files(&[("a.py", "print(2)")])));
        let mut good = sh("echo x > /data/f; cat /app/job.py");
        good.mounts = vec![mount("host", "/data"), mount("script", "/app/job.py")];
        good.mounts[0].sub_path = Some("new/dir".into());
        good.mounts[1].sub_path = Some("a.py".into());
        world.run(pod, good).await?;
        let exit = world.end("sub").await?;
        ensure!(
            exit.code == 0 && world.log("sub")? == "print(2)",
            "{exit:?} {}",
            world.log("sub")?
        );
        ensure!(here.path().join("new/dir/f").exists());
        for (attempt, wrong) in [(1, "out"), (2, "../..")] {
            let mut bad = sh("cat /data/hosts");
            bad.attempt = attempt;
            bad.mounts = vec![mount("host", "/data")];
            bad.mounts[0].sub_path = Some(wrong.into());
            let state = world.node.start_container("sub", bad).await?;
            let exit = state
                .container("main")
                .and_then(|each| each.exit())
                .unwrap();
            ensure!(exit.message.contains("mount a volume at /data"), "{exit:?}");
        }
        world.close().await
    })
}

/// Both looked, found nothing and made it; the second failed to start.
pub(crate) fn two_containers_make_the_same_directories_at_once() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let mut pod = a_pod("both");
        pod.volumes.push(volume("disk", ON_DISK));
        world.node.create_pod(pod).await?;
        for round in 0..20 {
            let container = |name: &str| {
                let mut container = sh("exit 0");
                name.clone_into(&mut container.name);
                container.attempt = round;
                container.mounts = vec![mount("disk", "/data"), mount("disk", "/all")];
                let new = format!("a{round}/b/c/d/e/f/g/h");
                container.mounts[0].sub_path = Some(new.into());
                container
            };
            let (one, other) = tokio::join!(
                world.node.start_container("both", container("one")),
                world.node.start_container("both", container("other")),
            );
            for (name, state) in [("one", one?), ("other", other?)] {
                let exit = state.container(name).and_then(|each| each.exit());
                ensure!(exit.is_none_or(|it| it.code == 0), "{name}: {exit:?}");
            }
            let has_ended = |state: &PodState, name: &str| {
                let container = state.container(name);
                container.and_then(|each| each.exit()).is_some()
            };
            world
                .until("both", |it| has_ended(it, "one") && has_ended(it, "other"))
                .await?;
        }
        world.close().await
    })
}

pub(crate) fn a_read_only_root_keeps_volumes_writable() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let mut pod = a_pod("sealed");
        pod.volumes.push(volume("disk", ON_DISK));
        let mut container = sh(
            "for f in /x /tmp/x /home/x /var/x; do (echo 1 > $f) 2>/dev/null && echo wrote $f; done
            echo 1 > /tmp/data/x && echo 1 > /dev/shm/x && echo done",
        );
        container.mounts.push(mount("disk", "/tmp/data"));
        container.read_only_root = true;
        world.run(pod, container).await?;
        let (exit, log) = world.finish("sealed").await?;
        ensure!(exit.code == 0 && log == "done", "{exit:?} {log}");
        world.close().await
    })
}
