// CPU per call: the bare pass-through Worker, and what Tollgate does.
import { setTimeout as wait } from "node:timers/promises";
import { Load } from "./load.mjs";
import { perCall } from "./measure.mjs";
import { STREAMS } from "./upstream.mjs";
import { Workerd } from "./workerd.mjs";
import { CALLERS, bare, chat, english, inTurn, tollgate } from "./workers.mjs";

/** A call whose settlement has to be done before the next is made. */
const SETTLED_MS = 100;

/** Starts a Worker and a client of it; every caller's object is there before anything is measured. */
async function started(worker) {
  const workerd = await Workerd.start(worker);
  const load = new Load(workerd.origin);
  await load.run(CALLERS, inTurn());
  return { workerd, load };
}

/** Figures of the shipped build (`gate`), the same at level `s` (`small`), and the bare Worker. */
export async function measureCalls(made, upstream) {
  const sides = {
    plain: await started(bare(upstream)),
    gate: await started(tollgate(made.shipped.path, upstream)),
    small: await started(tollgate(made.small.path, upstream)),
    bytes: await started(tollgate(made.shipped.path, upstream, { method: "bytes" })),
  };
  try {
    const streamList = [await streams("fast", sides), await streams("slow", sides)];
    return { streams: streamList, prompts: await prompts(sides), calls: await calls(sides) };
  } finally {
    for (const { workerd, load } of Object.values(sides)) {
      load.close();
      await workerd.stop();
    }
  }
}

/** One round-robin of the named sides; the figures by the side's name. */
async function compared(names, sides, calls, call, rounds) {
  const figures = await perCall(names.map((name) => ({ ...sides[name], calls, call })), rounds);
  return Object.fromEntries(names.map((name, place) => [name, figures[place]]));
}

/** Leaves the caller `refused` with nothing, and the caller `waiting` with nothing while its only call is open. */
async function spend({ load }) {
  await load.call(chat("refused"));
  // This call ends with the process.
  load.call(chat("waiting", { model: "hang" })).catch(() => {});
  await wait(SETTLED_MS);
}

/** Microseconds per call by its kind. */
async function calls(sides) {
  await spend(sides.gate);
  await spend(sides.small);
  const usage = (n) => ({ method: "GET", path: "/v1/usage", headers: chat(`open-${n % CALLERS}`).headers });
  const kinds = [
    ["admitted", inTurn(), ["plain", "gate", "small"]],
    ["admitted, hundreds a minute by one caller", () => chat("busy"), ["gate", "small"]],
    ["refused from the isolate's memory", () => chat("refused", { want: 429 }), ["gate", "small"]],
    ["refused by the object", () => chat("waiting", { want: 429 }), ["gate", "small"]],
    ["`GET /v1/usage`", usage, ["gate", "small"]],
  ];
  const rows = [];
  for (const [name, call, names] of kinds) rows.push({ name, ...(await compared(names, sides, 200, call, 7)) });
  return rows;
}

/** Microseconds per call by the size of its prompt; `bytes` is without counting. */
async function prompts(sides) {
  const rows = [];
  for (const [size, calls] of [[10_000, 100], [100_000, 50]]) {
    const call = inTurn({ prompt: english(size) });
    rows.push({ size, ...(await compared(["plain", "bytes", "gate", "small"], sides, calls, call, 5)) });
  }
  return rows;
}

/** Microseconds per stream. */
async function streams(model, sides) {
  const figures = await compared(["plain", "gate", "small"], sides, model === "fast" ? 12 : 32, inTurn({ model }), 5);
  return { ...STREAMS[model], ...figures };
}
