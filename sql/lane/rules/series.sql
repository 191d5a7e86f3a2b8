-- Rule: the funnel as a series, by hour and by minute. Receipts count in the hour of their event time, whatever their order. A change of a message
-- counts in the hour of the receipt that made it, so the sum over all hours is the funnel.
, series AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT p.kind, array_agg(p.campaign), array_agg(p.at), array_agg(''::text), array_agg(p.code), array_agg(p.messages), array_agg(p.events)
    FROM (
        SELECT t.kind, s.campaign, to_timestamp(s.minute / t.minutes * t.minutes * 60) AS at, s.code, sum(s.messages)::int8 AS messages, sum(s.events)::int8 AS events
        FROM (
            SELECT g.campaign, g.minute, d.code, g.n * d.delta AS messages, 0::int8 AS events
            FROM (SELECT u.campaign, floor(date_part('epoch', u.at) / 60)::int8 AS minute, u.old, u.new, u.gained, count(*) AS n FROM u GROUP BY 1, 2, 3, 4, 5) g
            JOIN steps d ON d.old = g.old AND d.new = g.new AND d.gained = g.gained
            UNION ALL
            SELECT e.campaign, e.minute, c.code, 0, e.n
            FROM (SELECT c.campaign, floor(date_part('epoch', c.at) / 60)::int8 AS minute, c.code, c.flags, count(*) AS n FROM counted c GROUP BY 1, 2, 3, 4) e
            CROSS JOIN LATERAL receipt_codes(e.code, e.flags) c
        ) s, (VALUES ('hour', 60), ('minute', 1)) t (kind, minutes)
        WHERE t.kind = 'hour' OR s.minute > date_part('epoch', now()) / 60 - 1440
        GROUP BY 1, 2, 3, 4
        HAVING sum(s.messages) <> 0 OR sum(s.events) <> 0
    ) p
    GROUP BY p.kind
)
