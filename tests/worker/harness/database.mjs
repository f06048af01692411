// Standing between the product and the ledger's database, and counting what passes.

const KINDS = [
  ["prune", /DELETE FROM ledger|SET pruned/],
  ["gate", /gate\(ok\)/],
  ["post", /was\(taken\)/],
  ["row", /^SELECT/],
];

function kindOf(sql) {
  const kind = KINDS.find(([, pattern]) => pattern.test(sql))?.[0];
  if (!kind) throw new Error(`the harness does not know this statement: ${sql}`);
  return kind;
}

/** The database with faults between it and whoever uses it. `who` is `worker` or `object`. */
export function standBeforeDatabase(database, faults, who) {
  const wrapped = (sql, statement) => ({
    sql,
    statement,
    bind: (...values) => wrapped(sql, statement.bind(...values)),
    all: () => ask(kindOf(sql), 1, async () => [await statement.all()]).then(([result]) => result),
  });
  const ask = async (kind, statements, execute) => {
    const effect = faults.take("ledger", kind);
    const noted = { who, kind, statements, effect, done: false };
    faults.statements.push(noted);
    const executed = async () => {
      const results = await execute();
      const sum = (name) => results.reduce((total, { meta }) => total + (meta[name] ?? 0), 0);
      Object.assign(noted, { done: true, written: sum("rows_written"), read: sum("rows_read") });
      return results;
    };
    return affected(effect, executed);
  };
  return {
    prepare: (sql) => wrapped(sql, database.prepare(sql)),
    batch: (list) =>
      ask(kindOf(list[0].sql), list.length, () => database.batch(list.map(({ statement }) => statement))),
  };
}

async function affected(effect, executed) {
  switch (effect) {
    case undefined:
    case "passes":
      return executed();
    case "fails":
      throw new Error("fault: the statement was not carried out");
    case "reply-lost":
      await executed();
      throw new Error("fault: the statement was carried out, its reply is lost");
    case "twice":
      await executed();
      return executed();
    case "hangs":
      return forever();
    case "hangs-after":
      await executed();
      return forever();
    default:
      throw new Error(`unknown effect: ${effect}`);
  }
}

/** A timer keeps the platform from seeing that this can never end. */
export function forever() {
  return new Promise((resolve) => setTimeout(resolve, 3_600_000));
}
