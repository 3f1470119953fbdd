//! The end of a run with `--rm` whose file holds nothing to follow: what was applied goes.

use std::process::ExitCode;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::apply::Applied;
use super::interrupt::{Act, Interrupt};
use super::plane::Plane;
use super::remove::{self, Removal};
use super::screen::{Event, Screen};
use super::signals::Signals;
use super::{GOING, STOPPED, waits};
use crate::complaint::Complaint;
use crate::kubectl::Kubectl;

/// How long an object may take to go before it is told what it waits for.
const WAIT_TOLD_TIME: Duration = Duration::from_secs(3);

/// Deletes all that was applied and waits until it is gone.
pub(super) async fn remove(
    plane: &Plane,
    applied: &[Applied],
    screen: &mut Screen,
    signals: &mut Signals,
) -> Result<ExitCode, Complaint> {
    let (go, stay) = remove::split(applied, None);
    let mut removal = Removal::begin(plane.clients(), go.clone());
    let mut interrupt = Interrupt::None;
    let mut told_at = Instant::now() + WAIT_TOLD_TIME;
    while !removal.left().is_empty() {
        tokio::select! {
            failed = removal.next() => {
                if let Some(failed) = failed {
                    let text = format!("not deleted: {}: {}", failed.applied.object, failed.why);
                    screen.tell(&Event::Note { text: &text });
                }
                told_at = Instant::now() + WAIT_TOLD_TIME;
            }
            sender = signals.next() => {
                let (next, act) = interrupt.on_signal(sender, Duration::ZERO, true);
                interrupt = next;
                if act == Act::Leave {
                    let mut left = removal.left().to_vec();
                    left.extend(remove::undeleted(removal.failed()));
                    let text = format!("not deleted: {}", self::names(&left).join(", "));
                    screen.tell(&Event::Note { text: &text });
                    return Ok(ExitCode::from(STOPPED));
                }
                screen.tell(&Event::Note { text: GOING });
            }
            () = sleep_until(told_at) => {
                // Told once for each state of it.
                told_at += Duration::from_hours(1);
                let seen = removal.seen().map(|(it, seen)| (it.object.clone(), seen));
                if let Some(text) = waits::told(seen) {
                    screen.tell(&Event::Note { text: &text });
                }
            }
        }
    }
    let failed = remove::undeleted(removal.failed());
    tell_end(screen, plane.kubectl(), &go, &stay, &failed);
    match (interrupt, remove::complaint(removal.failed())) {
        (Interrupt::Stopping, _) => Ok(ExitCode::from(STOPPED)),
        (Interrupt::None | Interrupt::Asked { .. }, Some(complaint)) => Err(complaint),
        (Interrupt::None | Interrupt::Asked { .. }, None) => Ok(ExitCode::SUCCESS),
    }
}

fn tell_end(
    screen: &mut Screen,
    kubectl: &Kubectl,
    go: &[Applied],
    stay: &[Applied],
    failed: &[Applied],
) {
    let (kept, undeleted) = (names(stay), names(failed));
    let mut gone = names(go);
    gone.retain(|it| !undeleted.contains(it));
    screen.tell(&Event::Removed {
        objects: &gone,
        count: gone.len(),
        is_all: kept.is_empty() && undeleted.is_empty(),
    });
    if !kept.is_empty() {
        screen.tell(&Event::Kept {
            objects: &kept,
            later: None,
            remove: None,
        });
    }
    if !failed.is_empty() {
        screen.tell(&Event::Kept {
            objects: &undeleted,
            later: None,
            remove: Some(&remove::command(kubectl, failed)),
        });
    }
}

fn names(all: &[Applied]) -> Vec<String> {
    all.iter().map(|it| it.object.clone()).collect()
}
