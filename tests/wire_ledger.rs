//! What the object has yet to tell the day's ledger, as it is stored, to the letter.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tollgate::limit::NanoUsd;
use tollgate::limit::account::{Account, AlarmStep, HoldId};
use tollgate::limit::outbox::Booking;
use tollgate::limit::protocol::{account_of, record_of};
use tollgate::limit::{Charge, Cost, Estimate, Tokens};
use tollgate::time::{UnixMillis, UtcDay, Wait};

/// 2031-03-05T12:00:00Z.
const NOON: u64 = 1_930_478_400_000;

const OPEN: &str = concat!(
    r#"{"v":1,"at":1930478400000,"balances":[],"holds":[{"id":"a","made_at":1930478400000,"#,
    r#""expires_at":1930478401000,"held":[],"recorded":{"#,
    r#""booking":{"day":22343,"key":"user:ann","plan":"p","gated":true,"for_site":true,"post_after":10000},"#,
    r#""estimate":{"requests":1,"input":3,"output":4,"usd":5},"expired":false}}],"ended":[],"alarm_at":null}"#,
);
const KEPT: &str = concat!(
    r#"{"v":1,"at":1930478400000,"balances":[],"holds":[{"id":"resp_1","made_at":1930478400000,"#,
    r#""expires_at":1930485600000,"held":[],"recorded":{"#,
    r#""booking":{"day":22343,"key":"user:ann","plan":"p","gated":true,"for_site":true,"post_after":10000},"#,
    r#""estimate":{"requests":1,"input":3,"output":4,"usd":5},"expired":false},"kept":{"from":"a","note":"m"}}],"#,
    r#""ended":[{"id":"a","until":1930478415000}],"alarm_at":null}"#,
);
const KEPT_AND_SETTLED: &str = concat!(
    r#"{"v":1,"at":1930482000000,"balances":[],"holds":[],"ended":[{"id":"resp_1","until":1930485600000,"note":"m"}],"#,
    r#""alarm_at":null,"outbox":{"pending":[{"day":22343,"key":"user:ann","plan":"p","calls":0,"site_calls":0,"counted":-2,"#,
    r#""site_counted":-2,"settled":1,"refused":0,"input":3,"output":3,"usd":3}],"pending_due":1930482010000,"#,
    r#""sent":null,"retry_at":null,"tries":0,"last":0}}"#,
);
const PENDING: &str = concat!(
    r#"{"v":1,"at":1930478400001,"balances":[],"holds":[],"ended":[{"id":"a","until":1930478415001}],"alarm_at":null,"#,
    r#""outbox":{"pending":[{"day":22343,"key":"user:ann","plan":"p","calls":0,"site_calls":0,"counted":-2,"#,
    r#""site_counted":-2,"settled":1,"refused":0,"input":3,"output":3,"usd":3}],"pending_due":1930478410001,"#,
    r#""sent":null,"retry_at":null,"tries":0,"last":0}}"#,
);
const SENT: &str = concat!(
    r#"{"v":1,"at":1930478400001,"balances":[],"holds":[],"ended":[{"id":"a","until":1930478415001}],"#,
    r#""alarm_at":1930478440001,"outbox":{"pending":[],"pending_due":null,"sent":{"number":1930478410001,"#,
    r#""entries":[{"day":22343,"key":"user:ann","plan":"p","calls":0,"site_calls":0,"counted":-2,"#,
    r#""site_counted":-2,"settled":1,"refused":0,"input":3,"output":3,"usd":3}]},"retry_at":1930478440001,"tries":1,"last":1930478410001}}"#,
);

fn cost(output: u64, usd: u64) -> Cost {
    Cost { requests: 1, input: Tokens(3), output: Tokens(output), usd: NanoUsd(usd) }
}

fn check(account: &Account, want: &str) {
    assert_eq!(record_of(account), want);
    assert_eq!(account_of(Some(want)).as_ref(), Ok(account));
}

/// A call that is held and recorded.
fn open(id: &HoldId) -> Account {
    let estimate = cost(4, 5);
    let (key, plan) = ("user:ann".to_owned(), "p".to_owned());
    let booking = Booking { day: UtcDay(22_343), key, plan, gated: true, for_site: true, post_after: Wait(10_000) };
    let made = Account::default().reserve(UnixMillis(NOON), id, &[], (Estimate(estimate), Wait(1_000)));
    made.next.unwrap().recorded(id, booking, estimate)
}

#[test]
fn a_call_that_is_recorded_is_stored_until_the_ledger_has_taken_it() {
    let id = HoldId("a".to_owned());
    let open = open(&id);
    check(&open, OPEN);
    let settled = open.settle(UnixMillis(NOON + 1), &id, &Charge::Exact(cost(3, 3)), true).next.unwrap();
    check(&settled, PENDING);
    let AlarmStep::Post { batch, next, .. } = settled.alarm(UnixMillis(NOON + 10_001)) else {
        panic!("a batch is due");
    };
    check(&next, SENT);
    let told = next.posted(batch.number);
    let rest =
        r#""outbox":{"pending":[],"pending_due":null,"sent":null,"retry_at":null,"tries":0,"last":1930478410001}}"#;
    assert!(record_of(&told).ends_with(rest));
}

#[test]
fn a_call_that_is_kept_is_stored_under_its_new_id_and_known_for_a_while_after_its_end() {
    let (id, as_id) = (HoldId("a".to_owned()), HoldId("resp_1".to_owned()));
    let hour = Wait::seconds(3_600);
    let kept = open(&id).keep(UnixMillis(NOON), &id, (&as_id, "m"), Wait(2 * hour.0)).next.unwrap();
    check(&kept, KEPT);
    let settled = kept.settle(UnixMillis(NOON).after(hour), &as_id, &Charge::Exact(cost(3, 3)), true).next.unwrap();
    check(&settled, KEPT_AND_SETTLED);
}
