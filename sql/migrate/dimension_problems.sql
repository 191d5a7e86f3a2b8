-- Which columns of an existing table messages cannot be counted by (counters.by, counters.groups). $1 text its schema, $2 text its name, $3 text[] columns. One row for each problem, as
-- inbox_problems.sql has them. The text of a value must not depend on a session's settings: the trigger and the lanes each make it.
SELECT CASE WHEN a.attnum IS NULL THEN format('inbox table %s has no column %I, by which messages are counted', t.name, d.name)
            ELSE format('column %I of inbox table %s, by which messages are counted, is of type %s: its text may depend on settings, or on functions '
                        'of another role', d.name, t.name, format_type(a.atttypid, NULL)) END AS problem,
       'let inbox.columns name another column, or take it out of counters.by or counters.groups' AS advice, NULL AS sql
FROM (SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1::name AND c.relname = $2::name) t
CROSS JOIN unnest($3::text[]) WITH ORDINALITY AS d (name, n)
LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = d.name::name AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_type y ON y.oid = a.atttypid
WHERE (y.typnamespace = 'pg_catalog'::regnamespace
       AND y.typname IN ('text', 'varchar', 'bpchar', 'name', 'bool', 'int2', 'int4', 'int8', 'numeric', 'uuid')) IS NOT TRUE
ORDER BY d.n;
