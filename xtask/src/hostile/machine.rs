//! A pod that reaches for the machine it runs on.

use std::os::unix::fs::MetadataExt as _;

use anyhow::{Context as _, Result, ensure};

use super::Test;
use super::place::{LONG, Place, until};

pub(super) const TESTS: &[Test] = &[
    (
        "a_pod_finds_the_machine_closed",
        a_pod_finds_the_machine_closed,
    ),
    (
        "rights_that_are_dropped_are_gone",
        rights_that_are_dropped_are_gone,
    ),
    (
        "descriptors_of_the_starter_are_in_no_container",
        descriptors_of_the_starter_are_in_no_container,
    ),
    (
        "deep_directories_go_with_their_pod",
        deep_directories_go_with_their_pod,
    ),
    (
        "links_that_are_swapped_lead_nowhere",
        links_that_are_swapped_lead_nowhere,
    ),
];

/// Each line says what was reached that must not be; nothing at all is the good answer.
const REACHES: &str = r#"
for f in /etc/shadow /etc/gshadow /etc/sudoers /etc/ssh/ssh_host_rsa_key /etc/ssh/ssh_host_ed25519_key; do
  (cat $f > /dev/null) 2>/dev/null && echo read $f; done
for f in /proc/scsi/scsi /proc/acpi/wakeup /proc/sysrq-trigger /proc/sys/kernel/core_pattern; do
  (exec 3>>$f) 2>/dev/null && echo opened $f; done
chmod 0 /dev/null 2>/dev/null && echo changed /dev/null
for d in /proc/acpi /proc/scsi /proc/asound /sys/firmware /sys/kernel/debug /sys/kernel/tracing /sys/kernel/security /sys/fs/bpf /sys/fs/pstore; do
  [ -z "$(ls -A $d 2>/dev/null)" ] || echo sees $d; done
for f in /proc/kcore /proc/keys /proc/timer_list /proc/interrupts /proc/latency_stats /proc/sched_debug; do
  [ -z "$(head -c 1 $f 2>/dev/null | tr -d '\0')" ] || echo reads $f; done
grep -q 'NoNewPrivs:.*1' /proc/self/status || echo new privileges
for set in CapInh CapAmb; do grep -q "$set:.*0000000000000000" /proc/self/status || echo $set; done
[ "$(cat /proc/self/oom_score_adj)" -gt 0 ] || echo oom_score_adj
python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)' 2>/dev/null && echo raw socket
echo over
"#;

fn a_pod_finds_the_machine_closed(place: &Place) -> Result<()> {
    let up = place.up(&[])?;
    let said = up.script("reaches", "python:3", REACHES)?;
    ensure!(said == "over", "{said}");
    let mode = std::fs::metadata("/dev/null")?.mode() & 0o777;
    ensure!(mode == 0o666, "/dev/null of the machine has mode {mode:o}");
    Ok(())
}

fn rights_that_are_dropped_are_gone(place: &Place) -> Result<()> {
    let up = place.up(&[])?;
    up.create(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: less}\nspec:\n  restartPolicy: Never\n  containers:\n  \
         - name: main\n    image: busybox\n    command: [sh, -c, grep Cap /proc/self/status]\n    \
         securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}\n",
    )?;
    until("pod less ends", || {
        let phase = up.ask(&["get", "pod", "less", "-o", "jsonpath={.status.phase}"])?;
        Ok(phase == "Succeeded")
    })?;
    let said = up.ask(&["logs", "less"])?;
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        let none = format!("{set}:\t0000000000000000");
        ensure!(said.contains(&none), "{said}");
    }
    Ok(())
}

fn descriptors_of_the_starter_are_in_no_container(place: &Place) -> Result<()> {
    // A shell that left directories open, as an IDE or a build does.
    let up = place.up_behind("exec \"$0\" up 7</ 8</etc")?;
    let said = up.script("lists", "busybox", "ls -l /proc/self/fd/ | sed 1d | wc -l; ls /proc/1/fd/7 2>/dev/null; ls /proc/self/fd/7 2>/dev/null; true")?;
    // The three usual ones, and the directory that `ls` reads.
    ensure!(said == "4", "{said}");
    for (number, path) in ["/proc/self/fd/7", "/proc/1/cwd", "/proc/1/root"]
        .iter()
        .enumerate()
    {
        let name = format!("works-{number}");
        up.create(&format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  restartPolicy: Never\n  containers:\n  \
             - {{name: main, image: busybox, workingDir: {path}, command: [ls]}}\n"
        ))?;
        let state = "jsonpath={.status.containerStatuses[0].state}";
        until(&format!("{path} is refused"), || {
            let state = up.ask(&["get", "pod", &name, "-o", state])?;
            Ok(state.contains("StartError") || state.contains("CreateContainer"))
        })?;
    }
    Ok(())
}

/// As deep as a pod gets in a moment; each level is made from within the one before it.
const DIGS: &str = r#"
import os, sys
for top in ("/tmp", "/data"):
    os.chdir(top)
    for _ in range(70000):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(top)
    os.mkdir("closed"); os.mkdir("closed/in"); os.chmod("closed/in", 0); os.chmod("closed", 0)
print("dug", flush=True)
"#;

