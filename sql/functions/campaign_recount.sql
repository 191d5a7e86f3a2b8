-- Recounts campaigns ('': messages without one) and compares their counters. A row for each campaign and status:
-- rows, counter. The rows are messages, live, detached or retired, that have the status on their path, or the flag.
--
-- targeted: with TARGETED, the root, which receiptd does not count where inbox.targeted is none. A plain query, so
-- that it becomes part of the statement that asks, and sees that statement's snapshot.
CREATE OR REPLACE FUNCTION campaign_recount(campaigns text[], targeted boolean)
RETURNS TABLE (campaign_id text, status int2, rows int8, counter int8) LANGUAGE sql STABLE AS $$
    WITH groups AS MATERIALIZED (
        SELECT COALESCE(m.campaign_id, '') AS campaign_id, m.status, m.flags, count(*) AS n
        FROM message_inbox m
        WHERE m.campaign_id = ANY (campaign_recount.campaigns)
           OR ('' = ANY (campaign_recount.campaigns) AND m.campaign_id IS NULL)
        GROUP BY 1, 2, 3
        UNION ALL
        -- After message_inbox: tables are locked in this order, so a partition that is detached meanwhile is counted
        -- once.
        SELECT COALESCE(d.campaign_id, ''), d.status, d.flags, count(*)
        FROM inbox_detached d
        WHERE d.campaign_id = ANY (campaign_recount.campaigns)
           OR ('' = ANY (campaign_recount.campaigns) AND d.campaign_id IS NULL)
        GROUP BY 1, 2, 3
        UNION ALL
        SELECT l.campaign_id, l.status, l.flags, l.messages FROM detached_messages(campaign_recount.campaigns) l
        UNION ALL
        SELECT r.campaign_id, r.status, r.flags, sum(r.messages)::int8
        FROM campaign_retired r
        WHERE r.campaign_id = ANY (campaigns)
        GROUP BY 1, 2, 3
    ),
    cells AS (
        SELECT g.campaign_id, p.ancestor AS status, g.n, 0::int8 AS counter
        FROM groups g JOIN status_path p ON p.code = g.status
        UNION ALL
        SELECT g.campaign_id, (9001 + bit)::int2, g.n, 0
        FROM groups g, generate_series(0, 30) bit
        WHERE g.flags <> 0 AND (g.flags >> bit) & 1 = 1
        UNION ALL
        SELECT f.campaign_id, f.status, 0, f.messages
        FROM campaign_count f
        WHERE f.campaign_id = ANY (campaigns)
    )
    SELECT c.campaign_id, c.status, sum(c.n)::int8, sum(c.counter)::int8
    FROM cells c
    WHERE targeted OR c.status <> 0
    GROUP BY c.campaign_id, c.status
$$;
