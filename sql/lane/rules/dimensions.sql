-- Rule: the funnel by the values of columns of the message (counters.by), by the same steps as the funnel, so that the sum over all keys is the funnel.
-- moved and receipts bring the values as one array (45_receipts_dimensions.sql). Variable: dimension_kinds, an array of what they are.
, dimensions AS (
    INSERT INTO campaign_tally_delta (kind, campaign_id, at, key, status, messages, events)
    SELECT p.kind, array_agg(p.campaign), array_agg('-infinity'::timestamptz), array_agg(p.key), array_agg(p.code), array_agg(p.messages), array_agg(p.events)
    FROM (
        SELECT k.kind, s.campaign, dimension_key(k.value) AS key, s.code, sum(s.messages)::int8 AS messages, sum(s.events)::int8 AS events
        FROM (
            SELECT g.campaign, g.dims, d.code, g.n * d.delta AS messages, 0::int8 AS events
            FROM (SELECT m.campaign, m.dims, m.old, m.new, m.gained, count(*) AS n FROM moved m GROUP BY 1, 2, 3, 4, 5) g
            JOIN steps d ON d.old = g.old AND d.new = g.new AND d.gained = g.gained
            UNION ALL
            SELECT e.campaign, e.dims, c.code, 0, e.n
            FROM (SELECT c.campaign, c.dims, c.code, c.flags, count(*) AS n FROM counted c GROUP BY 1, 2, 3, 4) e
            CROSS JOIN LATERAL receipt_codes(e.code, e.flags) c
        ) s
        CROSS JOIN LATERAL unnest(:'dimension_kinds'::text[], s.dims) AS k (kind, value)
        WHERE k.kind IS NOT NULL
        GROUP BY 1, 2, 3, 4
        HAVING sum(s.messages) <> 0 OR sum(s.events) <> 0
    ) p
    GROUP BY p.kind
)
