//! Numbers as providers write them.
//!
//! Invariant: exact from the text, never through a float; every rounding is up; what is too large is the largest.

use core::num::NonZeroU64;

/// A number that was said, saturating below the largest of 64 bits. Kept as one more than it is, so that a usage, which
/// travels with every answer, needs no more room for what was not said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Count(NonZeroU64);

impl Count {
    pub(super) const fn new(count: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(count))
    }

    pub(super) const fn get(self) -> u64 {
        self.0.get() - 1
    }
}

/// An exponent beyond this changes nothing any more, however long the text is.
const EXPONENT_MAX: i64 = 1 << 40;
/// More places than a number of 64 bits has.
const PLACES_MAX: i64 = 20;

/// The number that the JSON text `json` is, or the one in the string that it is, times ten to the power of `shift`,
/// rounded up. `None` if it is no number or below zero.
pub(super) fn scaled(json: &str, shift: i64) -> Option<u64> {
    let text = quoted(json).unwrap_or(json).trim();
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = match text.find(['e', 'E']).and_then(|place| text.split_at_checked(place)) {
        Some((mantissa, exponent)) => (mantissa, read_exponent(exponent.get(1..)?)?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let places = i64::try_from(whole.len()).ok()?.saturating_add(exponent).saturating_add(shift);
    let value = rounded_up(whole.bytes().chain(fraction.bytes()), places);
    (!negative || value == 0).then_some(value)
}

/// What is between the quotation marks of a JSON string. Escapes stay as they are.
pub(super) fn quoted(json: &str) -> Option<&str> {
    json.trim().strip_prefix('"')?.strip_suffix('"')
}

fn read_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    // Only one that is too long for 64 bits cannot be read now.
    let exponent = digits.parse::<i64>().unwrap_or(EXPONENT_MAX).min(EXPONENT_MAX);
    Some(if negative { -exponent } else { exponent })
}

/// The number whose first `places` digits stand before the point.
fn rounded_up(digits: impl Iterator<Item = u8>, places: i64) -> u64 {
    let (mut value, mut left, mut more) = (0_u64, places, false);
    for digit in digits.map(|digit| digit.saturating_sub(b'0')) {
        if left > 0 {
            value = value.saturating_mul(10).saturating_add(digit.into());
            left -= 1;
        } else {
            more |= digit > 0;
        }
    }
    for _ in 0..left.clamp(0, PLACES_MAX) {
        value = value.saturating_mul(10);
    }
    value.saturating_add(more.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_their_text_and_rounded_up() {
        let cases = [
            ("0", 0, Some(0)),
            ("15", 0, Some(15)),
            ("10.0", 0, Some(10)),
            ("5.5", 0, Some(6)),
            ("\" 7 \"", 0, Some(7)),
            ("\"7.01\"", 0, Some(8)),
            ("-1", 0, None),
            ("-0.0", 0, Some(0)),
            ("-0.1", 0, None),
            ("1.5e2", 0, Some(150)),
            ("1500E-2", 0, Some(15)),
            ("1e+3", 0, Some(1_000)),
            ("123e-2", 0, Some(2)),
            ("9007199254740993", 0, Some(9_007_199_254_740_993)),
            ("18446744073709551615", 0, Some(u64::MAX)),
            ("18446744073709551616", 0, Some(u64::MAX)),
            ("1e400", 0, Some(u64::MAX)),
            ("0e99999999999999999999999", 0, Some(0)),
            ("1e99999999999999999999999", 0, Some(u64::MAX)),
            ("1e-99999999999999999999999", 0, Some(1)),
            ("0.00014", 9, Some(140_000)),
            ("1.4e-4", 9, Some(140_000)),
            ("0.1", 9, Some(100_000_000)),
            ("0.0000000001", 9, Some(1)),
            ("0.1234567891", 9, Some(123_456_790)),
            ("37756000", -1, Some(3_775_600)),
            ("1", -1, Some(1)),
            ("12.3456", 3, Some(12_346)),
        ];
        for (json, shift, want) in cases {
            assert_eq!(scaled(json, shift), want, "{json} times 10^{shift}");
        }
        let long = format!("0.{}1", "0".repeat(100_000));
        assert_eq!(scaled(&long, 9), Some(1));
        assert_eq!(scaled(&format!("{}e-100000", "9".repeat(100_002)), 0), Some(100));
        assert_eq!(scaled(&format!("{}1", "0".repeat(1_000)), 0), Some(1));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for json in
            ["", "\"", "\"\"", "null", "true", "[]", "{}", "NaN", "\"Infinity\"", "--1", "1.", ".5", "1e", "1e-", "1 2"]
        {
            assert_eq!(scaled(json, 0), None, "{json}");
        }
        for json in ["+1", "0x10", "1_000", "\"1,000\"", "é", "1é", "\"\\u0031\""] {
            assert_eq!(scaled(json, 0), None, "{json}");
        }
    }
}
