// Where a caller's object is made: near the caller, unless the policy says where.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Gate, plan, stock, subjectOf } from "./support/gate.mjs";

const PLACES = [
  [{ continent: "NA", longitude: "-122.4", country: "US" }, "wnam"],
  [{ continent: "NA", longitude: "-74.0", country: "US" }, "enam"],
  [{ continent: "EU", longitude: "2.3", country: "FR" }, "weur"],
  [{ continent: "EU", longitude: "30.5", country: "UA" }, "eeur"],
  [{ continent: "AS", longitude: "46.7", country: "SA" }, "me"],
  [{ continent: "AS", longitude: "139.7", country: "JP" }, "apac"],
  [{ continent: "OC", longitude: "151.2", country: "AU" }, "oc"],
  [{ continent: "AF", country: "KE" }, "afr"],
  [{ continent: "SA", country: "BR" }, "sam"],
  [{ continent: "AN" }, undefined],
  [{}, undefined],
];

const POLICY = { plans: { stock: plan({ calls: stock("requests", 1_000) }) }, callers: { ann: "stock", ben: "stock" } };

/** A call that came in at a place, as the platform describes it; what was asked of objects meanwhile. */
async function callFrom(gate, place, name = "ann") {
  await gate.worker.setFaults([]);
  const request = gate.request(name, { path: "/v1/usage", headers: [["mf-cf-blob", JSON.stringify(place)]] });
  assert.equal((await gate.send(request)).status, 200);
  return gate.worker.commands();
}

describe("the object of a caller", () => {
  let gate;

  before(async () => {
    gate = await Gate.start(POLICY);
  });

  after(() => gate.stop());

  test("is made where the call came in", async () => {
    for (const [place, hint] of PLACES) {
      const [command] = await callFrom(gate, place);
      assert.equal(command.options.locationHint, hint, JSON.stringify(place));
      assert.equal(command.jurisdiction, undefined);
    }
  });

  test("is one for all of a user's calls, wherever they come from", async () => {
    const names = new Set();
    for (const [place] of PLACES) for (const { name } of await callFrom(gate, place, "ben")) names.add(name);
    assert.deepEqual([...names], [subjectOf("ben")]);
  });

  test("is made with the same hint by every command of a call", async () => {
    const headers = [["mf-cf-blob", '{"continent":"OC"}'], ["content-type", "application/json"]];
    const body = { model: "alpha", messages: [{ role: "user", content: "Name three rivers." }] };
    await gate.worker.setFaults([]);
    const request = gate.request("ann", { method: "POST", path: "/v1/chat/completions", headers, body });
    await gate.record(await gate.send(request));
    const commands = await gate.worker.commands();
    const hints = commands.map(({ verb, options }) => [verb, options.locationHint]);
    assert.deepEqual(hints, [["reserve", "oc"], ["settle", "oc"]]);
  });
});

describe("a policy that says where objects are made", () => {
  let gate;

  before(async () => {
    gate = await Gate.start({ ...POLICY, placement: { location_hint: "apac" } });
  });

  after(() => gate.stop());

  test("overrides the place that the call came from", async () => {
    for (const [place] of PLACES) {
      const [command] = await callFrom(gate, place);
      assert.deepEqual(command.options, { locationHint: "apac" });
    }
  });

  test("pins every object to its jurisdiction, where objects of the same name are others", async () => {
    assert.equal((await gate.chat("ann")).status, 200);
    await gate.settled("ann");
    assert.equal(await gate.left("ann", "calls"), 999);
    await gate.worker.deploy(gate.env({ placement: { jurisdiction: "eu" } }));
    assert.equal(await gate.left("ann", "calls"), 1_000);
    const [command] = await callFrom(gate, { continent: "EU", longitude: "2.3" });
    assert.deepEqual([command.jurisdiction, command.options], ["eu", { locationHint: "weur" }]);
    await gate.worker.deploy(gate.env({ placement: { location_hint: "apac" } }));
    assert.equal(await gate.left("ann", "calls"), 999);
  });
});
