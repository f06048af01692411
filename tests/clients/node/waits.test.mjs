// A short wait is sat out by the package itself, a long one is said at once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ANSWER, chat, connect, freshKey, openai, statuses, stream, textOf, tries } from "./support.mjs";

// Timers may ring a millisecond early; the announced wait is counted from when the proxy answered.
const EARLY_MS = 2;

const WAYS = {
  plain: async (client) => (await chat(client)).choices[0].message.content,
  streamed: async (client) => textOf(await stream(client)),
};

/**
 * Calls until a call had to come twice, and gives what was seen of that one call: on a slow machine the bucket may have
 * filled up again between two calls.
 */
async function untilItWaited(key, call) {
  for (let turn = 0; turn < 10; turn += 1) {
    const before = (await tries(key)).length;
    assert.equal(await call(), ANSWER);
    const seen = (await tries(key)).slice(before);
    if (seen.length > 1) return seen;
  }
  return assert.fail("no call was refused");
}

for (const [name, way] of Object.entries(WAYS)) {
  test(`a short wait is sat out and the first return is admitted, ${name}`, async () => {
    const key = await freshKey("short");
    const client = connect(key);
    const seen = await untilItWaited(key, () => way(client));
    assert.deepEqual(seen.map(({ status }) => status), [429, 200]);
    const [refused, admitted] = seen;
    assert.equal(refused.shouldRetry, null);
    assert.equal(refused.retryAfter, Math.ceil(refused.retryAfterMs / 1_000));
    assert.ok(admitted.at - refused.answeredAt >= refused.retryAfterMs - EARLY_MS);
    assert.equal(admitted.retryCount, "1");
  });
}

for (const [plan, code] of [["long", "rate_limit_exceeded"], ["daily", "insufficient_quota"]]) {
  test(`a long wait is thrown at once: ${code}`, async () => {
    const key = await freshKey(plan);
    const client = connect(key);
    await chat(client);
    for (const call of [chat, stream]) {
      await assert.rejects(call(client), (error) => error instanceof openai.RateLimitError && error.code === code);
    }
    assert.deepEqual(await statuses(key), [200, 429, 429]);
    const { shouldRetry, retryAfter } = (await tries(key)).at(-1);
    assert.equal(shouldRetry, "false");
    assert.ok(retryAfter > 60);
  });
}
