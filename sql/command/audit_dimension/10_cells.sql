-- Recounts a dimension (counters.by) and compares its counters, in one snapshot. The statement is this file and
-- 90_list.sql or 90_repair.sql. Parameters: $1 text[] campaigns, $2 bool: TARGETED is counted by us. Variables:
-- column (of the inbox), kind (in campaign_tally). While no message of a campaign is gone, each key must say what its
-- rows say. Messages that are gone (deleted, or detached) have only the funnel, no keys. Then the sum over keys must
-- be the funnel. Counts that no row has come under 'other', and a repair puts them there.
WITH
live AS MATERIALIZED (
    SELECT COALESCE(m.campaign_id, '') AS campaign_id,
           dimension_key(m.:"column"::text COLLATE "C") AS key, m.status, m.flags, count(*) AS n
    FROM message_inbox m
    WHERE m.campaign_id = ANY ($1::text[]) OR ('' = ANY ($1::text[]) AND m.campaign_id IS NULL)
    GROUP BY 1, 2, 3, 4
),
gone AS MATERIALIZED (
    SELECT COALESCE(d.campaign_id, '') AS campaign_id FROM inbox_detached d
    WHERE d.campaign_id = ANY ($1::text[]) OR ('' = ANY ($1::text[]) AND d.campaign_id IS NULL)
    UNION SELECT l.campaign_id FROM detached_messages($1::text[]) l
    UNION SELECT r.campaign_id FROM campaign_retired r WHERE r.campaign_id = ANY ($1::text[])
),
stored AS MATERIALIZED (
    SELECT t.campaign_id, t.key, t.status, t.messages
    FROM campaign_tally t
    WHERE t.kind = :'kind' AND t.campaign_id = ANY ($1::text[])
),
-- Further keys count under 'other' (control/rollup.sql).
replete AS MATERIALIZED (
    SELECT s.campaign_id
    FROM stored s
    WHERE s.key <> 'other'
    GROUP BY s.campaign_id
    HAVING count(DISTINCT s.key) >= 1000
),
placed AS MATERIALIZED (
    SELECT l.campaign_id, l.status, l.flags, l.n,
           CASE WHEN l.campaign_id IN (SELECT f.campaign_id FROM replete f)
                     AND (l.campaign_id, l.key) NOT IN (SELECT s.campaign_id, s.key FROM stored s) THEN 'other'
                ELSE l.key END AS key
    FROM live l
),
counted AS MATERIALIZED (
    SELECT c.campaign_id, c.key, c.status, sum(c.n)::int8 AS n
    FROM (SELECT p.campaign_id, p.key, a.ancestor AS status, p.n FROM placed p JOIN status_path a ON a.code = p.status
          UNION ALL
          SELECT p.campaign_id, p.key, (9001 + bit)::int2, p.n
          FROM placed p, generate_series(0, 30) bit
          WHERE p.flags <> 0 AND (p.flags >> bit) & 1 = 1) c
    GROUP BY 1, 2, 3
),
rest AS MATERIALIZED (
    SELECT f.campaign_id, f.status, sum(f.n)::int8 AS n
    FROM (SELECT c.campaign_id, c.status, c.messages AS n FROM campaign_count c WHERE c.campaign_id = ANY ($1::text[])
          UNION ALL SELECT c.campaign_id, c.status, -c.n FROM counted c) f
    WHERE f.campaign_id IN (SELECT g.campaign_id FROM gone g)
    GROUP BY 1, 2
),
cell AS MATERIALIZED (
    SELECT c.campaign_id, c.key, c.status, sum(c.rows)::int8 AS rows, sum(c.counter)::int8 AS counter
    FROM (SELECT c.campaign_id, c.key, c.status, c.n AS rows, 0::int8 AS counter FROM counted c
          UNION ALL SELECT r.campaign_id, 'other', r.status, r.n, 0 FROM rest r
          UNION ALL SELECT s.campaign_id, s.key, s.status, 0, s.messages FROM stored s) c
    WHERE $2::bool OR c.status <> 0
    GROUP BY 1, 2, 3
),
-- The cells that are compared.
compared AS MATERIALIZED (
    SELECT c.campaign_id, CASE WHEN g.campaign_id IS NULL THEN c.key END AS key,
           c.status, sum(c.rows)::int8 AS rows, sum(c.counter)::int8 AS counter
    FROM cell c LEFT JOIN gone g ON g.campaign_id = c.campaign_id
    GROUP BY 1, 2, 3
),
-- Has messages that were inserted before the dimension was counted.
older AS MATERIALIZED (
    SELECT c.campaign_id
    FROM compared c
    WHERE c.status = 0 OR NOT $2::bool
    GROUP BY 1
    HAVING sum(c.counter) < sum(c.rows)
)
