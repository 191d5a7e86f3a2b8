-- Stores the pipelines of the configuration, and keys of its section `actions`: $1 text, $2 text, both JSON. Returns
-- unknown: columns that the pipelines name and the inbox does not have, as "PIPELINE: COLUMN, …"; NULL: none. And
-- has_zone: whether the server knows actions.zone. Nothing is stored unless all are known. The check leaves out runs
-- that a topic or an import begins: they bring their own fields.
WITH named AS (
    SELECT format('%s: %s', w.one ->> 'name', f.name) AS place
    FROM jsonb_array_elements($1::text::jsonb) AS w (one),
         unnest(ARRAY[w.one ->> 'org', w.one ->> 'subject']
                || CASE WHEN jsonb_typeof(w.one -> 'once_per') = 'array'
                        THEN ARRAY(SELECT jsonb_array_elements_text(w.one -> 'once_per'))
                        ELSE '{}' END) AS f (name)
    WHERE w.one ->> 'on' IS NOT NULL AND f.name <> 'subject'
      AND NOT EXISTS (SELECT FROM pg_attribute a
                      WHERE a.attrelid = 'message_inbox'::regclass
                        AND a.attname = f.name
                        AND a.attnum > 0
                        AND NOT a.attisdropped)
),
u AS MATERIALIZED (SELECT string_agg(DISTINCT n.place, ', ' ORDER BY n.place) AS unknown FROM named n)
SELECT u.unknown, z.has_zone,
       CASE WHEN u.unknown IS NULL AND z.has_zone THEN pipelines_store($1::text::jsonb)::text END,
       CASE WHEN u.unknown IS NULL AND z.has_zone THEN actions_settings($2::text::jsonb)::text END
FROM u,
     (SELECT EXISTS (SELECT FROM pg_timezone_names n WHERE n.name = $2::text::jsonb ->> 'zone') AS has_zone) z;
