-- Moves the oldest deltas into the totals: $1 int4 most rows, $2 int8 the id to begin at. Returns rows (handled; equal to
-- $1: there may be more), last (the highest id handled, 0: none), given (the highest id that a lane has drawn).
-- While some snapshot stays open the rows that were taken stay too, and a look from the beginning would pass by all of
-- them each time: so the next look begins behind the last one. Ids become visible in another order than they are drawn:
-- whoever calls leaves some room, and begins at 0 from time to time.
-- One statement: a reader sees a delta or its total, never both. The ids come as a sorted array, so two roll-ups lock in
-- the same order; the second finds the rows deleted. Totals are upserted in their own order for the same reason.
WITH
taken AS (
    DELETE FROM campaign_funnel_delta
    WHERE id = ANY (ARRAY(SELECT d.id FROM campaign_funnel_delta d WHERE d.id >= $2::int8 ORDER BY d.id LIMIT $1::int4))
    RETURNING id, campaign_id, status, messages, events
),
moved AS (
    INSERT INTO campaign_funnel_total AS t (campaign_id, status, messages, events)
    SELECT a.campaign_id, a.status, sum(a.messages), sum(a.events)
    FROM taken d, unnest(d.campaign_id, d.status, d.messages, d.events) AS a (campaign_id, status, messages, events)
    GROUP BY a.campaign_id, a.status
    ORDER BY a.campaign_id COLLATE "C", a.status
    ON CONFLICT (campaign_id, status) DO UPDATE
    SET messages = t.messages + excluded.messages, events = t.events + excluded.events
)
SELECT count(*) AS rows, COALESCE(max(id), 0) AS last,
       COALESCE(pg_sequence_last_value('campaign_funnel_delta_id_seq'), 0) AS given
FROM taken;
