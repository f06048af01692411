// Callers without a credential: who is whom, what the day leaves them, and how an operator changes that in a hurry.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { bytesOfRequest, open } from "./harness/client.mjs";
import { DAY, NOON, errorOf, json, plan, stock } from "./support/gate.mjs";
import {
  TODAY, VISITOR_SECRET, ledgerOf, rowOf, sequence, startDay, statuses, visit, visitorOf, withDay,
} from "./support/day.mjs";

const limits = { calls: stock("requests", 1_000) };
const policy = {
  plans: { visitor: plan(limits, { daily_calls: 40 }), keyed: plan(limits) },
  callers: { ann: "keyed" },
  visitors: { plan: "visitor" },
};

describe("a visitor", () => {
  let gate;
  let narrow;

  before(async () => {
    gate = await startDay({ ...policy, visitors: { plan: "visitor", ipv6_prefix: 56 } });
    narrow = await startDay(policy);
  });

  after(() => Promise.all([gate.stop(), narrow.stop()]));

  async function subjectOf(where, address, headers = []) {
    const reply = await where.send(visit(where, address, { headers }));
    assert.equal(reply.status, 200, reply.body.toString());
    return (await where.record(reply)).subject;
  }

  test("is an IPv4 address, or a network of IPv6, however it is spelt", async () => {
    for (const [address, prefix] of [
      ["203.0.113.24", "203.0.113.24"],
      ["::ffff:203.0.113.24", "203.0.113.24"],
      ["::FFFF:CB00:7118", "203.0.113.24"],
      ["2001:db8:5:77::1", "2001:db8:5:77::/64"],
      ["2001:0DB8:0005:0077:ffff:0:0:9", "2001:db8:5:77::/64"],
      ["2001:db8:5:78::1", "2001:db8:5:78::/64"],
    ]) {
      assert.equal(await subjectOf(narrow, address), visitorOf(prefix), address);
    }
  });

  test("is a wider network where the policy says so", async () => {
    assert.equal(await subjectOf(gate, "2001:db8:5:77::1"), visitorOf("2001:db8:5::/56"));
    assert.equal(await subjectOf(gate, "2001:db8:5:ff::1"), visitorOf("2001:db8:5::/56"));
    assert.equal(await subjectOf(gate, "2001:db8:5:177::1"), visitorOf("2001:db8:5:100::/56"));
  });

  test("is never what a header says that callers can send", async () => {
    const own = visitorOf("203.0.113.77");
    for (const name of ["x-forwarded-for", "x-real-ip", "forwarded", "true-client-ip", "cf-connecting-ipv6"]) {
      assert.equal(await subjectOf(narrow, "203.0.113.77", [[name, "198.51.100.9"]]), own, name);
      const reply = await narrow.send(visit(narrow, null, { headers: [[name, "198.51.100.9"]] }));
      assert.equal(reply.status, 401, name);
    }
  });

  test("is somebody else on the next day, and has that day's calls", async () => {
    await narrow.worker.setClock(NOON + DAY);
    assert.equal(await subjectOf(narrow, "203.0.113.24"), visitorOf("203.0.113.24", TODAY + 1));
    assert.equal((await rowOf(narrow, visitorOf("203.0.113.24", TODAY + 1), TODAY + 1)).calls, 1);
    await narrow.worker.setClock(NOON);
  });

  test("is nobody without a usable address", async () => {
    const unusable = ["", "unknown", "203.0.113", "203.0.113.24, 10.0.0.1", "fe80::1%eth0", "203.0.113.24:80"];
    for (const address of [null, ...unusable]) {
      const reply = await narrow.send(visit(narrow, address));
      assert.deepEqual([reply.status, errorOf(reply).code], [401, "invalid_api_key"], `${address}`);
    }
  });

  test("does not become one by a bad key", async () => {
    const bad = [["authorization", "Bearer nobody"], ["authorization", "Bearer "], ["x-api-key", ""], ["api-key", "x"]];
    for (const header of bad) {
      const reply = await narrow.send(visit(narrow, "203.0.113.24", { headers: [header] }));
      assert.equal(reply.status, 401, `${header}`);
    }
  });

  test("whose body takes until after midnight counts for one day, not for a mixture of two", async () => {
    await narrow.worker.setClock(NOON + DAY / 2 - 1);
    const connection = await open(narrow.worker.url);
    const request = { ...visit(narrow, "203.0.113.60"), chunked: true };
    const bytes = bytesOfRequest(request, new URL(narrow.worker.url).host);
    const cut = bytes.length - 12;
    const arrives = narrow.upstream.nextCall();
    connection.write(bytes.subarray(0, cut));
    // By when later calls have been answered, the first part is there; were it not, the whole call would be tomorrow's.
    for (let later = 0; later < 5; later += 1) await (await narrow.worker.fetch("/healthz")).text();
    await narrow.worker.advance(1);
    connection.write(bytes.subarray(cut));
    await arrives;
    connection.close();
    const rows = Object.entries(await ledgerOf(narrow));
    const own = rows.filter(([at]) => [TODAY, TODAY + 1].some((day) => at.endsWith(visitorOf("203.0.113.60", day))));
    assert.equal(own.length, 1);
    const [day, key] = own[0][0].split("/");
    assert.equal(key, visitorOf("203.0.113.60", Number(day)));
    await narrow.worker.setClock(NOON);
  });

  test("is refused where there is no secret, and the health check says so", () =>
    withDay({ ...policy, env: { VISITOR_SECRET: undefined } }, async (bare) => {
      assert.equal((await bare.send(visit(bare, "203.0.113.24"))).status, 401);
      assert.match((await (await bare.worker.fetch("/healthz")).json()).visitors, /VISITOR_SECRET/);
      assert.equal((await bare.chat("ann")).status, 200);
    }));

  test("sees its day in the usage call, as it is enforced", async () => {
    const usage = async () => {
      const request = narrow.request(null, { path: "/v1/usage", headers: [["cf-connecting-ip", "203.0.113.90"]] });
      return json(await narrow.send(request)).day;
    };
    const half = DAY / 2;
    assert.deepEqual(await usage(), { calls: { limit: 40, used: 0, left: 40 }, nano_usd: null, full_in_ms: half });
    assert.deepEqual(statuses(await sequence(narrow, 41, () => visit(narrow, "203.0.113.90"))), { 200: 40, 429: 1 });
    assert.deepEqual(await usage(), { calls: { limit: 40, used: 40, left: 0 }, nano_usd: null, full_in_ms: half });
    assert.equal((await narrow.usage("ann")).day, null);
  });
});

