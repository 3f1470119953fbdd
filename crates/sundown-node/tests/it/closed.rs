//! What a container does not get: descriptors of whoever started the node, rights, the machine's own
//! settings, more memory than it was given. Nothing here changes the machine where it gets through: a mode
//! is set to what it is already.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use rustix::fs::StatVfsMountFlags;
use sundown_node::{ContainerSpec, ContainerState, HostPathKind, VolumeSource};
use sundown_testing::{BOUND, eventually, within};

use crate::world::{World, a_container, a_pod, block_on, files, mount, sh, volume};

/// The argument by which the test binary tells how it sees its own file.
const SEES_ITSELF: &str = "__sees-itself";

/// Rights that stay to root, as the kernel prints them: the usual ones of containers without those to
/// make devices and to write packets as it likes.
const RIGHTS: &str = "00000000a00405fb";

/// A program that is run inside a container by the name of its own file.
pub(crate) fn role() -> Option<ExitCode> {
    std::env::args().nth(1).filter(|it| it == SEES_ITSELF)?;
    let found = rustix::fs::statvfs("/proc/self/exe").unwrap();
    println!(
        "read-only: {}",
        found.f_flag.contains(StatVfsMountFlags::RDONLY)
    );
    Some(ExitCode::SUCCESS)
}

/// Runs a script in a container that stays.
async fn exec(world: &World, uid: &str, script: &str) -> Result<String> {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    let found = world.node.exec(uid, "main", argv, BOUND, 10_000).await?;
    ensure!(found.code == Some(0), "{found:?}");
    Ok(found.output)
}

/// The log of a container that stays, once it has so many lines.
async fn log_of_lines(world: &World, uid: &str, count: usize) -> Result<String> {
    let mut log = Ok(String::new());
    let waited = eventually(format!("{uid} to write {count} lines"), || {
        log = world.log(uid);
        log.as_ref().map_or(true, |it| it.lines().count() >= count)
    });
    let waited = waited.await;
    let log = log?;
    waited.with_context(|| format!("{uid} wrote {log:?}"))?;
    Ok(log)
}

pub(crate) fn what_the_starter_left_open_reaches_no_container() -> Result<()> {
    block_on(async {
        let world = World::started_with_directories_open().await?;
        let script = "ls /proc/self/fd; sleep 1000";
        world.run(a_pod("open"), sh(script)).await?;
        // The last one is what `ls` reads the list through.
        let expected = "0\n1\n2\n3";
        let log = log_of_lines(&world, "open", 4).await?;
        ensure!(log == expected, "{log}");
        let found = exec(&world, "open", "ls /proc/self/fd").await?;
        ensure!(found.trim() == expected, "{found}");
        world.close().await
    })
}

pub(crate) fn a_working_directory_does_not_lead_through_proc() -> Result<()> {
    block_on(async {
        let world = World::started_with_directories_open().await?;
        let here = tempfile::tempdir()?;
        std::os::unix::fs::symlink("/proc/self/cwd", here.path().join("link"))?;
        let mut pod = a_pod("where");
        let path = here.path().to_owned();
        let kind = HostPathKind::Directory;
        pod.volumes
            .push(volume("host", VolumeSource::HostPath { path, kind }));
        world.node.create_pod(pod).await?;
        let at = |attempt: u32, directory: &str| {
            let mut container = sh("pwd");
            container.attempt = attempt;
            container.working_directory = Some(directory.into());
            container.mounts = vec![mount("host", "/data")];
            container
        };
        let refused = [
            "/proc/self/fd/7",
            "/proc/self/fd/7/..",
            "/proc/1/cwd",
            "/proc/self/root/usr",
            "/proc/1",
            "/data/link",
        ];
        let mut attempt = 0;
        for directory in refused {
            let state = world.node.start_container("where", at(attempt, directory));
            let state = state.await?;
            attempt += 1;
            let exit = state.container("main").and_then(ContainerState::exit);
            let message = exit.map_or("it runs", |exit| &exit.message);
            ensure!(
                message.contains(&format!("working directory {directory}: ")),
                "{message}"
            );
        }
        for directory in ["/tmp", "/brand/new/dir", "/data"] {
            let started = world.node.start_container("where", at(attempt, directory));
            started.await?;
            ensure!(world.end("where").await?.code == 0, "{directory}");
            let log = world.node.pod_paths("where").log("main", attempt);
            let log = std::fs::read_to_string(log)?;
            ensure!(log.trim().ends_with(&format!(" {directory}")), "{log}");
            attempt += 1;
        }
        world.close().await
    })
}

