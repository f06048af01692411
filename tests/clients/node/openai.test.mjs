// What the openai package itself promises beyond an answer: usage as it was asked for, headers, request ids, models,
// and its oldest route.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ANSWER, BASE_URL as baseURL, freshKey, given, load, tries } from "./support.mjs";

const { NotFoundError, OpenAI } = await load(given.package);

const clientOf = (apiKey) => new OpenAI({ baseURL, apiKey });
const roomy = async () => clientOf(await freshKey("roomy"));
const request = (more) => ({ model: "demo", messages: [{ role: "user", content: "hi there" }], ...more });

async function chunksOf(more) {
  const chunks = [];
  for await (const chunk of await (await roomy()).chat.completions.create(request({ ...more, stream: true }))) {
    chunks.push(chunk);
  }
  return chunks;
}

describe("the package", { concurrency: true }, () => {
  for (const [asking, options] of [["not asking", undefined], ["declining", { include_usage: false }]]) {
    test(`${asking} for usage means that no chunk has it, and none is without choices`, async () => {
      const chunks = await chunksOf({ stream_options: options });
      assert.ok(chunks.every(({ choices, usage }) => choices.length === 1 && usage == null));
      assert.equal(chunks.map(({ choices }) => choices[0].delta.content ?? "").join(""), ANSWER);
    });
  }

  test("asking for usage means that the last chunk has it", async () => {
    const { choices, usage } = (await chunksOf({ stream_options: { include_usage: true } })).at(-1);
    assert.deepEqual(choices, []);
    assert.deepEqual([usage.prompt_tokens, usage.completion_tokens, usage.total_tokens], [2, 4, 6]);
  });

  test("its own gatherer of streams gives the whole answer", async () => {
    const running = (await roomy()).chat.completions.stream(request());
    assert.equal((await running.finalChatCompletion()).choices[0].message.content, ANSWER);
  });

  for (const more of [{}, { stream: true }]) {
    test(`the rate headers and the request id are within reach, ${more.stream ? "streamed" : "plain"}`, async () => {
      const key = await freshKey("roomy");
      const call = clientOf(key).chat.completions.create(request(more));
      const { response, request_id: id } = await call.withResponse();
      const header = (name) => response.headers.get(name);
      assert.equal(header("x-ratelimit-limit-requests"), "1000");
      assert.equal(header("x-ratelimit-limit-tokens"), "1000000");
      assert.ok(Number(header("x-ratelimit-remaining-tokens")) < 1_000_000);
      assert.match(header("ratelimit-policy"), /^"requests";q=1000;w=1/);
      assert.equal(id, (await tries(key)).at(-1).requestId);
      assert.equal(header("x-request-id"), id);
      if (more.stream) await response.body.cancel();
    });
  }

  test("the request id is an attribute of the answer and of an error", async () => {
    const key = await freshKey("roomy");
    const lastId = async () => (await tries(key)).at(-1).requestId;
    const { _request_id: id } = await clientOf(key).chat.completions.create(request());
    assert.ok(id);
    assert.equal(id, await lastId());
    const call = clientOf(key).chat.completions.create(request({ model: "nonesuch" }));
    const error = await call.catch((thrown) => thrown);
    assert.ok(error instanceof NotFoundError);
    assert.equal(error.requestID, await lastId());
  });

  for (const asked of [undefined, { include_usage: true }]) {
    test(`a completion of the older kind, usage ${asked ? "asked for" : "not asked for"}`, async () => {
      const older = { model: "demo", prompt: "hi there" };
      const { choices, usage } = await (await roomy()).completions.create(older);
      assert.deepEqual([choices[0].text, usage.total_tokens], [ANSWER, 6]);
      const chunks = [];
      const stream = await (await roomy()).completions.create({ ...older, stream: true, stream_options: asked });
      for await (const chunk of stream) chunks.push(chunk);
      assert.equal(chunks.flatMap((chunk) => chunk.choices.map(({ text }) => text)).join(""), ANSWER);
      assert.equal(chunks.filter((chunk) => chunk.choices.length === 0).length, asked ? 1 : 0);
      assert.equal(chunks.at(-1).usage?.total_tokens, asked ? 6 : undefined);
    });
  }

  test("the models are listed", async () => {
    const names = [];
    for await (const { id } of (await roomy()).models.list()) names.push(id);
    assert.ok(names.includes("demo"));
  });
});
