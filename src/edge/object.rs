//! `UserLimiter`, the Durable Object of one subject.
//!
//! Invariant: one command is one turn. Its handlers are synchronous, so nothing comes between reading and writing; the
//! record is one value, written once per decision and before memory is changed, so memory is never ahead of storage;
//! and a panic would reach the caller at once. Only the alarm waits for anything, the ledger, and it reads the account
//! anew after every wait.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, future_to_promise};
use web_sys::{Request, Response, ResponseInit};

use super::js::{State, SyncKv, console_error, date, now};
use super::{d1, variables};
use crate::limit::account::{Account, AlarmStep};
use crate::limit::outbox::{Batch, Refusals};
use crate::limit::protocol::{Command, ProtocolError, account_of, record_of};
use crate::policy::Policy;
use crate::time::UnixMillis;

/// Under which key the record is stored.
const RECORD: &str = "account";

/// The object's class, as `wrangler.toml` names it.
#[wasm_bindgen]
pub struct UserLimiter(Rc<Keeper>);

/// What the object keeps; shared with an alarm that is under way.
struct Keeper {
    state: State,
    env: JsValue,
    account: RefCell<Option<Account>>,
    refusals: RefCell<Refusals>,
}

#[wasm_bindgen]
impl UserLimiter {
    /// Called by the platform.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new(state: State, env: JsValue) -> Self {
        let (account, refusals) = (RefCell::new(None), RefCell::default());
        Self(Rc::new(Keeper { state, env, account, refusals }))
    }

    /// One command.
    ///
    /// # Errors
    /// If the storage throws: the caller then gets the exception.
    #[expect(clippy::needless_pass_by_value, reason = "the platform hands the request over")]
    pub fn fetch(&self, request: Request) -> Result<Response, JsValue> {
        let policy = variables::policy(&self.0.env);
        let reply = match (Command::from_url(&request.url()), policy) {
            (Ok(command), Ok(policy)) => self.0.execute(&command, policy)?,
            (Err(fault), _) => Err(fault),
            (_, Err(_)) => Err(ProtocolError::Plan("any: the policy is not valid".to_owned())),
        };
        match reply {
            Ok(json) => Response::new_with_opt_str(Some(&json)),
            Err(fault) => {
                let init = ResponseInit::new();
                init.set_status(500);
                Response::new_with_opt_str_and_init(Some(&fault.to_string()), &init)
            }
        }
    }

    /// The alarm: tells the ledger, cleans up, or sets itself for later. If the storage throws, the platform calls again.
    pub fn alarm(&self) -> Promise {
        let keeper = Rc::clone(&self.0);
        future_to_promise(async move { keeper.alarm().await.map(|()| JsValue::UNDEFINED) })
    }
}

impl Keeper {
    fn execute(&self, command: &Command, policy: &'static Policy) -> Result<Result<String, ProtocolError>, JsValue> {
        let account = match self.load()? {
            Ok(account) => account,
            Err(fault) => return Ok(Err(fault)),
        };
        let (reply, next) = match command.execute(&account, now(), |plan| policy.limits_of(plan)) {
            Ok(done) => done,
            Err(fault) => return Ok(Err(fault)),
        };
        if let Some(booking) = command.refused_by(&reply) {
            self.refusals.borrow_mut().note(booking);
        }
        if let Some(next) = next {
            let mut next = next.with_refusals(&self.refusals.borrow_mut().take());
            let alarm = next.arm();
            self.write(next, alarm)?;
        }
        Ok(Ok(reply.to_json()))
    }

    async fn alarm(&self) -> Result<(), JsValue> {
        let mut taken = None;
        loop {
            let account = match self.load()? {
                Ok(account) => account,
                Err(fault) => {
                    // Calling again would not make it readable; a command will report it.
                    console_error(&fault.to_string());
                    return Ok(());
                }
            };
            // What the ledger has taken is written with whatever comes next; if that is lost, the row knows the number.
            let account = taken.map_or_else(|| account.clone(), |number| account.posted(number));
            let refusals = self.refusals.borrow_mut().take();
            match account.with_refusals(&refusals).alarm(now()) {
                AlarmStep::Delete => {
                    let deleted = self.state.storage().delete_all()?;
                    self.account.replace(Some(Account::default()));
                    return JsFuture::from(deleted).await.map(|_| ());
                }
                AlarmStep::Rearm { alarm_at, next } => return self.write(next, Some(alarm_at)),
                AlarmStep::Post { batch, alarm_at, next } => {
                    self.write(next, Some(alarm_at))?;
                    if !self.post(&batch).await {
                        return Ok(());
                    }
                    taken = Some(batch.number);
                }
            }
        }
    }

    /// Tells the ledger; whether it has taken the batch. If not, the alarm is set already.
    async fn post(&self, batch: &Batch) -> bool {
        let Ok(policy) = variables::policy(&self.env) else { return false };
        if policy.ledger.is_none() {
            // Nobody keeps a ledger any more, so there is nobody to be told.
            return true;
        }
        let within = policy.bounds.ledger;
        match d1::post(&self.env, batch, within).await {
            Ok(unpruned) => {
                if let Some((day, rules)) = unpruned.zip(policy.ledger.as_ref())
                    && let Err(fault) = d1::prune(&self.env, day, rules, within).await
                {
                    console_error(&format!("old rows were not deleted, the next batch tries again: {}", fault.0));
                }
                true
            }
            Err(fault) => {
                console_error(&format!("batch {} was not taken, it is sent again: {}", batch.number, fault.0));
                false
            }
        }
    }

    /// Writes the account, sets the alarm, then changes memory. Nothing is awaited: the output gate holds every reply
    /// until both are durable, together.
    fn write(&self, next: Account, alarm_at: Option<UnixMillis>) -> Result<(), JsValue> {
        self.kv().put(RECORD, &record_of(&next))?;
        if let Some(at) = alarm_at {
            let _ = self.state.storage().set_alarm(date(at))?;
        }
        self.account.replace(Some(next));
        Ok(())
    }

    /// The account: from memory, or once in a life from storage.
    fn load(&self) -> Result<Result<Account, ProtocolError>, JsValue> {
        if let Some(account) = self.account.borrow().as_ref() {
            return Ok(Ok(account.clone()));
        }
        let stored = self.kv().get(RECORD)?;
        let record = if stored.is_undefined() { None } else { Some(stored.as_string().unwrap_or_default()) };
        let account = account_of(record.as_deref());
        if let Ok(account) = &account {
            self.account.replace(Some(account.clone()));
        }
        Ok(account)
    }

    fn kv(&self) -> SyncKv {
        self.state.storage().kv()
    }
}
