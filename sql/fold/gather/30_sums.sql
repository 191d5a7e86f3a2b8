-- Sums first, one row for each part of a group: the group itself (name NULL), a status, something collected. Names are
-- JSON texts, quotes and all.
, parts AS (
    SELECT k.rule, k.key, NULL::text AS name, NULL::jsonb AS value, sum(k.n)::int8 AS n, min(k.first_at) AS first_at,
           max(k.last_at) AS last_at
    FROM keyed k WHERE k.n > 0 GROUP BY k.rule, k.key
    UNION ALL
    SELECT k.rule, k.key, s.name, NULL, sum(s.delta * k.n)::int8, NULL, NULL
    FROM keyed k, unnest(k.names, k.deltas) AS s (name, delta) WHERE k.n > 0
    GROUP BY k.rule, k.key, s.name HAVING sum(s.delta * k.n) <> 0
    UNION ALL
    SELECT k.rule, k.key, to_json(f.key)::text,
           CASE WHEN k.kinds ->> f.key = 'count' THEN to_jsonb(sum(k.n)::int8) ELSE jsonb_agg(DISTINCT v.value) END,
           NULL, NULL, NULL
    FROM keyed k, jsonb_each_text(k.fields) f,
         unnest(CASE WHEN k.kinds ->> f.key = 'count' THEN '{""}' WHEN f.value = 'campaign_id' THEN ARRAY[k.campaign]
                     WHEN f.value = 'org_id' THEN ARRAY[k.org] WHEN f.value = 'status' THEN ARRAY[k.status]
                     WHEN f.value = 'prev_status' THEN ARRAY[k.prev_status] WHEN f.value = 'flags' THEN k.flags
                     ELSE ARRAY[k.columns ->> substr(f.value, 7)] END) AS v (value)
    WHERE k.n > 0 AND k.fields <> '{}' AND k.kinds ->> f.key IN ('count', 'set') AND v.value IS NOT NULL
    GROUP BY k.rule, k.key, f.key, k.kinds ->> f.key
    UNION ALL
    SELECT k.rule, k.key, '"traces"', jsonb_agg(DISTINCT k.link), NULL, NULL, NULL
    FROM keyed k WHERE k.n > 0 AND k.link IS NOT NULL GROUP BY k.rule, k.key
)
