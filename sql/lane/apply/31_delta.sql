, counts AS (
    SELECT c.campaign, d.code, c.n * d.delta AS messages, 0 AS events
    FROM changed c JOIN steps d ON d.old = c.old AND d.new = c.new AND d.gained = c.gained
    UNION ALL SELECT g.campaign, s.code, 0, g.n * s.count FROM known g JOIN named s ON s.signature = g.signature
),
-- One appended row for the whole transaction, none if there is nothing to count: no counter is ever waited for.
delta AS (
    INSERT INTO campaign_funnel_delta (campaign_id, status, messages, events)
    SELECT array_agg(s.campaign), array_agg(s.code), array_agg(s.messages), array_agg(s.events)
    FROM (SELECT c.campaign, c.code, sum(c.messages) AS messages, sum(c.events) AS events FROM counts c GROUP BY c.campaign, c.code
          HAVING sum(c.messages) <> 0 OR sum(c.events) <> 0) s HAVING count(*) > 0
)