describe("a variable that an operator sets in a hurry", () => {
  const capped = { ...policy, site: { daily_calls: 600, daily_usd: "5.00" } };
  const three = (gate) => sequence(gate, 3, () => visit(gate, "203.0.113.24"));

  const overridden = (env, act) => withDay({ ...capped, env, faulty: true }, act);

  for (const [env, want, by] of [
    [{ VISITOR_DAILY_CALLS: "2" }, { 200: 2, 429: 1 }, "daily"],
    [{ VISITOR_DAILY_CALLS: 2 }, { 200: 2, 429: 1 }, "daily"],
    [{ VISITOR_DAILY_CALLS: "0" }, { 429: 3 }, "daily"],
    [{ GLOBAL_DAILY_CALLS: "1" }, { 200: 1, 429: 2 }, "site"],
    [{ GLOBAL_DAILY_CALLS: "0" }, { 429: 3 }, "site"],
    [{ GLOBAL_DAILY_USD: "0" }, { 429: 3 }, "site"],
    [{ GLOBAL_DAILY_USD: "0.0005" }, { 200: 2, 429: 1 }, "site"],
    [{ VISITOR_DAILY_CALLS: " 50 ", GLOBAL_DAILY_CALLS: "100" }, { 200: 3 }],
  ]) {
    test(`${JSON.stringify(env)} holds`, () =>
      overridden(env, async (gate) => {
        const replies = await three(gate);
        assert.deepEqual(statuses(replies), want);
        const refused = replies.filter(({ status }) => status === 429);
        for (const reply of refused) {
          assert.equal(reply.header("x-tollgate-limited-by"), by);
          assert.equal(errorOf(reply).code, "insufficient_quota");
          // What no day would help announces no wait.
          const zero = Object.values(env).some((value) => Number(value) === 0);
          assert.equal(reply.header("retry-after"), zero ? undefined : "43200");
          assert.equal(reply.header("x-should-retry"), "false");
        }
      }));
  }

  for (const env of [
    ...["many", "", "-1", "1.5"].map((text) => ({ VISITOR_DAILY_CALLS: text })),
    { GLOBAL_DAILY_CALLS: "1e3" },
    ...["-1", "free"].map((text) => ({ GLOBAL_DAILY_USD: text })),
    { VISITOR_SECRET: "short" },
  ]) {
    test(`${JSON.stringify(env)} is a fault of the policy, not a default`, () =>
      overridden(env, async (gate) => {
        const health = await (await gate.worker.fetch("/healthz")).json();
        assert.equal(health.status, "policy_invalid");
        assert.ok(health.faults.some((fault) => fault.startsWith(Object.keys(env)[0])), health.faults.join());
        assert.equal((await gate.send(visit(gate, "203.0.113.24"))).status, 503);
        assert.equal(gate.upstream.calls.length, 0);
        assert.ok(!JSON.stringify(health).includes(VISITOR_SECRET));
      }));
  }
});
