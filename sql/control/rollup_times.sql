-- As rollup.sql, for campaign_time_delta, into campaign_tally_total: $1 int4 most rows, $2 int8 only ids above this
-- one. Returns rows and last. The cells are those of time_counts() and of the view campaign_tally: change all three.
-- They are added up by bucket before their keys become text.
WITH
taken AS (
    DELETE FROM campaign_time_delta
    WHERE id = ANY (ARRAY(SELECT d.id FROM campaign_time_delta d WHERE d.id > $2::int8 ORDER BY d.id LIMIT $1::int4))
    RETURNING id
),
-- This reads the rows as they were before this statement.
places AS MATERIALIZED (
    SELECT t.campaign_id, t.gateway, t.deliver, t.open, sum(t.n) AS n FROM campaign_time t WHERE t.id = ANY (ARRAY(SELECT d.id FROM taken d))
    GROUP BY t.campaign_id, t.gateway, t.deliver, t.open HAVING sum(t.n) <> 0
),
cells AS MATERIALIZED (
    SELECT 'time_to_deliver' AS kind, 'DELIVERED' AS status, p.campaign_id, p.gateway, p.deliver AS bucket, sum(p.n) AS n
    FROM places p WHERE p.deliver IS NOT NULL GROUP BY p.campaign_id, p.gateway, p.deliver
    UNION ALL
    SELECT 'time_to_open', 'OPENED', p.campaign_id, p.gateway, p.open, sum(p.n)
    FROM places p WHERE p.open IS NOT NULL GROUP BY p.campaign_id, p.gateway, p.open
),
moved AS (
    INSERT INTO campaign_tally_total AS t (campaign_id, kind, at, key, status, messages, events)
    SELECT c.campaign_id, c.kind, '-infinity', c.key, p.code, c.n, 0
    FROM (SELECT c.campaign_id, c.kind, c.status, time_key(c.bucket) AS key, sum(c.n) AS n FROM cells c GROUP BY c.campaign_id, c.kind, c.status, c.bucket
          UNION ALL
          SELECT '', 'gateway_' || c.kind, c.status, c.gateway || '/' || time_key(c.bucket), sum(c.n) FROM cells c GROUP BY c.gateway, c.kind, c.status, c.bucket) c
    JOIN message_status_priority p ON p.name = c.status
    WHERE c.n <> 0
    ORDER BY c.campaign_id COLLATE "C", c.kind, c.key COLLATE "C"
    ON CONFLICT (campaign_id, kind, at, key, status) DO UPDATE SET messages = t.messages + excluded.messages
)
SELECT count(*) AS rows, COALESCE(max(id), 0) AS last FROM taken;
