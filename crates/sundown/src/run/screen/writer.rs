//! The threads that write what a run shows, one for each stream. A reader that does not read makes a write wait without
//! end: then that thread waits, and the run goes on and hears signals. The streams are written in one order, unless one
//! of them is stuck. What is written, and who waits for it, is left to others.

use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// From so many bytes that wait to be written on, the reader is told to be behind.
const BEHIND_BYTES: u64 = 256 * 1024;
/// What waits is written together, up to so many bytes.
const BATCH_BYTES_MAX: usize = 64 * 1024;
/// How long a write may take before the other stream waits for it no longer.
pub(super) const STUCK_TIME: Duration = Duration::from_secs(1);

/// Where a text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

/// Whether one stream goes on while the other is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// It waits: both are one terminal, on which texts build on those before them.
    Strict,
    Overtaking,
}

#[derive(Debug)]
struct Piece {
    text: String,
    /// How many bytes of the other stream come before it.
    after: u64,
}

/// How far the threads are.
#[derive(Debug, Default)]
struct Progress {
    /// Bytes that were written, or that nobody takes any more.
    out: u64,
    err: u64,
    /// Why standard output takes nothing, unless its reader just left.
    failure: Option<String>,
}

/// Hands texts to the threads.
#[derive(Debug)]
pub(super) struct Writer {
    out: Lane,
    err: Lane,
    progress: watch::Receiver<Progress>,
}

/// The way to one of the threads.
#[derive(Debug)]
struct Lane {
    pieces: Sender<Piece>,
    /// Bytes that were handed over.
    sent: u64,
}

impl Lane {
    fn send(&mut self, text: String, after: u64) {
        self.sent += length(&text);
        // The thread ends before this value only if it panicked.
        let _ = self.pieces.send(Piece { text, after });
    }
}

impl Writer {
    /// Begins to write to these two.
    pub(super) fn to(
        out: impl Write + Send + 'static,
        err: impl Write + Send + 'static,
        order: Order,
    ) -> io::Result<Self> {
        let (tell, progress) = watch::channel(Progress::default());
        let shared = Arc::new(Shared {
            order,
            turns: Mutex::default(),
            changed: Condvar::new(),
            err: Mutex::new(Some(Box::new(err))),
            progress: tell,
        });
        let of_err = Arc::clone(&shared);
        let mut out: Open = Some(Box::new(out));
        Ok(Self {
            err: begin("stderr", move |taken| {
                of_err.work(Stream::Err, taken, |text| of_err.to_err(text));
            })?,
            out: begin("stdout", move |taken| {
                shared.work(Stream::Out, taken, |text| shared.to_out(&mut out, text));
            })?,
            progress,
        })
    }

    /// Hands over a text. Never waits.
    pub(super) fn write(&mut self, to: Stream, text: String) {
        match to {
            Stream::Out => self.out.send(text, self.err.sent),
            Stream::Err => self.err.send(text, self.out.sent),
        }
    }

    /// Whether so much waits to be written that nothing more should be made.
    pub(super) fn is_behind(&self) -> bool {
        self.waiting(&self.progress.borrow()) >= BEHIND_BYTES
    }

    /// Returns when it is not behind. Cancel-safe.
    pub(super) async fn room(&self) {
        self.until(|it| self.waiting(it) < BEHIND_BYTES).await;
    }

    /// Returns when everything is written. Cancel-safe.
    pub(super) async fn done(&self) {
        self.until(|it| self.waiting(it) == 0).await;
    }

    /// Returns when everything for standard error is written. Cancel-safe.
    pub(super) async fn told(&self) {
        self.until(|it| it.err == self.err.sent).await;
    }

    /// Why standard output takes nothing, if that is not because its reader left.
    pub(super) fn failure(&self) -> Option<String> {
        self.progress.borrow().failure.clone()
    }

    fn waiting(&self, progress: &Progress) -> u64 {
        (self.out.sent - progress.out) + (self.err.sent - progress.err)
    }

    async fn until(&self, is_reached: impl Fn(&Progress) -> bool) {
        let mut progress = self.progress.clone();
        // Closed: the threads have ended, and nothing more is written.
        let _ = progress.wait_for(|it| is_reached(it)).await;
    }
}

