// The openai package, by responses.
import { PICTURE, TOOL, asked, each } from "./common.mjs";
import { errors, optionsOf, told } from "./openai.mjs";

function itemsFor({ prompt, image }) {
  const pieces = [{ type: "input_text", text: prompt }, { type: "input_image", image_url: PICTURE, detail: "auto" }];
  return [{ role: "user", content: image ? pieces : prompt }];
}

function requestFor(given) {
  const { model, tools, cap, input, ...rest } = asked(given);
  return {
    model,
    input: input ?? itemsFor(rest),
    ...(tools && { tools: [{ type: "function", strict: false, ...TOOL }] }),
    ...(cap !== undefined && { max_output_tokens: cap }),
  };
}

function answerOf({ output, output_text: text, status, usage }) {
  const asked = output.filter(({ type }) => type === "function_call");
  const calls = asked.map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) }));
  const finish = status === "incomplete" ? "length" : calls.length > 0 ? "tool_calls" : "stop";
  return { text, finish, usage: [usage.input_tokens, usage.output_tokens], calls, output };
}

const textIn = (output) =>
  output.flatMap(({ content }) => content ?? []).map(({ text }) => text ?? "").join("");

function callerOf(client) {
  const chat = async (given) => answerOf(await client.responses.create(requestFor(given)));
  return {
    chat,
    async stream(given) {
      let [last, text] = [undefined, ""];
      const stream = await client.responses.create({ ...requestFor(given), stream: true });
      const pieces = await each(stream, ({ type, delta, response }) => {
        if (type === "response.output_text.delta") text += delta;
        if (["response.completed", "response.incomplete"].includes(type)) last = response;
        return type.endsWith(".delta");
      });
      // The pieces have to be what the last event says.
      if (text !== textIn(last.output)) throw new Error(`${text} came, and at last ${textIn(last.output)}`);
      return { ...answerOf({ ...last, output_text: text }), pieces };
    },
    giveBack(answer, text, given) {
      const { call_id } = answer.output.find(({ type }) => type === "function_call");
      const result = { type: "function_call_output", call_id, output: text };
      return chat({ tools: true, input: [...itemsFor(asked(given)), ...answer.output, result] });
    },
  };
}

const habits = { asksForUsage: "always", badField: "max_output_tokens" };

export async function make(load, { baseURL, package: name }) {
  const { OpenAI } = await load(name);
  const connect = (apiKey, options) => callerOf(new OpenAI(optionsOf(baseURL, apiKey, options)));
  return { connect, told, errors, habits };
}
