// Where `npm run usage` looks, and what `npm start` writes for it. That it shows what was used: start.test.mjs.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CONFIG, demoKey, writeConfig } from "./local.mjs";
import { root, setUpWrangler } from "./setup.mjs";
import { localConfig, place } from "./usage.mjs";

/** A folder that is gone when the test is over. */
function folderOf(t) {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

test("the local ledger is that of the port that was started last, or of the one that is named", (t) => {
  const starts = folderOf(t);
  assert.equal(localConfig(undefined, join(starts, "none")), undefined);
  for (const [port, seconds] of [["8788", 1_000], ["8787", 3_000], ["9000", 2_000]]) {
    mkdirSync(join(starts, port));
    writeFileSync(join(starts, port, CONFIG), "{}");
    utimesSync(join(starts, port, CONFIG), seconds, seconds);
  }
  // One whose start was broken off before it wrote anything.
  mkdirSync(join(starts, "9001"));
  assert.equal(localConfig(undefined, starts), join(starts, "8787", CONFIG));
  assert.equal(localConfig("8788", starts), join(starts, "8788", CONFIG));
  assert.equal(localConfig("9001", starts), undefined);
});

test("locally it is the state beside that file, with --remote what wrangler.toml names", () => {
  const config = join("somewhere", "8787", CONFIG);
  const state = join("somewhere", "8787", "state");
  assert.deepEqual(place({ config }).args, ["--local", "--config", config, "--persist-to", state]);
  assert.deepEqual(place({ remote: true }).args, ["--remote", "--config", join(root, "wrangler.toml")]);
});

test("where nothing was started, and where the number of days is none, one line says so", () => {
  const command = (args) =>
    spawnSync(process.execPath, [join("tests", "tools", "usage.mjs"), ...args], {
      cwd: root,
      encoding: "utf8",
      env: { ...process.env, PORT: "no port" },
    });
  const nowhere = command([]);
  assert.deepEqual([nowhere.status, nowhere.stderr.match(/\n/g).length], [1, 1]);
  assert.match(nowhere.stderr, /^✗ `npm start` has not run here on port no port yet/);
  for (const days of ["0", "a week", "1e3"]) {
    const { status, stderr } = command(["--days", days]);
    assert.equal(status, 1);
    assert.match(stderr, /^✗ --days: got ".*", want a whole number of at least 1\n$/);
  }
});

test("in front of a real upstream `npm start` knows no visitors: a web page could spend the money", (t) => {
  const [programs, folder] = [setUpWrangler(), folderOf(t)];
  const written = (target) => {
    const { path, model } = writeConfig(programs, folder, target);
    const { vars, secrets } = JSON.parse(readFileSync(path, "utf8"));
    const given = Object.keys(demoKey(target).secrets);
    return { model, visitors: vars.POLICY.visitors, required: secrets.required, given };
  };
  const standin = written({ base: "http://127.0.0.1:1", key: "k", standin: true });
  assert.equal(standin.visitors.plan, "visitor");
  assert.ok(standin.required.includes("VISITOR_SECRET") && standin.given.includes("VISITOR_SECRET"));
  const real = written({ base: "https://upstream.example/v1", key: "k", standin: false });
  assert.equal(real.visitors, undefined);
  // What is tried there is paid for.
  assert.deepEqual([standin.model, real.model], ["demo", "gpt-5-nano"]);
  assert.deepEqual([real.required, real.given], [["API_KEYS", "LLM_API_KEY"], ["API_KEYS", "LLM_API_KEY"]]);
});
