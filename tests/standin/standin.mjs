// A stand-in for a paid model API: it speaks enough of OpenAI's chat completions for any client, costs nothing, says
// the same every time, and misbehaves on request. `npm start` puts it behind Tollgate; alone it is started with
//   node tests/standin/standin.mjs [port] [key]
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { complete, plainBody, streamEvents } from "./completion.mjs";

/** The models by name. A name that is not here behaves like `demo`. */
export const MODELS = {
  demo: { says: "answers at once" },
  "demo-slow": { says: "answers after a second, then a word every 300 ms", before: 1_000, between: 300 },
  "demo-fail": { says: "fails with 500", status: 500, type: "server_error", code: null },
  "demo-busy": { says: "fails with 429, Retry-After: 2", status: 429, type: "requests", code: "rate_limit_exceeded" },
  "demo-break": { says: "breaks off: a stream in its middle, a plain answer in its JSON", breaks: true },
  "demo-no-usage": { says: "never tells what was used", silent: true },
  "demo-hang": { says: "takes the request and never answers", hangs: true },
};
const NORMAL = MODELS.demo;

const problem = (status, message, type, code, headers = {}) => ({
  status,
  headers,
  body: { error: { message, type, param: null, code } },
});

function send(response, { status, headers, body }) {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

/** What is wrong with a request, or its parsed body. */
async function read(request, key) {
  if (key && request.headers.authorization !== `Bearer ${key}`) {
    return { fault: problem(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key") };
  }
  const route = `${request.method} ${request.url}`;
  if (route === "GET /v1/models") return { models: true };
  if (route !== "POST /v1/chat/completions") {
    return { fault: problem(404, `There is no ${route}.`, "invalid_request_error", null) };
  }
  try {
    const asked = JSON.parse(await bodyOf(request));
    if (typeof asked.model === "string" && asked.messages?.length > 0) return { asked };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return { fault: problem(400, "The body needs a model and messages.", "invalid_request_error", null) };
}

async function stream(response, asked, manner, answer) {
  const withUsage = asked.stream_options?.include_usage === true && !manner.silent;
  const events = [...streamEvents(asked.model, answer, withUsage)];
  const last = manner.breaks ? Math.ceil(events.length / 2) : events.length;
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
  for (const [place, event] of events.slice(0, last).entries()) {
    if (response.destroyed) return;
    if (place > 0 && manner.between) await wait(manner.between);
    // Written means handed to the socket, so that what is cut off below has really been sent before.
    await new Promise((sent) => response.write(`data: ${JSON.stringify(event)}\n\n`, sent));
  }
  if (manner.breaks) response.destroy();
  else response.end("data: [DONE]\n\n");
}

function plain(response, asked, manner, answer) {
  const { usage, ...body } = plainBody(asked.model, answer);
  const text = JSON.stringify(manner.silent ? body : { ...body, usage });
  response.writeHead(200, { "content-type": "application/json" });
  response.end(manner.breaks ? text.slice(0, text.length / 2) : text);
}

async function answer(request, response, key) {
  const { fault, models, asked } = await read(request, key);
  if (fault) return send(response, fault);
  if (models) {
    const data = Object.keys(MODELS).map((id) => ({ id, object: "model", created: 0, owned_by: "stand-in" }));
    return send(response, { status: 200, body: { object: "list", data } });
  }
  const manner = Object.hasOwn(MODELS, asked.model) ? MODELS[asked.model] : NORMAL;
  if (manner.hangs) return undefined;
  if (manner.before) await wait(manner.before);
  if (manner.status) {
    const headers = manner.status === 429 ? { "retry-after": "2" } : {};
    return send(response, problem(manner.status, `${asked.model} ${manner.says}.`, manner.type, manner.code, headers));
  }
  return (asked.stream ? stream : plain)(response, asked, manner, complete(asked));
}

/** Starts the stand-in on this machine; without a port on a free one, without a key for everybody. */
export async function startStandin({ port = 0, key } = {}) {
  const server = createServer((request, response) => {
    // A caller that leaves is no news, and a request that cannot be answered must not end the others.
    answer(request, response, key).catch(() => response.destroy());
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    base: `http://127.0.0.1:${server.address().port}/v1`,
    stop() {
      server.closeAllConnections();
      return new Promise((stopped) => server.close(stopped));
    },
  };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [port = "9911", key] = process.argv.slice(2);
  const { base } = await startStandin({ port: Number(port), key });
  console.log(`The stand-in is at ${base}. Its models:`);
  for (const [name, { says }] of Object.entries(MODELS)) console.log(`  ${name.padEnd(14)} ${says}`);
}
