-- Where the series is counted (../rules/series.sql): cells by the minute, too. A change of a message counts in the minute of the receipt that made it ($32), a receipt in its own
-- ($33), whatever their order. Counts are int4 until the last sum, since a sum of int8 is a numeric.
, minute_counts AS (
    SELECT c.campaign, ($32::int8[])[c.signature] AS minute, d.code, c.n * d.delta AS messages, 0 AS events
    FROM changed c JOIN steps d ON d.old = c.old AND d.new = c.new AND d.gained = c.gained
    UNION ALL
    SELECT g.campaign, ($33::int8[])[s.entry], s.code, 0, g.n * s.count FROM known g JOIN named s ON s.signature = g.signature
),
minute_cells AS MATERIALIZED (
    SELECT c.campaign, c.minute, c.code, sum(c.messages)::int4 AS messages, sum(c.events)::int4 AS events FROM minute_counts c GROUP BY c.campaign, c.minute, c.code
    HAVING sum(c.messages) <> 0 OR sum(c.events) <> 0
)
