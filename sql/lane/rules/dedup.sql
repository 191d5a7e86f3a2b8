-- Rule: a receipt that came before, within the window, is an echo: it is taken off `events` and counted as a duplicate.
-- What makes two receipts the same is their message and event: its event_id, else its status, flags and time
-- (src/core/record_event.c). In one process a message has one lane; two instances may hold copies of one receipt at
-- once. What has come is in the store, whose index decides. Outside of the window, or where it is off for a receipt,
-- each counts. Variable: dedup_window, an interval of whole days.
, keyed AS MATERIALIZED (
    SELECT c.*, (c.at AT TIME ZONE 'UTC')::date AS day, hashtextextended(c.id, 0) AS message FROM receipts c
    WHERE c.event IS NOT NULL AND c.at >= date_trunc('day', now(), 'UTC') - :'dedup_window'::interval
      AND c.at < now() + interval '1 day'
),
wanted AS MATERIALIZED (
    SELECT k.day, k.message, k.event, min(k.i) AS i FROM keyed k GROUP BY 1, 2, 3
),
stored AS (
    INSERT INTO receipt_counted (day, message, event)
    SELECT w.day, w.message, w.event FROM wanted w ORDER BY w.day, w.message, w.event
    ON CONFLICT DO NOTHING RETURNING day, message, event
),
-- NOT IN and IN … IS TRUE are hashed subplans. A join of CTEs would be a nested loop, since a generic plan expects few
-- rows.
first_ones AS MATERIALIZED (
    SELECT w.i FROM wanted w WHERE ((w.day, w.message, w.event) IN (SELECT s.day, s.message, s.event FROM stored s)) IS TRUE
),
-- Most batches have no echo: then as many were stored as there are, and no receipt is looked up.
echoed AS MATERIALIZED (
    SELECT k.* FROM keyed k
    WHERE (SELECT count(*) FROM stored) < (SELECT count(*) FROM keyed)
      AND (k.i IN (SELECT f.i FROM first_ones f)) IS NOT TRUE
),
echoes AS MATERIALIZED (
    SELECT j.campaign, j.gateway, c.code, count(*) AS n
    FROM echoed j CROSS JOIN LATERAL receipt_codes(j.code, j.flags) c GROUP BY 1, 2, 3
),
uncounted AS (
    INSERT INTO campaign_funnel_delta (campaign_id, status, messages, events)
    SELECT array_agg(e.campaign), array_agg(e.code), array_agg(0::int8), array_agg(-e.n) FROM echoes e HAVING count(*) > 0
),
duplicates AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT 'duplicate', array_agg(e.campaign), array_agg('-infinity'::timestamptz), array_agg(COALESCE(e.gateway, '')), array_agg(e.code),
           array_agg(0::int8), array_agg(e.n)
    FROM echoes e HAVING count(*) > 0
)