pub(crate) fn rights_are_few_and_cannot_grow() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let look = "grep -E '^(NoNewPrivs|CapInh|CapAmb|CapBnd):' /proc/self/status | tr -d '\\t'
            [ $(cat /proc/self/oom_score_adj) -ge 900 ] && echo first";
        world
            .run(a_pod("few"), sh(&format!("{look}; sleep 1000")))
            .await?;
        let nothing = "0".repeat(16);
        let expected =
            format!("CapInh:{nothing}\nCapBnd:{RIGHTS}\nCapAmb:{nothing}\nNoNewPrivs:1\nfirst");
        let found = exec(&world, "few", look).await?;
        ensure!(found.trim() == expected, "in a later command: {found}");
        let log = log_of_lines(&world, "few", 5).await?;
        ensure!(log == expected, "{log}");
        world.close().await
    })
}

pub(crate) fn rights_that_are_given_up_are_gone() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let look = "grep ^CapBnd: /proc/self/status | tr -d '\\t'; touch /tmp/f
            chown 1:1 /tmp/f 2>/dev/null && echo changed; true";
        let mut container = sh(&format!("{look}; sleep 1000"));
        container.dropped = sundown_node::CAPABILITIES.map(str::to_owned).to_vec();
        world.run(a_pod("none"), container).await?;
        let expected = format!("CapBnd:{}", "0".repeat(16));
        let found = exec(&world, "none", look).await?;
        ensure!(found.trim() == expected, "in a later command: {found}");
        let log = log_of_lines(&world, "none", 1).await?;
        ensure!(log == expected, "{log}");
        world.close().await
    })
}

pub(crate) fn ping_works_without_raw_packets() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        // The socket that ping asks for first, and the one that it may not have.
        let script = "python3 - <<'E'
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
for kind in [(socket.AF_INET, socket.IPPROTO_ICMP), (socket.AF_PACKET, 0)]:
    try:
        socket.socket(kind[0], socket.SOCK_RAW, kind[1])
        print('raw', kind)
    except PermissionError:
        pass
print('done')
E";
        let (exit, log) = world.script("ping", script).await?;
        ensure!(exit.code == 0 && log == "done", "{exit:?} {log}");
        world.close().await
    })
}

pub(crate) fn parts_of_the_kernel_are_hidden() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let script = "for p in /proc/acpi /proc/asound /proc/interrupts /proc/kcore /proc/keys \
                /proc/latency_stats /proc/sched_debug /proc/scsi /proc/timer_list /proc/timer_stats \
                /sys/firmware /sys/kernel/debug /sys/kernel/tracing /sys/kernel/security /sys/fs/bpf \
                /sys/fs/pstore /sys/devices/virtual/powercap; do
            if [ -d $p ]; then
                [ -z \"$(ls -A $p)\" ] || echo shown $p
                (echo > $p/x) 2>/dev/null && echo wrote $p
            elif [ -e $p ]; then
                [ \"$(head -c 1 $p | wc -c)\" = 0 ] || echo shown $p
            fi; done
            for p in /proc/sys/kernel/hostname /proc/sysrq-trigger /proc/irq/default_smp_affinity; do
                (: >> $p) 2>/dev/null && echo opened $p; done
            head -c 1 /proc/cpuinfo | wc -c; ls /sys/devices/system/cpu > /dev/null && echo done";
        let (exit, log) = world.script("hidden", script).await?;
        ensure!(exit.code == 0 && log == "1\ndone", "{exit:?} {log}");
        world.close().await
    })
}

pub(crate) fn devices_are_used_and_not_changed() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        // To the mode that they have: where it succeeds, it changes nothing.
        let script = "for d in null zero full random urandom; do
                chmod 666 /dev/$d 2>/dev/null && echo changed $d; done
            echo x > /dev/null; echo x >> /dev/null; head -c 3 /dev/zero | wc -c
            head -c 3 /dev/urandom | wc -c; (echo x > /dev/full) 2>/dev/null || echo full";
        let (exit, log) = world.script("devices", script).await?;
        ensure!(exit.code == 0 && log == "3\n3\nfull", "{exit:?} {log}");
        world.close().await
    })
}

