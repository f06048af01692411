// Which clients there are, by how their test programs are started: an adapter that calls a package, and the tests that
// are run over it.

/** What a conversation has to show, over whichever route. */
const CONVERSATION = ["chat", "errors", "waits"];
const OPENAI = [...CONVERSATION, "embeddings", "openai"];
const CHAT = [...CONVERSATION, "embeddings"];

/** By the file of requirements that a package is installed from. */
export const PYTHON = [
  { venv: "3", package: "openai", adapter: "openai_chat", tests: OPENAI },
  { venv: "2", package: "openai", adapter: "openai_chat", tests: OPENAI },
  { venv: "1", package: "openai", adapter: "openai_chat", tests: OPENAI },
  { venv: "2", package: "langchain-openai", adapter: "langchain", tests: CHAT },
  { venv: "2", package: "litellm", adapter: "litellm_chat", tests: CHAT },
  { venv: "3", package: "openai", adapter: "openai_responses", route: "responses", tests: CONVERSATION },
  { venv: "1", package: "openai", adapter: "openai_responses", route: "responses", tests: CONVERSATION },
  { venv: "2", package: "langchain-openai", adapter: "langchain", route: "responses", tests: CONVERSATION },
  { venv: "2", package: "litellm", adapter: "litellm_responses", route: "responses", tests: ["chat"] },
  { venv: "2", package: "anthropic", adapter: "anthropic_messages", tests: CONVERSATION },
];

const aiSdk = (major, kind) => ({
  package: `ai-${major}`,
  provider: `ai-${major}-${kind}`,
  adapter: "ai-sdk",
  kind,
  // Version 6 hands on what came in the stream, version 7 makes an error of it.
  brokenStream: major === 6 ? "Object" : "AI_StreamProviderError",
  tests: CHAT,
});

const aiSdkResponses = (major) => ({
  ...aiSdk(major, "openai"),
  kind: "responses",
  route: "responses",
  tests: CONVERSATION,
});

/** By the packages' names in package.json. */
export const NODE = [
  { package: "openai", adapter: "openai", tests: OPENAI },
  { package: "openai-6", adapter: "openai", tests: OPENAI },
  aiSdk(7, "openai"),
  aiSdk(7, "compatible"),
  aiSdk(6, "openai"),
  aiSdk(6, "compatible"),
  { package: "@langchain/openai", adapter: "langchain", tests: CHAT },
  { package: "openai", adapter: "openai-responses", route: "responses", tests: CONVERSATION },
  aiSdkResponses(7),
  aiSdkResponses(6),
  { package: "@langchain/openai", adapter: "langchain", route: "responses", tests: CONVERSATION },
  { package: "@anthropic-ai/sdk", adapter: "anthropic", tests: CONVERSATION },
];
