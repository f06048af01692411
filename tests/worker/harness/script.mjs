// What a scripted upstream sends: a description in, its bytes and its doings out.

export const OK = {
  status: 200,
  headers: { "content-type": "application/json" },
  body: {
    id: "c-31",
    object: "chat.completion",
    created: 1930478400,
    model: "alpha-small",
    choices: [
      { index: 0, message: { role: "assistant", content: "Volga, Niger, Loire." }, finish_reason: "stop" },
    ],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  },
};

const KNOWN = new Set([
  "status", "headers", "body", "body_base64", "sse", "sse_base64", "behaviour",
  "delay_ms", "wait_for_step", "answer_when", "sequence",
]);
const BEHAVIOURS = new Set([
  undefined, "hang", "reset", "hang-before-headers", "connection-refused",
  // Bytes that never end: of the head, and after what is scripted of the body.
  "trickle-headers", "trickle",
  "reset-in-headers",
]);
/** How often a byte comes where they trickle. */
const TRICKLE_MS = 20;

/** The script in full; a member that nobody plays is an error, never passed over. */
export function scriptOf(written) {
  const script = written === "ok" ? OK : written;
  const unknown = Object.keys(script).filter((name) => !KNOWN.has(name));
  if (unknown.length > 0) throw new Error(`upstream: unknown ${unknown}`);
  if (!BEHAVIOURS.has(script.behaviour)) throw new Error(`upstream: unknown behaviour ${script.behaviour}`);
  if (script.answer_when && script.answer_when !== "all-arrived") throw new Error("upstream: unknown answer_when");
  return script;
}

/** A text as it stands, or `{"parts": [[text, times], ...]}` put together. */
export function textOf(written) {
  if (typeof written === "string") return written;
  return written.parts.map(([text, times]) => text.repeat(times)).join("");
}

/** The entries of a streamed script, each as a list of pieces of bytes and of pauses. */
function entries(script) {
  if (script.sse_base64) return script.sse_base64.map((text) => [Buffer.from(text, "base64")]);
  const piece = (entry) => {
    if (typeof entry === "string" || entry.parts) return [Buffer.from(textOf(entry))];
    if (entry.base64) return [Buffer.from(entry.base64, "base64")];
    if (entry.times) return Array.from({ length: entry.times }, () => entry.chunks.flatMap(piece)).flat();
    return [entry];
  };
  return script.sse.map(piece);
}

/** The bytes of the body; of a stream without the entries whose places are given. */
export function bytesOf(script, without = []) {
  if (script.sse || script.sse_base64) {
    const kept = entries(script).filter((_, place) => !without.includes(place));
    return Buffer.concat(kept.flat().filter(Buffer.isBuffer));
  }
  if (script.body_base64 !== undefined) return Buffer.from(script.body_base64, "base64");
  return Buffer.from(typeof script.body === "string" ? script.body : JSON.stringify(script.body ?? ""));
}

/**
 * Plays a script to one call. `hooks` are what it may wait for: `step(name)`, `clientHas(text)`, `allArrived()`, each a
 * promise.
 */
export async function play(script, response, hooks) {
  if (script.behaviour === "hang-before-headers") return;
  if (script.behaviour === "trickle-headers") return trickle(response, "HTTP/1.1 200 OK\r\nx-slow: ");
  if (script.behaviour === "reset-in-headers") {
    response.socket.write("HTTP/1.1 200 OK\r\ncontent-", () => response.socket?.resetAndDestroy());
    return;
  }
  if (script.wait_for_step) await hooks.step(script.wait_for_step);
  if (script.answer_when) await hooks.allArrived();
  if (script.delay_ms) await pause(script.delay_ms);
  const streamed = script.sse || script.sse_base64;
  const headers = { ...script.headers };
  if (!streamed) headers["content-length"] = bytesOf(script).length;
  response.writeHead(script.status, headers);
  response.flushHeaders();
  if (streamed) {
    const closed = new Promise((resolve) => response.once("close", resolve));
    for (const piece of entries(script).flat()) await playPiece(piece, { response, closed }, hooks);
  } else {
    response.write(bytesOf(script));
  }
  if (script.behaviour === "hang") return;
  if (script.behaviour === "trickle") return trickle(response, null);
  if (script.behaviour === "reset") response.socket?.resetAndDestroy();
  else response.end();
}

/** Writes on, byte by byte, until the other side has had enough. Of a head past what a server would write. */
function trickle(response, head) {
  const [socket, target] = [response.socket, head === null ? response : response.socket];
  if (head !== null) socket.write(head);
  const timer = setInterval(() => target.write("x"), TRICKLE_MS);
  socket.once("close", () => clearInterval(timer));
}

async function playPiece(piece, { response, closed }, hooks) {
  if (response.destroyed) return;
  if (Buffer.isBuffer(piece)) {
    // Written out before the next one is, so that each travels by itself as far as a network allows.
    await Promise.race([new Promise((resolve) => response.write(piece, resolve)), closed]);
  } else if (piece.pause_ms) {
    await pause(piece.pause_ms);
  } else if (piece.wait_for_step) {
    await hooks.step(piece.wait_for_step);
  } else if (piece.wait_for_client) {
    await hooks.clientHas(piece.wait_for_client);
  } else {
    throw new Error(`upstream: unknown piece ${JSON.stringify(piece)}`);
  }
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
