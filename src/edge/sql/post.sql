-- Takes one entry of a batch, once: the caller's row remembers the number of the last batch. A row that is not there
-- begins at nothing, and no row falls below nothing.
-- ?1 day ?2 key ?3 plan ?4 batch ?5 calls ?6 refused ?7 counted ?8 settled ?9 input ?10 output ?11 nano-USD ?12 the
-- site's calls ?13 the site's counted
WITH was(taken) AS (SELECT coalesce((SELECT batch FROM ledger WHERE day = ?1 AND key = ?2), 0) >= ?4)
INSERT INTO ledger
    (day, key, plan, batch, calls, refused, counted, settled, input_tokens, output_tokens, nano_usd)
SELECT ?1, ?2, ?3, ?4, max(0, ?5), ?6, max(0, ?7), ?8, max(0, ?9), max(0, ?10), max(0, ?11) FROM was WHERE NOT taken
UNION ALL
SELECT ?1, '*', '', 0, max(0, ?12), ?6, max(0, ?13), ?8, max(0, ?9), max(0, ?10), max(0, ?11) FROM was WHERE NOT taken
ON CONFLICT (day, key) DO UPDATE SET
    plan = excluded.plan, batch = max(batch, excluded.batch),
    calls = max(0, calls + CASE excluded.key WHEN '*' THEN ?12 ELSE ?5 END), refused = refused + ?6,
    counted = max(0, counted + CASE excluded.key WHEN '*' THEN ?13 ELSE ?7 END), settled = settled + ?8,
    input_tokens = max(0, input_tokens + ?9), output_tokens = max(0, output_tokens + ?10),
    nano_usd = max(0, nano_usd + ?11)
RETURNING day, key, calls, counted, pruned
