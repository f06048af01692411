// Which class of error a program meets, what is in it, and that nobody comes again in vain.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { connect, errors, freshKey, habits, statuses, told, tries } from "./support.mjs";

/** What a program is told by the error that a call ends with. */
async function caught(what, call) {
  const error = await call.then(
    () => assert.fail("nothing was thrown"),
    (thrown) => thrown,
  );
  const found = told(error);
  assert.equal(found.name, errors[what], error.stack);
  return { ...found, seen: error.seen };
}

/** Compares as much of an error's body as the package hands on. */
function assertTold(found, status, type, code, param) {
  const body = { type: habits.typeOf(status, type), code, param };
  const visible = (from) => habits.tells.map((name) => from[name] ?? null);
  assert.deepEqual(visible(found), visible(body));
}

describe("errors", { concurrency: true }, () => {
  test("a wrong key", async () => {
    const wrong = `${await freshKey("roomy")}x`;
    const found = await caught("wrongKey", connect(wrong).chat());
    assert.equal(found.status, 401);
    assertTold(found, 401, "invalid_request_error", "invalid_api_key", null);
    assert.ok(!found.message.includes(wrong));
    assert.deepEqual(await statuses(wrong), [401]);
  });

  test("an unknown model", async () => {
    const key = await freshKey("roomy");
    const found = await caught("unknownModel", connect(key).chat({ model: "nonesuch" }));
    assert.equal(found.status, 404);
    assertTold(found, 404, "invalid_request_error", "model_not_found", "model");
    assert.match(found.message, /nonesuch/);
    assert.deepEqual(await statuses(key), [404]);
  });

  test("a bad request names the field", async () => {
    const key = await freshKey("roomy");
    const found = await caught("badRequest", connect(key).chat({ cap: 0 }));
    assert.equal(found.status, 400);
    assertTold(found, 400, "invalid_request_error", habits.badCode, habits.badField);
    if (!habits.tells.includes("param")) assert.match(found.message, new RegExp(habits.badField));
    assert.deepEqual(await statuses(key), [400]);
  });

  test("what the upstream refuses is told in its words", async () => {
    const key = await freshKey("roomy");
    const found = await caught("tooLong", connect(key).chat({ model: "refusing" }));
    assertTold(found, 400, "invalid_request_error", habits.upstreamHasCodes ? "400" : null, null);
    assert.match(found.message, /maximum context length/);
    assert.deepEqual(await statuses(key), [400]);
  });

  test("a call that can never fit is not tried again", async () => {
    const key = await freshKey("small");
    const found = await caught("badRequest", connect(key).chat({ cap: 1_000 }));
    assertTold(found, 400, "invalid_request_error", "request_exceeds_limit", null);
    assert.deepEqual(await statuses(key), [400]);
  });

  test("the upstream's own refusal is told apart", async () => {
    const key = await freshKey("roomy");
    const found = await caught("refused", connect(key, { retries: 0 }).chat({ model: "demo-busy" }));
    assert.equal(found.status, 429);
    assertTold(found, 429, "requests", habits.upstreamHasCodes ? "rate_limit_exceeded" : null, null);
    const { limitedBy, retryAfter } = (await tries(key)).at(-1);
    assert.equal(limitedBy, "upstream");
    // What is left of its two seconds, if another client was told of them before.
    assert.ok([1, 2].includes(retryAfter), `${retryAfter}`);
  });

  test("an upstream failure is free however often it is tried", async () => {
    const key = await freshKey("daily");
    const caller = connect(key, { retries: 2 });
    const found = await caught("failed", caller.chat({ model: "demo-fail" }));
    assert.equal(found.status, 502);
    assertTold(found, 502, "server_error", "upstream_failed", null);
    // One call a day, and it is still there.
    await caller.chat();
    assert.deepEqual(await statuses(key), [...Array.from({ length: habits.triesOfFailure }, () => 502), 200]);
  });

  test("a plain answer that breaks off", async () => {
    const caller = connect(await freshKey("roomy"), { retries: 0 });
    const found = await caught("brokenPlain", caller.chat({ model: "demo-break" }));
    assert.equal(found.status, 502);
    assertTold(found, 502, "server_error", "upstream_invalid", null);
  });

  test("a stream that breaks off is an error after what had come", async () => {
    const key = await freshKey("roomy");
    const found = await caught("brokenStream", connect(key).stream({ model: "demo-break" }));
    assertTold(found, 502, "server_error", "upstream_invalid", null);
    assert.match(found.message, /incomplete/);
    assert.ok(found.seen > 1);
    assert.deepEqual(await statuses(key), [200]);
  });
});
