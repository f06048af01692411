//! Everything outside of a call, in memory.
//!
//! The limiter goes through the text of the real protocol and of the real record; only the platform between the Worker
//! and the object is missing. It, the upstream and the clock do what the test tells them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;
use tollgate::auth::Subject;
use tollgate::gateway::memory::Memory;
use tollgate::gateway::ports::{ModelRun, Ports, ReadFault, SendFault, Unavailable, UpstreamReply, UpstreamRequest};
use tollgate::gateway::record::CallRecord;
use tollgate::gateway::{Answer, Call, handle};
use tollgate::ledger::{Gate, Row};
use tollgate::limit::protocol::{Command, Reply, account_of, record_of};
use tollgate::policy::{Faults, LedgerRules, Policy, Turnstile};
use tollgate::time::{UnixMillis, UtcDay, Wait};

use super::ledger::MemoryLedger;
use super::policy::Written;
use super::stream::{ClientState, Clock, Scripted, Taker};
pub(crate) use super::stream::{Told, Upstream};

/// 2031-03-05T12:00:00Z.
const NOON: u64 = 1_930_478_400_000;

/// How a question to the limiter fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimiterFault {
    /// The object does not get it.
    Down,
    /// It is carried out, and the answer is lost.
    LostReply,
    /// It is carried out, and the answer is no answer.
    Nonsense,
    /// It is carried out, and what comes back answers another question.
    OtherReply,
}

/// The world of one caller.
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) policy: Result<Policy, Faults>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Result<Vec<u8>, ReadFault>,
    pub(crate) upstream: Upstream,
    /// How many pieces the client takes.
    pub(crate) takes: usize,
    /// Whether it takes the end.
    pub(crate) closes: bool,
    /// The faults of the next questions, by their verb.
    pub(crate) faults: BTreeMap<&'static str, Vec<LimiterFault>>,
    /// How long an answer of the limiter is under way.
    pub(crate) latency: u64,
    pub(crate) client: Rc<ClientState>,
    pub(crate) cancelled: Rc<Cell<bool>>,
    pub(crate) asked: RefCell<Vec<(String, Command)>>,
    pub(crate) sent: RefCell<Vec<UpstreamRequest>>,
    pub(crate) ran: RefCell<Vec<ModelRun>>,
    pub(crate) log: RefCell<Vec<Value>>,
    pub(crate) warnings: RefCell<Vec<String>>,
    /// The pauses, in milliseconds.
    pub(crate) slept: RefCell<Vec<u64>>,
    pub(crate) records: RefCell<BTreeMap<Subject, String>>,
    pub(crate) asked_before: RefCell<BTreeMap<String, usize>>,
    pub(crate) memory: Memory,
    pub(crate) ledger: RefCell<MemoryLedger>,
    /// The ledger does not answer.
    pub(crate) ledger_down: Cell<bool>,
    /// What the shield and the challenge say.
    pub(crate) lets_in: Cell<bool>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            clock: Clock::at(NOON),
            policy: Written::good().read(),
            headers: BTreeMap::new(),
            body: Ok(Vec::new()),
            upstream: Upstream::Fails(SendFault::Unreachable),
            takes: usize::MAX,
            closes: true,
            faults: BTreeMap::new(),
            latency: 0,
            client: Rc::default(),
            cancelled: Rc::default(),
            asked: RefCell::default(),
            sent: RefCell::default(),
            ran: RefCell::default(),
            log: RefCell::default(),
            warnings: RefCell::default(),
            slept: RefCell::default(),
            records: RefCell::default(),
            asked_before: RefCell::default(),
            memory: Memory::default(),
            ledger: RefCell::default(),
            ledger_down: Cell::new(false),
            lets_in: Cell::new(true),
        }
    }

    /// Calls with the key of a plan, and carries the call to its end.
    pub(crate) fn call(&mut self, id: &str, plan: &str, body: &str) -> Told {
        self.headers.insert("authorization".to_owned(), format!("Bearer key-{plan}"));
        self.body = Ok(body.as_bytes().to_vec());
        self.request(id, "POST", "/v1/chat/completions")
    }

    /// Sends what is set, and carries the call to its end.
    pub(crate) fn request(&mut self, id: &str, method: &str, path: &str) -> Told {
        (self.client, self.cancelled) = (Rc::default(), Rc::default());
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let call =
            Call { id: id.to_owned(), method: method.to_owned(), path: path.to_owned(), query: query.to_owned() };
        pollster::block_on(async {
            match handle(&self.policy, self, &call).await {
                Answer::Whole { head, body, hold } => {
                    if let Some(hold) = hold {
                        let (hold, ending) = *hold;
                        hold.end(self, ending).await;
                    }
                    Told { status: head.status, headers: head.headers, body, closed: None }
                }
                Answer::Stream { head, relay } => {
                    let state = Rc::clone(&self.client);
                    let mut client = Taker { state, clock: self.clock.clone(), takes: self.takes, closes: self.closes };
                    // A client that does not take the end keeps the relay, but nothing else.
                    let ended = poll_once(relay.run(self, &mut client));
                    assert!(ended.await || !self.closes, "the relay never ends");
                    let (body, closed) = (self.client.taken.borrow().clone(), Some(self.client.closed.get()));
                    Told { status: head.status, headers: head.headers, body, closed }
                }
            }
        })
    }

    /// What was charged of a user's day, in billionths of a dollar, and the calls that are open.
    pub(crate) fn spent(&self, user: &str) -> (i64, u64) {
        let records = self.records.borrow();
        let record = records.get(&Subject(format!("user:{user}")));
        let account = account_of(record.map(String::as_str)).unwrap();
        let limits = self.policy.as_ref().unwrap().limits_of(user).unwrap();
        let snapshot = account.snapshot(self.clock.now(), &limits);
        let day = snapshot.balances.iter().find(|balance| balance.limit.name == "day");
        (day.map_or(0, |day| 1_000_000_000 - day.left()), snapshot.open_holds)
    }

    /// How often a verb was asked.
    pub(crate) fn count(&self, verb: &str) -> usize {
        self.asked.borrow().iter().filter(|(asked, _)| asked == verb).count()
    }

    fn answer(&self, subject: &Subject, command: &Command) -> String {
        let mut records = self.records.borrow_mut();
        // An answer that cannot be read, as the platform's is where the object throws.
        let Ok(account) = account_of(records.get(subject).map(String::as_str)) else { return String::new() };
        let limits_of = |plan: &str| self.policy.as_ref().ok()?.limits_of(plan);
        let (reply, next) = command.execute(&account, self.clock.now(), limits_of).unwrap();
        if let Some(mut next) = next {
            next.arm();
            records.insert(subject.clone(), record_of(&next));
        }
        reply.to_json()
    }

    fn upstream_answers(&self, within: Wait) -> Result<UpstreamReply<Scripted>, SendFault> {
        // Of several tries each has a body of its own to give up.
        self.cancelled.set(false);
        self.upstream.reply((&self.clock, within), &self.client, &self.cancelled)
    }

    fn ledger_answers(&self, within: Wait) -> Result<(), Unavailable> {
        if self.ledger_down.get() {
            self.clock.pass(within.0);
            return Err(Unavailable("no answer".to_owned()));
        }
        Ok(())
    }

    fn fault(&self, verb: &str) -> Option<LimiterFault> {
        let mut before = self.asked_before.borrow_mut();
        let times = before.entry(verb.to_owned()).or_default();
        *times += 1;
        self.faults.get(verb)?.get(*times - 1).copied()
    }
}

