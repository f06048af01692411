// What a call that is let through looks like from inside a program.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ANSWER, TOOL_ARGUMENTS, connect, freshKey, habits, statuses } from "./support.mjs";

const WAYS = ["chat", "stream"];
const roomy = async () => connect(await freshKey("roomy"));

describe("chats", { concurrency: true }, () => {
  for (const way of WAYS) {
    test(`an answer arrives, ${way}`, async () => {
      const key = await freshKey("roomy");
      const answer = await connect(key)[way]();
      assert.equal(answer.text, ANSWER);
      assert.equal(answer.finish, "stop");
      assert.deepEqual(answer.calls, []);
      if (way === "stream") assert.ok(answer.pieces > 3);
      assert.deepEqual(await statuses(key), [200]);
    });

    test(`an answer is cut where the caller caps it, ${way}`, async () => {
      const { text, finish } = await (await roomy())[way]({ cap: 3 });
      assert.deepEqual([text.trim(), finish], ["You said: hi", "length"]);
    });

    test(`a tool call arrives whole, ${way}`, async () => {
      const { finish, calls } = await (await roomy())[way]({ tools: true });
      assert.equal(finish, "tool_calls");
      assert.deepEqual(calls, [{ name: "weather", arguments: TOOL_ARGUMENTS }]);
    });

    test(`a picture is taken, ${way}`, async () => {
      const { text } = await (await roomy())[way]({ image: true });
      assert.equal(text, `${ANSWER} [image]`);
    });
  }

  test("a plain answer comes with its usage", async () => {
    assert.deepEqual((await (await roomy()).chat()).usage, [2, 4]);
  });

  test("a stream comes with its usage if that is asked for, and else without", async () => {
    const caller = await roomy();
    const asksAlways = habits.asksForUsage === "always";
    assert.deepEqual((await caller.stream()).usage, asksAlways ? [2, 4] : undefined);
    assert.deepEqual((await caller.stream({ usage: true })).usage, [2, 4]);
    assert.equal((await caller.stream({ usage: true })).text, ANSWER);
  });

  test("the answer to a tool call is taken back", async () => {
    const caller = await roomy();
    const given = { prompt: "how warm is it?" };
    const answer = await caller.chat({ ...given, tools: true });
    assert.equal((await caller.giveBack(answer, "twenty", given)).text, "You said: twenty");
  });
});
