//! Drives a watch: polls it after each commit and at its own instants, and packs its lines into
//! frames. Which lines there are is the watch's business.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use futures::future::OptionFuture;
use sundown_api::{Server, Watch};
use tokio::sync::watch;

use crate::metrics::Open;
use crate::{Clock, Shared, Stop};

/// Lines are packed together up to this size: one TLS record. A longer line goes alone, uncopied.
const FRAME_BYTES_MAX: usize = 16 * 1024;

/// A watch on its way to a client. Holds no queue of its own: what a slow client has not taken
/// waits in the log, and a cursor that falls off the log ends the watch (410).
struct Lines {
    watch: Box<Watch>,
    published: watch::Receiver<Arc<Server>>,
    clock: Arc<dyn Clock>,
    stop: Stop,
    /// The rest of the last poll, which is bounded.
    polled: VecDeque<Arc<[u8]>>,
    has_ended: bool,
    _counted: Open,
}

pub(super) fn stream(
    watch: Box<Watch>,
    shared: &Shared,
    stop: Stop,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let lines = Lines {
        watch,
        published: shared.subscribe(),
        clock: Arc::clone(shared.clock()),
        stop,
        polled: VecDeque::new(),
        has_ended: false,
        _counted: shared.metrics.open_watch(),
    };
    futures::stream::unfold(lines, |mut lines| async move {
        let frame = lines.next_frame().await?;
        Some((frame, lines))
    })
}

impl Lines {
    async fn next_frame(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = pack(&mut self.polled) {
                return Some(frame);
            }
            if self.has_ended || self.stop.is_asked() {
                return None;
            }
            self.poll();
            if self.polled.is_empty() && !self.has_ended {
                self.wait().await;
            }
        }
    }

    fn poll(&mut self) {
        let snapshot = Arc::clone(&self.published.borrow_and_update());
        let polled = self.watch.poll(&snapshot, self.clock.now());
        self.polled = polled.lines.into();
        self.has_ended = polled.ended;
    }

    /// Waits until another poll may have something to say.
    async fn wait(&mut self) {
        let due = OptionFuture::from(self.watch.wake_at().map(|at| self.clock.sleep_until(at)));
        tokio::select! {
            changed = self.published.changed() => self.has_ended = changed.is_err(),
            Some(()) = due => {}
            () = self.stop.asked() => {}
        }
    }
}

/// Takes as many lines as fit one frame.
fn pack(lines: &mut VecDeque<Arc<[u8]>>) -> Option<Bytes> {
    let first = lines.pop_front()?;
    let fits = |len: usize, line: &Arc<[u8]>| len + line.len() <= FRAME_BYTES_MAX;
    if !lines.front().is_some_and(|line| fits(first.len(), line)) {
        return Some(Bytes::from_owner(first));
    }
    let mut frame = BytesMut::from(first.as_ref());
    while let Some(line) = lines.pop_front_if(|line| fits(frame.len(), line)) {
        frame.extend_from_slice(&line);
    }
    Some(frame.freeze())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use super::{FRAME_BYTES_MAX, pack};

    fn check(line_lens: &[usize], expect_frame_lens: &[usize]) {
        let lines = line_lens.iter().map(|len| Arc::from(vec![b'.'; *len]));
        let mut lines: VecDeque<_> = lines.collect();
        let mut frame_lens = Vec::new();
        while let Some(frame) = pack(&mut lines) {
            frame_lens.push(frame.len());
        }
        assert_eq!(frame_lens, expect_frame_lens);
    }

    #[test]
    fn packs_short_lines_and_lets_long_ones_go_alone() {
        check(&[], &[]);
        check(&[7], &[7]);
        check(&[7, 8, 9], &[24]);
        check(&[7, FRAME_BYTES_MAX, 9, 1], &[7, FRAME_BYTES_MAX, 10]);
        check(&[FRAME_BYTES_MAX - 1, 1, 1], &[FRAME_BYTES_MAX, 1]);
    }
}
