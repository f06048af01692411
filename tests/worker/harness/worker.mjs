// The Worker under test: start it, move its clock, kill it, look into its objects, read its log.
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Runtime } from "./runtime.mjs";

// Every write of an object waits for the disk, so a disk in memory is several times faster.
function storageRoot() {
  const memory = "/dev/shm";
  return statSync(memory, { throwIfNoEntry: false })?.isDirectory() ? memory : tmpdir();
}

const folders = new Set();
// A test that ends early must not leave its storage in memory.
process.once("exit", () => folders.forEach(remove));

function newFolder() {
  const folder = mkdtempSync(join(storageRoot(), "tollgate-test-"));
  folders.add(folder);
  return folder;
}

function remove(folder) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  folders.delete(folder);
}

/** The binding of the platform's models: its own code, over the origin that is given to `start` as `remote`. */
export const MODELS = { type: "ai", dev: { remote: true } };

/** The binding of the day's ledger. A Worker that is started with it finds its table there. */
export const LEDGER = { type: "d1", id: "ledger" };

const migrations = join(import.meta.dirname, "..", "..", "..", "src", "edge", "migrations");

/** The statements of all migrations, in their order. */
function schema() {
  const texts = readdirSync(migrations).sort().map((name) => readFileSync(join(migrations, name), "utf8"));
  return texts.flatMap((text) => text.split(/;\s*$/m)).filter((text) => text.trim());
}

/**
 * Starts the Worker on empty storage. `env` holds variables (tables as objects) and secrets; `bindings` further
 * bindings as Miniflare spells them, null for one that is to be missing; `remote` is the origin of what stands for the
 * platform behind remote ones; `clock` is where its time stands still, in milliseconds (absent: the platform's own clock
 * runs).
 */
export async function start({ env, bindings = {}, remote, clock = null }) {
  const worker = new Worker({ env, bindings, remote }, clock);
  await worker.deploy();
  return worker;
}

class Worker {
  #runtime;
  #deployed;
  #clock;
  #storage = newFolder();
  #faults = [];
  /** Everything that was written to the log, line by line. */
  lines = [];

  constructor(deployed, clock) {
    this.#deployed = deployed;
    this.#clock = clock;
  }

  /** The Worker's origin. It changes with every restart. */
  get url() {
    return this.#runtime.url;
  }

  fetch(path, init) {
    return fetch(new URL(path, this.url), init);
  }

  /** The records of the calls that have ended, oldest first. */
  get calls() {
    return this.lines.filter((line) => line.startsWith('{"id":')).map((line) => JSON.parse(line));
  }

  /** Runs with other variables from now on, over the same storage. Without any, starts again with the same. */
  async deploy(env = this.#deployed.env) {
    this.#deployed.env = env;
    await this.#runtime?.stop();
    const migrated = this.#runtime !== undefined;
    this.#runtime = await Runtime.start({
      ...this.#deployed,
      storage: this.#storage,
      onLine: ({ message }) => this.lines.push(...message.split("\n")),
    });
    if (this.#deployed.bindings.LEDGER && !migrated) await this.migrate();
    await this.setClock(this.#clock);
    if (this.#faults.length > 0) await this.setFaults(this.#faults);
  }

  /** Kills workerd in the middle of whatever it does, and starts it again on the same storage. */
  async restart() {
    await this.#runtime.kill();
    await this.deploy();
  }

  async stop() {
    await this.#runtime.stop();
    remove(this.#storage);
  }

  get now() {
    return this.#clock ?? Date.now();
  }

  /** Lets the Worker's time stand still at a moment; null lets the platform's clock run. */
  async setClock(at) {
    this.#clock = at;
    await this.#act("clock", { at });
  }

  advance(ms) {
    return this.setClock(this.now + ms);
  }

  /** What goes wrong between the Worker and its objects from now on; see faults.mjs. */
  async setFaults(list) {
    this.#faults = list;
    await this.#act("faults", { list });
  }

  /** What the Worker has asked of objects since the last `setFaults`. */
  commands() {
    return this.#act("commands");
  }

  /** Runs one statement over the ledger's database, past everything that stands in between: its rows. */
  sql(text, ...values) {
    return this.#act("sql", { text, values });
  }

  /** Applies the migrations to an empty database. */
  async migrate() {
    for (const text of schema()) await this.sql(text);
  }

  /** Every byte that objects and the database keep, in whatever form. */
  stored() {
    const files = readdirSync(this.#storage, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
    return Buffer.concat(files.map(({ parentPath, name }) => readFileSync(join(parentPath, name))));
  }

  /** What was asked of the database (`statements`), and how often objects wrote (`writes`), since `setFaults`. */
  counts() {
    return this.#act("counts");
  }

  /** The data points that the Worker has written, if its variable `ANALYTICS` is there (whatever it says). */
  points() {
    return this.#act("points");
  }

  /** The subject's object: run its alarm, drop its memory, look at what it stores, write or damage that. */
  object(subject) {
    const call = (method, given) => this.#act("object", { subject, method, given });
    return {
      alarm: () => call("runAlarm"),
      evict: () => call("forget"),
      stored: () => call("look"),
      write: (key, value) => call("write", { key, value }),
      damage: () => call("damage"),
    };
  }

  async #act(act, given) {
    const answer = await fetch(this.#runtime.door, { method: "POST", body: JSON.stringify({ act, ...given }) });
    if (!answer.ok) throw new Error(`the test runtime cannot ${act}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }
}
