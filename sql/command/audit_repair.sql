-- Adds what is missing in one campaign's counters as one delta row: recount and difference in one statement. After
-- audit_lock.sql. $1 text campaign, $2 bool as for audit_campaign.sql. Returns repaired (statuses that were off).
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
),
missing AS MATERIALIZED (
    SELECT s.status, s.n
    FROM (SELECT COALESCE(c.status, x.status) AS status, COALESCE(c.n, 0) - COALESCE(x.n, 0) AS n
          FROM counted c FULL JOIN counter x ON x.status = c.status) s
    WHERE s.n <> 0 AND ($2::bool OR s.status <> 0)
),
delta AS (
    INSERT INTO campaign_funnel_delta (campaign_id, status, messages, events)
    SELECT array_agg($1::text), array_agg(m.status), array_agg(m.n), array_agg(0::int8)
    FROM missing m
    HAVING count(*) > 0
)
SELECT count(*) AS repaired FROM missing;
