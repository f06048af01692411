//! What an operator is told of a limit that is not valid.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::{Value, json};
use support::messages::check;

mod support {
    pub(crate) mod messages;
    pub(crate) mod policy;
}

#[test]
fn what_is_wrong_with_a_limit_is_told() {
    let day = "PLANS/plain/limits/day";
    let at = |field: &str| format!("{day}/{field}");
    check(
        "PLANS/plain/limits",
        json!({}),
        &["PLANS.plain.limits: limits, got none, want at least one: a plan without limits bounds nothing"],
    );
    check(
        day,
        json!(5),
        &[
            "PLANS.plain.limits.day: table, got 5, want a table",
            "PLANS.plain.limits.day.unit: missing, got nothing, want what the limit counts",
            "PLANS.plain.limits.day: shape, got neither, want burst, refill and per, or amount and window",
        ],
    );
    check(
        &at("unit"),
        Value::Null,
        &[
            "PLANS.plain.limits.day.unit: missing, got nothing, want what the limit counts",
            "PLANS.plain.limits.day.amount: number, got \"1.00\", want a whole number from 0 to 9007199254740991",
        ],
    );
    check(
        &at("unit"),
        json!("euro"),
        &[
            "PLANS.plain.limits.day.unit: word, got \"euro\", want \"requests\" or \"input_tokens\" or \"output_tokens\" or \
             \"tokens\" or \"usd\" or \"concurrency\"",
            "PLANS.plain.limits.day.amount: number, got \"1.00\", want a whole number from 0 to 9007199254740991",
        ],
    );
}

#[test]
fn what_is_wrong_with_an_amount_of_money_or_a_window_is_told() {
    let at = |field: &str| format!("PLANS/plain/limits/day/{field}");
    let money = "a decimal number of dollars such as \"0.15\", at most nine places, below 9007199";
    check(
        &at("amount"),
        json!(1),
        &["PLANS.plain.limits.day.amount: money, got 1, want money as a decimal text, such as \"0.15\""],
    );
    check(&at("amount"), json!("-1"), &[&format!("PLANS.plain.limits.day.amount: money, got \"-1\", want {money}")]);
    check(
        &at("amount"),
        json!("0.0000000001"),
        &[&format!("PLANS.plain.limits.day.amount: money, got \"0.0000000001\", want {money}")],
    );
    check(
        &at("window"),
        Value::Null,
        &["PLANS.plain.limits.day.window: missing, got nothing, want \"day\" or \"month\""],
    );
    check(
        &at("window"),
        json!("week"),
        &["PLANS.plain.limits.day.window: word, got \"week\", want \"day\" or \"month\""],
    );
    check(
        &at("per"),
        json!("day"),
        &[
            "PLANS.plain.limits.day.burst: missing, got nothing, want money as a decimal text",
            "PLANS.plain.limits.day.refill: missing, got nothing, want money as a decimal text",
            "PLANS.plain.limits.day.amount: unknown field, got \"1.00\", want no such field",
            "PLANS.plain.limits.day.window: unknown field, got \"day\", want no such field",
        ],
    );
    check(
        "PLANS/plain/limits/slots/amount",
        Value::Null,
        &["PLANS.plain.limits.slots.amount: missing, got nothing, want a whole number"],
    );
    check(
        "PLANS/plain/limits/slots/per",
        json!("day"),
        &["PLANS.plain.limits.slots.per: unknown field, got \"day\", want no such field"],
    );
    check(
        "PLANS/plain/limits/Day!",
        json!({"unit": "concurrency", "amount": 1}),
        &["PLANS.plain.limits.Day!: name, got \"Day!\", want 1 to 32 of a-z, 0-9, - and _"],
    );
}

#[test]
fn what_is_wrong_with_a_bucket_is_told() {
    let at = |field: &str| format!("PLANS/tight/limits/calls/{field}");
    let number = "a whole number from 0 to 9007199254740991";
    check(&at("burst"), json!(1.5), &[&format!("PLANS.tight.limits.calls.burst: number, got 1.5, want {number}")]);
    check(&at("burst"), json!(-1), &[&format!("PLANS.tight.limits.calls.burst: number, got -1, want {number}")]);
    check(
        &at("burst"),
        json!(9_007_199_254_740_992_u64),
        &[&format!("PLANS.tight.limits.calls.burst: number, got 9007199254740992, want {number}")],
    );
    check(&at("burst"), json!("5"), &[&format!("PLANS.tight.limits.calls.burst: number, got \"5\", want {number}")]);
    check(
        &at("refill"),
        json!(0),
        &[
            "PLANS.tight.limits.calls.refill: refill, got 0, want more than 0: a bucket that never refills has no wait to announce",
        ],
    );
    check(
        &at("per"),
        Value::Null,
        &["PLANS.tight.limits.calls.per: missing, got nothing, want \"second\", \"minute\", \"hour\" or \"day\""],
    );
    check(
        &at("per"),
        json!("month"),
        &["PLANS.tight.limits.calls.per: word, got \"month\", want \"second\" or \"minute\" or \"hour\" or \"day\""],
    );
    check(&at("burst"), json!(20.0), &[]);
}
