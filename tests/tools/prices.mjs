// Compares the shipped prices with a public price file of LiteLLM's format, and takes them over:
//   npm run prices -- --from prices.json              shows what differs; a URL does as well
//   npm run prices -- --from … --write                takes it over, with today's date as the table's version
//   npm run prices -- --from … --add groq/a,b         takes these models as well, by their names in the file
//   npm run prices -- --from … --accept a,b           takes over what looks wrong, or is gone, of these models
// Prices are read as decimal texts and never become floats.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { fail, root, step } from "./setup.mjs";

export const TABLE = join(root, "src", "policy", "prices.json");
const FETCH_MS = 60_000;

/** The upstreams that the table names: whose models they serve there, and how the file calls those. */
const UPSTREAMS = {
  default: { provider: "openai", prefix: "" },
  anthropic: { provider: "anthropic", prefix: "", more: { output_field: "max_tokens" } },
  gemini: { provider: "gemini", prefix: "gemini/" },
  mistral: { provider: "mistral", prefix: "mistral/", more: { output_field: "max_tokens" } },
  xai: { provider: "xai", prefix: "xai/" },
  deepseek: { provider: "deepseek", prefix: "deepseek/", more: { output_field: "max_tokens" } },
  groq: { provider: "groq", prefix: "groq/" },
  "workers-ai": { provider: "cloudflare", prefix: "cloudflare/", more: { output_field: "max_tokens" } },
};

const PROVIDERS = Object.values(UPSTREAMS).map(({ provider }) => provider);

/** Prices of tokens read and written: the field of the table, and that of the file. The plain one comes first. */
const INPUT = {
  input: "input_cost_per_token",
  cached_input: "cache_read_input_token_cost",
  cache_write: "cache_creation_input_token_cost",
  cache_write_long: "cache_creation_input_token_cost_above_1hr",
  audio_input: "input_cost_per_audio_token",
  image_input: "input_cost_per_image_token",
};
const OUTPUT = {
  output: "output_cost_per_token",
  reasoning: "output_cost_per_reasoning_token",
  audio_output: "output_cost_per_audio_token",
  image_output: "output_cost_per_image_token",
};
const TOKENS = { ...INPUT, ...OUTPUT };
const UNITS = ["per_million_characters", "per_minute", "per_image", "per_call", "per_tool_call"];
const LONG = ["above", "input_percent", "output_percent"].map((field) => `long_context.${field}`);
const PERCENTS = ["flex_percent", "priority_percent", "ultrafast_percent"];
const MONEY = [...Object.keys(TOKENS), ...UNITS];
const FIELDS = [...MONEY, ...PERCENTS, ...LONG];

/** Billionths of a dollar per million tokens, of a price per token: a million times a billion. */
const PER_MILLION = 15;
/** Billionths of a dollar. */
const EACH = 9;

const divideUp = (amount, by) => (amount + by - 1n) / by;
const largest = (amounts) => amounts.reduce((most, amount) => (amount > most ? amount : most), 0n);

/** An object of those of the fields that have a value. */
function pick(fields, of) {
  const entries = fields.map((field) => [field, of(field)]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** A JSON number's text times ten to the power of `places`, rounded up; `times` multiplies it first. */
export function scaled(text, places, times = 1n) {
  const [, sign, whole, fraction = "", exponent = "0"] = text.match(/^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/);
  const amount = BigInt(`${sign}${whole}${fraction}`) * times;
  const shift = places + Number(exponent) - fraction.length;
  return shift >= 0 ? amount * 10n ** BigInt(shift) : divideUp(amount, 10n ** BigInt(-shift));
}

/** Billionths of a dollar as the policy writes money: `0.075`. */
export function dollars(nano) {
  const digits = String(nano).padStart(EACH + 1, "0");
  return `${digits.slice(0, -EACH)}.${digits.slice(-EACH)}`.replace(/\.?0+$/, "");
}

/** JSON in which every number is `{ number: its text }`. */
export function parse(text) {
  const TOKENS = /"(?:[^"\\]|\\.)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  // What is no JSON must not become some.
  const file = JSON.parse(text);
  if (file === null || typeof file !== "object" || Array.isArray(file)) throw new Error("want an object of models");
  return JSON.parse(text.replace(TOKENS, (found) => (found.startsWith('"') ? found : `{"number":"${found}"}`)));
}

