//! What is in the errors that a program meets, and that nobody comes again in vain.

use async_openai::error::{ApiErrorResponse, OpenAIError};

use crate::support::{answered, asking, connect, fresh_key, hello, statuses, stream};

type Told<'e> = (u16, Option<&'e str>, Option<&'e str>, Option<&'e str>);

fn told(error: &ApiErrorResponse) -> Told<'_> {
    let ApiErrorResponse { status_code, api_error } = error;
    (status_code.as_u16(), api_error.r#type.as_deref(), api_error.code.as_deref(), api_error.param.as_deref())
}

#[tokio::test]
async fn a_wrong_key_is_a_401() {
    let wrong = format!("{}x", fresh_key("roomy").await);
    let error = answered(connect(&wrong).chat().create(hello()).await);
    assert_eq!(told(&error), (401, Some("invalid_request_error"), Some("invalid_api_key"), None));
    assert!(!error.api_error.message.contains(&wrong));
    assert_eq!(statuses(&wrong).await, [401]);
}

#[tokio::test]
async fn an_unknown_model_is_a_404() {
    let key = fresh_key("roomy").await;
    let error = answered(connect(&key).chat().create(asking("nonesuch").build().unwrap()).await);
    assert_eq!(told(&error), (404, Some("invalid_request_error"), Some("model_not_found"), Some("model")));
    assert_eq!(statuses(&key).await, [404]);
}

#[tokio::test]
async fn a_bad_request_is_a_400_that_names_the_field() {
    let key = fresh_key("roomy").await;
    let request = asking("demo").max_completion_tokens(0_u32).build().unwrap();
    let error = answered(connect(&key).chat().create(request).await);
    assert_eq!(
        told(&error),
        (400, Some("invalid_request_error"), Some("invalid_request"), Some("max_completion_tokens"))
    );
    assert_eq!(statuses(&key).await, [400]);
}

#[tokio::test]
async fn what_the_upstream_refuses_with_a_numeric_code_can_be_read() {
    let key = fresh_key("roomy").await;
    let error = answered(connect(&key).chat().create(asking("refusing").build().unwrap()).await);
    assert_eq!(told(&error), (400, Some("invalid_request_error"), Some("400"), None));
    assert!(error.api_error.message.contains("maximum context length"));
    assert_eq!(statuses(&key).await, [400]);
}

#[tokio::test]
async fn a_call_that_can_never_fit_is_a_400_and_not_tried_again() {
    let key = fresh_key("small").await;
    let request = asking("demo").max_completion_tokens(1_000_u32).build().unwrap();
    let error = answered(connect(&key).chat().create(request).await);
    assert_eq!(told(&error), (400, Some("invalid_request_error"), Some("request_exceeds_limit"), None));
    assert_eq!(statuses(&key).await, [400]);
}

#[tokio::test]
async fn a_refusal_is_a_429_with_type_and_code() {
    let key = fresh_key("daily").await;
    connect(&key).chat().create(hello()).await.unwrap();
    let error = answered(connect(&key).chat().create(hello()).await);
    assert_eq!(told(&error), (429, Some("insufficient_quota"), Some("insufficient_quota"), None));
}

#[tokio::test]
async fn an_upstream_failure_is_a_502_and_free_however_often_it_is_tried() {
    let key = fresh_key("daily").await;
    let error = answered(connect(&key).chat().create(asking("demo-fail").build().unwrap()).await);
    // The crate does not look into the body of a 5xx: all of it is the message.
    assert_eq!(told(&error), (502, None, None, None));
    assert!(error.api_error.message.contains(r#""code":"upstream_failed""#), "{}", error.api_error.message);
    // One call a day, and it is still there.
    connect(&key).chat().create(hello()).await.unwrap();
    assert_eq!(statuses(&key).await, [502, 502, 502, 502, 200]);
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_an_error_after_what_had_come() {
    let key = fresh_key("roomy").await;
    let (chunks, error) = stream(&connect(&key), asking("demo-break").build().unwrap()).await.unwrap();
    assert!(chunks.len() > 1);
    // The crate knows no errors inside streams: it cannot read the event as a chunk, and shows it.
    let Some(OpenAIError::JSONDeserialize(_, event)) = error else { panic!("{error:?}") };
    assert!(event.contains(r#""code":"upstream_invalid""#), "{event}");
    assert_eq!(statuses(&key).await, [200]);
}
