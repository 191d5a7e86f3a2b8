-- Rule: a receipt that came before, within the window, is an echo: it is taken off `events` and counted as a duplicate. What makes two
-- receipts the same is their message and event: its event_id, else its status, flags and time (src/core/record_event.c). In one
-- process a message has one lane; two instances may hold copies of one receipt at once, and the key of the store decides between them. Outside of the window, or where it is off for a receipt, each counts.
, keyed AS MATERIALIZED (
    SELECT dedup_slot(c.at) AS slot, hashtextextended(c.id, 0) AS message, c.event, min(c.i) AS i, count(*)::int4 AS n
    FROM receipts c
    WHERE c.event IS NOT NULL AND c.at >= now() - interval '7 days' AND c.at < now() + interval '1 day'
    GROUP BY 1, 2, 3
),
stored AS (
    INSERT INTO receipt_counted (slot, message, event)
    SELECT k.slot, k.message, k.event FROM keyed k ON CONFLICT DO NOTHING RETURNING slot, message, event
),
-- Most batches have no echo: then as many were stored as there are, and no receipt is looked up.
fresh AS MATERIALIZED (SELECT (SELECT count(*) FROM stored) = (SELECT COALESCE(sum(k.n), 0) FROM keyed k) AS "all"),
-- NOT IN and IN … IS TRUE are hashed subplans. A join of CTEs would be a nested loop, since a generic plan expects few rows.
first_ones AS MATERIALIZED (
    SELECT k.i FROM keyed k WHERE ((k.slot, k.message, k.event) IN (SELECT s.slot, s.message, s.event FROM stored s)) IS TRUE
),
judged AS MATERIALIZED (
    SELECT c.*, NOT (SELECT f."all" FROM fresh f) AND c.event IS NOT NULL AND c.at >= now() - interval '7 days' AND c.at < now() + interval '1 day'
                AND (c.i IN (SELECT f.i FROM first_ones f)) IS NOT TRUE AS echo
    FROM receipts c
),
counted AS NOT MATERIALIZED (SELECT * FROM judged j WHERE NOT j.echo),
echoes AS MATERIALIZED (
    SELECT j.campaign, j.gateway, c.code, count(*) AS n
    FROM judged j CROSS JOIN LATERAL receipt_codes(j.code, j.flags) c WHERE j.echo GROUP BY 1, 2, 3
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
