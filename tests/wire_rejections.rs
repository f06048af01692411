//! Every early end as a client sees it: status, headers and body, to the letter.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tollgate::auth::Unrecognised;
use tollgate::dialect::bad_request::BadRequest;
use tollgate::dialect::fault::ErrorBody;
use tollgate::dialect::rules::{ErrorEvent, Family};
use tollgate::ledger::{DayRefusal, DayScope};
use tollgate::limit::account::Denial;
use tollgate::limit::{Amount, Limit, Period, Shape, Unit};
use tollgate::rejection::{Rejection, UpstreamFault};
use tollgate::time::{Calendar, Wait};

/// A rejection as text: name, status, headers, body.
fn shown(rejection: &Rejection) -> String {
    let parts = rejection.parts();
    let mut lines = vec![format!("# {}", name(rejection)), parts.status.to_string()];
    lines.extend(parts.headers.iter().map(|(name, value)| format!("{name}: {value}")));
    lines.push(parts.body(Family::OpenAi, "c") + "\n");
    lines.join("\n")
}

/// What a rejection is. Whoever adds one is led here, and adds an example of it to `all`.
fn name(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::Unrecognised(why) => match why {
            Unrecognised::Missing => "Unrecognised(Missing)",
            Unrecognised::Malformed => "Unrecognised(Malformed)",
            Unrecognised::Ambiguous => "Unrecognised(Ambiguous)",
            Unrecognised::Unknown => "Unrecognised(Unknown)",
            Unrecognised::ForgedToken => "Unrecognised(ForgedToken)",
            Unrecognised::ExpiredToken => "Unrecognised(ExpiredToken)",
        },
        Rejection::UnknownUrl { .. } => "UnknownUrl",
        Rejection::MethodNotAllowed { .. } => "MethodNotAllowed",
        Rejection::BadRequest(_) => "BadRequest",
        Rejection::BodyTooLarge { .. } => "BodyTooLarge",
        Rejection::BodyEncoded { .. } => "BodyEncoded",
        Rejection::ModelNotFound { .. } => "ModelNotFound",
        Rejection::ModelElsewhere { .. } => "ModelElsewhere",
        Rejection::ResponseNotFound { .. } => "ResponseNotFound",
        Rejection::Limited(_) => "Limited",
        Rejection::NeverFits(_) => "NeverFits",
        Rejection::DayLimited(_) => "DayLimited",
        Rejection::Shielded { .. } => "Shielded",
        Rejection::LimiterUnavailable => "LimiterUnavailable",
        Rejection::PolicyInvalid => "PolicyInvalid",
        Rejection::Upstream(fault) => match fault {
            UpstreamFault::Auth => "Upstream(Auth)",
            UpstreamFault::Unreachable => "Upstream(Unreachable)",
            UpstreamFault::Timeout => "Upstream(Timeout)",
            UpstreamFault::PollTimeout => "Upstream(PollTimeout)",
            UpstreamFault::Invalid => "Upstream(Invalid)",
            UpstreamFault::Failed { .. } => "Upstream(Failed)",
            UpstreamFault::Limited { .. } => "Upstream(Limited)",
            UpstreamFault::Refused { .. } => "Upstream(Refused)",
        },
    }
}

fn denial(unit: Unit, shape: Shape, asked: u64, left: i64, wait: u64) -> Denial {
    let limit = Limit { name: "it".to_owned(), unit, shape };
    Denial { limit, asked: Amount(asked), left, wait: Wait(wait), firm: true }
}

fn bucket(unit: Unit, burst: u64) -> (Unit, Shape) {
    (unit, Shape::Bucket { burst: Amount(burst), refill: Amount(1), per: Period::Minute })
}

fn cap(unit: Unit, amount: u64) -> (Unit, Shape) {
    (unit, Shape::Window { amount: Amount(amount), window: Calendar::Day })
}

fn limited((unit, shape): (Unit, Shape), (asked, left, wait): (u64, i64, u64)) -> Rejection {
    Rejection::Limited(denial(unit, shape, asked, left, wait))
}

fn never((unit, shape): (Unit, Shape), asked: u64) -> Rejection {
    Rejection::NeverFits(denial(unit, shape, asked, i64::try_from(shape.capacity().0).unwrap(), 0))
}

fn upstreams_words() -> ErrorBody {
    ErrorBody { message: "slow".to_owned(), kind: "tokens".to_owned(), param: None, code: Some("busy".to_owned()) }
}

