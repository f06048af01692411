// What a case plays on: the Worker with the case's policy, its upstream, its callers and their balances.
import { LEDGER, start } from "../harness/worker.mjs";
import { OK, startUpstream } from "../harness/upstream.mjs";
import { evaluate, mentions } from "./expression.mjs";
import { unknown } from "./match.mjs";
import { callerOf, who } from "./callers.mjs";
import { dayOf, fillDay, tokenFor } from "./day.mjs";
import { CALLERS, CLOCK, GAUGE, GAUGE_BURST, KEYS, UPSTREAM_KEY, envOf } from "./policy.mjs";
import { headersOf, send } from "./sending.mjs";

const CONFIG = new Set(["limits", "policy", "upstream_base", "faults", "ledger"]);
const STATE = new Set(["level", "of", "at", "damaged", "day_counts", "site_calls"]);
const LEDGERS = new Set([undefined, "no-table", "no-binding"]);

export class Stage {
  /** E and RA, as far as they are known. */
  values = {};
  connections = [];

  /** Sets everything up, up to the moment before the first call. */
  static async of(written) {
    const stage = new Stage();
    stage.upstream = await startUpstream();
    stage.case = filled(written, stage.upstream.origin);
    stage.config = stage.case.config ?? {};
    unknown("config", stage.config, CONFIG);
    stage.caller = callerOf(stage.case.request);
    stage.clock = stage.case.clock ? Date.parse(stage.case.clock) : CLOCK;
    try {
      await stage.#open();
      return stage;
    } catch (fault) {
      await stage.close();
      throw fault;
    }
  }

  async #open() {
    const learning = mentions(this.case, "E") || JSON.stringify(this.case).includes('"hold":');
    // A limit that depends on E comes with a second deployment.
    const first = learning && mentions(this.config, "E") ? { ...this.config, limits: {} } : this.config;
    const { ledger } = this.config;
    if (!LEDGERS.has(ledger)) throw new Error(`config: unknown ledger ${ledger}`);
    const bindings = ledger === "no-binding" ? {} : { LEDGER };
    this.worker = await start({ env: this.#env(first), bindings, clock: this.clock });
    if (learning) await this.#learnHold();
    if (first !== this.config) await this.deploy();
    await this.#bringAbout(this.case.state ?? {});
    if (ledger === "no-table") await this.worker.sql("DROP TABLE ledger");
    if (this.config.faults) await this.worker.setFaults(this.config.faults);
  }

  #env(config) {
    const tokens = this.case.needs?.includes("visitor-tokens");
    return envOf(config, { planName: this.#plan(), upstream: this.upstream.origin, values: this.values, tokens });
  }

  /** The plan that the case's limits change: its caller's, or the usual one. */
  #plan() {
    return who(this.caller)?.plan ?? "standard";
  }

  /** Deploys the case's config with changes, over the same storage. */
  async deploy(changes = {}) {
    const { limits, policy } = changes;
    if (limits) this.config = { ...this.config, limits: { ...this.config.limits, ...limits } };
    if (policy !== undefined) this.config = { ...this.config, policy: policy && { ...this.config.policy, ...policy } };
    await this.worker.deploy(this.#env(this.config));
  }

  /** Deploys the baseline, so that balances can be read although the case's policy is refused. */
  async repair() {
    await this.worker.deploy(this.#env({}));
  }

  /** E: sent by the gauge, whose open hold is read while the upstream waits. */
  async #learnHold() {
    let seen;
    const step = async () => {
      seen = await this.balance(GAUGE);
    };
    await this.upstream.answerWith({ ...OK, wait_for_step: "read" }, { hooks: { step }, tag: "gauge" });
    const headers = headersOf(this.case.request).filter(([name]) => !/^(authorization|x-api-key|api-key)$/i.test(name));
    headers.push(["authorization", `Bearer ${GAUGE.key}`]);
    await send(this, { request: { ...this.case.request, headers } });
    if (seen?.holds !== 1) throw new Error("the hold of the case's request could not be learned");
    this.values.E = GAUGE_BURST - seen.left;
    await this.until(async () => (await this.balance(GAUGE)).holds === 0);
  }

  async #bringAbout(state) {
    unknown("state", state, STATE);
    await fillDay(this.worker, state);
    const { visitor_token: token } = this.case.request;
    if (token) this.token = await tokenFor(this.worker, token);
    if (state.damaged) {
      await this.#spend(0);
      const damaged = await this.worker.object(CALLERS[this.caller].subject).damage();
      if (damaged === 0) throw new Error("there was nothing to damage");
    }
    if (state.level === undefined) return;
    if (state.at) await this.worker.setClock(Date.parse(state.at));
    await this.#spend(evaluate(state.level, this.values), state.of);
    await this.worker.setClock(this.clock);
  }

  /** One call that leaves exactly `level` units (of 0: whatever it leaves), charged for its prompt alone. */
  async #spend(level, user = this.caller) {
    const { key } = CALLERS[user];
    const { full } = await this.balance(CALLERS[user]);
    const usage = { prompt_tokens: full - level, completion_tokens: 0, total_tokens: full - level };
    await this.upstream.answerWith({ ...OK, body: { ...OK.body, usage } }, { tag: "state" });
    const headers = [["authorization", `Bearer ${key}`], ["content-type", "application/json"]];
    const { replies } = await send(this, { request: { headers } });
    if (replies[0].status !== 200) throw new Error(`the state could not be brought about: ${replies[0].body}`);
    await this.until(async () => {
      const { left, holds } = await this.balance(CALLERS[user]);
      return left === level && holds === 0;
    });
  }

