-- As rollup.sql, for campaign_tally_delta: $1 int4 most rows, $2 int8 only ids above this one. Returns rows and last.
WITH
taken AS (
    DELETE FROM campaign_tally_delta
    WHERE id = ANY (ARRAY(SELECT d.id FROM campaign_tally_delta d WHERE d.id > $2::int8 ORDER BY d.id LIMIT $1::int4))
    RETURNING id, kind, campaign_id, at, key, status, messages, events
),
moved AS (
    INSERT INTO campaign_tally_total AS t (campaign_id, kind, at, key, status, messages, events)
    SELECT a.campaign_id, d.kind, a.at, a.key, a.status, sum(a.messages), sum(a.events)
    FROM taken d, unnest(d.campaign_id, d.at, d.key, d.status, d.messages, d.events) AS a (campaign_id, at, key, status, messages, events)
    GROUP BY a.campaign_id, d.kind, a.at, a.key, a.status
    ORDER BY a.campaign_id COLLATE "C", d.kind, a.at, a.key COLLATE "C", a.status
    ON CONFLICT (campaign_id, kind, at, key, status) DO UPDATE
    SET messages = t.messages + excluded.messages, events = t.events + excluded.events
)
SELECT count(*) AS rows, COALESCE(max(id), 0) AS last FROM taken;
