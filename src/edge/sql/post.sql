-- Takes one entry of a batch, once: the caller's row remembers the number of the last batch.
-- ?1 day ?2 key ?3 plan ?4 batch ?5 calls ?6 refused ?7 counted ?8 settled ?9 input ?10 output ?11 nano-USD ?12 the
-- site's calls ?13 the site's counted
WITH was(taken) AS (SELECT coalesce((SELECT batch FROM ledger WHERE day = ?1 AND key = ?2), 0) >= ?4)
INSERT INTO ledger
    (day, key, plan, batch, calls, refused, counted, settled, input_tokens, output_tokens, nano_usd)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11 FROM was WHERE NOT taken
UNION ALL
SELECT ?1, '*', '', 0, ?12, ?6, ?13, ?8, ?9, ?10, ?11 FROM was WHERE NOT taken
ON CONFLICT (day, key) DO UPDATE SET
    plan = excluded.plan, batch = max(batch, excluded.batch),
    calls = max(0, calls + excluded.calls), refused = refused + excluded.refused,
    counted = max(0, counted + excluded.counted), settled = settled + excluded.settled,
    input_tokens = max(0, input_tokens + excluded.input_tokens),
    output_tokens = max(0, output_tokens + excluded.output_tokens),
    nano_usd = max(0, nano_usd + excluded.nano_usd)
RETURNING key, calls, counted, pruned
