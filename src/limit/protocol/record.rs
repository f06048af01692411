//! The account as it is stored.

use serde::{Deserialize, Serialize};

use super::{ProtocolError, RECORD};
use crate::limit::account::Account;

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    v: u32,
    #[serde(flatten)]
    what: T,
}

/// The account as it is stored.
#[must_use]
pub fn record_of(account: &Account) -> String {
    // Integers, strings and lists only: the serialiser has no other way to fail.
    serde_json::to_string(&Versioned { v: RECORD, what: account }).unwrap_or_default()
}

/// The account that a stored record holds. A missing record is an account that never called.
///
/// # Errors
/// If the record cannot be read: the call is then refused, never let through unlimited.
pub fn account_of(record: Option<&str>) -> Result<Account, ProtocolError> {
    let Some(record) = record else { return Ok(Account::default()) };
    let stored: Versioned<Account> =
        serde_json::from_str(record).map_err(|fault| ProtocolError::Record(fault.to_string()))?;
    if stored.v == RECORD {
        Ok(stored.what)
    } else {
        Err(ProtocolError::Record(format!("version {}, want {RECORD}", stored.v)))
    }
}
