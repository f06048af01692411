// `npm start` as a person meets it: what it prints is pasted, `npm run usage` beside it shows what that came to, and
// Ctrl-C ends it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { STARTS } from "./local.mjs";
import { root } from "./setup.mjs";

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Something that was left running would hold its output open, and a test would not end. */
const BOUND = { timeout: 120_000 };

/** What a port's `npm start` keeps is of no use once the test is over, and would be the newest for `npm run usage`. */
function forget(port) {
  rmSync(join(STARTS, String(port)), { recursive: true, force: true });
}

/** Starts the command; `said` is all that it has printed, and `says` waits for something in it. */
function start(port) {
  const child = spawn(process.execPath, [join(root, "tests", "tools", "start.mjs")], {
    env: { ...process.env, PORT: String(port), LLM_API_BASE: "" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const started = { child, said: "", ended: once(child, "close") };
  const listeners = new Set();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      started.said += text;
      for (const listener of listeners) listener();
    });
  }
  started.says = async (pattern) => {
    const found = new Promise((resolve) => {
      const look = () => pattern.test(started.said) && resolve(started.said.match(pattern));
      listeners.add(look);
      look();
    });
    const ended = started.ended.then(() => assert.fail(`it ended without saying ${pattern}:\n${started.said}`));
    return Promise.race([found, ended]);
  };
  return started;
}

function refused(port) {
  return fetch(`http://127.0.0.1:${port}/healthz`).then(
    () => false,
    () => true,
  );
}

/** What a program prints. */
async function printed(program, args, env = {}) {
  const options = { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] };
  const child = spawn(program, args, options);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (part) => (output += part));
  await once(child, "close");
  return output;
}

/** Runs the loop of curl that was printed. */
const paste = (text) => printed("sh", ["-c", text]);

/** The status of a call, once it is no longer told to wait. */
async function called(port, key, path, body) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  for (;;) {
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    await reply.arrayBuffer();
    if (reply.status !== 429) return reply.status;
    await wait(Number(reply.headers.get("retry-after-ms")));
  }
}

/** The rows of `npm run usage` by their key. */
async function usage(port) {
  const output = await printed("npm", ["run", "--silent", "usage"], { PORT: String(port) });
  const [{ results }] = JSON.parse(output.slice(output.indexOf("\n[\n")));
  return Object.fromEntries(results.map(({ key, ...row }) => [key, row]));
}

test("the printed loop turns from 200 to 429, says when to come back, and nothing is left running", BOUND, async (t) => {
  const port = await freePort();
  t.after(() => forget(port));
  const started = start(port);
  await started.says(/Ctrl-C ends it/);
  const [loop] = started.said.match(/for i in[\s\S]*?done$/m);

  const output = await paste(loop);
  const statuses = output.match(/(?<=^HTTP\/1.1 )\d+/gm);
  assert.deepEqual(statuses.slice(0, 6), ["200", "200", "200", "200", "200", "429"], output);
  const waits = output.match(/(?<=^retry-after-ms: )\d+/gim).map(Number);

  await wait(waits.at(-1));
  assert.match(await paste(loop), /^HTTP\/1.1 200 /);

  const [, key] = started.said.match(/demo key\s+(\S+)/);
  const message = { model: "claude-demo", max_tokens: 20, messages: [{ role: "user", content: "Hi" }] };
  assert.equal(await called(port, key, "/v1/messages", message), 200);
  assert.equal(await called(port, key, "/v1/responses", { model: "demo", input: "Hi" }), 200);
  assert.equal(await called(port, key, "/v1/embeddings", { model: "demo", input: "Hi" }), 200);

  const { "user:demo": demo, "*": site } = await usage(port);
  assert.equal(demo.plan, "demo");
  assert.ok(demo.calls >= 6, JSON.stringify(demo));
  assert.equal(site.calls, demo.calls);

  started.child.kill("SIGINT");
  assert.deepEqual(await started.ended, [0, null]);
  assert.ok(await refused(port));
});

test("a port that is taken is said in one line", BOUND, async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address();
  const started = start(port);
  const [code] = await started.ended;
  taken.close();
  assert.equal(code, 1);
  assert.match(started.said, new RegExp(`port ${port} is taken`));
});

for (const signal of ["SIGTERM", "SIGHUP"]) {
  test(`${signal} while it is still starting leaves nothing running`, BOUND, async (t) => {
    const port = await freePort();
    t.after(() => forget(port));
    const started = start(port);
    await started.says(/starting wrangler/);
    started.child.kill(signal);
    await started.ended;
    assert.ok(await refused(port));
  });
}
