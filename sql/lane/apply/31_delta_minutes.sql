-- In place of 31_delta.sql where the series is counted (../rules/series.sql): the delta says also in which minute. A
-- change of a message counts in that of the receipt that made it ($32), a receipt in its own ($33), whatever their
-- order. What lies more than an hour ahead of this server counts in that hour: a clock that is wrong, or a liar, makes
-- no cells up to the year 9999. The funnel is the sum, and the roll-up makes the series of it.
, counts AS (
    SELECT c.campaign, bounded_minute(($32::int8[])[c.signature]) AS minute, d.code, c.n * d.delta AS messages, 0 AS events
    FROM changed c JOIN steps d ON d.old = c.old AND d.new = c.new AND d.gained = c.gained
    UNION ALL
    SELECT g.campaign, bounded_minute(($33::int8[])[s.entry]), s.code, 0, g.n * s.count FROM known g JOIN named s ON s.signature = g.signature
),
delta AS (
    INSERT INTO campaign_funnel_delta (campaign_id, minute, status, messages, events)
    SELECT array_agg(s.campaign), array_agg(s.minute), array_agg(s.code), array_agg(s.messages), array_agg(s.events)
    FROM (SELECT c.campaign, c.minute, c.code, sum(c.messages) AS messages, sum(c.events) AS events FROM counts c GROUP BY c.campaign, c.minute, c.code
          HAVING sum(c.messages) <> 0 OR sum(c.events) <> 0) s HAVING count(*) > 0
),
-- What the delta does not say.
minute_cells AS (
    SELECT NULL::text AS campaign, NULL::int8 AS minute, NULL::int2 AS code, 0::int8 AS messages, 0::int8 AS events WHERE false
)
