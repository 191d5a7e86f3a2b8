-- What keeps counters.times from being used. $1 text schema and $2 text name of an existing table. One row for each
-- column that is missing or of another type, as inbox_problems.sql has them.
SELECT CASE WHEN a.attnum IS NULL THEN format('inbox table %s has no column %I for first times', t.name, c.name)
            ELSE format('column %I of inbox table %s, for first times, is of type %s, not %s', c.name, t.name, format_type(a.atttypid, NULL), format_type(c.type, NULL))
       END AS problem,
       'add the column, or leave counters.times out' AS advice,
       CASE WHEN a.attnum IS NULL THEN format('ALTER TABLE %s ADD COLUMN %I %s;', t.name, c.name, c.definition) END AS sql
FROM (SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1::name AND c.relname = $2::name) t
CROSS JOIN (VALUES (1, 'first_sent_at', 'timestamptz'::regtype, 'timestamptz'), (2, 'first_delivered_at', 'timestamptz', 'timestamptz'),
                   (3, 'first_opened_at', 'timestamptz', 'timestamptz'), (4, 'first_clicked_at', 'timestamptz', 'timestamptz'),
                   (5, 'first_gateway', 'text', 'text COLLATE "C"'), (6, 'prev_times', 'text', 'text COLLATE "C"')) AS c (n, name, type, definition)
LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = c.name AND a.attnum > 0 AND NOT a.attisdropped
WHERE a.atttypid IS DISTINCT FROM c.type
ORDER BY c.n;