/// Whether a future is ready when it is first looked at. Nothing here waits for anything but the scripts.
async fn poll_once(future: impl Future) -> bool {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_ready())).await
}

impl Ports for World {
    type Body = Scripted;

    fn now(&self) -> UnixMillis {
        self.clock.now()
    }

    fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).cloned()
    }

    async fn read_body(&self, cap: usize) -> Result<Vec<u8>, ReadFault> {
        self.body.clone().and_then(|body| if body.len() > cap { Err(ReadFault::TooLarge) } else { Ok(body) })
    }

    async fn ask(&self, subject: &Subject, command: &Command, within: Wait) -> Result<Reply, Unavailable> {
        let path = command.to_path();
        let verb = path.trim_start_matches("/v1/").split('?').next().unwrap().to_owned();
        self.asked.borrow_mut().push((verb.clone(), command.clone()));
        let fault = self.fault(&verb);
        if fault == Some(LimiterFault::Down) {
            self.clock.pass(within.0);
            return Err(Unavailable("no answer".to_owned()));
        }
        let command = Command::from_url(&format!("https://limiter{path}")).unwrap();
        let reply = self.answer(subject, &command);
        self.clock.pass(self.latency);
        let reply = match fault {
            Some(LimiterFault::LostReply) => return Err(Unavailable("lost".to_owned())),
            Some(LimiterFault::Nonsense) => "<html>".to_owned(),
            Some(LimiterFault::OtherReply) => r#"{"done":{"known":true}}"#.to_owned(),
            _ => reply,
        };
        Reply::from_json(&reply).map_err(|fault| Unavailable(fault.to_string()))
    }

    async fn send(&self, request: UpstreamRequest, within: Wait) -> Result<UpstreamReply<Scripted>, SendFault> {
        self.sent.borrow_mut().push(request);
        self.upstream_answers(within)
    }

    async fn run(&self, run: ModelRun, within: Wait) -> Result<UpstreamReply<Scripted>, SendFault> {
        self.ran.borrow_mut().push(run);
        self.upstream_answers(within)
    }

    async fn count(&self, gate: &Gate, within: Wait) -> Result<Vec<Row>, Unavailable> {
        self.ledger_answers(within)?;
        Ok(self.ledger.borrow_mut().count(gate))
    }

    async fn row(&self, day: UtcDay, key: &str, within: Wait) -> Result<Option<Row>, Unavailable> {
        self.ledger_answers(within)?;
        Ok(self.ledger.borrow().row(day, key))
    }

    fn prune(&self, day: UtcDay, rules: &LedgerRules) {
        self.ledger.borrow_mut().prune(day, rules);
    }

    async fn shield(&self, _: &str, _: Wait) -> Result<bool, Unavailable> {
        Ok(self.lets_in.get())
    }

    async fn is_human(&self, _: &Turnstile, _: &str, _: Wait) -> Result<bool, Unavailable> {
        Ok(self.lets_in.get())
    }

    async fn sleep(&self, wait: Wait) {
        self.slept.borrow_mut().push(wait.0);
        self.clock.pass(wait.0);
    }

    fn random(&self) -> u64 {
        self.clock.now().0
    }

    fn memory(&self) -> &Memory {
        &self.memory
    }

    fn has_limiter(&self) -> bool {
        true
    }

    fn has_shield(&self) -> bool {
        true
    }

    fn log(&self, record: &CallRecord) {
        self.log.borrow_mut().push(serde_json::to_value(record).unwrap());
    }

    fn warn(&self, message: &str) {
        self.warnings.borrow_mut().push(message.to_owned());
    }
}
