-- The day's ledger: a row for each UTC day and key, and one row `*` a day for the whole site. Counter and record in one.
CREATE TABLE ledger (
    day INTEGER NOT NULL,                      -- days since 1970-01-01
    key TEXT NOT NULL,                         -- `user:…`, `visitor:…` (a keyed hash), or `*`
    plan TEXT NOT NULL DEFAULT '',
    calls INTEGER NOT NULL DEFAULT 0,          -- admitted
    refused INTEGER NOT NULL DEFAULT 0,
    counted INTEGER NOT NULL DEFAULT 0,        -- nano-USD against the caps: estimates of open calls, cost of ended ones
    settled INTEGER NOT NULL DEFAULT 0,        -- calls that ended with a charge
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    nano_usd INTEGER NOT NULL DEFAULT 0,       -- what was charged
    batch INTEGER NOT NULL DEFAULT 0,          -- the last batch of the key's object that was taken
    pruned INTEGER NOT NULL DEFAULT 0,         -- on `*`: old rows have been deleted on this day
    PRIMARY KEY (day, key)
) STRICT, WITHOUT ROWID;