pub(crate) fn settings_of_the_machine_are_shown_by_a_list() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let script = "for f in shadow gshadow sudoers sudoers.d ssh machine-id fstab crontab \
                cron.d NetworkManager wireguard kubernetes docker ssl/private; do
                [ -e /etc/$f ] && echo shown $f; done
            for f in passwd group hosts hostname resolv.conf; do
                [ -s /etc/$f ] || echo missing $f; done
            getent passwd root | cut -d: -f1; python3 -c 'import ssl; ssl.create_default_context()'
            find /etc -type f ! -perm -004; (echo > /etc/x) 2>/dev/null || echo done";
        let (exit, log) = world.script("settings", script).await?;
        ensure!(exit.code == 0 && log == "root\ndone", "{exit:?} {log}");
        for name in ["localtime", "alternatives", "ssl/certs", "ld.so.cache"] {
            let name = Path::new("/etc").join(name);
            if !name.exists() {
                continue;
            }
            let script = format!("ls -L {0} > /dev/null && echo {0}", name.display());
            let (exit, log) = world.script("listed", &script).await?;
            ensure!(exit.code == 0 && Path::new(&log) == name, "{exit:?} {log}");
        }
        world.close().await
    })
}

pub(crate) fn memory_is_given_out_by_size() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let mut pod = a_pod("sized");
        for (name, bytes_max) in [("usual", None), ("zero", Some(0)), ("own", Some(1 << 20))] {
            let source = VolumeSource::EmptyDir {
                in_memory: true,
                bytes_max,
            };
            pod.volumes.push(volume(name, source));
        }
        pod.volumes.push(volume("files", files(&[("a", "b")])));
        let mut container = sh(
            "for p in / /dev /dev/shm /usual /zero /own /files; do stat -f -c '%n %T %S %b %c' $p; done",
        );
        for name in ["usual", "zero", "own", "files"] {
            container.mounts.push(mount(name, &format!("/{name}")));
        }
        world.run(pod, container).await?;
        let (exit, log) = world.finish("sized").await?;
        ensure!(exit.code == 0, "{exit:?} {log}");
        let memory = rustix::system::sysinfo();
        let half = u128::from(memory.totalram) * u128::from(memory.mem_unit) / 2;
        let half = half.next_multiple_of(4096);
        let mib = |count: u128| count << 20;
        for line in log.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [path, "tmpfs", size, blocks, inodes] = words.as_slice() else {
                anyhow::bail!("{line}");
            };
            let bytes = size.parse::<u128>()? * blocks.parse::<u128>()?;
            let most = match *path {
                "/" => mib(256),
                "/dev" | "/own" => mib(1),
                "/dev/shm" | "/files" => mib(64),
                _ => half,
            };
            ensure!(0 < bytes && bytes <= most, "{line}");
            ensure!(inodes.parse::<u128>()? > 0, "{line}");
        }
        ensure!(log.lines().count() == 7, "{log}");
        world.close().await
    })
}

pub(crate) fn what_is_mounted_below_a_read_only_host_path_is_read_only() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let mut pod = a_pod("below");
        let (path, kind) = ("/dev".into(), HostPathKind::Directory);
        pod.volumes
            .push(volume("dev", VolumeSource::HostPath { path, kind }));
        // The host's shared memory is usually a file system of its own below that directory.
        let mut container = sh("for f in /host/x /host/shm/sundown-test /host/mqueue/x; do
                (echo > $f) 2>/dev/null && rm $f && echo wrote $f; done
            [ -d /host/shm ] && echo done");
        container.mounts.push(mount("dev", "/host"));
        container.mounts[0].read_only = true;
        world.run(pod, container).await?;
        let (exit, log) = world.finish("below").await?;
        ensure!(exit.code == 0 && log == "done", "{exit:?} {log}");
        world.close().await
    })
}