/// Every rejection that there is, some of them in several forms.
fn all() -> Vec<Rejection> {
    let bad = |param: Option<&str>, code| {
        Rejection::BadRequest(BadRequest { message: "`n` is 0".to_owned(), param: param.map(str::to_owned), code })
    };
    let slots = (Unit::Concurrency, Shape::Slots { amount: Amount(4) });
    vec![
        Rejection::Unrecognised(Unrecognised::Missing),
        Rejection::Unrecognised(Unrecognised::Malformed),
        Rejection::Unrecognised(Unrecognised::Ambiguous),
        Rejection::Unrecognised(Unrecognised::Unknown),
        Rejection::Unrecognised(Unrecognised::ForgedToken),
        Rejection::Unrecognised(Unrecognised::ExpiredToken),
        Rejection::UnknownUrl { method: "GET".to_owned(), path: "/v1/v1/models".to_owned() },
        Rejection::MethodNotAllowed { method: "PUT".to_owned(), allow: "POST" },
        bad(Some("n"), None),
        bad(None, Some("unsupported_parameter")),
        Rejection::BodyTooLarge { cap: 1_024 },
        Rejection::BodyEncoded { encoding: "gzip".to_owned() },
        Rejection::ModelNotFound { model: "gpt-9".to_owned() },
        Rejection::ModelElsewhere { model: "gpt-5".to_owned(), path: "/v1/messages" },
        Rejection::ResponseNotFound { id: "resp_1".to_owned() },
        limited(bucket(Unit::Requests, 9), (1, 0, 1_200)),
        limited(bucket(Unit::Tokens, 900), (500, -20, 60_000)),
        limited(bucket(Unit::Usd, 2_000_000_000), (300_000_000, -1_500_000, 60_001)),
        limited(slots, (1, 0, 1_000)),
        limited(cap(Unit::Usd, 5_000_000), (1_000_000, 999_999, 43_200_000)),
        limited(cap(Unit::Requests, 5), (1, 0, 59_001)),
        never(bucket(Unit::OutputTokens, 100), 4_096),
        never(cap(Unit::Usd, 5_000_000), 5_000_001),
        never(cap(Unit::Requests, 0), 1),
        Rejection::DayLimited(DayRefusal { scope: DayScope::Daily, wait: Some(Wait(43_200_000)) }),
        Rejection::DayLimited(DayRefusal { scope: DayScope::Site, wait: Some(Wait(59_500)) }),
        Rejection::DayLimited(DayRefusal { scope: DayScope::Site, wait: None }),
        Rejection::Shielded { wait: Wait(10_000) },
        Rejection::LimiterUnavailable,
        Rejection::PolicyInvalid,
        Rejection::Upstream(UpstreamFault::Auth),
        Rejection::Upstream(UpstreamFault::Unreachable),
        Rejection::Upstream(UpstreamFault::Timeout),
        Rejection::Upstream(UpstreamFault::PollTimeout),
        Rejection::Upstream(UpstreamFault::Invalid),
        Rejection::Upstream(UpstreamFault::Failed { status: 529 }),
        Rejection::Upstream(UpstreamFault::Limited { error: upstreams_words(), wait: Some(Wait(61_000)) }),
        Rejection::Upstream(UpstreamFault::Limited { error: upstreams_words(), wait: None }),
        Rejection::Upstream(UpstreamFault::Refused { status: 422, error: upstreams_words() }),
    ]
}

#[test]
fn every_rejection_is_told_to_the_letter() {
    let mut told = include_str!("support/rejections.txt").split_inclusive("}}\n").map(str::trim_start);
    for rejection in all() {
        assert_eq!(shown(&rejection), told.next().unwrap_or_default(), "{rejection:?}");
    }
    assert_eq!(told.next(), None);
}

#[test]
fn a_rejection_is_attributable_and_its_waits_agree() {
    for rejection in all() {
        let parts = rejection.parts();
        let header =
            |name: &str| parts.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str());
        if parts.status == 429 {
            assert!(header("x-tollgate-limited-by").is_some(), "{rejection:?}");
        }
        let (seconds, millis) = (header("retry-after"), header("retry-after-ms"));
        assert_eq!(seconds.is_some(), millis.is_some(), "{rejection:?}");
        if let (Some(seconds), Some(millis)) = (seconds, millis) {
            let (seconds, millis): (u64, u64) = (seconds.parse().unwrap(), millis.parse().unwrap());
            assert_eq!(seconds, millis.div_ceil(1_000).max(1), "{rejection:?}");
            assert_eq!(header("x-should-retry"), (millis > 60_000).then_some("false"), "{rejection:?}");
        }
        // Clients do not come back after a 400, and give up at these words.
        assert!(parts.status != 400 || seconds.is_none());
        for word in ["billing", "credit balance", "usage quota", "will reset at"] {
            assert!(!parts.body(Family::OpenAi, "c").contains(word), "{rejection:?}");
        }
    }
}

#[test]
fn a_stream_that_broke_off_ends_with_an_error_event() {
    let error = |message: &str, code: &str| {
        let error =
            format!("{{\"message\":\"{message}\",\"type\":\"server_error\",\"param\":null,\"code\":\"{code}\"}}");
        format!("data: {{\"error\":{error}}}\n\n")
    };
    assert_eq!(
        UpstreamFault::Timeout.stream_event(ErrorEvent::Plain, "c"),
        error("The model provider stopped sending; the answer is incomplete.", "upstream_timeout")
    );
    assert_eq!(
        UpstreamFault::Invalid.stream_event(ErrorEvent::Plain, "c"),
        error("The model provider's stream broke off; the answer is incomplete.", "upstream_invalid")
    );
}
