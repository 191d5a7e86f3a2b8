-- Columns that pipelines and rules read and message_inbox does not have: two columns, pipelines and rules, as "NAME:
-- COLUMN, …" (NULL: none). Then zone: $3 unless the server knows it. Parameters: $1 text pipelines, JSON as for
-- actions/store.sql, $2 text rules, JSON as for fold/rules.sql, $3 text a time zone.
WITH named AS (
    SELECT 1 AS kind, w.one ->> 'name' AS name, f.name AS field
    FROM jsonb_array_elements($1::text::jsonb) AS w (one),
         unnest(ARRAY[w.one ->> 'org', w.one ->> 'subject']
                || CASE WHEN jsonb_typeof(w.one -> 'once_per') = 'array'
                        THEN ARRAY(SELECT jsonb_array_elements_text(w.one -> 'once_per'))
                        ELSE '{}' END) AS f (name)
    WHERE w.one ->> 'on' IS NOT NULL AND f.name <> 'subject'
    UNION ALL
    SELECT 2, w.one ->> 'rule', c.name
    FROM jsonb_array_elements($2::text::jsonb) AS w (one), jsonb_array_elements_text(w.one -> 'columns') AS c (name)
),
missing AS (
    SELECT DISTINCT n.kind, format('%s: %s', n.name, n.field) AS place
    FROM named n
    WHERE NOT EXISTS (SELECT FROM pg_attribute a
                      WHERE a.attrelid = 'message_inbox'::regclass
                        AND a.attname = n.field
                        AND a.attnum > 0
                        AND NOT a.attisdropped)
)
SELECT string_agg(m.place, ', ' ORDER BY m.place) FILTER (WHERE m.kind = 1) AS pipelines,
       string_agg(m.place, ', ' ORDER BY m.place) FILTER (WHERE m.kind = 2) AS rules,
       (SELECT $3::text WHERE NOT EXISTS (SELECT FROM pg_timezone_names n WHERE n.name = $3::text)) AS zone
FROM missing m;
