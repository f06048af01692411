// Starts workerd itself, with no development server in front of it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { root } from "../tools/setup.mjs";
import { cpuOf, memoryOf } from "./process.mjs";

const PROGRAM = join(root, "node_modules", "workerd", "bin", "workerd");
// Every write of an object waits for the disk, so a real one would be what is measured.
const FOLDER = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const READY_WITHIN_MS = 20_000;

/** A value of wrangler.toml's first lines, as it is written. */
function setting(name) {
  return new RegExp(`^${name} = (.+)$`, "m").exec(readFileSync(join(root, "wrangler.toml"), "utf8"))[1];
}

function binding([name, value]) {
  const kind = typeof value === "string" ? "text" : "json";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return `(name = "${name}", ${kind} = ${JSON.stringify(text)})`;
}

function config({ modules, vars, objects }) {
  const names = modules.map((path) => basename(path));
  const module = (name) => `(name = "${name}", ${name.endsWith(".wasm") ? "wasm" : "esModule"} = embed "${name}")`;
  const bindings = Object.entries(vars).map(binding);
  if (objects) bindings.push('(name = "LIMITER", durableObjectNamespace = "UserLimiter")');
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["private"])),
    (name = "storage", disk = (path = "storage", writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [${names.map(module).join(", ")}],
  compatibilityDate = ${setting("compatibility_date")},
  compatibilityFlags = ${setting("compatibility_flags")},
  bindings = [${bindings.join(",\n    ")}],
  durableObjectNamespaces = [${objects ? '(className = "UserLimiter", uniqueKey = "limiter", enableSql = true)' : ""}],
  durableObjectStorage = (localDisk = "storage"),
);
`;
}

/** One workerd process with one Worker. */
export class Workerd {
  #child;
  #folder;
  /** Milliseconds from the start of the process until it takes connections. */
  listeningAfter;

  /** Starts a Worker of these module files (the first is its entry), variables, and `objects` if it has any. */
  static async start(worker) {
    const started = new Workerd();
    started.#folder = mkdtempSync(join(FOLDER, "tollgate-bench-"));
    mkdirSync(join(started.#folder, "storage"));
    for (const path of worker.modules) copyFileSync(path, join(started.#folder, basename(path)));
    writeFileSync(join(started.#folder, "config.capnp"), config(worker));
    await started.#spawn();
    return started;
  }

  async #spawn() {
    this.startedAt = performance.now();
    this.#child = spawn(PROGRAM, ["serve", "config.capnp", "--control-fd=3"], {
      cwd: this.#folder,
      // The log is written and nobody reads it.
      stdio: ["ignore", "ignore", "pipe", "pipe"],
    });
    let said = "";
    this.#child.stderr.on("data", (bytes) => (said = (said + bytes).slice(-2_000)));
    const exited = once(this.#child, "exit").then(() => undefined);
    const late = wait(READY_WITHIN_MS, undefined, { ref: false });
    const port = await Promise.race([portOf(this.#child.stdio[3]), exited, late]);
    if (port === undefined) throw new Error(`workerd did not come up:\n${said}`);
    this.listeningAfter = performance.now() - this.startedAt;
    this.origin = `http://127.0.0.1:${port}`;
  }

  cpu(which) {
    return cpuOf(this.#child.pid, which);
  }

  get memory() {
    return memoryOf(this.#child.pid);
  }

  async stop() {
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function portOf(control) {
  for await (const line of createInterface({ input: control })) {
    const message = JSON.parse(line);
    if (message.event === "listen") return message.port;
  }
  return undefined;
}
