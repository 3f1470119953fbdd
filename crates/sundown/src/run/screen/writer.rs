//! The thread that writes what a run shows. A reader that does not read makes a write wait without end: then
//! this thread waits, and the run goes on and hears signals. What is written, and who waits for it, is left to others.

use std::io::{self, Write};
use std::sync::mpsc;
use std::thread;

use tokio::sync::watch;

/// From so many bytes that wait to be written on, the reader is told to be behind.
const BEHIND_BYTES: u64 = 256 * 1024;
/// What waits is written together, up to so many bytes.
const BATCH_BYTES_MAX: usize = 64 * 1024;

/// Where a text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

#[derive(Debug)]
struct Piece {
    to: Stream,
    text: String,
}

/// How far the thread is.
#[derive(Debug, Default)]
struct Progress {
    /// Bytes that were written, or that nobody takes any more.
    written: u64,
    /// Why standard output takes nothing, unless its reader just left.
    failure: Option<String>,
}

/// Hands texts to the thread, in one order for both streams.
#[derive(Debug)]
pub(super) struct Writer {
    pieces: mpsc::Sender<Piece>,
    progress: watch::Receiver<Progress>,
    /// Bytes that were handed over.
    sent: u64,
}

impl Writer {
    /// Begins to write to these two.
    pub(super) fn to(
        out: impl Write + Send + 'static,
        err: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let (pieces, taken) = mpsc::channel();
        let (tell, progress) = watch::channel(Progress::default());
        let sinks = Sinks {
            out: Some(Box::new(out)),
            err: Some(Box::new(err)),
            progress: tell,
        };
        // Never joined: a write that waits for its reader must not keep the process.
        thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || sinks.work(&taken))?;
        Ok(Self {
            pieces,
            progress,
            sent: 0,
        })
    }

    /// Hands over a text. Never waits.
    pub(super) fn write(&mut self, to: Stream, text: String) {
        self.sent += length(&text);
        // The thread ends before this value only if it panicked.
        let _ = self.pieces.send(Piece { to, text });
    }

    /// Whether so much waits to be written that nothing more should be made.
    pub(super) fn is_behind(&self) -> bool {
        self.waiting() >= BEHIND_BYTES
    }

    /// Returns when it is not behind. Cancel-safe.
    pub(super) async fn room(&self) {
        self.until(|waiting| waiting < BEHIND_BYTES).await;
    }

    /// Returns when everything is written. Cancel-safe.
    pub(super) async fn done(&self) {
        self.until(|waiting| waiting == 0).await;
    }

    /// Why standard output takes nothing, if that is not because its reader left.
    pub(super) fn failure(&self) -> Option<String> {
        self.progress.borrow().failure.clone()
    }

    fn waiting(&self) -> u64 {
        self.sent - self.progress.borrow().written
    }

    async fn until(&self, is_reached: impl Fn(u64) -> bool) {
        let mut progress = self.progress.clone();
        // Closed: the thread has ended, and nothing more is written.
        let _ = progress
            .wait_for(|it| is_reached(self.sent - it.written))
            .await;
    }
}

/// The thread's side.
struct Sinks {
    /// None: closed, and what goes there is dropped.
    out: Option<Box<dyn Write + Send>>,
    err: Option<Box<dyn Write + Send>>,
    progress: watch::Sender<Progress>,
}

impl Sinks {
    fn work(mut self, pieces: &mpsc::Receiver<Piece>) {
        let mut next = None;
        while let Some(first) = next.take().or_else(|| pieces.recv().ok()) {
            let mut piece = first;
            while piece.text.len() < BATCH_BYTES_MAX {
                match pieces.try_recv() {
                    Ok(more) if more.to == piece.to => piece.text.push_str(&more.text),
                    Ok(other) => {
                        next = Some(other);
                        break;
                    }
                    Err(_) => break,
                }
            }
            self.write(&piece);
            let length = length(&piece.text);
            self.progress.send_modify(|it| it.written += length);
        }
    }

    fn write(&mut self, piece: &Piece) {
        match piece.to {
            Stream::Err => {
                // Nobody is left to be told.
                let _ = put(&mut self.err, &piece.text);
            }
            Stream::Out => {
                if let Err(error) = put(&mut self.out, &piece.text) {
                    let _ = put(&mut self.err, &in_words(&error));
                    if error.kind() != io::ErrorKind::BrokenPipe {
                        self.progress
                            .send_modify(|it| it.failure = Some(error.to_string()));
                    }
                }
            }
        }
    }
}

/// Writes to a stream that is open; one that fails is closed.
fn put(sink: &mut Option<Box<dyn Write + Send>>, text: &str) -> io::Result<()> {
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
        Writer::to(out.clone(), err.clone()).unwrap()
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
}
