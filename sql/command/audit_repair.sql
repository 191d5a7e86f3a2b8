-- Repairs one campaign's counters, recount and repair in one statement. After audit_lock.sql. $1 text campaign, $2 bool
-- as for audit_campaign.sql. Returns repaired (statuses that were off) and booked (messages that are retired now).
--
-- A counter that is behind its messages gets the difference, as one delta row. So does one that is ahead, unless
-- messages went without their trigger (a partition was dropped, a trigger was off): then they are booked, and the
-- counters stay. It is so where the root is ahead; where someone else counts the root, where the statuses below it are
-- ahead as deleted messages leave them: none less than its children.
WITH
cell AS MATERIALIZED (
    SELECT s.status, s.counter - s.rows AS drift, k.parent, k.flag_bit
    FROM campaign_recount(ARRAY[$1::text], $2::bool) s
    LEFT JOIN message_status_priority k ON k.code = s.status
),
-- The number of missing messages whose own status is this one: its drift without that of its children.
standing AS MATERIALIZED (
    SELECT c.status, c.drift - COALESCE((SELECT sum(d.drift) FROM cell d WHERE d.parent = c.status), 0)::int8 AS n
    FROM cell c
    WHERE c.status < 9001
),
went AS MATERIALIZED (
    SELECT CASE WHEN $2::bool THEN COALESCE(bool_or(c.drift > 0) FILTER (WHERE c.status = 0), false)
                ELSE COALESCE(bool_or(c.drift > 0), false)
                     AND NOT EXISTS (SELECT FROM standing s WHERE s.n < 0) END AS unbooked
    FROM cell c
    WHERE c.status < 9001
),
retired AS (
    INSERT INTO campaign_retired (campaign_id, status, flags, messages)
    SELECT $1::text, s.status, 0, s.n FROM standing s, went WHERE went.unbooked AND s.n <> 0
    UNION ALL
    SELECT $1::text, NULL, 1 << (c.status - 9001), c.drift
    FROM cell c, went
    WHERE went.unbooked AND c.status >= 9001 AND c.drift > 0
    RETURNING status, messages
),
missing AS MATERIALIZED (
    SELECT c.status, -c.drift AS n
    FROM cell c, went
    WHERE CASE WHEN went.unbooked THEN c.status >= 9001 AND c.drift < 0 ELSE c.drift <> 0 END
),
delta AS (
    INSERT INTO counter_delta (kind, campaign_id, status, messages, events)
    SELECT 'funnel', array_agg($1::text), array_agg(m.status), array_agg(m.n), array_agg(0::int8)
    FROM missing m
    HAVING count(*) > 0
)
SELECT (SELECT count(*) FROM cell c WHERE c.drift <> 0) AS repaired,
       (SELECT COALESCE(sum(r.messages), 0)::int8 FROM retired r WHERE r.status IS NOT NULL) AS booked;
