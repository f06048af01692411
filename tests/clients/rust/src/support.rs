//! What every test needs: fresh keys, what the proxy saw, and requests.

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::{ApiErrorResponse, OpenAIError};
use async_openai::types::chat::{
    ChatCompletionRequestUserMessageArgs, ChatCompletionTool, ChatCompletionTools, CreateChatCompletionRequest,
    CreateChatCompletionRequestArgs, CreateChatCompletionStreamResponse, FunctionObject,
};
use futures::StreamExt as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What the stand-in says to [`hello`].
pub(crate) const ANSWER: &str = "You said: hi there";

/// One try of a client as the proxy saw it; times in milliseconds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Try {
    pub(crate) at: u64,
    pub(crate) answered_at: Option<u64>,
    pub(crate) status: Option<u16>,
    pub(crate) request_id: Option<String>,
    pub(crate) retry_after: Option<u64>,
    pub(crate) should_retry: Option<String>,
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is missing; start tests/clients/run.mjs"))
}

async fn desk<T: DeserializeOwned>(path: &str, given: [(&str, &str); 1]) -> T {
    let url = format!("{}/{path}", variable("DESK_URL"));
    let answer = reqwest::Client::new().get(url).query(&given).send().await.expect("the desk answers");
    answer.error_for_status().expect("the desk has it").json().await.expect("the desk speaks JSON")
}

/// A key of a caller who has not called yet.
pub(crate) async fn fresh_key(plan: &str) -> String {
    let answer: Value = desk("key", [("plan", plan)]).await;
    answer["key"].as_str().expect("a key").to_owned()
}

/// What the proxy saw of a key, oldest first.
pub(crate) async fn tries(key: &str) -> Vec<Try> {
    desk("tries", [("key", key)]).await
}

/// The statuses of a key's tries.
pub(crate) async fn statuses(key: &str) -> Vec<u16> {
    tries(key).await.iter().filter_map(|seen| seen.status).collect()
}

/// A client as a program makes it.
pub(crate) fn connect(key: &str) -> Client<OpenAIConfig> {
    Client::with_config(OpenAIConfig::new().with_api_base(variable("BASE_URL")).with_api_key(key))
}

/// A short question to a model.
pub(crate) fn asking(model: &str) -> CreateChatCompletionRequestArgs {
    let message = ChatCompletionRequestUserMessageArgs::default().content("hi there").build().expect("a message");
    let mut request = CreateChatCompletionRequestArgs::default();
    request.model(model).messages([message.into()]);
    request
}

/// The request that is answered at once.
pub(crate) fn hello() -> CreateChatCompletionRequest {
    asking("demo").build().expect("a request")
}

/// A tool that takes two arguments; the stand-in calls it with [`tool_arguments`].
pub(crate) fn tool() -> ChatCompletionTools {
    let properties = json!({ "town": { "type": "string" }, "days": { "type": "integer" } });
    let parameters = json!({ "type": "object", "properties": properties });
    let function =
        FunctionObject { name: "weather".to_owned(), description: None, parameters: Some(parameters), strict: None };
    ChatCompletionTools::Function(ChatCompletionTool { function })
}

/// The arguments that the stand-in calls the tool with.
pub(crate) fn tool_arguments() -> Value {
    json!({ "town": "example", "days": 1 })
}

/// The chunks of a streamed answer up to its end or its first error.
pub(crate) async fn stream(
    client: &Client<OpenAIConfig>,
    request: CreateChatCompletionRequest,
) -> Result<(Vec<CreateChatCompletionStreamResponse>, Option<OpenAIError>), OpenAIError> {
    let mut answer = client.chat().create_stream(request).await?;
    let mut chunks = Vec::new();
    while let Some(next) = answer.next().await {
        match next {
            Ok(chunk) => chunks.push(chunk),
            Err(error) => return Ok((chunks, Some(error))),
        }
    }
    Ok((chunks, None))
}

/// The text of a stream, written as ordinary programs do: a chunk without choices would end them.
pub(crate) fn text_of(chunks: &[CreateChatCompletionStreamResponse]) -> String {
    chunks.iter().filter_map(|chunk| chunk.choices[0].delta.content.as_deref()).collect()
}

/// The error that the proxy answered with, or a panic.
pub(crate) fn answered<T: std::fmt::Debug>(result: Result<T, OpenAIError>) -> ApiErrorResponse {
    match result {
        Err(OpenAIError::ApiError(error)) => error,
        other => panic!("no answer with an error: {other:?}"),
    }
}
