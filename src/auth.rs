//! Who calls.
//!
//! Invariant: identity comes from the credential alone, nothing else that a caller sends. A credential that is empty,
//! malformed or beside another one is refused, never passed over; and it is never echoed.

use crate::limit::MEMBER_MARK;
use crate::policy::{Keys, Visitors};
use crate::time::{UnixMillis, UtcDay};
use crate::visitor::{Prefix, TokenFault};

/// A caller's opaque, stable name: one person, one subject, one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject(pub String);

/// How a caller was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By an API key.
    Key,
    /// Not at all: a visitor, known by the network for a day.
    Visitor,
}

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Whose limits count.
    pub subject: Subject,
    /// Under which plan.
    pub plan: String,
    /// How the caller was recognised.
    pub kind: Kind,
    /// Which one of several who share the subject, if they are told apart.
    pub member: Option<String>,
}

impl Principal {
    /// The plan as the subject's object is asked about it: where several share the object, with the member.
    #[must_use]
    pub fn object_plan(&self) -> String {
        match &self.member {
            Some(member) => format!("{}{MEMBER_MARK}{member}", self.plan),
            None => self.plan.clone(),
        }
    }

    /// The caller's row in the ledger.
    #[must_use]
    pub fn ledger_key(&self) -> String {
        match self.member.as_deref() {
            None | Some("") => self.subject.0.clone(),
            Some(member) => format!("{}{MEMBER_MARK}{member}", self.subject.0),
        }
    }
}

/// Why a caller is not recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrecognised {
    /// No credential at all.
    Missing,
    /// A credential that is empty or not of the form that its header wants.
    Malformed,
    /// Two different credentials.
    Ambiguous,
    /// A credential that nobody has.
    Unknown,
    /// A visitor token that was not made here, or not for here.
    ForgedToken,
    /// A visitor token whose time is over.
    ExpiredToken,
}

impl Unrecognised {
    /// What the caller is told; it contains nothing that was sent.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Missing => {
                "No API key was sent. Send it as `Authorization: Bearer KEY`, or in an `x-api-key` or `api-key` header."
            }
            Self::Malformed => "The API key cannot be read. Send it as `Authorization: Bearer KEY`.",
            Self::Ambiguous => "Two different API keys were sent in one request. Send one.",
            Self::Unknown => "Incorrect API key provided: it is not known here.",
            Self::ForgedToken => "The visitor token is not valid here. `POST /v1/visitor` gives out a new one.",
            Self::ExpiredToken => "The visitor token has expired. `POST /v1/visitor` gives out a new one.",
        }
    }
}

/// Recognises a caller by the values of the credential headers, in the order of [`CREDENTIAL_HEADERS`](crate::policy::CREDENTIAL_HEADERS).
///
/// # Errors
/// If there is no credential, or not exactly one good one.
pub fn authenticate(headers: &[Option<String>; 3], keys: &Keys) -> Result<Principal, Unrecognised> {
    let [authorization, x_api_key, api_key] = headers;
    let mut presented = None::<&str>;
    let bearer = authorization.as_deref().map(|value| bearer(value).unwrap_or_default());
    for credential in [bearer, x_api_key.as_deref(), api_key.as_deref()].into_iter().flatten().map(str::trim) {
        if credential.is_empty() {
            return Err(Unrecognised::Malformed);
        }
        if presented.is_some_and(|other| other != credential) {
            return Err(Unrecognised::Ambiguous);
        }
        presented = Some(credential);
    }
    let key = keys.find(presented.ok_or(Unrecognised::Missing)?).ok_or(Unrecognised::Unknown)?;
    // The prefix keeps users of keys apart from subjects that are recognised in another way.
    let subject = Subject(format!("user:{}", key.user));
    Ok(Principal { subject, plan: key.plan.clone(), kind: Kind::Key, member: None })
}

