// Answers as providers write them, through the whole Worker: what is charged, that nothing stays held, and how it ends
// for the client.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CHAT, Gate, json, plan, stock } from "./support/gate.mjs";

const [EMBEDDINGS, MESSAGES, RESPONSES] = ["/v1/embeddings", "/v1/messages", "/v1/responses"];
const PRICES = { max_output: 1_000, context: 100_000, encoding: "none" };
const models = {
  alpha: { ...PRICES, input: "1", output: "2", cached_input: "0.5" },
  claude: {
    ...PRICES, input: "3", cached_input: "0.3", cache_write: "3.75", cache_write_long: "6", output: "15",
    upstream: "anthropic",
  },
  embed: { input: "1", output: "0", context: 300_000, encoding: "none" },
};

const answer = (body) => ({ status: 200, headers: { "content-type": "application/json" }, body });
const sse = (events) => ({ status: 200, headers: { "content-type": "text/event-stream" }, sse: events });
const data = (value) => `data: ${JSON.stringify(value)}\n\n`;
const named = (value) => `event: ${value.type}\n${data(value)}`;
const DONE = "data: [DONE]\n\n";
const word = (content, more) => data({ choices: [{ index: 0, delta: { content }, finish_reason: null }], ...more });
const stop = (more) => data({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], ...more });
const tally = (prompt_tokens, completion_tokens) => ({ prompt_tokens, completion_tokens });

