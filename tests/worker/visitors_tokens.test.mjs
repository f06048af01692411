// Tokens that tell the visitors of one network apart: each has limits of its own, and all share the network's.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { DAY, NOON, SECOND, errorOf, json, plan, stock } from "./support/gate.mjs";
import {
  RETRY, TODAY, ledgerOf, memberOf, rowOf, startDay, statuses, visit, visitorOf, withDay,
} from "./support/day.mjs";

const WEEK = 7 * DAY;
const requests = (burst) => ({ requests: stock("requests", burst) });
const plans = {
  visitor: plan(requests(2), { daily_calls: 40 }),
  // Both call their limit `requests`, as plans do.
  network: plan(requests(6)),
  keyed: plan(requests(100)),
};
const policy = {
  plans,
  callers: { ann: "keyed" },
  visitors: { plan: "visitor", tokens: { shared_plan: "network", issue_per_hour: 4 } },
};

function fetchToken(gate, address, more = []) {
  const headers = [["cf-connecting-ip", address], ...more];
  return gate.send(gate.request(null, { method: "POST", path: "/v1/visitor", headers }));
}

async function tokenOf(gate, address) {
  const reply = await fetchToken(gate, address);
  assert.equal(reply.status, 200, reply.body.toString());
  return json(reply).token;
}

const sent = (token) => [["x-tollgate-visitor", token]];
const kept = (token) => [["cookie", `theme=dark; tollgate_visitor=${token}; other=1`]];
const call = (gate, address, headers = []) => gate.send(visit(gate, address, { headers }));

