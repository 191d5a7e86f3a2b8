-- Sums first, one row for each part of a group: the group itself (name NULL), a status, something collected. Names are
-- JSON texts, quotes and all. Kinds first and last follow the ids of fold_event, which the transitions of a message
-- get in their order. Entries of one row are changes of different messages: the highest status counts as the last.
, fields AS (
    SELECT k.rule, k.key, to_json(f.key)::text AS name, k.kinds ->> f.key AS kind, k.n, k.first_row, k.last_row, k.new,
           CASE f.value WHEN 'campaign_id' THEN ARRAY[k.campaign] WHEN 'org_id' THEN ARRAY[k.org]
                        WHEN 'status' THEN ARRAY[k.status] WHEN 'prev_status' THEN ARRAY[k.prev_status]
                        WHEN 'flags' THEN k.flags ELSE ARRAY[k.columns ->> substr(f.value, 7)] END AS said
    FROM keyed k, jsonb_each_text(k.fields) f
    WHERE k.n > 0 AND k.fields <> '{}'
),
alone AS (
    SELECT f.*, COALESCE(to_jsonb((SELECT string_agg(w, '+') FROM unnest(f.said) w)), 'null') AS value
    FROM fields f WHERE f.kind IN ('first', 'last')
),
parts AS (
    SELECT k.rule, k.key, NULL::text AS name, NULL::jsonb AS value, sum(k.n)::int8 AS n, min(k.first_at) AS first_at,
           max(k.last_at) AS last_at
    FROM keyed k WHERE k.n > 0 GROUP BY k.rule, k.key
    UNION ALL
    SELECT k.rule, k.key, s.name, NULL, sum(s.delta * k.n)::int8, NULL, NULL
    FROM keyed k, unnest(k.names, k.deltas) AS s (name, delta) WHERE k.n > 0
    GROUP BY k.rule, k.key, s.name HAVING sum(s.delta * k.n) <> 0
    UNION ALL
    SELECT f.rule, f.key, f.name, to_jsonb(sum(f.n)::int8), NULL, NULL, NULL
    FROM fields f WHERE f.kind = 'count' GROUP BY f.rule, f.key, f.name
    UNION ALL
    SELECT f.rule, f.key, f.name, jsonb_agg(DISTINCT v.value), NULL, NULL, NULL
    FROM fields f, unnest(f.said) AS v (value)
    WHERE f.kind = 'set' AND v.value IS NOT NULL
    GROUP BY f.rule, f.key, f.name
    UNION ALL
    SELECT a.rule, a.key, a.name,
           CASE a.kind WHEN 'first' THEN (array_agg(a.value ORDER BY a.first_row, a.new, a.value))[1]
                       ELSE (array_agg(a.value ORDER BY a.last_row DESC, a.new DESC, a.value DESC))[1] END,
           NULL, NULL, NULL
    FROM alone a GROUP BY a.rule, a.key, a.name, a.kind
    UNION ALL
    SELECT k.rule, k.key, '"traces"', jsonb_agg(DISTINCT k.link), NULL, NULL, NULL
    FROM keyed k WHERE k.n > 0 AND k.link IS NOT NULL GROUP BY k.rule, k.key
)
