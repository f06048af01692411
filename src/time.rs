//! Moments, waits and the calendar in UTC.
//!
//! Invariant: nothing here reads a clock. `now` always arrives as an argument, in milliseconds since the Unix epoch.

use chrono::{DateTime, Datelike as _, NaiveDate};
use serde::{Deserialize, Serialize};

/// Milliseconds of one UTC day. UTC as the platform reports it has no leap seconds.
pub const DAY_MS: u64 = 86_400_000;

/// A moment: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// The moment `wait` after this one; saturates at the end of time.
    #[must_use]
    pub const fn after(self, wait: Wait) -> Self {
        Self(self.0.saturating_add(wait.0))
    }

    /// How long it is from `earlier` until this moment; zero if it is not later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Wait {
        Wait(self.0.saturating_sub(earlier.0))
    }
}

impl UnixMillis {
    /// The first whole second that is not before this moment, as RFC 3339 writes it.
    #[must_use]
    pub fn whole_second_after(self) -> String {
        let seconds = i64::try_from(self.0.div_ceil(1_000)).ok();
        let moment = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
        moment.unwrap_or(DateTime::UNIX_EPOCH).format("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

/// A span of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wait(pub u64);

impl Wait {
    /// A wait of whole seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000))
    }

    /// The wait as `Retry-After` carries it: whole seconds, rounded up, at least 1. A zero makes clients come back
    /// at once, and a fraction is misread by several of them.
    #[must_use]
    pub const fn whole_seconds(self) -> u64 {
        let seconds = self.0.div_ceil(1_000);
        if seconds == 0 { 1 } else { seconds }
    }
}

/// A calendar window. All windows are in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Calendar {
    /// From midnight to midnight.
    Day,
    /// From the first of a month to the first of the next.
    Month,
}

/// A day in UTC: days since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UtcDay(pub u64);

impl UtcDay {
    /// The day that `now` falls into.
    #[must_use]
    pub const fn of(now: UnixMillis) -> Self {
        Self(now.0 / DAY_MS)
    }

    /// How long it is from `now` until the day is over; zero if it is.
    #[must_use]
    pub const fn wait_for_end(self, now: UnixMillis) -> Wait {
        UnixMillis(self.0.saturating_add(1).saturating_mul(DAY_MS)).since(now)
    }
}

/// The running number of a calendar window: days since the epoch, or months since January 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WindowIndex(pub u64);

impl Calendar {
    /// The window that `now` falls into.
    #[must_use]
    pub fn index_of(self, now: UnixMillis) -> WindowIndex {
        let days = now.0 / DAY_MS;
        match self {
            Self::Day => WindowIndex(days),
            Self::Month => WindowIndex(month_of_day(days)),
        }
    }

