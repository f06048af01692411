//! Callers without a credential.
//!
//! Invariant: no address is kept. A visitor is the keyed hash of the UTC day and the network prefix, so a leaked row
//! says nothing without the secret, and tomorrow the same person is somebody else. A visitor token is a signed number:
//! it holds nothing but its expiry, and is worth something only from the prefix that it was made for.

use core::net::{IpAddr, Ipv6Addr};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::time::{UnixMillis, UtcDay};

/// Hex digits of a subject's hash: 128 bits.
const SUBJECT_DIGITS: usize = 32;
/// Hex digits of a token's number: 64 bits, unguessable together with the signature.
const MEMBER_DIGITS: usize = 16;
const TOKEN_VERSION: &str = "v1";

/// How much of an IPv6 address is one visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv6Prefix {
    /// What one connection has.
    Bits64,
    /// What many a home has.
    Bits56,
}

/// A network prefix, in the one spelling that is hashed.
#[derive(Clone, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// The prefix of the address that the platform reports: IPv4 whole, also where it is mapped into IPv6.
    #[must_use]
    pub fn of(address: &str, ipv6: Ipv6Prefix) -> Option<Self> {
        let address: IpAddr = address.trim().parse().ok()?;
        Some(Self(match address.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                match ipv6 {
                    Ipv6Prefix::Bits64 => format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)),
                    Ipv6Prefix::Bits56 => format!("{}/56", Ipv6Addr::new(a, b, c, d & 0xff00, 0, 0, 0, 0)),
                }
            }
        }))
    }
}

/// The secret that visitors are hashed and their tokens signed under.
#[derive(Clone)]
pub struct VisitorSecret(Hmac<Sha256>);

impl core::fmt::Debug for VisitorSecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("VisitorSecret(…)")
    }
}

/// Why a visitor token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    /// Not made here, or changed, or made for another prefix.
    Forged,
    /// Its time is over.
    Expired,
}

impl VisitorSecret {
    /// The secret; at least 16 bytes. `None` if it is shorter.
    #[must_use]
    pub fn new(secret: &str) -> Option<Self> {
        const BYTES_MIN: usize = 16;
        let long_enough = secret.len() >= BYTES_MIN;
        Hmac::new_from_slice(secret.as_bytes()).ok().filter(|_| long_enough).map(Self)
    }

    /// The subject of a prefix on a day.
    #[must_use]
    pub fn subject(&self, prefix: &Prefix, day: UtcDay) -> String {
        let hash = hex::encode(self.mac(&["subject", &day.0.to_string(), &prefix.0]).finalize().into_bytes());
        format!("visitor:{}", hash.get(..SUBJECT_DIGITS).unwrap_or_default())
    }

    /// A token for `member`, a random number, good until `expires_at` from `prefix`.
    #[must_use]
    pub fn token(&self, prefix: &Prefix, member: u64, expires_at: UnixMillis) -> String {
        let body = format!("{TOKEN_VERSION}.{member:0MEMBER_DIGITS$x}.{}", expires_at.0);
        let signature = hex::encode(self.mac(&["token", &body, &prefix.0]).finalize().into_bytes());
        format!("{body}.{signature}")
    }

    /// The member that a token is of.
    ///
    /// # Errors
    /// If it was not made here for this prefix, or its time is over.
    pub fn member(&self, token: &str, prefix: &Prefix, now: UnixMillis) -> Result<String, TokenFault> {
        let (body, signature) = token.trim().rsplit_once('.').ok_or(TokenFault::Forged)?;
        let mut presented = [0; 32];
        hex::decode_to_slice(signature, &mut presented).map_err(|_| TokenFault::Forged)?;
        // Compares in constant time.
        self.mac(&["token", body, &prefix.0]).verify_slice(&presented).map_err(|_| TokenFault::Forged)?;
        let mut parts = body.split('.');
        let (Some(TOKEN_VERSION), Some(member), Some(expires)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(TokenFault::Forged);
        };
        let expires: u64 = expires.parse().map_err(|_| TokenFault::Forged)?;
        if UnixMillis(expires) <= now { Err(TokenFault::Expired) } else { Ok(member.to_owned()) }
    }

    /// What a member is called on a day: like the subject, tomorrow somebody else.
    #[must_use]
    pub fn member_on(&self, member: &str, day: UtcDay) -> String {
        let hash = hex::encode(self.mac(&["member", &day.0.to_string(), member]).finalize().into_bytes());
        hash.get(..MEMBER_DIGITS).unwrap_or_default().to_owned()
    }

    /// The parts are kept apart by a byte that none of them has.
    fn mac(&self, parts: &[&str]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(part.as_bytes());
            mac.update(&[0]);
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> VisitorSecret {
        VisitorSecret::new("a secret of some length").unwrap()
    }

    fn prefix(address: &str) -> Prefix {
        Prefix::of(address, Ipv6Prefix::Bits64).unwrap()
    }

    #[test]
    fn one_network_is_one_visitor_however_it_is_spelt() {
        let shown = |address| prefix(address).0;
        assert_eq!(shown("203.0.113.24"), "203.0.113.24");
        assert_eq!(shown("::ffff:203.0.113.24"), "203.0.113.24");
        assert_eq!(shown("2001:0DB8:0005:0077:0:0:0:9"), "2001:db8:5:77::/64");
        assert_eq!(shown("2001:db8:5:77::1"), "2001:db8:5:77::/64");
        assert_eq!(Prefix::of("2001:db8:5:77::1", Ipv6Prefix::Bits56).unwrap().0, "2001:db8:5::/56");
        for none in ["", "unknown", "203.0.113", "203.0.113.24, 10.0.0.1", "203.0.113.24:80"] {
            assert!(Prefix::of(none, Ipv6Prefix::Bits64).is_none(), "{none}");
        }
    }

    #[test]
    fn a_subject_changes_with_day_prefix_and_secret() {
        let (secret, today) = (secret(), UtcDay(20_000));
        let subject = secret.subject(&prefix("203.0.113.24"), today);
        assert_eq!(subject.len(), "visitor:".len() + SUBJECT_DIGITS);
        assert_eq!(subject, secret.subject(&prefix("203.0.113.24"), today));
        assert_ne!(subject, secret.subject(&prefix("203.0.113.25"), today));
        assert_ne!(subject, secret.subject(&prefix("203.0.113.24"), UtcDay(20_001)));
        assert_ne!(secret.member_on("abc", today), secret.member_on("abc", UtcDay(20_001)));
        let other = VisitorSecret::new("another secret of some length").unwrap();
        assert_ne!(subject, other.subject(&prefix("203.0.113.24"), today));
        assert!(VisitorSecret::new("short").is_none());
    }

    #[test]
    fn a_token_is_good_where_and_while_it_was_made_for() {
        let (secret, home, now) = (secret(), prefix("203.0.113.24"), UnixMillis(1_000));
        let token = secret.token(&home, 0xabc, UnixMillis(2_000));
        assert_eq!(secret.member(&token, &home, now), Ok("0000000000000abc".to_owned()));
        assert_eq!(secret.member(&token, &home, UnixMillis(2_000)), Err(TokenFault::Expired));
        assert_eq!(secret.member(&token, &prefix("203.0.113.25"), now), Err(TokenFault::Forged));
        let longer = token.replace(".2000.", ".9000.");
        for forged in [longer.as_str(), "", "v1", "v1.0.9000.00", &token.replace('c', "d")] {
            assert_eq!(secret.member(forged, &home, now), Err(TokenFault::Forged), "{forged}");
        }
    }
}
