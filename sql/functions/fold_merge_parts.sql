-- Sums up the parts of topics by name, one row for each group: several transactions that are gathered may have parts
-- of one group. The parts are in the order of their events, each with its rule, the group's key, the number of events
-- and their time. The slow fold_merge() sees one part of each group afterwards.
CREATE OR REPLACE FUNCTION fold_merge_parts(rules text[], keys text[], parts jsonb[],
                                            counts int8[], times timestamptz[])
RETURNS TABLE (rule text, key text, events int8, first_at timestamptz, last_at timestamptz, part jsonb)
LANGUAGE sql STABLE AS $$
    WITH given AS MATERIALIZED (
        SELECT * FROM unnest(rules, keys, parts, counts, times) WITH ORDINALITY AS p (rule, key, part, n, at, ord)
    ),
    named AS MATERIALIZED (
        SELECT g.rule, g.key, g.ord, e.key AS name, e.value, r.kinds ->> e.key AS kind
        FROM given g, fold_rule r, jsonb_each(g.part -> 'v') e
        WHERE r.rule = g.rule AND r.kinds ? e.key
    ),
    merged AS (
        SELECT g.rule, g.key, NULL::text AS name, NULL::jsonb AS value, NULL::int8 AS overflow, sum(g.n)::int8 AS n,
               min(g.at) AS first_at, max(g.at) AS last_at
        FROM given g
        GROUP BY g.rule, g.key
        UNION ALL
        SELECT n.rule, n.key, n.name,
               CASE n.kind WHEN 'min' THEN to_jsonb(min(n.value::text::numeric))
                           WHEN 'max' THEN to_jsonb(max(n.value::text::numeric))
                           ELSE to_jsonb(sum(n.value::text::numeric)) END, NULL, NULL, NULL, NULL
        FROM named n
        WHERE n.kind IN ('sum', 'count', 'min', 'max')
        GROUP BY n.rule, n.key, n.name, n.kind
        UNION ALL
        SELECT n.rule, n.key, n.name,
               CASE n.kind WHEN 'first' THEN (array_agg(n.value ORDER BY n.ord))[1]
                           ELSE (array_agg(n.value ORDER BY n.ord DESC))[1] END, NULL, NULL, NULL, NULL
        FROM named n
        WHERE n.kind IN ('first', 'last')
        GROUP BY n.rule, n.key, n.name, n.kind
        UNION ALL
        SELECT d.rule, d.key, d.name, jsonb_agg(d.item ORDER BY d.ord, d.i), NULL, NULL, NULL, NULL
        FROM (SELECT n.rule, n.key, n.name, e.item, min(n.ord) AS ord, min(e.i) AS i
              FROM named n, jsonb_array_elements(n.value) WITH ORDINALITY AS e (item, i)
              WHERE n.kind IN ('set', 'links')
              GROUP BY n.rule, n.key, n.name, e.item) d
        GROUP BY d.rule, d.key, d.name
        UNION ALL
        SELECT g.rule, g.key, e.key, NULL, sum(e.value::text::int8)::int8, NULL, NULL, NULL
        FROM given g, jsonb_each(g.part -> 'o') e
        GROUP BY g.rule, g.key, e.key
    )
    SELECT m.rule, m.key, sum(m.n)::int8, min(m.first_at), max(m.last_at),
           jsonb_build_object('v', COALESCE(jsonb_object_agg(m.name, m.value) FILTER (WHERE m.value IS NOT NULL), '{}'),
                              'o', COALESCE(jsonb_object_agg(m.name, m.overflow)
                                                FILTER (WHERE m.overflow IS NOT NULL), '{}'))
    FROM merged m
    GROUP BY m.rule, m.key
$$;
