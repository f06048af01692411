// Figures out of repetitions.
import { setTimeout as wait } from "node:timers/promises";

/** Work that outlives an answer (the settlement, the log) belongs to the call. */
const AFTERWARDS_MS = 40;

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The CPU that a workerd process uses for `work`, in microseconds. */
export async function cpuFor(workerd, work, which) {
  const before = workerd.cpu(which);
  await work();
  await wait(AFTERWARDS_MS);
  return workerd.cpu(which) - before;
}

/**
 * The CPU per call of each contestant: the median of rounds in which they take turns, each round beginning with another
 * one, so that whatever else the machine does meets all of them. A contestant has `workerd`, `load`, `calls` per round
 * and `call(n)`. The first round warms up.
 */
export async function perCall(contestants, rounds) {
  const figures = contestants.map(() => []);
  for (let round = 0; round <= rounds; round += 1) {
    for (let turn = 0; turn < contestants.length; turn += 1) {
      const place = (round + turn) % contestants.length;
      const { workerd, load, calls, call } = contestants[place];
      const cpu = await cpuFor(workerd, () => load.run(calls, call));
      if (round > 0) figures[place].push(cpu / calls);
    }
  }
  return figures.map(median);
}
