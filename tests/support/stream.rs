//! An upstream's body that follows a script, and a client that does.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::task::Poll;

use serde_json::Value;
use tollgate::gateway::ports::{Body, Client, Gone, Piece, SendFault, UpstreamReply};
use tollgate::time::{UnixMillis, Wait};

/// The time, set by the test and by the scripts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(Rc<Cell<u64>>);

impl Clock {
    pub(crate) fn at(now: u64) -> Self {
        Self(Rc::new(Cell::new(now)))
    }

    pub(crate) fn now(&self) -> UnixMillis {
        UnixMillis(self.0.get())
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.0.set(self.0.get() + ms);
    }
}

/// What an upstream's body does next.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// It sends this.
    Bytes(Vec<u8>),
    /// It says nothing for so many milliseconds.
    Silence(u64),
    /// Its connection breaks.
    Break,
    /// Nothing happens, but the client leaves.
    ClientLeaves,
}

impl Turn {
    pub(crate) fn text(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

/// A body that follows its script, and then ends.
#[derive(Debug)]
pub(crate) struct Scripted {
    pub(crate) turns: VecDeque<Turn>,
    pub(crate) clock: Clock,
    pub(crate) client: Rc<ClientState>,
    pub(crate) cancelled: Rc<Cell<bool>>,
}

impl Body for Scripted {
    async fn next(&mut self, within: Wait) -> Piece {
        assert!(!self.cancelled.get(), "read after it was cancelled");
        let mut waited = 0;
        while let Some(turn) = self.turns.pop_front() {
            match turn {
                Turn::Bytes(bytes) => return Piece::Bytes(bytes),
                Turn::Break => return Piece::Broken,
                Turn::Silence(ms) if waited + ms >= within.0 => {
                    self.clock.pass(within.0 - waited);
                    self.turns.push_front(Turn::Silence(waited + ms - within.0));
                    return Piece::TimedOut;
                }
                Turn::Silence(ms) => {
                    self.clock.pass(ms);
                    waited += ms;
                }
                Turn::ClientLeaves => {
                    self.client.gone.set(true);
                    pending::<()>().await;
                }
            }
        }
        Piece::End
    }

    fn cancel(&mut self) {
        self.cancelled.set(true);
    }
}

/// What an upstream answers.
#[derive(Clone, Debug)]
pub(crate) enum Upstream {
    Fails(SendFault),
    Answers {
        status: u16,
        headers: Vec<(&'static str, &'static str)>,
        turns: Vec<Turn>,
    },
    /// It says nothing for so many milliseconds, and then this.
    After(u64, Box<Upstream>),
    /// Each try in its turn; one more than there are is a fault of the test, or of what it tests.
    InTurn(RefCell<VecDeque<Upstream>>),
}

impl Upstream {
    /// Its answer to one call, for as long as that may take.
    pub(crate) fn reply(
        &self,
        (clock, within): (&Clock, Wait),
        client: &Rc<ClientState>,
        cancelled: &Rc<Cell<bool>>,
    ) -> Result<UpstreamReply<Scripted>, SendFault> {
        match self {
            Self::InTurn(queue) => {
                let next = queue.borrow_mut().pop_front().unwrap();
                next.reply((clock, within), client, cancelled)
            }
            Self::After(ms, then) if *ms < within.0 => {
                clock.pass(*ms);
                then.reply((clock, Wait(within.0 - ms)), client, cancelled)
            }
            Self::Answers { status, headers, turns } => {
                let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
                let (clock, client, cancelled) = (clock.clone(), Rc::clone(client), Rc::clone(cancelled));
                let body = Scripted { turns: turns.clone().into(), clock, client, cancelled };
                Ok(UpstreamReply { status: *status, headers: headers.iter().map(owned).collect(), body })
            }
            Self::Fails(SendFault::Unreachable) => Err(SendFault::Unreachable),
            Self::After(..) | Self::Fails(SendFault::TimedOut) => {
                clock.pass(within.0);
                Err(SendFault::TimedOut)
            }
        }
    }
}

/// What is known of a client.
#[derive(Debug, Default)]
pub(crate) struct ClientState {
    pub(crate) gone: Cell<bool>,
    pub(crate) closed: Cell<bool>,
    pub(crate) taken: RefCell<Vec<u8>>,
}

/// A client that takes so many pieces and then no more.
pub(crate) struct Taker {
    pub(crate) state: Rc<ClientState>,
    pub(crate) clock: Clock,
    pub(crate) takes: usize,
    pub(crate) closes: bool,
}

impl Client for Taker {
    async fn write(&mut self, bytes: &[u8], within: Wait) -> Result<(), Gone> {
        assert!(!self.state.closed.get(), "written to after it was closed");
        if self.state.gone.get() {
            return Err(Gone);
        }
        if self.takes == 0 {
            self.clock.pass(within.0);
            return Err(Gone);
        }
        self.takes -= 1;
        self.state.taken.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }

    async fn gone(&self) {
        poll_fn(|_| if self.state.gone.get() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    async fn close(&mut self) {
        if !self.closes {
            pending::<()>().await;
        }
        self.state.closed.set(true);
    }
}

/// What a caller gets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Of a stream: whether it was ended cleanly.
    pub(crate) closed: Option<bool>,
}

impl Told {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The error's code, or nothing.
    pub(crate) fn code(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}
