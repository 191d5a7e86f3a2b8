-- Does a new ladder contradict rows in use? $1 int2[] codes, $2 text[] names, $3 int2[] parents, $4 int2[] flag bits:
-- as for ladder_fill; $5 … $7 what retired messages use (ladder_retired.sql). One row per contradiction: code, name
-- (today's), rows, problem. Counts the rows themselves, and the retired ones, not the counters: one pass over the
-- inbox, so only run it when the ladder's hash has changed.
WITH fresh AS (
    SELECT * FROM unnest($1::int2[], $2::text[], $3::int2[], $4::int2[]) AS f (code, name, parent, flag_bit)
),
used AS MATERIALIZED (
    SELECT m.status, m.flags, count(*) AS n FROM message_inbox m GROUP BY m.status, m.flags
    UNION ALL
    SELECT * FROM unnest($5::int2[], $6::int4[], $7::int8[])
),
uses AS (
    -- A row uses every status on its path: moving one of them would change what the row has counted.
    SELECT COALESCE(p.ancestor, u.status) AS code, sum(u.n) AS n
    FROM used u LEFT JOIN status_path p ON p.code = u.status
    WHERE u.status <> 0 -- NULL, too, drops out: flags that are booked alone
    GROUP BY 1
    UNION ALL
    SELECT 9001 + bit, sum(u.n) FROM used u, generate_series(0, 30) bit WHERE (u.flags >> bit) & 1 = 1 GROUP BY bit
)
SELECT s.code, COALESCE(k.name, s.code::text) AS name, s.n::bigint AS rows,
       CASE WHEN f.code IS NULL THEN 'is in use, but not in the new ladder'
            WHEN k.flag_bit IS NOT NULL THEN 'is in use, but its bit means ' || f.name || ' in the new ladder'
            ELSE 'is in use, but its parent changes from ' || COALESCE(k.parent::text, 'none') || ' to '
                 || COALESCE(f.parent::text, 'none') END AS problem
FROM uses s
LEFT JOIN message_status_priority k ON k.code = s.code
LEFT JOIN fresh f ON f.code = s.code
WHERE f.code IS NULL
   OR (k.code IS NOT NULL AND k.flag_bit IS NULL AND f.parent IS DISTINCT FROM k.parent)
   OR (k.flag_bit IS NOT NULL AND f.name <> k.name)
UNION ALL
SELECT e.status, COALESCE(k.name, e.status::text), count(*), 'is named by parked receipts, but not in the new ladder'
FROM parked_event e
LEFT JOIN message_status_priority k ON k.code = e.status
WHERE e.status <> ALL ($1::int2[])
GROUP BY e.status, k.name
ORDER BY 1;
