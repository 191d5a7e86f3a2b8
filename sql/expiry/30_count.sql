changed AS MATERIALIZED (
    SELECT u.campaign, u.old, u.new, u.gained, count(*) AS n, u.org, min(u.link COLLATE "C") AS link
    FROM u GROUP BY u.campaign, u.old, u.new, u.gained, u.org
),
steps AS MATERIALIZED (
    SELECT g.old, g.new, g.gained, d.code, d.delta
    FROM (SELECT DISTINCT c.old, c.new, c.gained FROM changed c) g CROSS JOIN LATERAL transition_codes(g.old, g.new, g.gained) d
),
counts AS (
    SELECT c.campaign, d.code, c.n * d.delta AS messages, 0::int8 AS events
    FROM changed c JOIN steps d ON d.old = c.old AND d.new = c.new AND d.gained = c.gained
),
delta AS (
    INSERT INTO campaign_funnel_delta (campaign_id, status, messages, events)
    SELECT array_agg(s.campaign), array_agg(s.code), array_agg(s.messages), array_agg(s.events)
    FROM (SELECT c.campaign, c.code, sum(c.messages)::int8 AS messages, sum(c.events)::int8 AS events
          FROM counts c GROUP BY c.campaign, c.code
          HAVING sum(c.messages) <> 0 OR sum(c.events) <> 0) s
    HAVING count(*) > 0
)
