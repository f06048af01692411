//! What a call that is let through looks like from inside a program.

use std::sync::{Arc, Mutex};

use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use async_openai::types::chat::{ChatCompletionMessageToolCalls, ChatCompletionStreamOptions, FinishReason};
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::support::{
    ANSWER, asking, connect, fresh_key, hello, statuses, stream, text_of, tool, tool_arguments, tries,
};

fn with_usage(include_usage: bool) -> ChatCompletionStreamOptions {
    ChatCompletionStreamOptions { include_usage: Some(include_usage), include_obfuscation: None }
}

#[tokio::test]
async fn a_plain_chat_arrives_with_its_usage() {
    let answer = connect(&fresh_key("roomy").await).chat().create(hello()).await.unwrap();
    assert_eq!(answer.choices[0].message.content.as_deref(), Some(ANSWER));
    assert_eq!(answer.choices[0].finish_reason, Some(FinishReason::Stop));
    let usage = answer.usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (2, 4, 6));
}

#[tokio::test]
async fn a_stream_without_asking_for_usage_has_no_chunk_without_choices() {
    let key = fresh_key("roomy").await;
    let (chunks, error) = stream(&connect(&key), hello()).await.unwrap();
    assert!(error.is_none(), "{error:?}");
    assert_eq!(text_of(&chunks), ANSWER);
    assert!(chunks.len() > 3);
    assert!(chunks.iter().all(|chunk| chunk.usage.is_none()));
    assert_eq!(chunks.last().unwrap().choices[0].finish_reason, Some(FinishReason::Stop));
    assert_eq!(statuses(&key).await, [200]);
}

#[tokio::test]
async fn declining_usage_is_not_asking_for_it() {
    let request = asking("demo").stream_options(with_usage(false)).build().unwrap();
    let (chunks, error) = stream(&connect(&fresh_key("roomy").await), request).await.unwrap();
    assert!(error.is_none(), "{error:?}");
    assert_eq!(text_of(&chunks), ANSWER);
    assert!(chunks.iter().all(|chunk| chunk.usage.is_none()));
}

#[tokio::test]
async fn a_stream_that_asks_for_usage_gets_it_in_the_last_chunk() {
    let request = asking("demo").stream_options(with_usage(true)).build().unwrap();
    let (mut chunks, error) = stream(&connect(&fresh_key("roomy").await), request).await.unwrap();
    assert!(error.is_none(), "{error:?}");
    let last = chunks.pop().unwrap();
    assert_eq!(text_of(&chunks), ANSWER);
    assert!(last.choices.is_empty());
    let usage = last.usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (2, 4, 6));
}

#[tokio::test]
async fn a_tool_call_arrives_whole() {
    let request = asking("demo").tools([tool()]).build().unwrap();
    let answer = connect(&fresh_key("roomy").await).chat().create(request).await.unwrap();
    assert_eq!(answer.choices[0].finish_reason, Some(FinishReason::ToolCalls));
    let calls = answer.choices[0].message.tool_calls.as_deref().unwrap();
    let [ChatCompletionMessageToolCalls::Function(call)] = calls else { panic!("{calls:?}") };
    assert_eq!(call.function.name, "weather");
    assert_eq!(serde_json::from_str::<Value>(&call.function.arguments).unwrap(), tool_arguments());
}

#[tokio::test]
async fn a_streamed_tool_call_is_put_together_from_its_pieces() {
    let request = asking("demo").tools([tool()]).build().unwrap();
    let (chunks, error) = stream(&connect(&fresh_key("roomy").await), request).await.unwrap();
    assert!(error.is_none(), "{error:?}");
    let pieces: Vec<_> =
        chunks.iter().filter_map(|chunk| chunk.choices[0].delta.tool_calls.as_ref()).flatten().collect();
    assert_eq!(pieces[0].id.as_deref(), Some("call_weather"));
    let functions: Vec<_> = pieces.iter().filter_map(|piece| piece.function.as_ref()).collect();
    assert_eq!(functions[0].name.as_deref(), Some("weather"));
    assert!(functions.len() > 2);
    let arguments: String = functions.iter().filter_map(|function| function.arguments.as_deref()).collect();
    assert_eq!(serde_json::from_str::<Value>(&arguments).unwrap(), tool_arguments());
}

#[tokio::test]
async fn the_rate_headers_and_the_request_id_are_within_reach_of_a_layer_of_the_users_own() {
    let key = fresh_key("roomy").await;
    let seen = Arc::new(Mutex::new(HeaderMap::new()));
    let keep = Arc::clone(&seen);
    let transport = reqwest::Client::new();
    let service = tower::service_fn(move |request: HttpRequestFactory| {
        let (transport, keep) = (transport.clone(), Arc::clone(&keep));
        async move {
            let answer = transport.execute(request.build().await?).await?;
            keep.lock().unwrap().clone_from(answer.headers());
            Ok::<_, OpenAIError>(answer)
        }
    });
    connect(&key).with_http_service(service).chat().create(hello()).await.unwrap();
    let id = tries(&key).await.pop().unwrap().request_id.unwrap();
    let headers = seen.lock().unwrap();
    assert_eq!(headers["x-ratelimit-limit-requests"], "1000");
    assert_eq!(headers["x-ratelimit-limit-tokens"], "1000000");
    assert_eq!(headers["x-request-id"], id.as_str());
}

#[tokio::test]
async fn the_models_are_listed() {
    let models = connect(&fresh_key("roomy").await).models().list().await.unwrap();
    assert!(models.data.iter().any(|model| model.id == "demo"));
}