  /** What a caller has left of `budget`, in units, as the usage call shows it; null where that is refused. */
  async balance({ key, address }) {
    const headers = key ? { authorization: `Bearer ${key}` } : { "cf-connecting-ip": address };
    const reply = await this.worker.fetch("/v1/usage", { headers });
    const usage = await reply.json();
    if (reply.status !== 200) return null;
    const { left, limit } = usage.limits.find(({ name }) => name === "budget");
    return { left: left / 1_000, full: limit / 1_000, holds: usage.open_holds, at: usage.at_ms };
  }

  /** Of every known caller, and of a visitor who is the case's caller. */
  async balances() {
    const users = [...new Set([...Object.keys(CALLERS), this.caller])].filter(who);
    const read = await Promise.all(users.map((user) => this.balance(who(user))));
    return Object.fromEntries(users.map((user, place) => [user, read[place]]));
  }

  /** Admitted calls by row of the ledger, on the day of the Worker's clock; null where there is no table. */
  async day() {
    return this.config.ledger ? null : dayOf(this.worker);
  }

  /** What a case has taken away is there again, so that balances can be read. */
  async restoreLedger() {
    if (this.config.ledger === "no-table") await this.worker.migrate();
  }

  /** What the case's bucket gains in a millisecond, in units. */
  get refillPerMs() {
    return evaluate(this.config.limits?.budget?.refill_per_s ?? 10, this.values) / 1_000;
  }

  /** Waits until something holds; the time is real. */
  async until(holds, withinMs = 5_000) {
    const end = performance.now() + withinMs;
    while (!(await holds())) {
      if (performance.now() > end) return false;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return true;
  }

  async close() {
    for (const connection of this.connections) connection.close();
    await this.worker?.stop();
    await this.upstream.close();
  }
}

/** The case with its placeholders filled in. */
function filled(written, upstream) {
  const names = { ...KEYS, UPSTREAM_KEY, upstream };
  const text = JSON.stringify(written).replaceAll(/\{\{(\w+)\}\}/g, (_, name) => {
    if (names[name] === undefined) throw new Error(`placeholder: unknown ${name}`);
    return names[name];
  });
  return JSON.parse(text);
}
