//! `UserLimiter`, the Durable Object of one subject.
//!
//! Invariant: one command is one turn. Its handlers are synchronous, so nothing comes between reading and writing; the
//! record is one value, written once per decision and before memory is changed, so memory is never ahead of storage;
//! and a panic would reach the caller at once. It calls nothing and knows nobody but its storage.

use std::cell::RefCell;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use web_sys::{Request, Response, ResponseInit};

use super::js::{State, SyncKv, console_error, date, now};
use super::variables;
use crate::limit::account::{Account, Cleanup};
use crate::limit::protocol::{Command, ProtocolError, account_of, record_of};
use crate::policy::Policy;

/// Under which key the record is stored.
const RECORD: &str = "account";

/// The object's class, as `wrangler.toml` names it.
#[wasm_bindgen]
pub struct UserLimiter {
    state: State,
    env: JsValue,
    account: RefCell<Option<Account>>,
}

#[wasm_bindgen]
impl UserLimiter {
    /// Called by the platform.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new(state: State, env: JsValue) -> Self {
        Self { state, env, account: RefCell::new(None) }
    }

    /// One command.
    ///
    /// # Errors
    /// If the storage throws: the caller then gets the exception.
    #[expect(clippy::needless_pass_by_value, reason = "the platform hands the request over")]
    pub fn fetch(&self, request: Request) -> Result<Response, JsValue> {
        let policy = variables::policy(&self.env);
        let reply = match (Command::from_url(&request.url()), policy) {
            (Ok(command), Ok(policy)) => self.execute(&command, policy)?,
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

    /// The cleaning alarm.
    ///
    /// # Errors
    /// If the storage throws: the platform then calls again.
    pub fn alarm(&self) -> Result<Option<Promise>, JsValue> {
        let account = match self.load()? {
            Ok(account) => account,
            Err(fault) => {
                // Calling again would not make it readable; a command will report it.
                console_error(&fault.to_string());
                return Ok(None);
            }
        };
        match account.cleanup(now()) {
            Cleanup::Delete => {
                let deleted = self.state.storage().delete_all()?;
                self.account.replace(Some(Account::default()));
                Ok(Some(deleted))
            }
            Cleanup::Rearm(at, next) => {
                self.kv().put(RECORD, &record_of(&next))?;
                let armed = self.state.storage().set_alarm(date(at))?;
                self.account.replace(Some(next));
                Ok(Some(armed))
            }
        }
    }

    fn execute(&self, command: &Command, policy: &'static Policy) -> Result<Result<String, ProtocolError>, JsValue> {
        let account = match self.load()? {
            Ok(account) => account,
            Err(fault) => return Ok(Err(fault)),
        };
        let (reply, next) = match command.execute(&account, now(), |plan| policy.limits_of(plan)) {
            Ok(done) => done,
            Err(fault) => return Ok(Err(fault)),
        };
        if let Some(mut next) = next {
            let alarm = next.arm();
            self.kv().put(RECORD, &record_of(&next))?;
            if let Some(at) = alarm {
                // Not awaited: the output gate holds the reply until it is durable, together with the record.
                let _ = self.state.storage().set_alarm(date(at))?;
            }
            self.account.replace(Some(next));
        }
        Ok(Ok(reply.to_json()))
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
