// A short wait is sat out by the package itself, a long one is said as soon as the package lets it.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ANSWER, connect, errors, freshKey, habits, told, tries } from "./support.mjs";

// Timers may ring a millisecond early; the announced wait is counted from when the proxy answered.
const EARLY_MS = 2;
const WAYS = ["chat", "stream"];

/**
 * Calls until a call had to come twice, and gives what was seen of that one call: on a slow machine the bucket may have
 * filled up again between two calls.
 */
async function untilItWaited(key, call) {
  for (let turn = 0; turn < 10; turn += 1) {
    const before = (await tries(key)).length;
    assert.equal((await call()).text, ANSWER);
    const seen = (await tries(key)).slice(before);
    if (seen.length > 1) return seen;
  }
  return assert.fail("no call was refused");
}

/** What a package goes by, in milliseconds. */
const announced = (refused) => (habits.waitsFor === "retryAfter" ? refused.retryAfter * 1_000 : refused.retryAfterMs);

/** That a program is told what it needs, as far as the package hands it on. */
function assertRefused(found, body) {
  assert.deepEqual([found.name, found.status], [errors.refused, 429]);
  assert.match(found.message, /Please try again in/);
  for (const name of habits.tells.filter((member) => member in body)) assert.equal(found[name], body[name]);
}

describe("waits", { concurrency: true }, () => {
  for (const way of WAYS) {
    test(`a short wait is sat out and the first return is admitted, ${way}`, async () => {
      const key = await freshKey("short");
      const caller = connect(key);
      const seen = await untilItWaited(key, () => caller[way]());
      assert.deepEqual(seen.map(({ status }) => status), [429, 200]);
      const [refused, admitted] = seen;
      assert.equal(refused.shouldRetry, null);
      assert.equal(refused.retryAfter, Math.ceil(refused.retryAfterMs / 1_000));
      assert.ok(admitted.at - refused.answeredAt >= announced(refused) - EARLY_MS);
      if (habits.counts) assert.equal(admitted.retryCount, "1");
    });
  }

  const long = [
    ["long", "requests", "rate_limit_exceeded", "calls"],
    ["daily", "insufficient_quota", "insufficient_quota", "day"],
  ];
  for (const [[plan, type, code, limit], way] of long.flatMap((row) => WAYS.map((way) => [row, way]))) {
    test(`a long wait is said as soon as the package lets it: ${code}, ${way}`, async () => {
      const key = await freshKey(plan);
      const caller = connect(key);
      await caller.chat();
      const body = { type: habits.typeOf(429, type), code };
      assertRefused(told(await caller[way]().catch((error) => error)), body);
      const [, ...refused] = await tries(key);
      assert.equal(refused.length, 1 + habits.comesBackAfter.length);
      for (const [turn, seen] of refused.entries()) {
        assert.deepEqual([seen.status, seen.shouldRetry, seen.limitedBy], [429, "false", limit]);
        assert.ok(seen.retryAfter > 60);
        if (turn > 0) assert.ok(seen.at - refused[turn - 1].answeredAt >= habits.comesBackAfter[turn - 1] - EARLY_MS);
      }
    });
  }
});