/** Reads one model of the file; what is wrong with it is told to `refuse`. */
function reader(model, refuse) {
  return (key, places, times) => {
    const value = key.split(".").reduce((from, name) => from?.[name], model) ?? undefined;
    if (value === undefined) return undefined;
    const text = value.number;
    if (typeof text !== "string") return void refuse(`${key} is ${JSON.stringify(value)}, want a number`);
    if (text.startsWith("-")) return void refuse(`${key} is ${text}, want at least 0`);
    return scaled(text, places, times);
  };
}

/** What `tokens` cost under a suffix such as `_flex`, in hundredths of their plain price: the most of all of them. */
function percentOf(read, tokens, suffix) {
  const ratios = Object.values(tokens).map((key) => {
    const [plain, other] = [read(key, PER_MILLION), read(`${key}${suffix}`, PER_MILLION)];
    return plain && other !== undefined ? divideUp(other * 100n, plain) : 0n;
  });
  return largest(ratios);
}

/** What a tier costs, where both input and output have a price there. */
function tierOf(read, tier) {
  const isStated = (key) => read(`${key}_${tier}`, PER_MILLION) !== undefined;
  if (!isStated(INPUT.input) || !isStated(OUTPUT.output)) return undefined;
  const percent = largest([INPUT, OUTPUT].map((tokens) => percentOf(read, tokens, `_${tier}`)));
  // Where the file has no cheaper price for what is cached, all of it is held at the plain one.
  return tier === "flex" && percent > 100n ? 100n : percent;
}

/** The first step for long prompts, at what the dearest step costs; hundredths below 100 are none. */
function stepOf(model, read) {
  const steps = Object.keys(model).flatMap((key) => key.match(/^input_cost_per_token_above_(\d+)k_tokens$/)?.[1] ?? []);
  if (steps.length === 0) return {};
  const most = (tokens) => largest([100n, ...steps.map((k) => percentOf(read, tokens, `_above_${k}k_tokens`))]);
  const amounts = [BigInt(Math.min(...steps.map(Number))) * 1_000n, most(INPUT), most(OUTPUT)];
  return largest(amounts.slice(1)) > 100n ? pick(LONG, (field) => amounts[LONG.indexOf(field)]) : {};
}

/** The fields of a price, as billionths of dollars, hundredths and tokens. */
export function priceOf(model, refuse) {
  const read = reader(model, refuse);
  const tokens = pick(Object.keys(TOKENS), (field) => {
    const amount = read(TOKENS[field], PER_MILLION);
    // A zero beside a price is more often a gap in the file than a present: without it the plain price holds.
    return amount === 0n && field !== "input" && field !== "output" ? undefined : amount;
  });
  const isImage = model.mode === "image_generation" && tokens.image_output === undefined;
  const searches = Object.keys(model.search_context_cost_per_query ?? {});
  const units = {
    per_million_characters: read("input_cost_per_character", PER_MILLION),
    // Where tokens have a price, that of a second is only what they come to.
    per_minute: tokens.input === undefined ? read("input_cost_per_second", EACH, 60n) : undefined,
    per_image: isImage ? (read("output_cost_per_image", EACH) ?? read("input_cost_per_image", EACH)) : undefined,
    per_call: read("input_cost_per_request", EACH),
    per_tool_call: largest(searches.map((size) => read(`search_context_cost_per_query.${size}`, EACH) ?? 0n)),
    flex_percent: tierOf(read, "flex"),
    priority_percent: tierOf(read, "priority") ?? read("provider_specific_entry.fast", 2),
    ultrafast_percent: tierOf(read, "ultrafast"),
  };
  const others = pick(Object.keys(units), (field) => units[field] || undefined);
  const found = { ...tokens, ...others, ...stepOf(model, read) };
  const isWriting = ["chat", "responses", "completion"].includes(model.mode);
  const isWhole = [INPUT.input, OUTPUT.output].every((key) => model[key] !== undefined);
  if (isWriting ? !isWhole : Object.keys(found).length === 0) refuse("it has no price");
  if (found.cached_input > found.input) refuse("what is cached costs more than what is not");
  return { input: 0n, output: largest([found.audio_output ?? 0n, found.image_output ?? 0n]), ...found };
}

