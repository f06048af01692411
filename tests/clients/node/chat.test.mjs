// What a call that is let through looks like from inside a program.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ANSWER, TOOL, TOOL_ARGUMENTS, chat, connect, freshKey, statuses, stream, textOf, tries } from "./support.mjs";

const roomy = async () => connect(await freshKey("roomy"));

test("a plain chat arrives with its usage", async () => {
  const { choices, usage } = await chat(await roomy());
  assert.equal(choices[0].message.content, ANSWER);
  assert.equal(choices[0].finish_reason, "stop");
  assert.deepEqual([usage.prompt_tokens, usage.completion_tokens, usage.total_tokens], [2, 4, 6]);
});

test("a stream without asking for usage has no chunk without choices", async () => {
  const key = await freshKey("roomy");
  const chunks = await stream(connect(key));
  assert.equal(textOf(chunks), ANSWER);
  assert.ok(chunks.length > 3);
  assert.ok(chunks.every(({ usage }) => usage == null));
  assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
  assert.deepEqual(await statuses(key), [200]);
});

test("declining usage is not asking for it", async () => {
  const chunks = await stream(await roomy(), { stream_options: { include_usage: false } });
  assert.equal(textOf(chunks), ANSWER);
  assert.ok(chunks.every(({ usage }) => usage == null));
});

test("a stream that asks for usage gets it in the last chunk", async () => {
  const chunks = await stream(await roomy(), { stream_options: { include_usage: true } });
  const { choices, usage } = chunks.pop();
  assert.equal(textOf(chunks), ANSWER);
  assert.deepEqual(choices, []);
  assert.deepEqual([usage.prompt_tokens, usage.completion_tokens, usage.total_tokens], [2, 4, 6]);
});

test("a tool call arrives whole", async () => {
  const { choices } = await chat(await roomy(), { tools: [TOOL] });
  assert.equal(choices[0].finish_reason, "tool_calls");
  assert.equal(choices[0].message.tool_calls.length, 1);
  const [call] = choices[0].message.tool_calls;
  assert.deepEqual([call.type, call.function.name], ["function", "weather"]);
  assert.deepEqual(JSON.parse(call.function.arguments), TOOL_ARGUMENTS);
});

test("a streamed tool call is put together from its pieces", async () => {
  const chunks = await stream(await roomy(), { tools: [TOOL] });
  const pieces = chunks.flatMap((chunk) => chunk.choices[0].delta.tool_calls ?? []);
  assert.deepEqual([pieces[0].id, pieces[0].function.name], ["call_weather", "weather"]);
  assert.ok(pieces.length > 2);
  assert.deepEqual(JSON.parse(pieces.map((piece) => piece.function.arguments).join("")), TOOL_ARGUMENTS);
  assert.equal(chunks.at(-1).choices[0].finish_reason, "tool_calls");
});

test("the answer to a tool call is taken back", async () => {
  const client = await roomy();
  const question = { role: "user", content: "how warm is it?" };
  const asked = (await chat(client, { tools: [TOOL], messages: [question] })).choices[0].message;
  const result = { role: "tool", tool_call_id: asked.tool_calls[0].id, content: "twenty" };
  const { choices } = await chat(client, { tools: [TOOL], messages: [question, asked, result] });
  assert.equal(choices[0].message.content, "You said: twenty");
});

test("the package's own gatherer of streams gives the whole answer", async () => {
  const messages = [{ role: "user", content: "hi there" }];
  const running = (await roomy()).chat.completions.stream({ model: "demo", messages });
  assert.equal((await running.finalChatCompletion()).choices[0].message.content, ANSWER);
});

for (const given of [{}, { stream: true }]) {
  test(`the rate headers and the request id are within reach, ${given.stream ? "streamed" : "plain"}`, async () => {
    const key = await freshKey("roomy");
    const { response, request_id: id } = await chat(connect(key), given).withResponse();
    const header = (name) => response.headers.get(name);
    assert.equal(header("x-ratelimit-limit-requests"), "1000");
    assert.equal(header("x-ratelimit-limit-tokens"), "1000000");
    assert.ok(Number(header("x-ratelimit-remaining-tokens")) < 1_000_000);
    assert.match(header("ratelimit-policy"), /^"requests";q=1000;w=1/);
    assert.equal(id, (await tries(key)).at(-1).requestId);
    assert.equal(header("x-request-id"), id);
    if (given.stream) await response.body.cancel();
  });
}

test("the request id is an attribute of the answer", async () => {
  const key = await freshKey("roomy");
  const { _request_id: id } = await chat(connect(key));
  assert.ok(id);
  assert.equal(id, (await tries(key)).at(-1).requestId);
});

test("the models are listed", async () => {
  const names = [];
  for await (const { id } of (await roomy()).models.list()) names.push(id);
  assert.ok(names.includes("demo"));
});
