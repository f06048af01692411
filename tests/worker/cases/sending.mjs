// Sending a case's request, once or many times, and what came of it.
import { gzipSync } from "node:zlib";
import { open } from "../harness/client.mjs";
import { textOf } from "../harness/upstream.mjs";
import { unknown } from "./match.mjs";
import { KEYS } from "./policy.mjs";

const REQUEST = new Set([
  "method", "path", "headers", "header_encoding", "body", "body_base64", "transfer", "visitor_token",
]);
const CONDUCT = new Set(["leaves_after_event", "leaves_after_ms", "stops_reading_after_event", "kill_worker_when"]);
const BODY = {
  model: "alpha-small",
  messages: [{ role: "user", content: "Name three rivers." }],
  max_tokens: 100,
};
const HEADERS = [["authorization", `Bearer ${KEYS.ALPHA}`], ["content-type", "application/json"]];

export function headersOf({ headers }) {
  if (!headers) return HEADERS;
  return Array.isArray(headers) ? headers : Object.entries(headers);
}

/** The bytes of a request's body, as the case describes it. */
export function bodyOf({ method = "POST", body = BODY, body_base64: base64 }) {
  if (["GET", "HEAD", "OPTIONS"].includes(method)) return null;
  if (base64 !== undefined) return Buffer.from(base64, "base64");
  return bytesOf(body);
}

function bytesOf(body) {
  if (body?.gzip) return gzipSync(bytesOf(body.gzip));
  return Buffer.from(typeof body === "string" || body?.parts ? textOf(body) : JSON.stringify(body));
}

function wireOf(request, number, token) {
  unknown("request", request, REQUEST);
  const own = JSON.parse(JSON.stringify(request).replaceAll("<n>", String(number)));
  const presented = own.visitor_token ? [["x-tollgate-visitor", token]] : [];
  return {
    method: own.method ?? "POST",
    path: own.path ?? "/v1/chat/completions",
    headers: [...headersOf(own), ...presented],
    headerEncoding: own.header_encoding === "latin-1" ? "latin1" : "utf8",
    body: bodyOf(own),
    chunked: own.transfer === "chunked",
  };
}

/**
 * Sends a request: many times at once (`concurrency`) or one after the other (`repeat`, each followed by `afterEach`).
 * Resolves to what came of it: the replies, what was sent, and when the client's part ended.
 */
export async function send(stage, what) {
  const { request, client = {}, concurrency = 1, repeat = 1 } = what;
  unknown("client", client, CONDUCT);
  const sending = { request, replies: [], wires: [], connection: what.connection };
  const killing = client.kill_worker_when && stage.upstream.nextCall().then(() => stage.worker.restart());
  const conduct = {
    leavesAfterEvent: client.leaves_after_event,
    leavesAfterMs: client.leaves_after_ms,
    stopsReadingAfterEvent: client.stops_reading_after_event,
  };
  const one = async () => {
    const wire = wireOf(request, sending.wires.length + 1, stage.token);
    sending.wires.push(wire);
    const connection = what.connection?.isOpen ? what.connection : await open(stage.worker.url);
    stage.connections.push(connection);
    sending.connection ??= connection;
    what.onOpen?.(connection);
    sending.replies.push(await connection.send(wire, conduct));
    what.onAnswer?.();
    await what.afterEach?.();
  };
  for (let round = 0; round < repeat; round += 1) {
    await Promise.all(Array.from({ length: concurrency }, one));
  }
  await killing;
  sending.endedAt = performance.now();
  return sending;
}
