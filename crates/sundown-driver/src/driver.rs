//! The loop around the engine: inputs in, effects out, sleep until the next instant. All branching
//! that matters is in the engine; here is only the order of a turn.

use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use kube::Client;
use sundown_engine::{Brake, Engine, Input, SentEffect, flight::Record};
use tokio::sync::{mpsc, watch};

use crate::counters::Counters;
use crate::effects::{Effects, Outbox};
use crate::handle::{Message, Waiter};
use crate::log;
use crate::requests::Requests;
use crate::{Barrier, Clock, DriverHandle, ListBarrier, Ports, Recorder, SystemClock};

/// How many inputs may wait for the engine. Beyond it watches wait, and so does the server's log.
const INBOX_MAX: usize = 1024;

/// How long requests may take to be answered after the driver was asked to end.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);

/// Runs an engine against an API server.
#[derive(Debug)]
pub struct Driver {
    engine: Engine,
    clock: Arc<dyn Clock>,
    barrier: Option<Arc<dyn Barrier>>,
    ports: Ports,
    recorder: Option<Recorder>,
    brake: Brake,
    requests: Requests,
    inbox: mpsc::Receiver<Message>,
    handle: DriverHandle,
    waiters: Vec<Waiter>,
}

impl Driver {
    /// A driver of this engine, by the clock of the machine and with the barrier for any server.
    pub fn new(engine: Engine, client: Client) -> Self {
        let (sender, inbox) = mpsc::channel(INBOX_MAX);
        let counters = Arc::<Counters>::default();
        Self {
            engine,
            clock: Arc::new(SystemClock),
            barrier: None,
            ports: Ports::default(),
            recorder: None,
            brake: Brake::default(),
            requests: Requests::new(client, Arc::clone(&counters)),
            inbox,
            handle: DriverHandle {
                inbox: sender,
                stop: watch::Sender::new(false),
                counters,
            },
            waiters: Vec::new(),
        }
    }

    /// The same driver with another clock.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The same driver with a barrier that knows its server better.
    #[must_use]
    pub fn barrier(self, barrier: Arc<dyn Barrier>) -> Self {
        let barrier = Some(barrier);
        Self { barrier, ..self }
    }

    /// The same driver with ways to what lies beyond the API server.
    #[must_use]
    pub fn ports(self, ports: Ports) -> Self {
        Self { ports, ..self }
    }

    /// The same driver with a flight recorder.
    #[must_use]
    pub fn recorder(self, recorder: Recorder) -> Self {
        let recorder = Some(recorder);
        Self { recorder, ..self }
    }

    /// The same driver with a brake that is on before anything is decided.
    #[must_use]
    pub fn brake(self, brake: Brake) -> Self {
        Self { brake, ..self }
    }

    /// How others speak to this driver once it runs.
    pub fn handle(&self) -> DriverHandle {
        self.handle.clone()
    }

    /// Runs until [`DriverHandle::shutdown`]. An effect that panics is answered as broken, and costs
    /// nothing but itself.
    pub async fn run(mut self) {
        let list_barrier = || Arc::new(ListBarrier::new(self.requests.clone())) as _;
        let barrier = self.barrier.take().unwrap_or_else(list_barrier);
        let outbox = Outbox::new(self.handle.inbox.clone());
        let ports = self.ports.clone();
        let mut effects = Effects::new(self.requests.clone(), barrier, ports, outbox);
        effects.listen();
        if let Some(recorder) = &mut self.recorder {
            recorder.begin(&self.engine, self.clock.now());
        }
        // Alone on its server, it leads. An operator on a cluster will ask for a lease first.
        let mut messages = vec![
            Message::Input(Input::Brake(self.brake.clone())),
            Message::Input(Input::Lead(true)),
        ];
        let mut stop = self.handle.stop.subscribe();
        loop {
            self.turn(&mut messages, &mut effects);
            tokio::select! {
                _ = stop.wait_for(|asked| *asked) => break,
                () = self.wait(&mut messages, &mut effects) => {}
            }
        }
        self.inbox.close();
        if tokio::time::timeout(DRAIN_TIME_MAX, effects.drain())
            .await
            .is_err()
        {
            tracing::warn!("requests without an answer were cut off");
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.flush();
        }
    }

    /// Waits until there is a message or the engine's instant has come.
    async fn wait(&mut self, messages: &mut Vec<Message>, effects: &mut Effects) {
        if let Some(recorder) = &mut self.recorder
            && self.inbox.is_empty()
        {
            recorder.flush();
        }
        let mut due =
            OptionFuture::from(self.engine.wake_at().map(|at| self.clock.sleep_until(at)));
        tokio::select! {
            // The driver holds a sender itself, so the inbox stays open.
            _ = self.inbox.recv_many(messages, INBOX_MAX) => {}
            Some(()) = &mut due => {}
            broken = effects.broken() => messages.push(Message::Input(broken)),
        }
    }

    /// Takes what has arrived at one instant, then starts whatever the engine wants.
    fn turn(&mut self, messages: &mut Vec<Message>, effects: &mut Effects) {
        let now = self.clock.now();
        let mut questions = Vec::new();
        let mut inputs = Vec::new();
        for message in messages.drain(..) {
            match message {
                Message::Input(input) => inputs.push(input),
                Message::Ask(question) => questions.push(question),
                Message::Await(waiter) => self.waiters.push(waiter),
            }
        }
        let recorded_inputs = self.recorder.is_some().then(|| inputs.clone());
        for input in inputs {
            self.engine.take(input, now);
        }
        let mut started = Vec::new();
        while let Some(effect) = self.engine.next(now) {
            if self.recorder.is_some() {
                started.push(SentEffect::from(&effect));
            }
            effects.start(effect);
        }
        if let Some((recorder, inputs)) = self.recorder.as_mut().zip(recorded_inputs)
            && !(inputs.is_empty() && started.is_empty())
        {
            let turn = Record::Turn {
                at: now,
                inputs,
                effects: started,
            };
            recorder.turn(&turn, &self.engine, now);
        }
        let tally = self.engine.take_tally();
        log::tally(&tally);
        let counters = &self.handle.counters;
        counters.turned(&tally, self.engine.backlogs());
        for question in questions {
            question(&self.engine, now);
        }
        let engine = &self.engine;
        self.waiters.retain_mut(|waiter| !waiter.look(engine, now));
    }
}

impl Waiter {
    /// Whether this waiter need not wait any longer; it is told if its state was reached.
    fn look(&mut self, engine: &Engine, now: jiff::Timestamp) -> bool {
        match self.tell.take() {
            Some(tell) if tell.is_closed() => true,
            Some(tell) if (self.is_reached)(engine, now) => {
                // Whoever waited may have gone in this moment.
                let _ = tell.send(());
                true
            }
            tell => {
                self.tell = tell;
                self.tell.is_none()
            }
        }
    }
}
