//! Money.

use serde::{Deserialize, Serialize};

use super::AMOUNT_MAX;

/// Money in billionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NanoUsd(pub u64);

/// Billionths of a dollar per dollar, as decimal places.
const NANO_PLACES: usize = 9;

impl NanoUsd {
    /// Reads a decimal number of dollars: digits, with at most nine behind the point.
    ///
    /// # Errors
    /// If the text is anything else, or more than 2^53 billionths; the message says what is wanted.
    pub fn from_decimal(text: &str) -> Result<Self, &'static str> {
        const WANT: &str = "a decimal number of dollars such as \"0.15\", at most nine places, below 9007199";
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > NANO_PLACES {
            return Err(WANT);
        }
        let nano = format!("{whole}{fraction:0<NANO_PLACES$}").parse::<u64>().map_err(|_| WANT)?;
        if nano <= AMOUNT_MAX { Ok(Self(nano)) } else { Err(WANT) }
    }
}

impl core::fmt::Display for NanoUsd {
    /// Dollars with as many places as needed: `0.00021`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (whole, fraction) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if fraction == 0 {
            return write!(f, "{whole}");
        }
        let fraction = format!("{fraction:09}");
        write!(f, "{whole}.{}", fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_and_shown_exactly() {
        for text in ["0", "1", "0.15", "0.000000001", "9007199.254740991"] {
            assert_eq!(NanoUsd::from_decimal(text).unwrap().to_string(), text);
        }
        for text in ["", ".", "1.", ".5", "-1", "+1", "1e3", "0.0000000001", "9007199.254740992", "ten", "1 "] {
            assert!(NanoUsd::from_decimal(text).is_err(), "{text}");
        }
    }
}
