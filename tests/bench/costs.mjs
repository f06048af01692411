// What a call costs at the objects: requests and written rows, counted.
import { setTimeout as wait } from "node:timers/promises";
import { Load } from "./load.mjs";
import { Workerd } from "./workerd.mjs";
import { chat, tollgate } from "./workers.mjs";

const CALLS = 100;

export async function countCosts(build, upstream) {
  const workerd = await Workerd.start(tollgate(build, upstream, { entry: "counting.mjs" }));
  const load = new Load(workerd.origin, 1);
  const counted = async () => JSON.parse(await load.call({ method: "GET", path: "/counted", headers: {} }));
  const rows = [];
  const count = async (name, calls, call) => {
    const before = await counted();
    await load.run(calls, () => call);
    // The settlement comes after the answer.
    await wait(100);
    const after = await counted();
    const each = (key) => (after[key] - before[key]) / calls;
    rows.push({ name, requests: each("objectRequests"), puts: each("puts"), alarms: each("alarms") });
  };
  try {
    await count("admitted, the caller's first call", 1, chat("open-0"));
    await count("admitted, later calls", CALLS, chat("open-0"));
    await count("admitted, streamed", 10, chat("open-0", { model: "fast" }));
    await load.call(chat("refused"));
    await wait(100);
    await count("refused, the first time", 1, chat("refused", { want: 429 }));
    await count("refused from the isolate's memory", CALLS, chat("refused", { want: 429 }));
    const second = new Load(workerd.origin, 1);
    const never = second.call(chat("waiting", { model: "hang" })).catch(() => {});
    await wait(100);
    await count("refused while a call is open", CALLS, chat("waiting", { want: 429 }));
    second.close();
    await never;
    return rows;
  } finally {
    load.close();
    await workerd.stop();
  }
}
