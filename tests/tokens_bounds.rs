//! No answer ever falls short: lower ≤ exact ≤ upper, whatever the text and the budget.

use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof};
use proptest::test_runner::FileFailurePersistence;
use proptest::{prop_assert, prop_assert_eq, proptest};
use tollgate::tokens::{Bounds, Counted, Encoding, WorkBudget, bounds, count, count_within};

const ENCODINGS: [Encoding; 2] = [Encoding::O200k, Encoding::Cl100k];

/// Texts that meet the rules of cutting: spaced words, runs, and anything at all.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z' ]{0,400}",
        "[ \\n\\t]{0,600}",
        "([a-z]{1,9}|[0-9]{1,5}|[.,/'{}=-]{1,4}|[ \\n]{1,3}){0,80}",
        "[\\u{300}a漢A!' \\n1é]{0,200}",
        any::<String>(),
    ]
}

fn holds(bounds: Bounds, tokens: u64) -> bool {
    bounds.lower <= tokens && tokens <= bounds.upper
}

/// Failures are kept beside the tests, so that they can be committed.
fn config() -> ProptestConfig {
    const FILE: &str = "tests/tokens_bounds.regressions";
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(FILE))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_free_bounds_hold_the_count(text in texts()) {
        for encoding in ENCODINGS {
            if let Some(tokens) = count(encoding, &text).exact() {
                prop_assert!(holds(bounds(&text), tokens), "{encoding:?} {tokens} {:?}", bounds(&text));
            }
        }
    }

    #[test]
    fn any_budget_gives_an_answer_that_holds_the_count(text in texts(), steps in 0u64..3_000) {
        for encoding in ENCODINGS {
            let counted = count_within(encoding, &text, &mut WorkBudget::new(steps));
            let Some(tokens) = count(encoding, &text).exact() else { continue };
            prop_assert!(holds(counted.bounds(), tokens), "{encoding:?} {tokens} {counted:?}");
            let free = bounds(&text);
            // Work already done never makes the answer worse than the free one.
            prop_assert!(counted.bounds().lower >= free.lower);
            prop_assert!(counted.bounds().upper <= free.upper);
            if let Some(exact) = counted.exact() {
                prop_assert_eq!(exact, tokens);
            }
        }
    }

    #[test]
    fn texts_that_share_a_budget_spend_what_they_spend_alone(one in texts(), two in texts()) {
        for encoding in ENCODINGS {
            let spent = |texts: &[&str]| {
                let mut budget = WorkBudget::unlimited();
                for text in texts {
                    let _ = count_within(encoding, text, &mut budget);
                }
                u64::MAX - budget.left()
            };
            prop_assert_eq!(spent(&[&one, &two]), spent(&[&one]) + spent(&[&two]));
        }
    }
}

#[test]
fn a_build_says_what_it_leaves_out() {
    for encoding in ENCODINGS {
        let counted = count(encoding, "some words to count");
        assert_eq!(counted.exact().is_some(), encoding.is_included());
    }
}

#[test]
fn an_empty_text_has_no_tokens() {
    assert_eq!(bounds(""), Bounds { lower: 0, upper: 0 });
    for encoding in ENCODINGS.into_iter().filter(|encoding| encoding.is_included()) {
        assert_eq!(count(encoding, ""), Counted::Exact(0));
    }
}

#[test]
fn a_spent_budget_stays_spent_and_gives_the_free_bounds() {
    let text = "Every text after the budget is gone gets the free bounds.";
    let mut budget = WorkBudget::new(0);
    for encoding in ENCODINGS {
        let counted = count_within(encoding, text, &mut budget);
        assert_eq!(counted, Counted::Between(bounds(text)));
        assert!(budget.is_spent());
    }
}

#[test]
fn what_is_finished_counts_exactly() {
    let Some(whole) = count(Encoding::O200k, "One and two. ").exact() else {
        return;
    };
    let text = format!("One and two. {}", "q x".repeat(50_000));
    let counted = count_within(Encoding::O200k, &text, &mut WorkBudget::new(2_000));
    assert!(counted.exact().is_none(), "{counted:?}");
    let found = counted.bounds();
    assert!(found.lower > whole && found.lower > bounds(&text).lower.min(100), "{found:?}");
    assert!(found.upper < bounds(&text).upper, "{found:?}");
}
