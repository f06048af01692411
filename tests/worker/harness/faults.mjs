// Standing between the Worker and a caller's object.
import { forever } from "./database.mjs";

/** What is to go wrong, and what was asked of the objects, of the database and of the objects' storage. */
export class Faults {
  #list = [];
  commands = [];
  statements = [];
  writes = { records: 0, alarms: 0, deletions: 0 };

  /**
   * Each has `at` (such as `limiter.settle`, `ledger.post`, `storage.put`, or `*` in the place of the verb), `effect`,
   * and `times`, a number or "always". The effect `passes` lets the first ones through, before the next of its kind.
   */
  set(list) {
    this.#list = list.map((fault) => ({ times: 1, ...fault }));
    this.commands = [];
    this.statements = [];
    this.writes = { records: 0, alarms: 0, deletions: 0 };
  }

  take(port, verb) {
    const fault = this.#list.find(({ at, times }) => (at === `${port}.${verb}` || at === `${port}.*`) && times !== 0);
    if (fault && fault.times !== "always") fault.times -= 1;
    return fault?.effect;
  }
}

/**
 * The namespace with faults between it and whoever uses it. The local runtime has no jurisdictions, so here one is made
 * up: other objects under the same names.
 */
export function standBetween(namespace, faults, jurisdiction) {
  return {
    jurisdiction: (name) => standBetween(namespace, faults, name),
    getByName(name, options) {
      const stub = namespace.getByName(jurisdiction ? `${jurisdiction}/${name}` : name, options);
      return {
        fetch(url) {
          const verb = new URL(url).pathname.split("/").at(-1);
          const effect = faults.take("limiter", verb);
          faults.commands.push({ verb, url, name, options, jurisdiction, effect });
          return deliver(stub, url, effect);
        },
      };
    },
  };
}

async function deliver(stub, url, effect) {
  switch (effect) {
    case undefined:
      return stub.fetch(url);
    case "fails":
      throw new Error("fault: the command was not carried out");
    case "reply-lost":
      await drained(stub.fetch(url));
      throw new Error("fault: the command was carried out, its reply is lost");
    case "twice":
      await drained(stub.fetch(url));
      return stub.fetch(url);
    case "release-after": {
      const reply = await stub.fetch(url);
      const id = new URL(url).searchParams.get("id");
      await drained(stub.fetch(new URL(`/v1/release?id=${encodeURIComponent(id)}`, url).href));
      return reply;
    }
    case "hangs":
      return forever();
    default:
      throw new Error(`unknown effect: ${effect}`);
  }
}

async function drained(replying) {
  await (await replying).arrayBuffer();
}