const START = named({ type: "message_start", message: { usage: { input_tokens: 10, output_tokens: 1 } } });
const DELTA = named({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Volga" } });
const OVERLOADED = named({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } });
const told = (usage) => named({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage });
const STOP = named({ type: "message_stop" });
const response = (type, usage) => named({ type: `response.${type}`, response: { output: [], usage } });
const SPOKEN = named({ type: "response.output_text.delta", delta: "a" });
const CREATED = named({ type: "response.created", response: {} });
const FAILURE = data({ error: { message: "No." } });
const USED = { input_tokens: 10, output_tokens: 4 };
const HOUR = { ephemeral_1h_input_tokens: 100 };

/** Route, events, what is charged (undefined: nothing), whether that is exact, and the end: whole, or with an error. */
const STREAMS = {
  "OpenAI's, with its usage after the last word": [
    CHAT,
    [word("a"), stop(), data({ choices: [], usage: tally(10, 4) }), DONE],
    18_000, true, "whole",
  ],
  "Groq's, with its usage in a member of its own": [
    CHAT,
    [word("a"), stop({ x_groq: { usage: tally(10, 4) } }), DONE],
    18_000, true, "whole",
  ],
  "Mistral's, with its usage in the last word": [
    CHAT,
    [word("a"), stop({ usage: tally(10, 4) }), DONE],
    18_000, true, "whole",
  ],
  "vLLM's, with a running usage": [
    CHAT,
    [word("a", { usage: tally(10, 1) }), word("b", { usage: tally(10, 2) }), stop({ usage: tally(10, 3) }), DONE],
    16_000, true, "whole",
  ],
  "without its end marker": [CHAT, [word("a"), stop({ usage: tally(10, 4) })], 18_000, true, "whole"],
  "with an error in its middle": [CHAT, [word("a"), FAILURE, DONE], 9_000, false, "error"],
  "with an error and a usage": [
    CHAT,
    [word("a"), data({ error: { message: "No." }, usage: tally(10, 4) })],
    18_000, false, "error",
  ],
  "Anthropic's": [MESSAGES, [START, DELTA, told({ output_tokens: 6 }), STOP], 120_000, true, "whole"],
  "Anthropic's, kept for an hour": [
    MESSAGES,
    [START, DELTA, told({ input_tokens: 10, output_tokens: 6, cache_creation: HOUR }), STOP],
    720_000, true, "whole",
  ],
  "Anthropic's, overloaded before its first word": [MESSAGES, [START, OVERLOADED], undefined, undefined, "error"],
  "Anthropic's, overloaded after it": [MESSAGES, [START, DELTA, OVERLOADED], 60_000, false, "error"],
  "Anthropic's, cut before its last event": [
    MESSAGES,
    [START, DELTA, told({ output_tokens: 6 })],
    120_000, false, "error",
  ],
  "a response": [RESPONSES, [SPOKEN, response("completed", USED)], 18_000, true, "whole"],
  "a response that is not complete": [RESPONSES, [response("incomplete", USED)], 18_000, true, "whole"],
  "a response that has failed": [RESPONSES, [CREATED, response("failed", null)], undefined, undefined, "whole"],
  "a response that has failed and says what it cost": [
    RESPONSES,
    [CREATED, response("failed", USED)],
    18_000, false, "whole",
  ],
  "a response that never ends": [RESPONSES, [SPOKEN], 5_000, false, "error"],
};

describe("an answer as a provider writes it", () => {
  let gate;

  before(async () => {
    gate = await Gate.start({
      plans: { all: plan({ budget: stock("usd", "1000") }, { body_max: 4_194_304 }) },
      callers: { ann: "all" },
      models,
      upstreams: (own) => ({ anthropic: { ...own, kind: "anthropic" } }),
      counting: { method: "bytes", per_message: 0, per_call: 0 },
      bounds: { hold_ms: 600_000 },
    });
  });

  after(() => gate.stop());

  /** Calls; tells the reply and what was written down. The budget says the same. */
  async function called(path, body, script) {
    await gate.play(script);
    const before = await gate.left("ann", "budget");
    const reply = await gate.send(gate.request("ann", { method: "POST", path, body }));
    const record = await gate.record(reply);
    await gate.settled("ann");
    assert.equal(before - (await gate.left("ann", "budget")), record.charged?.usd ?? 0);
    return { reply, record, charged: record.charged?.usd, held: record.held?.usd };
  }

  for (const [name, [path, events, charged, exact, end]] of Object.entries(STREAMS)) {
    test(`${name} is charged what it says`, async () => {
      const model = path === MESSAGES ? "claude" : "alpha";
      const words = path === RESPONSES ? { input: "abc" } : { messages: [{ role: "user", content: "abc" }] };
      const cap = path === RESPONSES ? { max_output_tokens: 100 } : { max_tokens: 100 };
      const asked = path === CHAT && { stream_options: { include_usage: true } };
      const made = await called(path, { model, ...words, ...cap, stream: true, ...asked }, sse(events));
      const sent = made.reply.body.toString();
      assert.equal(made.reply.status, 200);
      assert.deepEqual([made.charged, made.record.exact], [charged, exact], sent);
      const whole = events.join("");
      if (end === "whole") assert.equal(sent, whole);
      else assert.match(sent, /error/);
      if (end === "error") assert.doesNotMatch(sent, /\[DONE\]/);
      assert.ok(made.reply.whole);
    });
  }

  test("texts to embed are counted one by one, and vectors of 10 MB pass", async () => {
    const input = Array.from({ length: 2_048 }, (_, place) => `text ${place}`);
    const bytes = input.join("").length;
    const usage = { prompt_tokens: 5_000, total_tokens: 5_000 };
    const vectors = { data: [{ embedding: "A".repeat(10_000_000) }], usage };
    const ask = { model: "embed", input, encoding_format: "base64", dimensions: 256 };
    const texts = await called(EMBEDDINGS, ask, answer(vectors));
    assert.deepEqual([texts.reply.status, texts.held, texts.charged], [200, bytes * 1_000, 5_000_000]);
    assert.deepEqual(json(texts.reply), vectors);
    const ids = await called(EMBEDDINGS, { model: "embed", input: [[1, 2, 3], [100_000]] }, answer({ data: [] }));
    assert.deepEqual([ids.held, ids.charged, ids.record.exact], [4_000, 4_000, false]);
  });

  test("Anthropic's refusals pass in their own shape, and its overload costs nothing", async () => {
    const error = (type) => ({ type: "error", error: { type, message: "No." }, request_id: "req_1" });
    const ask = { model: "claude", max_tokens: 10, messages: [{ role: "user", content: "abc" }] };
    const answers = [
      [529, "overloaded_error", 502],
      [400, "invalid_request_error", 400],
      [429, "rate_limit_error", 429],
    ];
    for (const [status, type, want] of answers) {
      const headers = { "content-type": "application/json", "anthropic-ratelimit-tokens-remaining": "7" };
      const script = { status, headers, body: error(type) };
      const made = await called(MESSAGES, ask, script);
      const told = json(made.reply);
      assert.deepEqual([made.reply.status, made.charged, told.type], [want, undefined, "error"]);
      assert.equal(made.reply.header("anthropic-ratelimit-tokens-remaining"), undefined);
      assert.equal(typeof told.error.type, "string");
    }
  });
});
