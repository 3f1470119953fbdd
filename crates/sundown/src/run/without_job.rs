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
use super::waits::Wait;
use super::{GOING, STOPPED};
use crate::complaint::Complaint;

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
    let names = names(&go);
    let mut removal = Removal::begin(plane.clients(), go);
    let mut interrupt = Interrupt::None;
    let mut told_at = Instant::now() + WAIT_TOLD_TIME;
    while !removal.left().is_empty() {
        tokio::select! {
            removed = removal.next() => {
                removed?;
                told_at = Instant::now() + WAIT_TOLD_TIME;
            }
            sender = signals.next() => {
                let (next, act) = interrupt.on_signal(sender, Duration::ZERO, true);
                interrupt = next;
                if act == Act::Leave {
                    let text = format!("left as it is: {}", self::names(removal.left()).join(", "));
                    screen.tell(&Event::Note { text: &text })?;
                    return Ok(ExitCode::from(STOPPED));
                }
                screen.tell(&Event::Note { text: GOING })?;
            }
            () = sleep_until(told_at) => {
                // Told once for each state of it.
                told_at += Duration::from_hours(1);
                if let Some((it, seen)) = removal.waits_for() {
                    let text = Wait::of(seen).in_words(&it.object);
                    screen.tell(&Event::Note { text: &text })?;
                }
            }
        }
    }
    let kept = self::names(&stay);
    screen.tell(&Event::Removed {
        objects: &names,
        count: names.len(),
        is_all: kept.is_empty(),
    })?;
    if !kept.is_empty() {
        screen.tell(&Event::Kept {
            objects: &kept,
            later: None,
            remove: None,
        })?;
    }
    Ok(match interrupt {
        Interrupt::Stopping => ExitCode::from(STOPPED),
        Interrupt::None | Interrupt::Asked { .. } => ExitCode::SUCCESS,
    })
}

fn names(all: &[Applied]) -> Vec<String> {
    all.iter().map(|it| it.object.clone()).collect()
}