describe("a visitor token", () => {
  let gate;
  let last = 0;
  const newAddress = () => `203.0.113.${(last += 1)}`;

  before(async () => {
    gate = await startDay(policy);
  });

  after(() => gate.stop());

  test("comes in the body and as a cookie that a page cannot read", async () => {
    const reply = await fetchToken(gate, newAddress());
    const { object, token, expires_at_ms: expires, ...rest } = json(reply);
    assert.deepEqual([object, expires, rest], ["visitor", NOON + WEEK, {}]);
    assert.match(token, /^v1\.[0-9a-f]{16}\.[0-9]+\.[0-9a-f]{64}$/);
    const attributes = `Path=/; Max-Age=${WEEK / SECOND}; HttpOnly; Secure; SameSite=Lax`;
    assert.equal(reply.header("set-cookie"), `tollgate_visitor=${token}; ${attributes}`);
    assert.equal(reply.header("cache-control"), "no-store");
  });

  test("has limits of its own, and all tokens of a network share the network's", async () => {
    const address = newAddress();
    const [one, two] = [await tokenOf(gate, address), await tokenOf(gate, address)];
    const three = await tokenOf(gate, address);
    const outcome = async (headers) => {
      const reply = await call(gate, address, headers);
      return [reply.status, reply.header("x-tollgate-limited-by")];
    };
    const ok = [200, undefined];
    assert.deepEqual([await outcome(sent(one)), await outcome(kept(one))], [ok, ok]);
    assert.deepEqual(await outcome(sent(one)), [429, "requests"]);
    assert.deepEqual([await outcome(kept(two)), await outcome(sent(two))], [ok, ok]);
    assert.deepEqual(await outcome(sent(two)), [429, "requests"]);
    // Who shows no token is one more of them.
    assert.deepEqual(await outcome([]), ok);
    assert.deepEqual(await outcome(sent(three)), ok);
    // The third has one left of its own, the network none.
    assert.deepEqual(await outcome(sent(three)), [429, "requests"]);
    // Another network is not concerned.
    assert.equal((await call(gate, newAddress())).status, 200);
  });

  test("has a row of its own in the ledger, and its day in the usage call", async () => {
    const address = newAddress();
    const token = await tokenOf(gate, address);
    const member = token.split(".")[1];
    assert.equal((await call(gate, address, sent(token))).status, 200);
    assert.equal((await rowOf(gate, `${visitorOf(address)}~${memberOf(member)}`)).calls, 1);
    // As the network is, tomorrow the member is somebody else.
    await gate.worker.setClock(NOON + DAY);
    assert.equal((await call(gate, address, sent(token))).status, 200);
    const [tomorrow, key] = [TODAY + 1, visitorOf(address, TODAY + 1)];
    assert.equal((await rowOf(gate, `${key}~${memberOf(member, tomorrow)}`, tomorrow)).calls, 1);
    await gate.worker.setClock(NOON);
    const usage = async (headers) => {
      const request = gate.request(null, { path: "/v1/usage", headers: [["cf-connecting-ip", address], ...headers] });
      const { day, limits } = json(await gate.send(request));
      return { used: day.calls.used, left: limits.map(({ name, left }) => `${name} ${left}`) };
    };
    assert.deepEqual(await usage(sent(token)), { used: 1, left: ["requests 5", "requests 1"] });
    assert.deepEqual(await usage([]), { used: 0, left: ["requests 5", "requests 2"] });
  });

  test("is given out so many times an hour to a network", async () => {
    const address = newAddress();
    for (let number = 0; number < 4; number += 1) await tokenOf(gate, address);
    const refused = await fetchToken(gate, address);
    assert.deepEqual([refused.status, refused.header("x-tollgate-limited-by")], [429, "issue"]);
    assert.deepEqual([refused.header("retry-after"), refused.header("x-should-retry")], ["900", "false"]);
    assert.equal(errorOf(refused).code, "rate_limit_exceeded");
    // It is a limit on tokens alone.
    assert.equal((await call(gate, address)).status, 200);
    await gate.worker.advance(900 * SECOND - 1);
    assert.equal((await fetchToken(gate, address)).status, 429);
    await gate.worker.advance(1);
    assert.equal((await fetchToken(gate, address)).status, 200);
    await gate.worker.setClock(NOON);
  });

  test("is refused when it is forged, expired or of another network, and the upstream is not called", async () => {
    const [address, foreign] = [newAddress(), newAddress()];
    const token = await tokenOf(gate, address);
    const [version, member, expires, signature] = token.split(".");
    const flipped = (text) => text.slice(0, -1) + (Number.parseInt(text.at(-1), 16) ^ 1).toString(16);
    const before = gate.upstream.calls.length;
    const bad = async (text, from = address) => {
      for (const headers of [sent(text), kept(text)]) {
        const reply = await call(gate, from, headers);
        assert.deepEqual([reply.status, errorOf(reply).code], [401, "invalid_api_key"], text);
        assert.ok(!reply.body.includes(signature), "the token is echoed");
      }
    };
    await bad([version, member, expires, flipped(signature)].join("."));
    await bad([version, flipped(member), expires, signature].join("."));
    await bad([version, member, Number(expires) + WEEK, signature].join("."));
    await bad([version, member, expires, signature, ""].join("."));
    await bad("nonsense");
    await bad(token, foreign);
    await gate.worker.setClock(NOON + WEEK);
    await bad(token);
    await gate.worker.setClock(NOON + WEEK - 1);
    assert.equal((await call(gate, address, sent(token))).status, 200);
    await gate.worker.setClock(NOON);
    assert.equal(gate.upstream.calls.length, before + 1);
  });

  test("of the network that a browser has left does not keep it from getting a new one", async () => {
    const [home, cafe] = [newAddress(), newAddress()];
    const old = await tokenOf(gate, home);
    assert.equal((await call(gate, cafe, kept(old))).status, 401);
    const reply = await fetchToken(gate, cafe, kept(old));
    assert.equal(reply.status, 200, reply.body.toString());
    assert.equal((await call(gate, cafe, kept(json(reply).token))).status, 200);
  });

  test("is not for callers with a key", async () => {
    const asked = await gate.send(gate.request("ann", { method: "POST", path: "/v1/visitor" }));
    assert.deepEqual([asked.status, errorOf(asked).code], [400, "no_visitor_tokens"]);
    const address = newAddress();
    const token = await tokenOf(gate, address);
    const both = (headers) => {
      const request = gate.request("ann", { path: "/v1/models", headers: [["cf-connecting-ip", address], ...headers] });
      return gate.send(request);
    };
    assert.equal((await both(sent(token))).status, 401);
    // A cookie is sent by the browser, whoever calls.
    assert.equal((await both(kept(token))).status, 200);
  });

  test("is not given out, and not looked for, where the policy has none", () =>
    withDay({ ...policy, visitors: { plan: "visitor" } }, async (without) => {
      const reply = await fetchToken(without, "203.0.113.1");
      assert.deepEqual([reply.status, errorOf(reply).code], [400, "no_visitor_tokens"]);
      const token = await tokenOf(gate, "203.0.113.1");
      assert.equal((await call(without, "203.0.113.1", sent(token))).status, 401);
      // A browser that still has a cookie from when it had some is a visitor like any other.
      assert.equal((await call(without, "203.0.113.1", kept(token))).status, 200);
    }));
});

test("a network with more visitors at once than one batch may hold tells the ledger of all of them", async () => {
  const many = { ...policy, plans: { ...plans, network: plan(requests(1_000)) } };
  many.visitors = { plan: "visitor", tokens: { shared_plan: "network", issue_per_hour: 1_000 } };
  await withDay(many, async (gate) => {
    const [address, count] = ["203.0.113.1", 75];
    const replies = [];
    for (let visitor = 0; visitor < count; visitor += 1) {
      replies.push(await call(gate, address, sent(await tokenOf(gate, address))));
    }
    assert.deepEqual(statuses(replies), { 200: count });
    await Promise.all(replies.map((reply) => gate.record(reply)));
    await gate.worker.setFaults([]);
    for (let rings = 0; rings < 4; rings += 1) {
      await gate.worker.advance(RETRY);
      await gate.worker.object(visitorOf(address)).alarm();
    }
    const rows = Object.values(await ledgerOf(gate)).filter(({ key }) => key !== "*");
    assert.equal(rows.length, count);
    assert.ok(rows.every(({ calls, settled, day }) => calls === 1 && settled === 1 && day === TODAY));
    const { statements } = await gate.worker.counts();
    const batches = statements.filter(({ kind }) => kind === "post").map(({ statements: size }) => size);
    // Of a free plan's 50 statements in one go, some are left for the prune.
    assert.ok(Math.max(...batches) <= 40, `batches of ${batches}`);
  });
});
