// A client that sends what it is told, byte for byte, and shows what came back: no tidied paths, no merged or reordered
// headers, no retries.
import { once } from "node:events";
import { connect } from "node:net";
import { ReplyParser } from "./reply.mjs";

/** Opens a connection to an origin. */
export async function open(origin) {
  const { hostname, port } = new URL(origin);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, "connect");
  return new Connection(socket, `${hostname}:${port}`);
}

class Connection {
  #socket;
  #host;
  #parser = null;
  #changed = () => {};

  constructor(socket, host) {
    this.#socket = socket;
    this.#host = host;
    socket.on("data", (bytes) => this.#take(bytes));
    socket.on("close", () => {
      this.#parser?.close();
      this.#changed();
    });
    // A connection that breaks shows in the reply.
    socket.on("error", () => {});
  }

  get isOpen() {
    return !this.#socket.destroyed && this.#socket.readyState === "open";
  }

  close() {
    this.#socket.destroy();
  }

  /** Sends bytes as they are, such as a part of a request. */
  write(bytes) {
    this.#socket.write(bytes);
  }

  /**
   * Sends a request and resolves to its reply, when that is whole, or broken off, or the client has left as it was told
   * (`leavesAfterEvent`, `leavesAfterMs`) or stopped reading (`stopsReadingAfterEvent`).
   */
  async send(request, conduct = {}) {
    const began = performance.now();
    this.#parser = new ReplyParser(request.method);
    this.#socket.write(bytesOfRequest(request, this.#host));
    const left = conduct.leavesAfterMs === undefined ? null : setTimeout(() => this.#leave(), conduct.leavesAfterMs);
    while (!this.#parser.ended && !this.#follows(conduct)) await this.#next();
    clearTimeout(left);
    return { ...this.#parser.reply(), ms: performance.now() - began, leftAt: this.leftAt };
  }

  /** Resolves once the reply's body contains the text; rejects after a while. */
  async has(text, withinMs = 5_000) {
    const until = performance.now() + withinMs;
    while (!this.#parser?.body().includes(text)) {
      if (performance.now() > until) throw new Error(`the client had not received ${text} after ${withinMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  /** Does what the client is to do after so many events; tells whether it takes no more. */
  #follows({ leavesAfterEvent = Infinity, stopsReadingAfterEvent = Infinity }) {
    const events = this.#parser.events();
    if (events >= leavesAfterEvent) this.#leave();
    if (events >= stopsReadingAfterEvent) this.#socket.pause();
    return events >= leavesAfterEvent || events >= stopsReadingAfterEvent;
  }

  // By a reset, as a program that ends in the middle of an answer does: of one half of a connection that is closed in
  // good order, the local runtime hears nothing until it writes again.
  #leave() {
    this.leftAt = performance.now();
    this.#socket.resetAndDestroy();
  }

  #take(bytes) {
    this.#parser?.push(bytes);
    this.#changed();
  }

  #next() {
    return new Promise((resolve) => {
      this.#changed = resolve;
    });
  }
}

/**
 * A request as bytes: `method`, `path`, `headers` as a list of pairs, `body` as bytes or null, `headerEncoding` for the
 * headers' values, `chunked` to send the body without its length.
 */
export function bytesOfRequest({ method, path, headers, body, headerEncoding = "utf8", chunked = false }, host) {
  const has = (name) => headers.some(([own]) => own.toLowerCase() === name);
  const lines = has("host") ? [] : [["host", host]];
  lines.push(...headers);
  if (body && chunked) lines.push(["transfer-encoding", "chunked"]);
  else if (body && !has("content-length")) lines.push(["content-length", String(body.length)]);
  const head = lines.map(([name, value]) => Buffer.from(`${name}: ${value}\r\n`, headerEncoding));
  const sent = [Buffer.from(`${method} ${path} HTTP/1.1\r\n`), ...head, Buffer.from("\r\n")];
  if (body) sent.push(...(chunked ? chunksOf(body) : [body]));
  return Buffer.concat(sent);
}

function chunksOf(body) {
  const chunks = [];
  for (let at = 0; at < body.length; at += 16_384) {
    const piece = body.subarray(at, at + 16_384);
    chunks.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n"));
  }
  return [...chunks, Buffer.from("0\r\n\r\n")];
}
