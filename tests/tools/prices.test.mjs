// What `npm run prices` takes over of a price file, and what it refuses.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { TABLE, dollars, parse, scaled, shown, text, update } from "./prices.mjs";
import { root } from "./setup.mjs";

const TODAY = "2031-01-15";
const HEAD = { version: "2030-01-01", source: "a file", aliases: { first: "alpha" } };
const CHAT = '"litellm_provider": "openai", "mode": "chat"';
const ALPHA = `${CHAT}, "input_cost_per_token": 1.5e-07, "output_cost_per_token": 6e-7`;

/** A file of models, each written as the members of its object. */
function fileOf(models) {
  const entries = Object.entries(models).map(([name, members]) => `"${name}": {${members}}`);
  return parse(`{${entries.join(", ")}}`);
}

/** What becomes of `alpha`, in a table where it is `old`, if the file writes it so. */
function taken(members, old = { input: "0.15", output: "0.6" }, options = {}) {
  const updated = update({ ...HEAD, models: { alpha: old } }, fileOf({ alpha: members }), { today: TODAY, ...options });
  return { ...updated, model: updated.table.models.alpha };
}

/** What a model is when it is added. */
function added(members, source = "alpha") {
  const file = fileOf({ [source]: members });
  const { table, refusals } = update({ ...HEAD, models: {} }, file, { add: [source], today: TODAY });
  assert.deepEqual(refusals, []);
  return table.models;
}