/// A directory whose entries were bound by name could be led anywhere: another container of the pod
/// replaces one by a link between the listing and the bind.
pub(crate) fn entries_that_are_swapped_lead_nowhere() -> Result<()> {
    const RESTART_COUNT: u32 = 40;
    block_on(async {
        let world = World::new().await?;
        let mut pod = a_pod("swapped");
        let source = VolumeSource::EmptyDir {
            in_memory: false,
            bytes_max: None,
        };
        pod.volumes.push(volume("shared", source));
        pod.volumes.push(volume("other", files(&[("a", "b")])));
        let mut swapper = sh("mkdir -p /data/d; cd /data/d
            for i in $(seq 300); do mkdir -p e$i; done; echo ready
            while :; do for i in 1 100 200 300; do
                rm -rf e$i; ln -s / e$i; rm e$i; mkdir e$i; done
                mv /data/d /data/x; ln -s / /data/d; rm /data/d; mv /data/x /data/d; done");
        "swapper".clone_into(&mut swapper.name);
        swapper.mounts = vec![mount("shared", "/data")];
        world.run(pod, swapper).await?;
        let log = world.node.pod_paths("swapped").log("swapper", 0);
        let ready = eventually("the other container to begin", || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.contains("ready"))
        });
        ready.await?;
        let mut seen_count = 0;
        for attempt in 0..RESTART_COUNT {
            look_at_swapped(&world, attempt).await?;
            let log = world.node.pod_paths("swapped").log("main", attempt);
            let log = std::fs::read_to_string(log).unwrap_or_default();
            let is_closed = !log.contains("host") && !log.contains("writable");
            ensure!(is_closed, "attempt {attempt}: {log}");
            seen_count += u32::from(log.contains("seen"));
        }
        ensure!(seen_count > 0, "the directory was never seen");
        for name in ["new", "e1", "e300"] {
            ensure!(!Path::new("/").join(name).exists(), "/{name} on the host");
        }
        world.close().await
    })
}

/// A container with a mount below the directory, which is read-only for it. A start may fail: the place
/// can be gone when it is looked for.
async fn look_at_swapped(world: &World, attempt: u32) -> Result<()> {
    // While it is a link, the mount is at the top of the container, which is its own to write to.
    let mut container = sh(
        "cd -P /data/d 2>/dev/null && [ -e new/a ] && [ -e e2 ] || exit 0
        for e in e*; do [ -L $e ] || { [ -e $e/usr ] && echo host $e; }; done
        (echo > x) 2>/dev/null && echo writable; (echo > new/x) 2>/dev/null && echo writable
        echo seen",
    );
    container.attempt = attempt;
    container.mounts = vec![mount("shared", "/data"), mount("other", "/data/d/new")];
    for each in &mut container.mounts {
        each.read_only = true;
    }
    world.node.start_container("swapped", container).await?;
    let state = world.until("swapped", |pod| {
        let main = pod.containers.get("main");
        main.is_some_and(|it| it.attempt == attempt && !it.state.is_running())
    });
    state.await.map(drop)
}

pub(crate) fn the_nodes_own_program_is_read_only_inside() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let container: ContainerSpec = a_container(&["/proc/self/exe", SEES_ITSELF]);
        world.run(a_pod("itself"), container).await?;
        let (exit, log) = world.finish("itself").await?;
        ensure!(exit.code == 0 && log == "read-only: true", "{exit:?} {log}");
        world.close().await
    })
}

pub(crate) fn accounts_of_a_container_are_read_with_care() -> Result<()> {
    block_on(async {
        let world = World::new().await?;
        let here = tempfile::tempdir()?;
        let pipe = here.path().join("passwd");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o644.into())?;
        let mut pod = a_pod("accounts");
        let kind = HostPathKind::Any;
        let source = VolumeSource::HostPath { path: pipe, kind };
        pod.volumes.push(volume("pipe", source));
        let mut container = sh("echo $HOME");
        container.mounts.push(mount("pipe", "/etc/passwd"));
        let finished = async {
            world.run(pod, container).await?;
            world.finish("accounts").await
        };
        let finished = within("its init not to wait for the other end of a pipe", finished);
        let (exit, log) = finished.await??;
        ensure!(exit.code == 0 && log == "/root", "{exit:?} {log}");
        world.close().await
    })
}
