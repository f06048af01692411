// `npm start`: Tollgate under wrangler on this machine, in front of the stand-in upstream, with a key to try it.
//   PORT=8788 npm start                                    another port
//   LLM_API_BASE=https://… LLM_API_KEY=… npm start         in front of a real upstream
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { watchFile } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { MODELS, startStandin } from "../standin/standin.mjs";
import { build } from "./build.mjs";
import { STARTS, demoKey, environment, writeConfig } from "./local.mjs";
import { fail, root, run, setUp, step } from "./setup.mjs";

const READY_WITHIN_MS = 60_000;
const STOPPED_WITHIN_MS = 5_000;

function chosenPort() {
  const text = process.env.PORT || "8787";
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) fail(`PORT: not a port, got "${text}", want 1 to 65535`);
  return port;
}

async function requireFree(port) {
  const probe = createServer().listen(port, "127.0.0.1");
  try {
    await once(probe, "listening");
  } catch (error) {
    if (error.code === "EACCES") fail(`port ${port} may not be opened by you; choose another: PORT=8788 npm start`);
    fail(`port ${port} is taken, perhaps by another \`npm start\`; end that, or choose another: PORT=8788 npm start`);
  }
  probe.close();
}

/** The upstream that the environment names, or else our stand-in. */
async function upstream() {
  const { LLM_API_BASE: base, LLM_API_KEY: key } = process.env;
  if (!base) {
    const own = randomBytes(16).toString("hex");
    return { standin: true, key: own, ...(await startStandin({ key: own })) };
  }
  if (!key) fail("LLM_API_BASE names an upstream, so LLM_API_KEY must hold your key for it");
  return { standin: false, key, base };
}

/** Starts wrangler as the leader of a group of processes, so that all of them can be ended together. */
function startWrangler({ node, wrangler }, config, port, folder, secrets) {
  const address = ["--ip", "127.0.0.1", "--port", String(port)];
  const state = ["--persist-to", join(folder, "state")];
  const args = [wrangler, "dev", "--local", "--config", config, ...address, ...state];
  return spawn(node, [...args, "--show-interactive-dev-session=false"], {
    cwd: root,
    env: environment(secrets),
    stdio: ["ignore", "inherit", "inherit"],
    detached: true,
  });
}

/** Applies the migrations to the local database. */
function makeLedger({ node, wrangler }, config, folder) {
  const where = ["--local", "--config", config, "--persist-to", join(folder, "state")];
  const apply = [wrangler, "d1", "migrations", "apply", "LEDGER", ...where];
  run(node, apply, { env: environment({ CI: "true" }), stdio: ["ignore", "ignore", "inherit"] });
}

function signalGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

async function stop(child, standin) {
  const gone = child.exitCode !== null || child.signalCode !== null || once(child, "exit");
  if (gone instanceof Promise) child.kill("SIGTERM");
  await Promise.race([gone, wait(STOPPED_WITHIN_MS, undefined, { ref: false })]);
  // Whoever is left of the group had its chance.
  signalGroup(child, "SIGKILL");
  await standin?.stop?.();
}

/** Waits until the Worker says that it is well; what is wrong with its policy is said in its answer. */
async function ready(child, origin) {
  const until = Date.now() + READY_WITHIN_MS;
  while (child.exitCode === null && child.signalCode === null && Date.now() < until) {
    const answer = await fetch(`${origin}/healthz`, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
    if (answer?.ok) return undefined;
    if (answer) return `the Worker is not well: ${answer.status} ${await answer.text()}`;
    await wait(100);
  }
  return "wrangler did not come up; what it said is above";
}

/** Takes over what is changed in wrangler.toml; wrangler sees the new file and starts the Worker anew. */
function follow(programs, folder, target) {
  watchFile(join(root, "wrangler.toml"), { interval: 500, persistent: false }, () => {
    try {
      writeConfig(programs, folder, target);
      step("wrangler.toml has changed");
    } catch {
      step("wrangler.toml has changed and cannot be read; the policy stays as it was");
    }
  });
}

function greet(origin, key, { standin, base }, model) {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] });
  const lines = [
    "",
    `Tollgate is at ${origin} in front of ${standin ? "the stand-in upstream" : base}.`,
    "",
    `  demo key  ${key}`,
    "",
    "Paste this to see 200 turn into 429: five calls at once, then one every two seconds.",
    "",
    `  for i in 1 2 3 4 5 6 7; do curl -si ${origin}/v1/chat/completions \\`,
    `    -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\`,
    `    -d '${body}' | grep -iE '^(http|retry-after)'; done`,
    "",
  ];
  if (standin) {
    lines.push("The stand-in does as the model's name says:", "");
    lines.push(...Object.entries(MODELS).map(([name, { says }]) => `  ${name.padEnd(14)} ${says}`), "");
    lines.push("It has /v1/responses, /v1/completions and /v1/embeddings too, and /v1/messages for `claude-demo`.", "");
  }
  console.log([...lines, "Ctrl-C ends it.", ""].join("\n"));
}

const port = chosenPort();
await requireFree(port);
const programs = setUp();
build(programs);
const origin = `http://127.0.0.1:${port}`;
const target = await upstream();
const folder = join(STARTS, String(port));
const { path, model } = writeConfig(programs, folder, target);
const { key, secrets } = demoKey(target);
step("making the ledger's database");
makeLedger(programs, path, folder);

let stopping;
const end = (code) => (stopping ??= stop(child, target).then(() => process.exit(code)));
// Listened for before there is a wrangler: a signal in between would end this program alone. None is heard until this
// text has been run, and then there is one.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => end(0));
step("starting wrangler");
const child = startWrangler(programs, path, port, folder, secrets);
process.on("exit", () => signalGroup(child, "SIGKILL"));
child.on("error", (error) => fail(`wrangler could not be started: ${error.message}`));
child.on("exit", (code) => end(code || 1));

const trouble = await ready(child, origin);
if (trouble && !stopping) {
  console.error(`✗ ${trouble}`);
  await end(1);
}
if (!stopping) {
  follow(programs, folder, target);
  greet(origin, key, target, model);
}
