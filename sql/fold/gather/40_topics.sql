-- Adds parts of topics that were folded in memory, in the order of their events.
, given AS (
    SELECT array_agg(p.rule) AS rules, array_agg(p.key) AS keys,
           array_agg(p.part::jsonb) AS parts, array_agg(p.n) AS counts,
           array_agg(p.at) AS times
    FROM (SELECT c.rule, c.key, c.part, c.n, t.at
          FROM taken t, unnest(t.rules, t.keys, t.parts, t.n) WITH ORDINALITY AS c (rule, key, part, n, i)
          ORDER BY t.id, c.i) p
)
