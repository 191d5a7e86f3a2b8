-- Recount of one campaign against its counters, in one statement, hence one snapshot: $1 text campaign ('': messages
-- without one). One row per status: status, status_name, rows (messages on whose path it is, or with the flag), counter,
-- drift = counter - rows; all statuses, also where the drift is 0.
-- $2 bool: TARGETED (the root) is counted by us; false with inbox.targeted = none, then its row is left out.
WITH
groups AS MATERIALIZED (
    SELECT m.status, m.flags, count(*) AS n
    FROM message_inbox m
    WHERE m.campaign_id = $1::text OR ($1::text = '' AND m.campaign_id IS NULL)
    GROUP BY m.status, m.flags
),
counted AS (
    SELECT p.ancestor AS status, sum(g.n)::int8 AS n
    FROM groups g JOIN status_path p ON p.code = g.status
    GROUP BY p.ancestor
    UNION ALL
    SELECT (9001 + bit)::int2, sum(g.n)::int8
    FROM groups g, generate_series(0, 30) bit
    WHERE (g.flags >> bit) & 1 = 1
    GROUP BY bit
),
counter AS (
    SELECT f.status, f.messages AS n FROM campaign_funnel f WHERE f.campaign_id = $1::text
)
SELECT s.status, COALESCE(k.name, s.status::text) AS status_name, s.rows, s.counter, s.counter - s.rows AS drift
FROM (SELECT COALESCE(c.status, x.status) AS status, COALESCE(c.n, 0) AS rows, COALESCE(x.n, 0) AS counter
      FROM counted c FULL JOIN counter x ON x.status = c.status) s
LEFT JOIN message_status_priority k ON k.code = s.status
WHERE $2::bool OR s.status <> 0
ORDER BY s.status;
