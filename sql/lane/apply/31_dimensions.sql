-- Where dimensions are counted: cells, by the message's values of them, as arrays. In groups: what a kind of group does
-- to the counters is read once. Messages that did not change are looked up by their key. Variables: as
-- 15_returning_dimensions.sql.
, effect AS MATERIALIZED (
    SELECT e.old, e.new, e.gained, e.kind, e.code, sum(e.messages)::int4 AS messages, sum(e.events)::int4 AS events
    FROM (SELECT k.old, k.new, k.gained, k.kind, d.code, d.delta AS messages, 0 AS events
          FROM kinds k JOIN steps d ON d.old = k.old AND d.new = k.new AND d.gained = k.gained
          UNION ALL
          SELECT k.old, k.new, k.gained, k.kind, s.code, 0, s.count FROM kinds k JOIN named s ON s.signature = k.signature) e
    GROUP BY 1, 2, 3, 4, 5
),
cells AS MATERIALIZED (
    SELECT array_agg(g.campaign) AS campaign, array_agg(g.key_1) AS key_1,
           CASE WHEN cardinality(:'dimension_kinds'::text[]) > 1 THEN array_agg(g.key_2) END AS key_2,
           CASE WHEN cardinality(:'dimension_kinds'::text[]) > 2 THEN array_agg(g.key_3) END AS key_3,
           array_agg(e.code) AS code, array_agg(g.n * e.messages::int8) AS messages, array_agg(g.n * e.events::int8) AS events
    FROM (SELECT u.campaign, u.key_1, u.key_2, u.key_3, u.old, u.new, u.gained, u.kind, count(*)::int4 AS n FROM u GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
          UNION ALL
          SELECT r.campaign, dimension_key(d.value_1), dimension_key(d.value_2), dimension_key(d.value_3), r.status, r.status, 0, ($25::int4[])[r.n], 1
          FROM r
          LEFT JOIN LATERAL (SELECT m.:"dimension_1"::text COLLATE "C" AS value_1, m.:"dimension_2"::text COLLATE "C" AS value_2, m.:"dimension_3"::text COLLATE "C" AS value_3
                             FROM message_inbox m WHERE m.message_id = r.id LIMIT 1) d ON true
          WHERE r.fate = 'known' AND (NOT r.stale OR message_still_there(r.id))) g
    JOIN effect e ON e.old = g.old AND e.new = g.new AND e.gained = g.gained AND e.kind = g.kind
    HAVING count(*) > 0
)
