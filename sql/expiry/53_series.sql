-- Rule: the funnel as a series, by hour and by minute. Receipts count in the hour of their event time, whatever their
-- order. A change of a message counts in the hour of the receipt that made it, so the sum over all hours is the funnel.
-- Most of it stands in the funnel's delta (../apply/31_delta_minutes.sql). Here is the rest: minute_cells
-- (../wake/45_alike.sql), and what echoes name, which is taken off again. A cell may be appended twice: the roll-up and
-- the view add up.
, minutes AS MATERIALIZED (
    SELECT m.campaign, m.minute, m.code, m.messages, m.events FROM minute_cells m
    UNION ALL
    SELECT e.campaign, bounded_minute(floor(date_part('epoch', e.at) / 60)::int8), c.code, 0, -1 FROM echoed e CROSS JOIN LATERAL receipt_codes(e.code, e.flags) c
),
series AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT 'hour', array_agg(p.campaign), array_agg(to_timestamp(p.hour * 3600)), array_fill(''::text, ARRAY[count(*)::int4]), array_agg(p.code), array_agg(p.messages), array_agg(p.events)
    FROM (SELECT m.campaign, m.minute / 60 AS hour, m.code, sum(m.messages)::int8 AS messages, sum(m.events)::int8 AS events FROM minutes m GROUP BY 1, 2, 3
          HAVING sum(m.messages) <> 0 OR sum(m.events) <> 0) p HAVING count(*) > 0
    UNION ALL
    SELECT 'minute', array_agg(m.campaign), array_agg(to_timestamp(m.minute * 60)), array_fill(''::text, ARRAY[count(*)::int4]), array_agg(m.code), array_agg(m.messages), array_agg(m.events)
    FROM minutes m WHERE m.minute > date_part('epoch', now()) / 60 - 1440 HAVING count(*) > 0
)