/** A price without what it would be anyway, so that whoever changes the plain price changes it too. */
function lean({ input, output, ...price }) {
  const plain = { cached_input: input, cache_write: input, image_input: input, reasoning: output, flex_percent: 100n };
  const full = { ...price, input, output };
  return pick(FIELDS, (field) => (full[field] === plain[field] ? undefined : full[field]));
}

/** The price of a model of the table as amounts. */
function amountsOf(model) {
  const value = (field) => field.split(".").reduce((from, name) => from?.[name], model);
  const amount = (field, value) => (MONEY.includes(field) ? scaled(value, EACH) : BigInt(value));
  return pick(FIELDS, (field) => (value(field) === undefined ? undefined : amount(field, value(field))));
}

/** A model of the table with this price: `long_context` is a table of its own there. */
function withPrice({ upstream, ...model }, amounts) {
  const price = upstream ? { upstream } : {};
  for (const [field, amount] of Object.entries(amounts)) {
    const [table, name] = field.split(".");
    if (name) price[table] = { ...price[table], [name]: Number(amount) };
    else price[field] = MONEY.includes(field) ? dollars(amount) : Number(amount);
  }
  const isPrice = (field) => FIELDS.includes(field) || field === "long_context";
  return { ...price, ...pick(Object.keys(model), (field) => (isPrice(field) ? undefined : model[field])) };
}

const isFar = (was, is) => (was === 0n || is === 0n ? was !== is : is > was * 10n || is * 10n < was);

/** Compares a model of the table with one of the file: what differs, what of it is doubtful, and the new model. */
function compare(name, old, found, { refuse, doubt }) {
  if (!found) return void doubt("the file does not have it any more");
  const faults = [];
  const price = priceOf(found, (why) => faults.push(why));
  const [was, is] = [amountsOf(old), lean(price)];
  for (const field of ["input", "output"].filter((field) => was[field] > 0n && price[field] === 0n)) {
    if (found[TOKENS[field]] === undefined) faults.push(`${field} has no price any more`);
  }
  if (faults.length > 0) return void faults.forEach(refuse);
  const differs = FIELDS.filter((field) => was[field] !== (field in was ? price[field] : is[field]));
  for (const field of differs.filter((field) => field in was)) {
    if (price[field] === undefined) doubt(`${field} has no price any more`);
    else if (isFar(was[field], price[field])) doubt(`${field} is over ten times the old one, or under a tenth of it`);
  }
  const rows = differs.map((field) => ({ name, field, was: was[field], is: price[field] }));
  return { rows, model: withPrice(old, is) };
}

/** The table with the file's prices, the rows that differ, and why some cannot be taken over. */
export function update(table, file, { add = [], accept = [], today }) {
  const [rows, refusals, models] = [[], new Set(), {}];
  const take = (name, source, old) => {
    const refuse = (why) => refusals.add(`${name}: ${why}`);
    const doubt = (why) => accept.includes(name) || refuse(`${why} (--accept ${name} lets it be)`);
    const found = Object.hasOwn(file, source) ? file[source] : undefined;
    const compared = compare(name, old, found, { refuse, doubt });
    rows.push(...(compared?.rows ?? []));
    models[name] = compared?.model ?? old;
  };
  for (const [name, old] of Object.entries(table.models)) {
    take(name, `${UPSTREAMS[old.upstream ?? "default"].prefix}${old.upstream_model ?? name}`, old);
  }
  for (const source of add) {
    const added = Object.hasOwn(file, source) ? addition(file[source]) : undefined;
    const name = source.slice(added?.prefix.length);
    if (!added) refusals.add(`--add ${source}: the file has no such model of ${PROVIDERS.join(", ")}`);
    else if (!Object.hasOwn(models, name)) take(name, source, added.fields);
  }
  const unknown = accept.filter((name) => !Object.hasOwn(models, name));
  for (const name of unknown) refusals.add(`--accept ${name}: the table has no such model`);
  const place = ([, model]) => Object.keys(UPSTREAMS).indexOf(model.upstream ?? "default");
  const sorted = Object.entries(models).sort((one, other) => place(one) - place(other));
  return { table: { ...table, version: today, models: Object.fromEntries(sorted) }, rows, refusals: [...refusals] };
}

