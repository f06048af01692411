// Playing one case from beginning to end.
import assert from "node:assert/strict";
import { OK } from "../harness/upstream.mjs";
import { faultsOf } from "./expectations.mjs";
import { evaluate } from "./expression.mjs";
import { unknown } from "./match.mjs";
import { CALLERS } from "./policy.mjs";
import { send } from "./sending.mjs";
import { Stage } from "./stage.mjs";

const CASE = new Set([
  "id", "kind", "source", "basis", "why", "changed", "needs", "clock", "config", "state", "request", "concurrency",
  "client", "upstream", "first_send", "steps", "expect",
]);
const STEP = new Set([
  "name", "during", "policy", "limits", "restart", "clock", "advance_ms", "alarm", "request", "repeat",
  "same_connection", "advance_after_ms", "upstream", "expect",
]);

export async function runCase(written) {
  unknown("case", written, CASE);
  const stage = await Stage.of(written);
  try {
    await new Run(stage).play();
  } finally {
    await stage.close();
  }
}

class Run {
  #stage;
  #case;
  #during = new Map();
  #connection;
  #sendings = 0;

  constructor(stage) {
    this.#stage = stage;
    this.#case = stage.case;
  }

  async play() {
    const { steps = [], first_send: first = true, request, client, concurrency, expect } = this.#case;
    for (const step of steps) unknown("step", step, STEP);
    if (first) {
      const sending = await this.#send({ request, client, concurrency }, this.#case.upstream);
      await Promise.all(this.#during.values());
      await this.#takeFaultsAway();
      await this.#check("the first sending", expect, sending);
    } else {
      unknown("expect without a sending", expect, new Set());
    }
    for (const step of steps.filter(({ during }) => !during)) await this.#step(step);
  }

  /** Sends under a tag of its own, so that the calls that reach the upstream are told apart. */
  async #send(what, script) {
    const stage = this.#stage;
    const tag = (this.#sendings += 1);
    const count = { arrived: 0, answered: 0, all: what.concurrency ?? 1 };
    const arrived = Promise.withResolvers();
    const look = () => {
      if (count.arrived + count.answered >= count.all) arrived.resolve();
    };
    let connection;
    const hooks = {
      step: (name) => this.#stepDuring(name),
      clientHas: (text) => connection.has(text),
      allArrived: () => {
        count.arrived += 1;
        look();
        return arrived.promise;
      },
    };
    const [before, day] = await Promise.all([stage.balances(), stage.day()]);
    await stage.upstream.answerWith(script ?? OK, { hooks, tag });
    const sending = await send(stage, {
      ...what,
      onOpen: (own) => (connection ??= own),
      onAnswer: () => {
        count.answered += 1;
        look();
      },
    });
    const waits = sending.replies.map((reply) => reply.header("retry-after-ms"));
    const wait = waits.findLast((value) => value !== undefined);
    if (wait !== undefined) stage.values.RA = Number(wait);
    const leavesHold = Boolean(what.client?.kill_worker_when ?? what.client?.stops_reading_after_event);
    return { ...sending, tag, before, day, script: script && scriptFor(script), leavesHold };
  }

  #stepDuring(name) {
    if (!this.#during.has(name)) {
      const step = this.#case.steps?.find((step) => step.during && step.name === name);
      if (!step) throw new Error(`no step is called ${name}`);
      this.#during.set(name, this.#step(step));
    }
    return this.#during.get(name);
  }

  async #step(step) {
    const { worker } = this.#stage;
    if (step.policy !== undefined || step.limits) await this.#stage.deploy(step);
    if (step.restart) await worker.restart();
    if (step.clock) await worker.setClock(Date.parse(step.clock));
    if (step.advance_ms !== undefined) await worker.advance(evaluate(step.advance_ms, this.#stage.values));
    for (let time = 0; time < (step.alarm ?? 0); time += 1) {
      await worker.object(CALLERS[this.#stage.caller].subject).alarm();
    }
    const sending = step.request ? await this.#stepSend(step) : { replies: [], endedAt: performance.now() };
    if (step.expect) await this.#check(`step ${step.name ?? this.#case.steps.indexOf(step) + 1}`, step.expect, sending);
  }

  #stepSend(step) {
    const request = step.request === "same" ? this.#case.request : step.request;
    const pause = step.advance_after_ms;
    return this.#send(
      {
        request,
        repeat: step.repeat,
        connection: step.same_connection ? this.#connection : undefined,
        afterEach: pause && (() => this.#stage.worker.advance(evaluate(pause, this.#stage.values))),
      },
      step.upstream ?? this.#case.upstream,
    );
  }

  /** Balances are read without faults; but one that a settlement is to meet must have met it. */
  async #takeFaultsAway() {
    await this.#stage.restoreLedger();
    const faults = this.#stage.config.faults;
    if (!faults) return;
    const due = faults.reduce((sum, { times = 1 }) => sum + (times === "always" ? 1 : times), 0);
    const { worker } = this.#stage;
    const met = async () => {
      const asked = [...(await worker.commands()), ...(await worker.counts()).statements];
      return asked.filter(({ effect }) => effect).length >= due;
    };
    assert.ok(await this.#stage.until(met), "a fault of the case was never met");
    await worker.setFaults([]);
  }

  async #check(where, expect, sending) {
    this.#connection ??= sending.connection;
    const faults = await faultsOf(this.#stage, expect, sending);
    if (this.#stage.upstream.fault) faults.push(`the upstream: ${this.#stage.upstream.fault.message}`);
    if (!this.#case.upstream && !sending.script) {
      const strays = this.#stage.upstream.calls.filter(({ tag }) => tag === sending.tag).length;
      if (strays > 0) faults.push(`${strays} calls reached an upstream that nothing may reach`);
    }
    if (faults.length === 0) return;
    const reply = sending.replies[0];
    const head = reply && `${reply.status} ${JSON.stringify(reply.headers)}`;
    const shown = reply && `\n  reply: ${head}\n  ${reply.body.subarray(0, 600)}`;
    const log = this.#stage.worker.lines.filter((line) => !line.includes('"route":"/v1/usage"')).slice(-6).join("\n  ");
    assert.fail(`${where}:\n- ${faults.join("\n- ")}${shown ?? ""}\n  log:\n  ${log}`);
  }
}

/** What the first attempt that can answer gets; nothing where none can. */
function scriptFor(script) {
  return script.sequence ? script.sequence.at(-1) : script;
}
