-- Rule: the funnel as a series, by hour and by minute. Receipts count in the hour of their event time, whatever their order. A change of a message
-- counts in the hour of the receipt that made it, so the sum over all hours is the funnel. What echoes name is taken off. Counts are int4 until the last sum,
-- since a sum of int8 is a numeric, and only what comes with flags beside asks for their codes.
, minute_events AS MATERIALIZED (
    SELECT m.campaign, m.minute, m.code, m.flags, m.n FROM minute_receipts m
    UNION ALL SELECT e.campaign, floor(date_part('epoch', e.at) / 60)::int8, e.code, e.flags, -1 FROM echoed e
),
minute_steps AS MATERIALIZED (
    SELECT s.campaign, s.minute, s.code, sum(s.messages)::int4 AS messages, sum(s.events)::int4 AS events
    FROM (
        SELECT g.campaign, g.minute, d.code, g.n * d.delta AS messages, 0 AS events
        FROM minute_changes g JOIN steps d ON d.old = g.old AND d.new = g.new AND d.gained = g.gained
        UNION ALL SELECT e.campaign, e.minute, e.code, 0, e.n FROM minute_events e
        UNION ALL
        SELECT e.campaign, e.minute, c.code, 0, e.n
        FROM minute_events e CROSS JOIN LATERAL receipt_codes(0::int2, e.flags) c WHERE e.flags <> 0 AND c.code <> 0
    ) s
    GROUP BY 1, 2, 3
    HAVING sum(s.messages) <> 0 OR sum(s.events) <> 0
),
series AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT 'hour', array_agg(p.campaign), array_agg(to_timestamp(p.hour * 3600)), array_agg(''::text), array_agg(p.code), array_agg(p.messages), array_agg(p.events)
    FROM (SELECT m.campaign, m.minute / 60 AS hour, m.code, sum(m.messages) AS messages, sum(m.events) AS events FROM minute_steps m GROUP BY 1, 2, 3
          HAVING sum(m.messages) <> 0 OR sum(m.events) <> 0) p HAVING count(*) > 0
    UNION ALL
    SELECT 'minute', array_agg(m.campaign), array_agg(to_timestamp(m.minute * 60)), array_agg(''::text), array_agg(m.code), array_agg(m.messages::int8),
           array_agg(m.events::int8)
    FROM minute_steps m WHERE m.minute > date_part('epoch', now()) / 60 - 1440 HAVING count(*) > 0
)
