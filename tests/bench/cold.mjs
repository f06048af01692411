// A new process: how long until it answers, what its first counted prompt costs, how much memory it has.
import { Load } from "./load.mjs";
import { cpuFor, median } from "./measure.mjs";
import { Workerd } from "./workerd.mjs";
import { chat, english } from "./workers.mjs";

const STARTS = 9;
const LATER = 40;
const PROMPT = english(10_000);

/** Figures by the name of each Worker, each the median of several starts in which the Workers take turns. */
export async function measureCold(workers) {
  const samples = Object.fromEntries(Object.keys(workers).map((name) => [name, []]));
  for (let start = 0; start < STARTS; start += 1) {
    for (const [name, worker] of Object.entries(workers)) samples[name].push(await sample(worker));
  }
  const figure = (list, key) => [key, median(list.map((one) => one[key]))];
  const over = (list) => Object.fromEntries(Object.keys(list[0]).map((key) => figure(list, key)));
  return Object.fromEntries(Object.entries(samples).map(([name, list]) => [name, over(list)]));
}

/** Milliseconds, but for the memory, which is in megabytes. */
async function sample(worker) {
  const workerd = await Workerd.start(worker);
  const load = new Load(workerd.origin, 1);
  const cpu = async (calls, call) => {
    const used = await cpuFor(workerd, () => load.run(calls, () => call), { mainOnly: true });
    return used / calls / 1_000;
  };
  try {
    const began = performance.now();
    await load.call({ method: "GET", path: "/healthz", headers: {} });
    const firstAnswer = workerd.listeningAfter + performance.now() - began;
    const firstCall = await cpu(1, chat("open-0"));
    await load.run(LATER, () => chat("open-0"));
    const firstPrompt = await cpu(1, chat("open-1", { prompt: PROMPT }));
    const laterPrompt = await cpu(LATER, chat("open-1", { prompt: PROMPT }));
    return { firstAnswer, firstCall, firstPrompt, laterPrompt, memory: workerd.memory };
  } finally {
    load.close();
    await workerd.stop();
  }
}