/** What an added model has beside its price. */
function addition(model) {
  const [upstream, { prefix, more = {} } = {}] =
    Object.entries(UPSTREAMS).find(([, { provider }]) => provider === model?.litellm_provider) ?? [];
  if (!upstream) return undefined;
  const fields = upstream === "default" ? {} : { upstream };
  // A call may embed or check several texts, and the file gives the length of one.
  const isText = ["chat", "responses", "completion", "audio_transcription"].includes(model.mode);
  if (!isText) return { prefix, fields };
  const limits = { max_output: model.max_output_tokens ?? model.max_input_tokens, context: model.max_input_tokens };
  const stated = pick(Object.keys(limits), (field) => limits[field] && Number(limits[field].number));
  return { prefix, fields: { ...fields, ...stated, ...more } };
}

/** The table as it is written: a line for each model, so that a change is one. */
export function text({ models, ...head }) {
  const line = (model) => JSON.stringify(model, null, 1).replace(/\n */g, " ");
  const lines = Object.entries(models).map(([name, model]) => `    ${JSON.stringify(name)}: ${line(model)}`);
  return `${JSON.stringify(head, null, 2).slice(0, -2)},\n  "models": {\n${lines.join(",\n")}\n  }\n}\n`;
}

function percent(was, is) {
  if (!was || is === undefined) return "";
  const thousandths = ((is - was) * 1_000n) / was;
  const magnitude = String(thousandths < 0n ? -thousandths : thousandths).padStart(2, "0");
  return `${thousandths < 0n ? "-" : "+"}${magnitude.slice(0, -1)}.${magnitude.slice(-1)} %`;
}

/** The rows that differ, in columns. */
export function shown(rows) {
  const cells = rows.map(({ name, field, was, is }) => {
    const show = (amount = "-") => (MONEY.includes(field) && amount !== "-" ? dollars(amount) : String(amount));
    return [name, field, show(was), show(is), percent(was, is)];
  });
  const all = [["model", "field", "old", "new", "change"], ...cells];
  const widths = all[0].map((_, column) => Math.max(...all.map((row) => row[column].length)));
  return all.map((row) => row.map((cell, column) => cell.padEnd(widths[column])).join("  ").trimEnd()).join("\n");
}

async function fetched(from) {
  if (!/^https?:\/\//.test(from)) return readFileSync(from, "utf8");
  const response = await fetch(from, { signal: AbortSignal.timeout(FETCH_MS) });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response.text();
}

async function main() {
  const list = { type: "string", default: "" };
  const { values } = parseArgs({
    options: {
      from: { type: "string" },
      table: { type: "string", default: TABLE },
      add: list,
      accept: list,
      write: { type: "boolean", default: false },
    },
  });
  if (!values.from) fail("--from: got nothing, want a price file or its URL");
  const names = (list) => list.split(",").filter(Boolean);
  const file = await fetched(values.from)
    .then(parse)
    .catch(({ message }) => fail(`--from ${values.from}: ${message}`));
  const table = JSON.parse(readFileSync(values.table, "utf8"));
  const today = new Date().toISOString().slice(0, 10);
  const [add, accept] = [names(values.add), names(values.accept)];
  const { table: updated, rows, refusals } = update(table, file, { add, accept, today });
  if (rows.length > 0) console.log(shown(rows));
  if (refusals.length > 0) fail(`nothing is taken over:\n${refusals.map((refusal) => `  ${refusal}`).join("\n")}`);
  step(`${Object.keys(updated.models).length} models, ${rows.length} prices differ from those of ${table.version}`);
  if (!values.write) return;
  writeFileSync(values.table, text(updated));
  step(`written to ${values.table}`);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await main();
