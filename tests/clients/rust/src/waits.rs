//! A short wait is sat out by the crate itself. A long one too, whatever `x-should-retry` says, unless the type of the
//! error is `insufficient_quota`, which daily and monthly limits therefore have.

use std::time::Duration;

use async_openai::Client;
use async_openai::config::OpenAIConfig;

use crate::support::{ANSWER, Try, answered, connect, fresh_key, hello, statuses, stream, text_of, tries};

/// Timers may ring a millisecond early; the announced wait is counted from when the proxy answered.
const EARLY_MS: u64 = 2;
/// What is known to wait for a day is looked at for this long; the crate's own first pause is a tenth of a second.
const LOOK: Duration = Duration::from_secs(1);

async fn call(client: &Client<OpenAIConfig>, streamed: bool) -> String {
    if streamed {
        let (chunks, error) = stream(client, hello()).await.unwrap();
        assert!(error.is_none(), "{error:?}");
        return text_of(&chunks);
    }
    client.chat().create(hello()).await.unwrap().choices.remove(0).message.content.unwrap()
}

/// Calls until a call had to come twice, and gives what was seen of that one call: on a slow machine the bucket may
/// have filled up again between two calls.
async fn until_it_waited(key: &str, streamed: bool) -> Vec<Try> {
    let client = connect(key);
    for _ in 0..10 {
        let before = tries(key).await.len();
        assert_eq!(call(&client, streamed).await, ANSWER);
        let seen = tries(key).await.split_off(before);
        if seen.len() > 1 {
            return seen;
        }
    }
    panic!("no call was refused")
}

async fn a_short_wait_is_sat_out(streamed: bool) {
    let key = fresh_key("short").await;
    let seen = until_it_waited(&key, streamed).await;
    let [refused, admitted] = seen.as_slice() else { panic!("{seen:?}") };
    assert_eq!((refused.status, admitted.status), (Some(429), Some(200)));
    // The crate goes by whole seconds.
    let announced = refused.retry_after.unwrap() * 1_000;
    assert!(announced >= 1_000);
    assert!(admitted.at + EARLY_MS >= refused.answered_at.unwrap() + announced);
}

#[tokio::test]
async fn a_short_wait_is_sat_out_and_the_first_return_is_admitted() {
    a_short_wait_is_sat_out(false).await;
}

#[tokio::test]
async fn a_stream_sits_a_short_wait_out_too() {
    a_short_wait_is_sat_out(true).await;
}

#[tokio::test]
async fn a_daily_limit_is_said_at_once() {
    let key = fresh_key("daily").await;
    let client = connect(&key);
    client.chat().create(hello()).await.unwrap();
    answered(client.chat().create(hello()).await);
    answered(stream(&client, hello()).await);
    assert_eq!(statuses(&key).await, [200, 429, 429]);
}

#[tokio::test]
async fn a_long_wait_of_a_bucket_is_not_said_but_sat_out() {
    let key = fresh_key("long").await;
    let client = connect(&key);
    client.chat().create(hello()).await.unwrap();
    let refused_and_more = async {
        while statuses(&key).await.len() < 2 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        tokio::time::sleep(LOOK).await;
    };
    let chat = client.chat();
    tokio::select! {
        ended = chat.create(hello()) => panic!("it did not wait: {ended:?}"),
        () = refused_and_more => {}
    }
    let seen = tries(&key).await;
    assert_eq!(seen.iter().filter_map(|seen| seen.status).collect::<Vec<_>>(), [200, 429]);
    assert_eq!(seen[1].should_retry.as_deref(), Some("false"));
    assert!(seen[1].retry_after.unwrap() > 60);
}