fn begin(name: &str, work: impl FnOnce(&Receiver<Piece>) + Send + 'static) -> io::Result<Lane> {
    let (pieces, taken) = mpsc::channel();
    // Never joined: a write that waits for its reader must not keep the process.
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || work(&taken))?;
    Ok(Lane { pieces, sent: 0 })
}

/// None: closed, and what goes there is dropped.
type Open = Option<Box<dyn Write + Send>>;

/// The threads' side.
struct Shared {
    order: Order,
    turns: Mutex<Turns>,
    changed: Condvar,
    err: Mutex<Open>,
    progress: watch::Sender<Progress>,
}

/// How far each thread is, for the other.
#[derive(Default)]
struct Turns {
    out: Turn,
    err: Turn,
}

#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    /// Bytes that were written.
    written: u64,
    /// When the write that is under way began.
    begun_at: Option<Instant>,
}

/// Whether a text may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum May {
    Now,
    /// When the other stream has gone on, or after this time.
    In(Duration),
    /// When the other stream has gone on.
    Later,
}

/// Decides for a text that comes after so much of the other stream.
fn may(other: Turn, after: u64, order: Order, now: Instant) -> May {
    if other.written >= after {
        return May::Now;
    }
    let (Some(at), Order::Overtaking) = (other.begun_at, order) else {
        return May::Later;
    };
    match STUCK_TIME.saturating_sub(now.saturating_duration_since(at)) {
        Duration::ZERO => May::Now,
        rest => May::In(rest),
    }
}

impl Shared {
    fn work(&self, own: Stream, pieces: &Receiver<Piece>, mut write: impl FnMut(&str)) {
        let mut next = None;
        while let Some(mut piece) = next.take().or_else(|| pieces.recv().ok()) {
            while piece.text.len() < BATCH_BYTES_MAX {
                match pieces.try_recv() {
                    Ok(more) if more.after == piece.after => piece.text.push_str(&more.text),
                    Ok(other) => {
                        next = Some(other);
                        break;
                    }
                    Err(_) => break,
                }
            }
            self.await_turn(own, piece.after);
            self.turns().of(own).begun_at = Some(Instant::now());
            self.changed.notify_all();
            write(&piece.text);
            let length = length(&piece.text);
            let mut turns = self.turns();
            let turn = turns.of(own);
            (turn.written, turn.begun_at) = (turn.written + length, None);
            drop(turns);
            self.changed.notify_all();
            self.progress.send_modify(|it| match own {
                Stream::Out => it.out += length,
                Stream::Err => it.err += length,
            });
        }
    }

