-- Rule: how long messages took from SENT to DELIVERED and from DELIVERED to OPENED, per campaign and gateway. The UPDATE keeps a message's first times in its row
-- (../apply/11_set_times.sql), so neither the order of receipts nor copies change them. A time that gets earlier moves the message from one bucket to another: its
-- place before comes from the same UPDATE, never from a join (../apply/10_update.sql says why). The cells are those of time_counts(), added up by bucket before
-- their keys become text; where a message stays in its bucket they cancel out.
, placed_before AS MATERIALIZED (
    SELECT u.campaign, u.deliver, u.open, COALESCE(u.first_gateway, '') AS gateway, NULLIF(split_part(u.was, '/', 1), '')::int2 AS was_deliver,
           NULLIF(split_part(u.was, '/', 2), '')::int2 AS was_open, substr(u.was, length(split_part(u.was, '/', 1)) + length(split_part(u.was, '/', 2)) + 3) AS was_gateway
    FROM u WHERE u.was IS NOT NULL AND u.was <> COALESCE(u.deliver::text, '') || '/' || COALESCE(u.open::text, '') || '/' || COALESCE(u.first_gateway, '')
),
moved AS MATERIALIZED (
    SELECT u.campaign, COALESCE(u.first_gateway, '') AS gateway, u.deliver, u.open, 1 AS n FROM u WHERE u.was IS NULL AND (u.deliver IS NOT NULL OR u.open IS NOT NULL)
    UNION ALL
    SELECT p.campaign, p.gateway, CASE WHEN p.gateway <> p.was_gateway OR p.deliver IS DISTINCT FROM p.was_deliver THEN p.deliver END,
           CASE WHEN p.gateway <> p.was_gateway OR p.open IS DISTINCT FROM p.was_open THEN p.open END, 1 FROM placed_before p
    UNION ALL
    SELECT p.campaign, p.was_gateway, CASE WHEN p.gateway <> p.was_gateway OR p.deliver IS DISTINCT FROM p.was_deliver THEN p.was_deliver END,
           CASE WHEN p.gateway <> p.was_gateway OR p.open IS DISTINCT FROM p.was_open THEN p.was_open END, -1 FROM placed_before p
),
times AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT 'time_to_deliver', array_agg(c.campaign), array_fill('-infinity'::timestamptz, ARRAY[count(*)::int4]), array_agg(time_key(c.bucket)),
           array_fill((SELECT p.code FROM message_status_priority p WHERE p.name = 'DELIVERED'), ARRAY[count(*)::int4]), array_agg(c.n), array_fill(0::int8, ARRAY[count(*)::int4])
    FROM (SELECT m.campaign, m.deliver AS bucket, sum(m.n) AS n FROM moved m WHERE m.deliver IS NOT NULL GROUP BY 1, 2 HAVING sum(m.n) <> 0) c HAVING count(*) > 0
    UNION ALL
    SELECT 'gateway_time_to_deliver', array_fill(''::text, ARRAY[count(*)::int4]), array_fill('-infinity'::timestamptz, ARRAY[count(*)::int4]), array_agg(c.gateway || '/' || time_key(c.bucket)),
           array_fill((SELECT p.code FROM message_status_priority p WHERE p.name = 'DELIVERED'), ARRAY[count(*)::int4]), array_agg(c.n), array_fill(0::int8, ARRAY[count(*)::int4])
    FROM (SELECT m.gateway, m.deliver AS bucket, sum(m.n) AS n FROM moved m WHERE m.deliver IS NOT NULL GROUP BY 1, 2 HAVING sum(m.n) <> 0) c HAVING count(*) > 0
    UNION ALL
    SELECT 'time_to_open', array_agg(c.campaign), array_fill('-infinity'::timestamptz, ARRAY[count(*)::int4]), array_agg(time_key(c.bucket)),
           array_fill((SELECT p.code FROM message_status_priority p WHERE p.name = 'OPENED'), ARRAY[count(*)::int4]), array_agg(c.n), array_fill(0::int8, ARRAY[count(*)::int4])
    FROM (SELECT m.campaign, m.open AS bucket, sum(m.n) AS n FROM moved m WHERE m.open IS NOT NULL GROUP BY 1, 2 HAVING sum(m.n) <> 0) c HAVING count(*) > 0
    UNION ALL
    SELECT 'gateway_time_to_open', array_fill(''::text, ARRAY[count(*)::int4]), array_fill('-infinity'::timestamptz, ARRAY[count(*)::int4]), array_agg(c.gateway || '/' || time_key(c.bucket)),
           array_fill((SELECT p.code FROM message_status_priority p WHERE p.name = 'OPENED'), ARRAY[count(*)::int4]), array_agg(c.n), array_fill(0::int8, ARRAY[count(*)::int4])
    FROM (SELECT m.gateway, m.open AS bucket, sum(m.n) AS n FROM moved m WHERE m.open IS NOT NULL GROUP BY 1, 2 HAVING sum(m.n) <> 0) c HAVING count(*) > 0
)
