// The module that the test runtime starts in place of build/index.js. It runs the very same build, and adds what only
// tests may do: set the clock, stand between the Worker and its objects, look into an object and damage it. All of it
// is reached through `Control`, an entrypoint with a socket of its own; a request to the Worker cannot get at it.
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
import Build, { UserLimiter as RustLimiter } from "./build/index.js";
import { clock } from "./clock.mjs";
import { standBeforeDatabase } from "./database.mjs";
import { Faults, standBetween } from "./faults.mjs";

const faults = new Faults();
const points = [];
const recorder = { writeDataPoint: (point) => points.push(point) };

export default {
  fetch(request, env, context) {
    const own = environmentOf(env, "worker");
    if (env.LIMITER) own.LIMITER = standBetween(env.LIMITER, faults);
    // The platform's local dataset keeps nothing that could be looked at.
    if (env.ANALYTICS) own.ANALYTICS = recorder;
    // A text in the place of the models is what they throw.
    if (typeof env.AI === "string") own.AI = { run: async () => Promise.reject(new Error(env.AI)) };
    return new Build(context, own).fetch(request);
  },
};

function environmentOf(env, who) {
  return env.LEDGER ? { ...env, LEDGER: standBeforeDatabase(env.LEDGER, faults, who) } : { ...env };
}

/** The Rust object behind a class that the platform's test tools and calls by name can reach. */
export class UserLimiter extends DurableObject {
  #object;

  constructor(context, env) {
    super(context, env);
    this.forget();
  }

  fetch(request) {
    return this.#object.fetch(request);
  }

  alarm() {
    return this.#object.alarm();
  }

  /** Drops everything that is in memory only, as the platform does when it moves or hibernates an object. */
  forget() {
    this.#object = new RustLimiter(stateOf(this.ctx), environmentOf(this.env, "object"));
  }

  /** Runs the alarm's handler now, whether one is armed or not. */
  async runAlarm() {
    await this.#object.alarm();
  }

  /** Every stored value by its key, and the moment for which the alarm is armed. */
  async look() {
    return { values: Object.fromEntries(this.ctx.storage.kv.list()), alarm: await alarmOf(this.ctx.storage) };
  }

  /** Puts a value in the place of what is stored under `key`, as an older build would have left it there. */
  write({ key, value }) {
    this.ctx.storage.kv.put(key, value);
    this.forget();
  }

  /** Puts the four bytes `null` in the place of every stored value; tells how many there were. */
  damage() {
    const keys = [...this.ctx.storage.kv.list()].map(([key]) => key);
    for (const key of keys) this.ctx.storage.kv.put(key, "null");
    this.forget();
    return keys.length;
  }
}

const armed = new WeakMap();

async function alarmOf(storage) {
  return armed.get(storage) ?? (await storage.getAlarm());
}

// Alarms ring on the platform's own clock. While the tests' clock stands elsewhere, a time that has passed on the
// platform's must not ring at once: it is kept for `look`, and the test runs the alarm itself.
function stateOf(context) {
  const { storage } = context;
  const kv = {
    get: (key) => storage.kv.get(key),
    put: (key, value) => {
      if (faults.take("storage", "put") === "fails") throw new Error("fault: the record was not written");
      faults.writes.records += 1;
      storage.kv.put(key, value);
    },
  };
  const setAlarm = async (at) => {
    faults.writes.alarms += 1;
    armed.set(storage, at);
    if (clock.isReal() || at > clock.platform() + 60_000) await storage.setAlarm(at);
  };
  const deleteAll = async () => {
    faults.writes.deletions += 1;
    armed.delete(storage);
    await storage.deleteAll();
  };
  return { storage: { kv, setAlarm, deleteAll } };
}

/** The tests' own door. */
export class Control extends WorkerEntrypoint {
  async fetch(request) {
    const { act, ...given } = await request.json();
    return Response.json((await this[act](given)) ?? null);
  }

  clock({ at }) {
    clock.set(at);
  }

  faults({ list }) {
    faults.set(list);
  }

  commands() {
    return faults.commands;
  }

  /** What was asked of the database, and how often objects wrote, since the faults were set. */
  counts() {
    return { statements: faults.statements, writes: faults.writes };
  }

  points() {
    return points;
  }

  /** Runs one statement over the ledger's database, past everything that stands in between. */
  async sql({ text, values }) {
    return (await this.env.LEDGER.prepare(text).bind(...values).all()).results;
  }

  /** Calls one of the object's methods above. */
  object({ subject, method, given }) {
    return this.env.LIMITER.getByName(subject)[method](given);
  }
}
