-- Columns that pipelines and rules of source transitions name and the inbox will not have: $1 text pipelines, JSON as for actions/store; $2 text
-- rules, JSON as for fold/rules; $3 text[] columns of ours; $4 text schema and $5 text table of the inbox, whose other columns the view
-- shows. One row: missing, "pipelines.NAME: COLUMN, folds.RULE: inbox.COLUMN"; NULL: none.
WITH named (place, name) AS (
    SELECT format('pipelines.%s: %s', w.one ->> 'name', f.name), f.name
    FROM jsonb_array_elements($1::text::jsonb) AS w (one),
         unnest(ARRAY[w.one ->> 'org', w.one ->> 'subject']
                || CASE WHEN jsonb_typeof(w.one -> 'once_per') = 'array' THEN ARRAY(SELECT jsonb_array_elements_text(w.one -> 'once_per'))
                        ELSE '{}' END) AS f (name)
    WHERE w.one ->> 'on' IS NOT NULL AND f.name <> 'subject'
    UNION ALL
    SELECT format('folds.%s: inbox.%s', r.one ->> 'rule', f.name), f.name
    FROM jsonb_array_elements($2::text::jsonb) AS r (one), jsonb_array_elements_text(r.one -> 'columns') AS f (name)
)
SELECT string_agg(DISTINCT n.place, ', ' ORDER BY n.place) AS missing
FROM named n
WHERE n.name <> ALL ($3::text[])
  AND NOT EXISTS (SELECT FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace s ON s.oid = c.relnamespace
                  WHERE s.nspname = $4::name AND c.relname = $5::name AND a.attname = n.name AND a.attnum > 0 AND NOT a.attisdropped);
