-- A campaign ('': messages without one) recounted, against its counters: a row for each status: how many messages have it on their path, or
-- the flag, and what the counter says. targeted: with TARGETED, the root, which someone else counts where inbox.targeted is none. A plain
-- query, so that it becomes part of the statement that asks, and sees that statement's snapshot.
CREATE OR REPLACE FUNCTION campaign_recount(campaign text, targeted boolean)
RETURNS TABLE (status int2, rows int8, counter int8) LANGUAGE sql STABLE AS $$
    WITH groups AS MATERIALIZED (
        SELECT m.status, m.flags, count(*) AS n
        FROM message_inbox m
        WHERE m.campaign_id = campaign OR (campaign = '' AND m.campaign_id IS NULL)
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
    )
    SELECT COALESCE(c.status, x.status), COALESCE(c.n, 0), COALESCE(x.n, 0)
    FROM counted c
    FULL JOIN (SELECT f.status, f.messages AS n FROM campaign_funnel f WHERE f.campaign_id = campaign) x ON x.status = c.status
    WHERE targeted OR COALESCE(c.status, x.status) <> 0
$$;
