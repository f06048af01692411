-- Deletes visitors' rows of days before ?1, by one look at the key for each of those days that has rows at all: users'
-- rows are kept longer and must not be read every day.
WITH RECURSIVE days(day) AS (
    SELECT min(day) FROM ledger
    UNION ALL
    SELECT (SELECT min(ledger.day) FROM ledger WHERE ledger.day > days.day) FROM days WHERE days.day < ?1
)
DELETE FROM ledger
WHERE day IN (SELECT day FROM days WHERE day < ?1) AND key >= 'visitor:' AND key < 'visitor;'
