// Starting workerd through Miniflare, with the real build behind entry.mjs.
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Log, LogLevel, Miniflare } from "miniflare";
import { unstable_readConfig } from "wrangler";

const harness = import.meta.dirname;
const root = join(harness, "..", "..", "..");
export const config = unstable_readConfig({ config: join(root, "wrangler.toml") }, { hideWarnings: true });

// A new process says which start it belongs to; Miniflare itself does not tell.
const starting = new AsyncLocalStorage();
subscribe("child_process", ({ process: child }) => {
  starting.getStore()?.add(child);
});

const esm = (path) => ({ type: "esm", contents: readFileSync(path, "utf8") });
const wasm = (path) => ({ type: "wasm", contents: new Uint8Array(readFileSync(path)) });
let modules;

// Read once: a build that is replaced while tests run must not come in halves.
function manifest() {
  modules ??= {
    "entry.mjs": esm(join(harness, "entry.mjs")),
    "clock.mjs": esm(join(harness, "clock.mjs")),
    "database.mjs": esm(join(harness, "database.mjs")),
    "faults.mjs": esm(join(harness, "faults.mjs")),
    "build/index.js": esm(join(root, "build", "index.js")),
    "build/index_bg.wasm": wasm(join(root, "build", "index_bg.wasm")),
  };
  return { mainModule: "entry.mjs", modulesRoot: root, modules };
}

const LIMITER = { type: "durable-object", worker: "tollgate", exportName: "UserLimiter" };

function bindingsOf(env, bindings) {
  const variable = (value) => (typeof value === "string" ? { type: "text", value } : { type: "json", value });
  const variables = Object.entries(env).map(([name, value]) => [name, variable(value)]);
  const all = [...variables, ...Object.entries({ LIMITER, ...bindings })];
  return Object.fromEntries(all.filter(([, binding]) => binding !== null));
}

/** One workerd process. */
export class Runtime {
  #miniflare;
  #children = new Set();

  /**
   * Starts it on a folder of stored state. `env` are variables and secrets; `bindings` further ones as Miniflare spells
   * them, null for one that is to be missing; `remote` is the origin that stands for the platform behind bindings of
   * `dev: { remote: true }`.
   */
  static async start({ env, bindings, remote, storage, onLine }) {
    const runtime = new Runtime();
    const options = {
      host: "127.0.0.1",
      port: 0,
      cf: false,
      log: new Log(LogLevel.NONE),
      logRequests: false,
      telemetry: { enabled: false },
      enableDevRegistry: false,
      handleStructuredLogs: onLine,
      resourcePersistencePath: storage,
      workers: [
        {
          config: {
            name: "tollgate",
            compatibilityDate: config.compatibility_date,
            compatibilityFlags: config.compatibility_flags,
            manifest: manifest(),
            env: bindingsOf(env, bindings),
            exports: { UserLimiter: { type: "durable-object", storage: "sqlite" } },
          },
          dev: {
            // The Worker's own sockets, without the development server in front of it, which tidies what passes.
            unsafeDirectSockets: [{ port: 0 }, { port: 0, entrypoint: "Control" }],
            stripCfConnectingIp: false,
            ...(remote && { remoteProxyConnectionString: new URL(remote) }),
          },
        },
      ],
    };
    await starting.run(runtime.#children, async () => {
      runtime.#miniflare = new Miniflare(options);
      await runtime.#miniflare.ready;
    });
    runtime.url = (await runtime.#miniflare.unsafeGetDirectURL("tollgate")).origin;
    runtime.door = (await runtime.#miniflare.unsafeGetDirectURL("tollgate", "Control")).origin;
    return runtime;
  }

  /** Kills the process as a crash of its machine would. */
  async kill() {
    const running = [...this.#children].filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    if (running.length === 0) throw new Error("there is no process to kill");
    const gone = running.map((child) => once(child, "exit"));
    for (const child of running) child.kill("SIGKILL");
    await Promise.all(gone);
  }

  async stop() {
    await this.#miniflare.dispose();
  }
}
