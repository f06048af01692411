// A stand-in for a paid model API: it speaks enough of OpenAI's and Anthropic's routes for any client, costs nothing,
// says the same every time, and misbehaves on request. `npm start` puts it behind Tollgate; alone it is started with
//   node tests/standin/standin.mjs [port] [key]
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import * as chat from "./chat.mjs";
import { complete } from "./completion.mjs";
import * as completions from "./completions.mjs";
import * as embeddings from "./embeddings.mjs";
import * as messages from "./messages.mjs";
import * as responses from "./responses.mjs";

/** Before a name it changes nothing; it is for policies, in which a model has one upstream of one kind. */
export const CLAUDE = "claude-";
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

/** What answers a `POST`. */
const ROUTES = new Map([
  ["/v1/chat/completions", chat],
  ["/v1/completions", completions],
  ["/v1/responses", responses],
  ["/v1/messages", messages],
  ["/v1/embeddings", embeddings],
]);

const openAiError = (status, message, type, code) => ({ error: { message, type, param: null, code } });

/** An error in the shape of its route; what has no route has OpenAI's. */
const problem = (route, status, message, type, code, headers = {}) => ({
  status,
  headers,
  body: (route?.errorBody ?? openAiError)(status, message, type, code),
});

function send(response, { status, headers, body }) {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

/** The parsed body of a request to a route, or undefined if it is not one. */
async function askedOf(request, route) {
  try {
    const asked = JSON.parse(await bodyOf(request));
    return typeof asked.model === "string" && route.isWhole(asked) ? asked : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** What is wrong with a request, or its route and parsed body. */
async function read(request, key) {
  const [path] = request.url.split("?");
  const route = request.method === "POST" ? ROUTES.get(path) : undefined;
  const { authorization, "x-api-key": apiKey } = request.headers;
  const fault = (status, message, code = null) => ({
    fault: problem(route, status, message, "invalid_request_error", code),
  });
  if (key && authorization !== `Bearer ${key}` && apiKey !== key) {
    return fault(401, "Incorrect API key provided.", "invalid_api_key");
  }
  if (request.method === "GET" && path === "/v1/models") return { models: true };
  if (!route) return fault(404, `There is no ${request.method} ${path}.`);
  const asked = await askedOf(request, route);
  return asked ? { route, asked } : fault(400, `The body needs ${route.wants}.`);
}

/** An event as it is written; one that has a type has a name too. */
function frameOf(event) {
  const name = event.type ? `event: ${event.type}\n` : "";
  return `${name}data: ${JSON.stringify(event)}\n\n`;
}

async function stream(response, events, manner, ending) {
  const last = manner.breaks ? Math.ceil(events.length / 2) : events.length;
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
  for (const [place, event] of events.slice(0, last).entries()) {
    if (response.destroyed) return;
    if (place > 0 && manner.between) await wait(manner.between);
    // Written means handed to the socket, so that what is cut off below has really been sent before.
    await new Promise((sent) => response.write(frameOf(event), sent));
  }
  if (manner.breaks) response.destroy();
  else response.end(ending);
}

function plain(response, body, manner) {
  const text = JSON.stringify(body);
  response.writeHead(200, { "content-type": "application/json" });
  response.end(manner.breaks ? text.slice(0, text.length / 2) : text);
}

function succeed(response, route, asked, manner) {
  const withUsage = !manner.silent;
  if (route === embeddings) return plain(response, route.embed(asked, withUsage), manner);
  const answer = complete(route.conversation(asked));
  if (!asked.stream) return plain(response, route.plain(asked, answer, withUsage), manner);
  return stream(response, [...route.events(asked, answer, withUsage)], manner, route.ending);
}

async function answer(request, response, key) {
  const { fault, models, route, asked } = await read(request, key);
  if (fault) return send(response, fault);
  if (models) {
    const data = Object.keys(MODELS).map((id) => ({ id, object: "model", created: 0, owned_by: "stand-in" }));
    return send(response, { status: 200, body: { object: "list", data } });
  }
  const name = asked.model.startsWith(CLAUDE) ? asked.model.slice(CLAUDE.length) : asked.model;
  const manner = Object.hasOwn(MODELS, name) ? MODELS[name] : NORMAL;
  if (manner.hangs) return undefined;
  if (manner.before) await wait(manner.before);
  if (manner.status) {
    const headers = manner.status === 429 ? { "retry-after": "2" } : {};
    const { status, says, type, code } = manner;
    return send(response, problem(route, status, `${asked.model} ${says}.`, type, code, headers));
  }
  return succeed(response, route, asked, manner);
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
