// The little arithmetic of the cases: texts that begin with `=`, over + - * / ( ), a few functions, and the names in
// `values` (E, the hold of the case's request; RA, the last announced wait).

const FUNCTIONS = { ceil: Math.ceil, floor: Math.floor, max: Math.max, min: Math.min };

export function isExpression(value) {
  return typeof value === "string" && value.startsWith("=");
}

/** Whether an expression with this name occurs anywhere in a value. */
export function mentions(value, name) {
  if (isExpression(value)) return tokensOf(value.slice(1)).includes(name);
  return typeof value === "object" && value !== null && Object.values(value).some((inner) => mentions(inner, name));
}

/** The number that a number or an expression stands for. */
export function evaluate(value, values) {
  if (!isExpression(value)) return Number(value);
  const reader = new Reader(tokensOf(value.slice(1)), values);
  const result = reader.sum();
  if (reader.peek() !== undefined) throw new Error(`expression: ${value}: what is ${reader.peek()}?`);
  return result;
}

function tokensOf(text) {
  return text.match(/[0-9]+(?:\.[0-9]+)?|[A-Za-z]+|\S/g) ?? [];
}

class Reader {
  #at = 0;

  constructor(tokens, values) {
    this.tokens = tokens;
    this.values = values;
  }

  peek() {
    return this.tokens[this.#at];
  }

  sum() {
    let result = this.product();
    while (this.peek() === "+" || this.peek() === "-") {
      result += this.#next() === "+" ? this.product() : -this.product();
    }
    return result;
  }

  product() {
    let result = this.single();
    while (this.peek() === "*" || this.peek() === "/") {
      result = this.#next() === "*" ? result * this.single() : result / this.single();
    }
    return result;
  }

  single() {
    const token = this.#next();
    if (token === "-") return -this.single();
    if (token === "(") return this.#closed(this.sum());
    if (/^[0-9]/.test(token)) return Number(token);
    if (Object.hasOwn(FUNCTIONS, token)) return FUNCTIONS[token](...this.#list());
    const value = this.values[token];
    if (value === undefined) throw new Error(`expression: ${token} has no value`);
    return value;
  }

  #list() {
    if (this.#next() !== "(") throw new Error("expression: a function wants a parenthesis");
    const list = [this.sum()];
    while (this.peek() === ",") {
      this.#next();
      list.push(this.sum());
    }
    return this.#closed(list);
  }

  #closed(result) {
    if (this.#next() !== ")") throw new Error("expression: a parenthesis is not closed");
    return result;
  }

  #next() {
    const token = this.tokens[this.#at];
    this.#at += 1;
    if (token === undefined) throw new Error("expression: it ends too early");
    return token;
  }
}
