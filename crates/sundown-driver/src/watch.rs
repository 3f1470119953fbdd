//! One open watch: bytes to lines, lines to inputs, and a word when it is over. What a line means
//! is decided in `wire`; whether to watch again is decided by the engine.

use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use sundown_engine::wire::{self, Reply};
use sundown_engine::{Effect, EffectId, Input, WatchEvent};
use tokio::time::timeout;

use crate::counters::Purpose;
use crate::effects::Outbox;
use crate::requests::{self, Requests};

/// How long a watch may be silent. Bookmarks come once a minute, so after five of them are missing
/// the connection is dead. A server that sends none costs one request in this time.
const SILENCE_MAX: Duration = Duration::from_mins(5);

/// The longest line. Upstream takes objects of 3 MiB at most.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Watches until the stream is over; gives the last word about it.
pub(crate) async fn run(effect: &Effect, requests: &Requests, outbox: &Outbox) -> Input {
    let end = match open(effect, requests).await {
        Ok(body) => pass_on(effect, body, outbox).await,
        Err(reply) => wire::answered(effect, reply),
    };
    end.unwrap_or_else(|| closed(effect.id()))
}

async fn open(effect: &Effect, requests: &Requests) -> Result<Body, Reply> {
    let call = wire::call(effect).expect("a watch is one request");
    let response = requests.open(Purpose::Watch, call).await?;
    if response.status() == http::StatusCode::OK {
        return Ok(response.into_body());
    }
    Err(requests::read(response).await)
}

/// Passes the lines on; gives back the line that ended the watch, if one did.
async fn pass_on(effect: &Effect, mut body: Body, outbox: &Outbox) -> Option<Input> {
    let Effect::Watch { id, ty, form, .. } = effect else {
        return None;
    };
    let mut lines = Lines::default();
    while let Ok(Some(Ok(frame))) = timeout(SILENCE_MAX, body.frame()).await {
        let Ok(bytes) = frame.into_data() else {
            continue;
        };
        for line in lines.take(&bytes) {
            let input = wire::line(*id, ty, form, &line);
            if is_end(&input) {
                return Some(input);
            }
            outbox.put(input).await;
        }
        if lines.partial.len() > LINE_BYTES_MAX {
            tracing::warn!(resource = %ty.resource, LINE_BYTES_MAX, "a watch sent a line without end");
            return None;
        }
    }
    None
}

fn is_end(input: &Input) -> bool {
    matches!(
        input,
        Input::Watched {
            event: WatchEvent::Closed { .. },
            ..
        }
    )
}

fn closed(id: EffectId) -> Input {
    let event = WatchEvent::Closed { expired: false };
    Input::Watched { id, event }
}

/// Puts lines together that frames have torn apart.
#[derive(Debug, Default)]
struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    /// The lines that this frame completes.
    fn take(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        for piece in frame.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                lines.push(std::mem::take(&mut self.partial));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn puts_torn_lines_together() {
        let text = b"one\ntwo\n\nthree\nrest";
        let expect: &[&[u8]] = &[b"one\n", b"two\n", b"\n", b"three\n"];
        for frame_len in 1..=text.len() {
            let mut lines = Lines::default();
            let taken: Vec<_> = text
                .chunks(frame_len)
                .flat_map(|frame| lines.take(frame))
                .collect();
            assert_eq!(taken, expect, "frames of {frame_len}");
            assert_eq!(lines.partial, b"rest");
        }
    }
}
