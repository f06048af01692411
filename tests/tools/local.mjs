// The policy for `npm start`: wrangler.toml as it is shipped, plus one plan, its key, and the stand-in's models. It is
// written as a wrangler file of its own below .wrangler/, so that nothing of it can be deployed by accident.
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { CLAUDE, MODELS } from "../standin/standin.mjs";
import { TABLE } from "./prices.mjs";
import { root } from "./setup.mjs";

/** Every port has a folder here, with the wrangler file and the state that `npm start` keeps. */
export const STARTS = join(root, ".wrangler", "start");
export const CONFIG = "wrangler.json";

/** Small enough to be seen at once: five calls, then one every two seconds. For a real upstream also a dime an hour. */
const PLAN = {
  models: ["*"],
  output_default: 256,
  limits: {
    calls: { unit: "requests", burst: 5, refill: 30, per: "minute" },
    money: { unit: "usd", burst: "0.10", refill: "0.10", per: "hour" },
  },
};
const PRICE = { input: "1.00", output: "2.00", max_output: 4_096 };

/** wrangler.toml as an object, read by wrangler itself, which needs its own Node.js. */
function shipped({ node }) {
  const code = `
    import { experimental_readRawConfig as read } from "wrangler";
    process.stdout.write(JSON.stringify(read({ config: "wrangler.toml" }).rawConfig));`;
  return JSON.parse(execFileSync(node, ["--input-type=module", "-e", code], { cwd: root, encoding: "utf8" }));
}

/** A model to try at a real upstream, where it costs real money. */
function cheapest(models) {
  const shipped = JSON.parse(readFileSync(TABLE, "utf8")).models;
  const names = Object.keys({ ...shipped, ...models });
  const priced = names.map((name) => ({ name, ...shipped[name], ...models[name] }));
  const writing = priced.filter(({ upstream, max_output }) => upstream === undefined && max_output > 0);
  return writing.sort((one, other) => one.output - other.output)[0]?.name;
}

const each = (table, change) => Object.fromEntries(Object.entries(table).map(([name, of]) => [name, change(of)]));

/**
 * The policy's tables with the plan. If the stand-in is the upstream, all calls are sent there. In front of a real one
 * there are no visitors: any web page can make a browser on this machine send a call without a key, and that would be
 * paid for.
 */
function localVars(vars, { base, standin }) {
  const shared = { ...vars, LLM_API_BASE: base, PLANS: { ...vars.PLANS, demo: PLAN } };
  const { visitors: _none, ...policy } = vars.POLICY;
  if (!standin) return { ...shared, POLICY: policy };
  const visitor = { ...vars.PLANS.visitor, models: [...vars.PLANS.visitor.models, ...Object.keys(MODELS)] };
  const to = { base_url: base, secret: "LLM_API_KEY" };
  const upstreams = each(vars.UPSTREAMS, (upstream) => ({ ...upstream, ...to }));
  return {
    ...shared,
    PLANS: { ...shared.PLANS, visitor },
    MODELS: { ...vars.MODELS, ...each(MODELS, () => PRICE), [`${CLAUDE}demo`]: { ...PRICE, upstream: "anthropic" } },
    UPSTREAMS: { ...upstreams, anthropic: { ...to, kind: "anthropic" } },
  };
}

/**
 * Writes the wrangler file and returns its path and a model to try. `target` is the upstream: its address `base`, and
 * whether it is the stand-in.
 */
export function writeConfig(programs, folder, target) {
  const { env: _deployed, ...config } = shipped(programs);
  const vars = localVars(config.vars, target);
  const secrets = ["API_KEYS", "LLM_API_KEY", ...Object.values(vars.UPSTREAMS).map(({ secret }) => secret)];
  if (target.standin) secrets.push("VISITOR_SECRET");
  const local = {
    ...config,
    // The file lies elsewhere, so what it names by path is named from the top.
    main: resolve(root, config.main),
    build: { ...config.build, cwd: root, watch_dir: join(root, "src") },
    vars,
    d1_databases: config.d1_databases.map((database) => ({
      ...database,
      migrations_dir: resolve(root, database.migrations_dir),
    })),
    // With this, wrangler takes exactly these from its environment: no secret is in a file or a list of processes.
    secrets: { required: [...new Set(secrets.filter(Boolean))] },
  };
  mkdirSync(folder, { recursive: true });
  const path = join(folder, CONFIG);
  writeFileSync(path, JSON.stringify(local, null, 2));
  return { path, model: target.standin ? "demo" : cheapest(vars.MODELS) };
}

/**
 * A key for this run, and the secrets that make it one. It is made anew each time, because the upstream behind it may
 * be a real one, where a key that everybody knows would be a way to somebody's money. Its user is always the same, so
 * what was spent before a restart stays spent.
 */
export function demoKey({ key: upstreamKey, standin }) {
  const key = `tg-${randomBytes(16).toString("hex")}`;
  const digest = createHash("sha256").update(key).digest("hex");
  const keys = { [digest]: { user: "demo", plan: "demo" } };
  const secrets = { API_KEYS: JSON.stringify(keys), LLM_API_KEY: upstreamKey };
  // Visitors of this machine only, so there is nothing to keep from anybody; the same at every start, so that what a
  // visitor has used stays used.
  if (standin) secrets.VISITOR_SECRET = "visitors of npm start, on one machine";
  return { key, secrets };
}

/** The environment for wrangler: ours, with the secrets, and without what would change the policy behind our back. */
export function environment(secrets) {
  const { LLM_API_BASE, POLICY, PLANS, MODELS: _models, UPSTREAMS, VISITOR_SECRET, CLOUDFLARE_ENV, ...rest } =
    process.env;
  return { WRANGLER_SEND_METRICS: "false", ...rest, ...secrets };
}
