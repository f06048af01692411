-- Checks the caller's caps and the site's, and counts both or neither. Its source is read whole before anything is
-- written, so both rows are decided on what was there.
-- ?1 day ?2 key ?3 plan ?4 estimate ?5 ?6 the caller's caps (calls, nano-USD) ?7 ?8 the site's ?9 counts for the site
WITH was(own_calls, own_counted, site_calls, site_counted) AS (
    SELECT coalesce((SELECT calls FROM ledger WHERE day = ?1 AND key = ?2), 0),
           coalesce((SELECT counted FROM ledger WHERE day = ?1 AND key = ?2), 0),
           coalesce((SELECT calls FROM ledger WHERE day = ?1 AND key = '*'), 0),
           coalesce((SELECT counted FROM ledger WHERE day = ?1 AND key = '*'), 0)
), gate(ok) AS (
    SELECT (?5 IS NULL OR own_calls < ?5) AND (?6 IS NULL OR ?4 = 0 OR own_counted + ?4 <= ?6)
       AND (?7 IS NULL OR site_calls < ?7) AND (?8 IS NULL OR ?4 = 0 OR site_counted + ?4 <= ?8)
    FROM was
)
INSERT INTO ledger (day, key, plan, calls, refused, counted)
SELECT ?1, ?2, ?3, ok, 1 - ok, ok * ?4 FROM gate
UNION ALL
SELECT ?1, '*', '', ?9, 0, ?9 * ?4 FROM gate WHERE ok
ON CONFLICT (day, key) DO UPDATE SET
    calls = calls + excluded.calls, refused = refused + excluded.refused, counted = counted + excluded.counted
RETURNING day, key, calls, counted, pruned
