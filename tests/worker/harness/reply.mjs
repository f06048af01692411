// Reading an HTTP/1.1 reply as it comes in.
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";

const DECODERS = { gzip: gunzipSync, "x-gzip": gunzipSync, deflate: inflateSync, br: brotliDecompressSync };

export class ReplyParser {
  #method;
  #rest = Buffer.alloc(0);
  #head = null;
  #pieces = [];
  #left = 0;
  #mode = "head";
  #events = 0;
  #tail = "";
  ended = false;

  constructor(method) {
    this.#method = method;
  }

  push(bytes) {
    this.#rest = this.#rest.length > 0 ? Buffer.concat([this.#rest, bytes]) : bytes;
    while (!this.ended && this.#step());
  }

  /** The connection is closed: that ends a body without a length, and breaks off every other. */
  close() {
    this.whole ??= this.#mode === "until-close";
    this.ended = true;
  }

  body() {
    return Buffer.concat(this.#pieces);
  }

  /** How many events of a stream have arrived whole. */
  events() {
    return this.#events;
  }

  reply() {
    const head = this.#head ?? { status: "none", headers: [] };
    const values = (name) => head.headers.filter(([own]) => own.toLowerCase() === name).map(([, value]) => value);
    const header = (name) => (values(name).length > 0 ? values(name).join(", ") : undefined);
    const raw = this.body();
    const whole = this.whole ?? false;
    return { ...head, header, whole, raw, body: whole ? decoded(raw, header("content-encoding")) : raw };
  }

  #step() {
    switch (this.#mode) {
      case "head":
        return this.#readHead();
      case "chunk-size":
        return this.#readChunkSize();
      case "chunk":
      case "length":
        return this.#readLength();
      case "chunk-end":
        return this.#line() !== null && this.#become("chunk-size");
      case "trailer":
        return this.#readTrailer();
      default:
        return this.#take(this.#rest.length);
    }
  }

  #readHead() {
    const end = this.#rest.indexOf("\r\n\r\n");
    if (end === -1) return false;
    const [first, ...lines] = this.#rest.subarray(0, end).toString("latin1").split("\r\n");
    this.#rest = this.#rest.subarray(end + 4);
    const status = Number(first.split(" ")[1]);
    if (status < 200) return true;
    const headers = lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]);
    this.#head = { status, headers };
    const value = (name) => headers.find(([own]) => own.toLowerCase() === name)?.[1];
    if (this.#method === "HEAD" || status === 204 || status === 304) return this.#end();
    if (value("transfer-encoding") === "chunked") return this.#become("chunk-size");
    const length = value("content-length");
    if (length === undefined) return this.#become("until-close");
    this.#left = Number(length);
    return this.#left === 0 ? this.#end() : this.#become("length");
  }

  #readChunkSize() {
    const line = this.#line();
    if (line === null) return false;
    this.#left = Number.parseInt(line, 16);
    return this.#become(this.#left === 0 ? "trailer" : "chunk");
  }

  #readLength() {
    if (this.#rest.length === 0) return false;
    this.#take(Math.min(this.#left, this.#rest.length));
    if (this.#left > 0) return false;
    return this.#mode === "chunk" ? this.#become("chunk-end") : this.#end();
  }

  #readTrailer() {
    const line = this.#line();
    if (line === null) return false;
    return line === "" ? this.#end() : true;
  }

  #line() {
    const end = this.#rest.indexOf("\r\n");
    if (end === -1) return null;
    const line = this.#rest.subarray(0, end).toString("latin1");
    this.#rest = this.#rest.subarray(end + 2);
    return line;
  }

  #take(length) {
    if (length === 0) return false;
    const piece = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    this.#left -= length;
    this.#pieces.push(piece);
    const text = this.#tail + piece.toString("latin1").replaceAll("\r", "");
    const ends = text.split("\n\n");
    this.#events += ends.length - 1;
    this.#tail = ends.at(-1).slice(-1);
    return true;
  }

  #become(mode) {
    this.#mode = mode;
    return true;
  }

  #end() {
    this.whole = true;
    this.ended = true;
    return false;
  }
}

/** The body with its content codings undone, the last one first. */
function decoded(bytes, codings = "") {
  const names = codings.split(",").map((name) => name.trim().toLowerCase());
  const own = names.filter((name) => name && name !== "identity");
  return own.reduceRight((body, name) => DECODERS[name](body), bytes);
}
