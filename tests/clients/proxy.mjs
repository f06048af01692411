// Everything that the clients' tests talk to: the real Worker before the stand-in upstream, the tap before the Worker,
// and a desk at which a test gets a fresh key and asks what was seen of it.
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { startStandin } from "../standin/standin.mjs";
import { step } from "../tools/setup.mjs";
import { start } from "../worker/harness/worker.mjs";
import { makePolicy } from "./policy.mjs";
import { startTap } from "./tap.mjs";

/** The daily limit must neither be reset in the middle of a test nor be so near its reset that clients sit it out. */
const MIDNIGHT_MARGIN_MS = 120_000;
const DAY_MS = 86_400_000;

async function serve(answer) {
  const server = createServer(async (request, response) => {
    request.resume();
    const { status = 200, body } = await answer(new URL(request.url, "http://desk"));
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  // On a busy machine a connection would be closed at the moment at which a test uses it again.
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    stop() {
      server.closeAllConnections();
      return new Promise((stopped) => server.close(stopped));
    },
  };
}

/** An upstream that refuses every request, in Anthropic's shape or in that of those whose code is a number. */
function startRefusing() {
  const message = "This model's maximum context length is 8 tokens.";
  const anthropic = { type: "error", error: { type: "invalid_request_error", message }, request_id: "req_refusing" };
  const other = { error: { code: 400, message, metadata: {} } };
  return serve(({ pathname }) => ({ status: 400, body: pathname.endsWith("/messages") ? anthropic : other }));
}

async function awayFromMidnight() {
  const left = DAY_MS - (Date.now() % DAY_MS);
  if (left > MIDNIGHT_MARGIN_MS) return;
  step(`waiting ${Math.ceil(left / 1_000)} s for the next UTC day, as a daily limit is to be shown`);
  // A timer may ring early.
  await wait(left + 1_000);
}

/** `GET /key?plan=…` gives a key of a caller who has not called yet; `GET /tries?key=…` what was seen of it. */
function startDesk(keys, tap) {
  return serve(async ({ pathname, searchParams: given }) => {
    if (pathname === "/tries") return { body: tap.triesOf(given.get("key")) };
    if (given.get("plan") === "daily") await awayFromMidnight();
    const key = pathname === "/key" ? keys.next(given.get("plan")) : undefined;
    return key ? { body: { key } } : { status: 404, body: { error: "there is no such plan, or no key of it is left" } };
  });
}

/** Starts all of it. `environment` is what a test program needs to know. */
export async function startProxy() {
  const standin = await startStandin({ key: "upstream-key" });
  const refusing = await startRefusing();
  const { env, keys } = makePolicy({ standin: standin.base, refusing: `${refusing.origin}/v1` });
  const worker = await start({ env });
  const tap = await startTap(worker.url);
  const desk = await startDesk(keys, tap);
  const health = await worker.fetch("/healthz");
  if (!health.ok) throw new Error(`the Worker is not well: ${await health.text()}`);
  return {
    environment: { BASE_URL: `${tap.origin}/v1`, DESK_URL: desk.origin },
    async stop() {
      await Promise.all([desk.stop(), tap.stop(), refusing.stop()]);
      await worker.stop();
      await standin.stop();
    },
  };
}