/// Recognises a caller without a credential, by the address that the platform reports and a visitor token, if one is
/// presented.
///
/// # Errors
/// If there is no secret or no usable address, or the token is not good.
pub fn visitor(
    visitors: &Visitors,
    address: Option<&str>,
    token: Option<&str>,
    now: UnixMillis,
) -> Result<Principal, Unrecognised> {
    let secret = visitors.secret.as_ref().ok_or(Unrecognised::Missing)?;
    let prefix = address.and_then(|address| Prefix::of(address, visitors.ipv6)).ok_or(Unrecognised::Missing)?;
    let day = UtcDay::of(now);
    let member = match (&visitors.tokens, token) {
        (None, None) => None,
        (None, Some(_)) => return Err(Unrecognised::ForgedToken),
        (Some(_), None) => Some(String::new()),
        (Some(_), Some(token)) => {
            let member = secret.member(token, &prefix, now).map_err(|fault| match fault {
                TokenFault::Forged => Unrecognised::ForgedToken,
                TokenFault::Expired => Unrecognised::ExpiredToken,
            })?;
            Some(secret.member_on(&member, day))
        }
    };
    let subject = Subject(secret.subject(&prefix, day));
    Ok(Principal { subject, plan: visitors.plan.clone(), kind: Kind::Visitor, member })
}

/// The token of an `Authorization` value; the scheme is written in any case.
fn bearer(value: &str) -> Option<&str> {
    const SCHEME: &str = "bearer";
    let (scheme, token) = value.trim().split_at_checked(SCHEME.len())?;
    (scheme.eq_ignore_ascii_case(SCHEME) && token.starts_with(' ')).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Faults;

    fn keys() -> Keys {
        let mut faults = Faults::default();
        let mut table = serde_json::json!({});
        for (key, user) in [("key-a", "ann"), ("key-b", "bob"), ("key-c", "ann")] {
            use sha2::Digest as _;
            table[hex::encode(sha2::Sha256::digest(key))] = serde_json::json!({"user": user, "plan": "p"});
        }
        let keys = Keys::read(Some(&table.to_string()), |_| true, &mut faults);
        assert_eq!(faults, Faults::default());
        keys
    }

    fn subject(headers: [&str; 3]) -> Result<String, Unrecognised> {
        let headers = headers.map(|value| (value != "-").then(|| value.to_owned()));
        authenticate(&headers, &keys()).map(|principal| principal.subject.0)
    }

    #[test]
    fn a_key_is_taken_from_each_header_and_the_scheme_in_any_case() {
        for headers in [
            ["Bearer key-a", "-", "-"],
            ["bearer key-a", "-", "-"],
            ["  BEARER    key-a  ", "-", "-"],
            ["-", "key-a", "-"],
            ["-", "-", " key-a "],
            ["Bearer key-a", "key-a", "key-a"],
            ["Bearer key-c", "-", "-"],
        ] {
            assert_eq!(subject(headers), Ok("user:ann".to_owned()), "{headers:?}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        use Unrecognised::{Ambiguous, Malformed, Missing, Unknown};
        for (headers, why) in [
            (["-", "-", "-"], Missing),
            (["", "-", "-"], Malformed),
            (["Bearer", "-", "-"], Malformed),
            (["Bearer ", "-", "-"], Malformed),
            (["Basic key-a", "-", "-"], Malformed),
            (["Bearerkey-a", "-", "-"], Malformed),
            (["key-a", "-", "-"], Malformed),
            (["Bearer key-a", "", "-"], Malformed),
            (["Bearer key-a", "key-b", "-"], Ambiguous),
            (["-", "key-a", "key-b"], Ambiguous),
            (["Bearer key-a, Bearer key-a", "-", "-"], Unknown),
            (["Bearer key-é·ÿ", "-", "-"], Unknown),
            (["Bearer 33a31dc7d5b7a4eb3d5df6da8fab9d0cc5d5e45f8ad1d1f9a5a1f2ac2a0a9a10", "-", "-"], Unknown),
        ] {
            assert_eq!(subject(headers), Err(why), "{headers:?}");
        }
    }
}