    /// The first moment of a window; saturates beyond the calendar that the date library knows (year 262142).
    #[must_use]
    pub fn start_of(self, index: WindowIndex) -> UnixMillis {
        let days = match self {
            Self::Day => index.0,
            Self::Month => first_day_of_month(index.0),
        };
        UnixMillis(days.saturating_mul(DAY_MS))
    }
}

fn month_of_day(days: u64) -> u64 {
    i64::try_from(days)
        .ok()
        .and_then(|days| DateTime::from_timestamp_secs(days.saturating_mul(86_400)))
        .and_then(|date| Some((u64::try_from(date.year()).ok()?, u64::from(date.month0()))))
        .map_or(u64::MAX, |(year, month)| year.saturating_sub(1970).saturating_mul(12).saturating_add(month))
}

fn first_day_of_month(index: u64) -> u64 {
    i32::try_from(index / 12)
        .ok()
        .and_then(|years| years.checked_add(1970))
        .zip(u32::try_from(index % 12 + 1).ok())
        .and_then(|(year, month)| NaiveDate::from_ymd_opt(year, month, 1))
        .and_then(|date| u64::try_from(date.to_epoch_days()).ok())
        .unwrap_or(u64::MAX)
}

/// The wait that an upstream's `Retry-After` names: seconds (a fraction counts) or an HTTP date. `None` if it is
/// neither, or not ahead of `now`.
#[must_use]
pub fn parse_retry_after(value: &str, now: UnixMillis) -> Option<Wait> {
    let value = value.trim();
    let wait = if let Ok(date) = DateTime::parse_from_rfc2822(value) {
        UnixMillis(u64::try_from(date.timestamp_millis()).ok()?).since(now)
    } else {
        Wait(decimal_millis(value)?)
    };
    (wait.0 > 0).then_some(wait)
}

/// `"2.4"` seconds as 2400 ms, rounded up; integers only, so that no float decides a wait.
fn decimal_millis(value: &str) -> Option<u64> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let mut millis: u64 = 0;
    for place in 0..3 {
        let digit = fraction.as_bytes().get(place).map_or(0, |digit| u64::from(digit.saturating_sub(b'0')));
        millis = millis * 10 + digit;
    }
    let more = fraction.bytes().skip(3).any(|digit| digit != b'0');
    let whole: u64 = whole.parse().ok()?;
    Some(whole.checked_mul(1_000)?.saturating_add(millis).saturating_add(u64::from(more)))
}

/// Whether `text` is a real calendar date written `YYYY-MM-DD` or `YYYYMMDD`, as in the names of model snapshots.
#[must_use]
pub fn is_calendar_date(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    digits == 8
        && match text.len() {
            10 => NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok(),
            8 => NaiveDate::parse_from_str(text, "%Y%m%d").is_ok(),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_rounds_up_to_whole_seconds_and_is_never_zero() {
        assert_eq!([0, 1, 999, 1_000, 1_001].map(|ms| Wait(ms).whole_seconds()), [1, 1, 1, 1, 2]);
    }

    #[test]
    fn months_start_where_the_calendar_says() {
        let leap_day = UnixMillis(1_709_164_800_000); // 2024-02-29
        let february = Calendar::Month.index_of(leap_day);
        assert_eq!(Calendar::Month.start_of(february), UnixMillis(1_706_745_600_000)); // 2024-02-01
        assert_eq!(Calendar::Month.start_of(WindowIndex(february.0 + 1)), UnixMillis(1_709_251_200_000)); // 2024-03-01
        assert_eq!(Calendar::Month.index_of(UnixMillis(0)), WindowIndex(0));
        assert_eq!(Calendar::Month.index_of(UnixMillis(1_709_251_199_999)), february);
    }

    #[test]
    fn a_far_future_saturates() {
        assert_eq!(Calendar::Month.start_of(WindowIndex(u64::MAX)), UnixMillis(u64::MAX));
        assert!(Calendar::Month.index_of(UnixMillis(u64::MAX)) > WindowIndex(1_000_000));
    }

    #[test]
    fn an_upstreams_wait_is_read_in_every_form_it_comes_in() {
        let now = UnixMillis(1_930_478_400_000); // 2031-03-05T12:00:00Z
        let read = |value| parse_retry_after(value, now).map(|wait| wait.0);
        assert_eq!(read("7"), Some(7_000));
        assert_eq!(read(" 2.4 "), Some(2_400));
        assert_eq!(read("0.0001"), Some(1));
        assert_eq!(read("Wed, 05 Mar 2031 12:00:41 GMT"), Some(41_000));
        for junk in ["", "0", "-1", "soon", "1e3", "1.x", "Wed, 05 Mar 2031 11:00:00 GMT"] {
            assert_eq!(read(junk), None, "{junk}");
        }
    }

    #[test]
    fn only_real_dates_are_dates() {
        assert!(is_calendar_date("2031-01-15") && is_calendar_date("20310115"));
        for other in ["2031-02-30", "20311301", "2031-1-15", "2031_01_15", "1106", "+2031011"] {
            assert!(!is_calendar_date(other), "{other}");
        }
    }
}