/** A folder that is gone when the test is over. */
function folderOf(t) {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

test("a number's text is exact: no float comes near it", () => {
  for (const [number, million] of [
    ["1.5e-07", "0.15"],
    ["0.00000015", "0.15"],
    ["2.5E-8", "0.025"],
    ["1.1e-06", "1.1"],
    ["0.0006", "600"],
    ["1e+1", "10000000"],
    ["0.0", "0"],
    // Finer than a billionth of a dollar: never less than the price.
    ["1.234567890000001e-7", "0.123456790"],
  ]) {
    assert.equal(dollars(scaled(number, 15)), million.replace(/(\.\d*?)0+$/, "$1"), number);
  }
  assert.equal(dollars(scaled("0.0001", 9, 60n)), "0.006");
  assert.deepEqual(parse('{"a": {"b": 1.10, "c": "2", "d": "x\\"3"}}').a, { b: { number: "1.10" }, c: "2", d: 'x"3' });
  for (const wrong of ["", "{", "[1]", "null", "5", '{"a": 01}', '{"a": 1.}']) assert.throws(() => parse(wrong), wrong);
});

test("each price of a file has its field", () => {
  const members = `${ALPHA}, "cache_read_input_token_cost": 1.5e-8, "cache_creation_input_token_cost": 2e-7,
    "cache_creation_input_token_cost_above_1hr": 4e-7, "input_cost_per_audio_token": 1e-6,
    "input_cost_per_image_token": 2e-6, "output_cost_per_reasoning_token": 3e-6, "output_cost_per_audio_token": 4e-6,
    "output_cost_per_image_token": 5e-6, "input_cost_per_character": 1.5e-5, "input_cost_per_second": 1,
    "input_cost_per_request": 0.005, "max_input_tokens": 272000, "max_output_tokens": 128000,
    "search_context_cost_per_query": {"search_context_size_low": 0.01, "search_context_size_high": 0.025}`;
  assert.deepEqual(added(members).alpha, {
    input: "0.15",
    cached_input: "0.015",
    cache_write: "0.2",
    cache_write_long: "0.4",
    audio_input: "1",
    image_input: "2",
    output: "0.6",
    reasoning: "3",
    audio_output: "4",
    image_output: "5",
    per_million_characters: "15",
    per_call: "0.005",
    per_tool_call: "0.025",
    max_output: 128000,
    context: 272000,
  });
});

test("what is sold by the minute or the image has no price for tokens", () => {
  const sound = '"litellm_provider": "groq", "mode": "audio_transcription", "input_cost_per_second": 3.083e-05';
  const whisper = { upstream: "groq", input: "0", output: "0", per_minute: "0.0018498" };
  assert.deepEqual(added(sound, "groq/whisper"), { whisper });
  const image = '"litellm_provider": "openai", "mode": "image_generation", "output_cost_per_image": 0.04';
  assert.deepEqual(added(image).alpha, { input: "0", output: "0", per_image: "0.04" });
  const tokens = `${image}, "input_cost_per_token": 5e-6, "output_cost_per_image_token": 3e-5`;
  assert.deepEqual(added(tokens).alpha, { input: "5", output: "30", image_output: "30" });
});

test("a tier and a step for long prompts cost what they do for the kind of token that they favour least", () => {
  const tiers = `"input_cost_per_token_flex": 7.5e-8, "output_cost_per_token_flex": 3e-7,
    "cache_read_input_token_cost": 2.5e-8, "cache_read_input_token_cost_flex": 1.3e-8,
    "input_cost_per_token_priority": 2.5e-7, "output_cost_per_token_priority": 1e-6,
    "input_cost_per_token_ultrafast": 9e-7`;
  const step = `"input_cost_per_token_above_272k_tokens": 3e-7, "output_cost_per_token_above_272k_tokens": 9e-7`;
  const { model } = taken(`${ALPHA}, ${tiers}, ${step}`);
  assert.equal(model.flex_percent, 52);
  assert.equal(model.priority_percent, 167);
  assert.equal(model.ultrafast_percent, undefined, "half a tier is none");
  assert.deepEqual(model.long_context, { above: 272000, input_percent: 200, output_percent: 150 });
  assert.equal(taken(`${ALPHA}, "provider_specific_entry": {"us": 1.1, "fast": 2.0}`).model.priority_percent, 200);
});

test("what is not a price stays, and what would be anyway is not written", () => {
  const old = { input: "0.15", output: "0.6", upstream: "default", image_tokens: 9, context: 5, encoding: "o200k" };
  const same = `${ALPHA}, "output_cost_per_reasoning_token": 6e-7, "cache_creation_input_token_cost": 0`;
  const { model, rows, table } = taken(`${same}, "max_input_tokens": 7`, old);
  assert.deepEqual([model, rows], [old, []]);
  assert.deepEqual([table.version, table.source, table.aliases], [TODAY, HEAD.source, HEAD.aliases]);
});

test("the difference is shown as a table", () => {
  const { rows, refusals } = taken(`${ALPHA}, "input_cost_per_request": 0.01`, { input: "0.2", output: "0.6" });
  assert.deepEqual(refusals, []);
  assert.deepEqual(shown(rows).split("\n"), [
    "model  field     old  new   change",
    "alpha  input     0.2  0.15  -25.0 %",
    "alpha  per_call  -    0.01",
  ]);
});

test("what looks wrong is refused, and taken over only for a model that is named", () => {
  const far = "is over ten times the old one, or under a tenth of it";
  const doubts = [
    [ALPHA, { input: "0.014", output: "0.6" }, `input ${far}`],
    [ALPHA, { input: "1.51", output: "0.6" }, `input ${far}`],
    [ALPHA, { input: "0", output: "0.6" }, `input ${far}`],
    [ALPHA, { input: "0.15", output: "0.6", cached_input: "0.1" }, "cached_input has no price any more"],
    [ALPHA, { input: "0.15", output: "0.6", flex_percent: 50 }, "flex_percent has no price any more"],
  ];
  for (const [members, old, why] of doubts) {
    const refusal = `alpha: ${why} (--accept alpha lets it be)`;
    assert.deepEqual(taken(members, old).refusals, [refusal]);
    const accepted = taken(members, old, { accept: ["alpha"] });
    assert.deepEqual([accepted.refusals, accepted.model], [[], { input: "0.15", output: "0.6" }]);
  }
  for (const close of [{ input: "0.015", output: "0.6" }, { input: "1.5", output: "6" }]) {
    assert.deepEqual(taken(ALPHA, close).refusals, []);
  }
  const table = { ...HEAD, models: { alpha: { input: "1" } } };
  const gone = (options) => update(table, fileOf({}), { today: TODAY, ...options });
  assert.deepEqual(gone({}).refusals, ["alpha: the file does not have it any more (--accept alpha lets it be)"]);
  assert.deepEqual(gone({ accept: ["alpha"] }).table.models.alpha, { input: "1" });
  assert.match(gone({ accept: ["beta"] }).refusals[1], /^--accept beta: the table has no such model$/);
});

test("what is no price at all is refused whoever is named", () => {
  const price = (members) => taken(members, undefined, { accept: ["alpha"] }).refusals;
  const wrong = (value, got) => {
    const members = `${CHAT}, "input_cost_per_token": ${value}, "output_cost_per_token": 6e-7`;
    assert.deepEqual(price(members), [`alpha: input_cost_per_token is ${got}`]);
  };
  wrong('"1e-7"', '"1e-7", want a number');
  wrong("true", "true, want a number");
  wrong("-1e-7", "-1e-7, want at least 0");
  const nothing = ["alpha: it has no price", "alpha: output has no price any more"];
  assert.deepEqual(price(`${CHAT}, "input_cost_per_token": 1e-7`), nothing);
  const cached = `${ALPHA}, "cache_read_input_token_cost": 2e-7`;
  assert.deepEqual(price(cached), ["alpha: what is cached costs more than what is not"]);
  const unknown = { add: ["a", "b"], today: TODAY };
  const { refusals } = update({ ...HEAD, models: {} }, fileOf({ a: '"mode": "chat"' }), unknown);
  assert.deepEqual(refusals.map((refusal) => refusal.slice(0, 40)), [
    "--add a: the file has no such model of o",
    "--add b: the file has no such model of o",
  ]);
});

test("the shipped table is as the command writes it", () => {
  assert.equal(text(JSON.parse(readFileSync(TABLE, "utf8"))), readFileSync(TABLE, "utf8"));
});

test("nothing is written without --write, nor where anything is refused, nor of what is no price file", async (t) => {
  const folder = folderOf(t);
  const [table, from] = [join(folder, "table.json"), join(folder, "file.json")];
  const before = text({ ...HEAD, models: { alpha: { input: "0.2", output: "0.6" } } });
  writeFileSync(table, before);
  const command = async (source, ...more) => {
    const args = ["run", "--silent", "prices", "--", "--table", table, "--from", source, ...more];
    const ended = promisify(execFile)("npm", args, { cwd: root });
    const { code = 0, stdout, stderr } = await ended.catch((failed) => failed);
    return { code, stdout, stderr, written: readFileSync(table, "utf8") };
  };
  const server = createServer((request, response) => {
    response.statusCode = request.url === "/prices" ? 200 : 404;
    response.end(`{"alpha": {${ALPHA}}, "beta": {${ALPHA}}}`);
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  t.after(() => server.close());
  const url = `http://127.0.0.1:${server.address().port}`;

  for (const [source, said] of [
    [`${url}/gone`, /^✗ --from http:.*\/gone: HTTP 404$/m],
    [table.replace("table", "none"), /^✗ --from .*ENOENT/m],
    [join(root, "README.md"), /^✗ --from .*README\.md: .*JSON/m],
  ]) {
    const { code, stderr, written } = await command(source, "--write");
    assert.deepEqual([code, written], [1, before]);
    assert.match(stderr, said);
  }
  writeFileSync(from, `{"alpha": {${ALPHA.replace("1.5e-07", "1.5e-09")}}}`);
  const refused = await command(from, "--write");
  assert.deepEqual([refused.code, refused.written], [1, before]);
  assert.match(refused.stderr, /alpha: input is over ten times/);

  const looked = await command(`${url}/prices`);
  assert.deepEqual([looked.code, looked.written], [0, before]);
  assert.match(looked.stdout, /^alpha +input +0\.2 +0\.15 +-25\.0 %$/m);

  const { code, written } = await command(`${url}/prices`, "--add", "beta", "--write");
  const model = { input: "0.15", output: "0.6" };
  const today = new Date().toISOString().slice(0, 10);
  const expected = { ...HEAD, version: today, models: { alpha: model, beta: model } };
  assert.deepEqual([code, JSON.parse(written)], [0, expected]);
});
