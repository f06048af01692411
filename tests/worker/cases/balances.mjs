// What a case expects of money: read from the usage call, once everything has settled.
import { numberFault } from "./match.mjs";
import { callerOf, who } from "./callers.mjs";
import { CALLERS } from "./policy.mjs";

const SETTLED_WITHIN_MS = 2_000;

export const MONEY = {
  charged: async (expected, sending, stage, all) => {
    const payers = all.charged_to ? [all.charged_to] : callers(sending);
    const found = payers.map((user) => chargedFault(user, expected, sending, stage, all));
    return Promise.all(found);
  },
  // It says whose balance `charged` is about.
  charged_to: (user) => (who(user) ? undefined : `${user} is not a caller of these tests`),
  uncharged: (users, sending, stage, all) =>
    Promise.all(users.map((user) => chargedFault(user, 0, sending, stage, all))),
  level_after: (expected, sending, stage, all) =>
    settled(stage, sending, all, stage.caller, ({ left }) =>
      numberFault("level_after", expected, left, stage.values),
    ),
  hold: (expected, _, stage) => numberFault("hold", expected, stage.values.E, stage.values),
  open_holds: (expected, sending, stage, all) =>
    settled(stage, sending, { ...all, open: true }, stage.caller, ({ holds }) =>
      numberFault("open_holds", expected, holds, stage.values),
    ),
  // The bound of the others; alone it says nothing.
  settled_within_ms: () => undefined,
};

/** Who pays: the caller of the request, or, of one who was not recognised, every known caller: nothing. */
function callers(sending) {
  const user = sending.request && callerOf(sending.request);
  return user ? [user] : Object.keys(CALLERS);
}

async function chargedFault(user, expected, sending, stage, all) {
  const before = await beforeOf(user, sending, stage);
  return settled(stage, sending, all, user, (after) => {
    const passed = Math.max(after.at - before.at, 0);
    // A bucket that is full does not tell how much it would have gained.
    const gained = after.left < after.full ? passed * stage.refillPerMs : 0;
    return numberFault(`charged to ${user}`, expected, before.left - after.left + gained, stage.values);
  });
}

/** The balance before the sending. Under a policy that is refused none can be read: then nothing was ever spent. */
async function beforeOf(user, sending, stage) {
  if (sending.before[user]) return sending.before[user];
  await stage.repair();
  const { full, at } = await stage.balance(who(user));
  return { left: full, at };
}

/** Reads a balance until it is as expected and nothing is under way, or the time is over. */
async function settled(stage, sending, { settled_within_ms: within = SETTLED_WITHIN_MS, open }, user, judge) {
  const until = sending.endedAt + within;
  const mayStayOpen = open || sending.leavesHold;
  for (;;) {
    const late = performance.now() > until;
    const balance = await stage.balance(who(user));
    const fault = balance ? judge(balance) : "the balance cannot be read";
    const busy = balance?.holds > 0 && !mayStayOpen;
    if (!fault && !busy) return undefined;
    if (late) return fault ?? `nothing has settled the call of ${user} within ${within} ms`;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