fn deep_directories_go_with_their_pod(place: &Place) -> Result<()> {
    let up = place.up(&[])?;
    let digs = serde_json::to_string(DIGS)?;
    let digger = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 0\n  restartPolicy: Never\n  \
             containers:\n  - {{name: main, image: 'python:3', command: [python3, -c, {digs}], volumeMounts: [{{name: data, mountPath: /data}}]}}\n  \
             volumes: [{{name: data, emptyDir: {{}}}}]\n"
        )
    };
    up.create("apiVersion: v1\nkind: Pod\nmetadata: {name: bystander}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  - {name: main, image: busybox, command: [sleep, '10000']}\n")?;
    up.create(&digger("digs"))?;
    until("a pod has dug", || {
        Ok(up.ask(&["logs", "digs"]).is_ok_and(|it| it == "dug"))
    })?;
    let minutes = format!("--timeout={}s", LONG.as_secs());
    up.ask(&["delete", "pod", "digs", &minutes])?;
    let phase = up.ask(&["get", "pod", "bystander", "-o", "jsonpath={.status.phase}"])?;
    ensure!(phase == "Running", "the bystander is {phase}");
    let restarts = "jsonpath={.status.containerStatuses[0].restartCount}";
    let restarts = up.ask(&["get", "pod", "bystander", "-o", restarts])?;
    ensure!(restarts == "0", "the bystander was restarted");
    // Again, and the node is killed over it: the next one clears it away.
    up.create(&digger("again"))?;
    until("a pod has dug again", || {
        Ok(up.ask(&["logs", "again"]).is_ok_and(|it| it == "dug"))
    })?;
    place.kill_node()?;
    up.script("after", "busybox", "true")?;
    up.create(&digger("last"))?;
    until("a pod has dug for the last time", || {
        Ok(up.ask(&["logs", "last"]).is_ok_and(|it| it == "dug"))
    })?;
    up.end_within(LONG)?;
    let reset = place.end_within(LONG, &mut place.command(&["reset", "--yes"]))?;
    ensure!(reset.succeeded, "{}", reset.said);
    Ok(())
}

/// Swaps a directory for a link to the machine's root and back, as fast as it can.
const SWAPS: &str = r#"
import os
os.makedirs("/data/sub/in", exist_ok=True)
for n in range(300): os.makedirs(f"/data/sub/e{n}", exist_ok=True)
os.symlink("/", "/data/link")
print("swapping", flush=True)
while True:
    try:
        os.rename("/data/sub/e150", "/data/kept"); os.symlink("/", "/data/sub/e150")
        os.unlink("/data/sub/e150"); os.rename("/data/kept", "/data/sub/e150")
    except OSError: pass
"#;

/// So many containers start beside the swapper: in so many pods, one after the other, so many each. A pod that
/// fails is restarted ever more slowly, so that restarts alone would be a handful.
const ROUND_COUNT: usize = 50;
const VICTIM_COUNT: usize = 20;

fn links_that_are_swapped_lead_nowhere(place: &Place) -> Result<()> {
    let up = place.up(&[])?;
    let swaps = serde_json::to_string(SWAPS)?;
    // Only the machine's root has this; a link that is copied as a link leads to the container's own.
    let outside = place.scratch().join("sundown");
    let looks = format!(
        "for e in /in/e*; do [ -e $e{} ] && echo out; done; echo looked",
        outside.display()
    );
    let looks = serde_json::to_string(&looks)?;
    let victim = |number| {
        format!(
            "  - name: victim-{number}\n    image: busybox\n    command: [sh, -c, {looks}]\n    \
             volumeMounts: [{{name: data, mountPath: /in, subPath: sub, readOnly: true}}, {{name: more, mountPath: /in/new}}]\n"
        )
    };
    let victims: String = (0..VICTIM_COUNT).map(victim).collect();
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: swaps}}\nspec:\n  terminationGracePeriodSeconds: 0\n  restartPolicy: Never\n  containers:\n  \
         - {{name: swapper, image: 'python:3', command: [python3, -c, {swaps}], volumeMounts: [{{name: data, mountPath: /data}}]}}\n\
         {victims}  volumes: [{{name: data, emptyDir: {{}}}}, {{name: more, emptyDir: {{}}}}]\n"
    );
    let (mut started, mut looked) = (0, 0);
    for _ in 0..ROUND_COUNT {
        up.create(&pod)?;
        let states = "jsonpath={range .status.containerStatuses[*]}{.state}{\"\\n\"}{end}";
        let mut settled = Vec::new();
        until("all containers beside the swapper ended", || {
            let told = up.ask(&["get", "pod", "swaps", "-o", states])?;
            settled = told.lines().map(str::to_owned).collect();
            // A place that is just a link is refused, and the container waits.
            settled.retain(|it| it.contains("terminated") || it.contains("message"));
            Ok(settled.len() == VICTIM_COUNT)
        })?;
        let log = up.ask(&["logs", "swaps", "--all-containers", "--ignore-errors"])?;
        ensure!(!log.lines().any(|line| line == "out"), "{log}");
        started += settled.len();
        looked += log.lines().filter(|line| *line == "looked").count();
        up.ask(&["delete", "pod", "swaps", "--timeout=60s"])
            .context("delete it")?;
    }
    println!("  {started} starts, {looked} looks");
    ensure!(looked * 10 > started, "{looked} of {started} looked");
    Ok(())
}
