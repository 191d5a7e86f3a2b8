-- Moves the oldest deltas into the totals: $1 int4 most rows, $2 int8 only ids above this one. Returns rows (handled; equal
-- to $1: there may be more) and last (the largest id handled, 0 if none).
-- The bound keeps the scan away from rows that were rolled up long ago and that an open snapshot keeps from being removed.
-- Rows of a transaction that commits late may lie below it, so now and then the bound is 0.
-- One statement: a reader sees a delta or its total, never both. The ids come as a sorted array, so two roll-ups lock in
-- the same order; the second finds the rows deleted. Totals and campaign_changed are upserted in their own order for the same
-- reason.
WITH
taken AS (
    DELETE FROM campaign_funnel_delta
    WHERE id = ANY (ARRAY(SELECT d.id FROM campaign_funnel_delta d WHERE d.id > $2::int8 ORDER BY d.id LIMIT $1::int4))
    RETURNING id, campaign_id, minute, status, messages, events
),
moved AS (
    INSERT INTO campaign_funnel_total AS t (campaign_id, status, messages, events)
    SELECT a.campaign_id, a.status, sum(a.messages), sum(a.events)
    FROM taken d, unnest(d.campaign_id, d.status, d.messages, d.events) AS a (campaign_id, status, messages, events)
    GROUP BY a.campaign_id, a.status
    ORDER BY a.campaign_id COLLATE "C", a.status
    ON CONFLICT (campaign_id, status) DO UPDATE
    SET messages = t.messages + excluded.messages, events = t.events + excluded.events
),
-- The series, where deltas say in which minute they count. Minutes are kept for a day.
minutes AS MATERIALIZED (
    SELECT a.campaign_id, a.minute, a.status, sum(a.messages) AS messages, sum(a.events) AS events
    FROM taken d, unnest(d.campaign_id, d.minute, d.status, d.messages, d.events) AS a (campaign_id, minute, status, messages, events)
    WHERE d.minute IS NOT NULL
    GROUP BY a.campaign_id, a.minute, a.status
),
series AS (
    INSERT INTO campaign_tally_total AS t (campaign_id, kind, at, key, status, messages, events)
    SELECT s.campaign_id, s.kind, s.at, '', s.status, s.messages, s.events
    FROM (SELECT m.campaign_id, 'hour' AS kind, to_timestamp(m.minute / 60 * 3600) AS at, m.status, sum(m.messages) AS messages, sum(m.events) AS events
          FROM minutes m GROUP BY m.campaign_id, m.minute / 60, m.status
          UNION ALL
          SELECT m.campaign_id, 'minute', to_timestamp(m.minute * 60), m.status, m.messages, m.events
          FROM minutes m WHERE m.minute > date_part('epoch', now()) / 60 - 1440) s
    ORDER BY s.campaign_id COLLATE "C", s.kind, s.at, s.status
    ON CONFLICT (campaign_id, kind, at, key, status) DO UPDATE
    SET messages = t.messages + excluded.messages, events = t.events + excluded.events
),
noted AS (
    INSERT INTO campaign_changed (campaign_id)
    SELECT DISTINCT a.campaign_id COLLATE "C" FROM taken d, unnest(d.campaign_id) AS a (campaign_id) ORDER BY 1
    ON CONFLICT (campaign_id) DO UPDATE SET changed_at = now()
)
SELECT count(*) AS rows, COALESCE(max(id), 0) AS last FROM taken;
