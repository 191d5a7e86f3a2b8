-- Only where dimensions are counted: what ../rules/dimensions.sql appends, valued: by the message's values of them. In groups, as in 30_count.sql: what a kind of group does
-- to the counters is read once. Messages that did not change are looked up by their key.
, effect AS MATERIALIZED (
    SELECT e.old, e.new, e.gained, e.signature, e.code, sum(e.messages)::int4 AS messages, sum(e.events)::int4 AS events
    FROM (SELECT k.old, k.new, k.gained, k.signature, d.code, d.delta AS messages, 0 AS events
          FROM kinds k JOIN steps d ON d.old = k.old AND d.new = k.new AND d.gained = k.gained
          UNION ALL
          SELECT k.old, k.new, k.gained, k.signature, s.code, 0, s.count FROM kinds k JOIN named s ON s.signature = k.signature) e
    GROUP BY 1, 2, 3, 4, 5
),
valued AS MATERIALIZED (
    SELECT g.campaign, g.dims, e.code, g.n * e.messages AS messages, g.n * e.events AS events
    FROM (SELECT u.campaign, u.dims, u.old, u.new, u.gained, u.signature, count(*)::int4 AS n FROM u GROUP BY 1, 2, 3, 4, 5, 6
          UNION ALL
          SELECT r.campaign, (SELECT ARRAY[m.:"dimension_1"::text COLLATE "C", m.:"dimension_2"::text COLLATE "C", m.:"dimension_3"::text COLLATE "C"]
                              FROM message_inbox m WHERE m.message_id = r.id LIMIT 1), r.status, r.status, 0, r.signature, 1
          FROM r WHERE r.fate = 'known' AND (NOT r.stale OR message_still_there(r.id))) g
    JOIN effect e ON e.old = g.old AND e.new = g.new AND e.gained = g.gained AND e.signature = g.signature
)
