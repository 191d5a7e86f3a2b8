-- Moves the oldest deltas into the totals: $1 int4 most rows, $2 int8 only ids above this one. Returns rows (handled;
-- equal to $1: there may be more) and last (the largest id handled, 0 if none). The bound keeps the scan away from rows
-- that were rolled up long ago and that an open snapshot keeps from being removed. Rows of a transaction that commits
-- late may lie below it, so now and then the bound is 0. One statement: a reader sees a delta or its total, never both.
-- The ids come as a sorted array, so two roll-ups lock in the same order; the second finds the rows deleted. Totals and
-- campaign_changed are upserted in their own order for the same reason.
WITH
taken AS (
    DELETE FROM campaign_funnel_delta
    WHERE id = ANY (ARRAY(SELECT d.id FROM campaign_funnel_delta d WHERE d.id > $2::int8 ORDER BY d.id LIMIT $1::int4))
    RETURNING id, campaign_id, minute, status, messages, events
),
-- minute: where deltas say in which one they count, for the series. Minutes are kept for a day. unnest() in FROM would
-- store each array's rows first.
cells AS MATERIALIZED (
    SELECT a.campaign_id, a.minute, a.status, sum(a.messages)::int8 AS messages, sum(a.events)::int8 AS events
    FROM (SELECT unnest(d.campaign_id) AS campaign_id, unnest(d.minute) AS minute, unnest(d.status) AS status, unnest(d.messages) AS messages, unnest(d.events) AS events
          FROM taken d) a
    GROUP BY a.campaign_id, a.minute, a.status
),
moved AS (
    INSERT INTO campaign_funnel_total AS t (campaign_id, status, messages, events)
    SELECT c.campaign_id, c.status, sum(c.messages), sum(c.events) FROM cells c
    GROUP BY c.campaign_id, c.status
    ORDER BY c.campaign_id COLLATE "C", c.status
    ON CONFLICT (campaign_id, status) DO UPDATE
    SET messages = t.messages + excluded.messages, events = t.events + excluded.events
),
series AS (
    INSERT INTO campaign_tally_total AS t (campaign_id, kind, at, key, status, messages, events)
    SELECT s.campaign_id, s.kind, s.at, '', s.status, s.messages, s.events
    FROM (SELECT c.campaign_id, 'hour' AS kind, to_timestamp(c.minute / 60 * 3600) AS at, c.status, sum(c.messages) AS messages, sum(c.events) AS events
          FROM cells c WHERE c.minute IS NOT NULL GROUP BY c.campaign_id, c.minute / 60, c.status
          UNION ALL
          SELECT c.campaign_id, 'minute', to_timestamp(c.minute * 60), c.status, c.messages, c.events
          FROM cells c WHERE c.minute > date_part('epoch', now()) / 60 - 1440) s
    ORDER BY s.campaign_id COLLATE "C", s.kind, s.at, s.status
    ON CONFLICT (campaign_id, kind, at, key, status) DO UPDATE
    SET messages = t.messages + excluded.messages, events = t.events + excluded.events
),
noted AS (
    INSERT INTO campaign_changed (campaign_id)
    SELECT DISTINCT c.campaign_id COLLATE "C" FROM cells c ORDER BY 1
    ON CONFLICT (campaign_id) DO UPDATE SET changed_at = now()
)
SELECT count(*) AS rows, COALESCE(max(id), 0) AS last FROM taken;