    /// Waits until what comes before it in the other stream is written, or that is stuck.
    fn await_turn(&self, own: Stream, after: u64) {
        let mut turns = self.turns();
        loop {
            let other = match own {
                Stream::Out => turns.err,
                Stream::Err => turns.out,
            };
            turns = match may(other, after, self.order, Instant::now()) {
                May::Now => return,
                May::In(rest) => {
                    let waited = self.changed.wait_timeout(turns, rest);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                May::Later => {
                    let waited = self.changed.wait(turns);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn to_err(&self, text: &str) {
        let mut err = self.err.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody is left to be told.
        let _ = put(&mut err, text);
    }

    fn to_out(&self, out: &mut Open, text: &str) {
        if let Err(error) = put(out, text) {
            self.to_err(&in_words(&error));
            if error.kind() != io::ErrorKind::BrokenPipe {
                let failure = Some(error.to_string());
                self.progress.send_modify(|it| it.failure = failure);
            }
        }
    }
}

impl Turns {
    fn of(&mut self, stream: Stream) -> &mut Turn {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }
}

/// Writes to a stream that is open; one that fails is closed.
fn put(sink: &mut Open, text: &str) -> io::Result<()> {
    let Some(open) = sink else {
        return Ok(());
    };
    let written = open.write_all(text.as_bytes()).and_then(|()| open.flush());
    if written.is_err() {
        *sink = None;
    }
    written
}

fn in_words(error: &io::Error) -> String {
    let why = match error.kind() {
        io::ErrorKind::BrokenPipe => "standard output was closed by its reader".to_owned(),
        _ => format!("cannot write to standard output ({error})"),
    };
    format!("{why}; the run continues without it, stop it with Ctrl-C or SIGTERM\n")
}

fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use futures::FutureExt as _;
    use sundown_testing::within;

    use super::*;

    /// Keeps what is written, or fails as it is told to; held, a write waits.
    #[derive(Clone, Default)]
    struct Sink {
        text: Arc<Mutex<Vec<u8>>>,
        failure: Option<io::ErrorKind>,
    }

    impl Sink {
        fn hold(&self) -> MutexGuard<'_, Vec<u8>> {
            self.text.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn text(&self) -> String {
            String::from_utf8_lossy(&self.hold()).into_owned()
        }
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(failure) = self.failure {
                return Err(failure.into());
            }
            self.hold().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn a_writer(out: &Sink, err: &Sink) -> Writer {
        Writer::to(out.clone(), err.clone(), Order::Overtaking).unwrap()
    }

    #[tokio::test]
    async fn a_reader_that_does_not_read_keeps_nobody_waiting() {
        let (out, err) = (Sink::default(), Sink::default());
        let mut writer = a_writer(&out, &err);
        let held = out.hold();
        let line = "a line\n".repeat(1024);
        while !writer.is_behind() {
            writer.write(Stream::Out, line.clone());
        }
        assert!(writer.room().now_or_never().is_none());
        drop(held);
        within("room for more", writer.room()).await.unwrap();
        within("everything", writer.done()).await.unwrap();
        assert!(!writer.is_behind());
        assert!(length(&out.text()) >= BEHIND_BYTES);
        assert_eq!(err.text(), "");
    }

    #[tokio::test]
    async fn a_reader_that_left_is_told_once_and_is_no_failure() {
        for (failure, is_failure) in [
            (io::ErrorKind::BrokenPipe, false),
            (io::ErrorKind::StorageFull, true),
        ] {
            let out = Sink {
                failure: Some(failure),
                ..Sink::default()
            };
            let err = Sink::default();
            let mut writer = a_writer(&out, &err);
            for _ in 0..3 {
                writer.write(Stream::Out, "log\n".to_owned());
                writer.write(Stream::Err, "stage\n".to_owned());
            }
            within("everything", writer.done()).await.unwrap();
            let told = err.text();
            assert_eq!(told.matches("the run continues").count(), 1, "{told}");
            assert_eq!(told.matches("stage\n").count(), 3, "{told}");
            assert_eq!(writer.failure().is_some(), is_failure, "{failure:?}");
        }
    }

    /// What a run said last was lost behind a pager that was not scrolled.
    #[test]
    fn what_is_told_overtakes_a_stream_that_is_not_read() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        let (out, err) = (Sink::default(), Sink::default());
        let mut writer = a_writer(&out, &err);
        let held = out.hold();
        writer.write(Stream::Out, "log\n".to_owned());
        writer.write(Stream::Err, "removed\n".to_owned());
        let told = within("the last words", writer.told());
        runtime.block_on(told).unwrap();
        assert_eq!(err.text(), "removed\n");
        assert!(writer.done().now_or_never().is_none());
        drop(held);
        let all = within("everything", writer.done());
        runtime.block_on(all).unwrap();
        assert_eq!(out.text(), "log\n");
    }

    #[test]
    fn a_text_waits_for_those_before_it_unless_they_are_stuck() {
        let begun_at = Instant::now();
        let turn = |written, begun_at| Turn { written, begun_at };
        let (soon, late) = (begun_at + STUCK_TIME / 4, begun_at + STUCK_TIME);
        let under_way = Some(begun_at);
        for (other, order, now, expect) in [
            (turn(5, None), Order::Strict, late, May::Now),
            (turn(5, under_way), Order::Overtaking, late, May::Now),
            (turn(4, None), Order::Overtaking, late, May::Later),
            (
                turn(4, under_way),
                Order::Overtaking,
                soon,
                May::In(STUCK_TIME * 3 / 4),
            ),
            (turn(4, under_way), Order::Overtaking, late, May::Now),
            (turn(4, under_way), Order::Strict, late, May::Later),
        ] {
            assert_eq!(may(other, 5, order, now), expect, "{other:?} {order:?}");
        }
    }
}
