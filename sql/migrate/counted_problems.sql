-- What keeps inbox.columns.counted from being used. $1 text schema and $2 text name of an existing table, $3 text the
-- column. One row for each problem, as inbox_problems.sql has them.
SELECT CASE WHEN a.attnum IS NULL THEN format('inbox table %s has no column %I for the keys of counted receipts', t.name, $3::text)
            ELSE format('column %I of inbox table %s, for the keys of counted receipts, is of type %s, not bytea', $3::text, t.name, format_type(a.atttypid, NULL))
       END AS problem,
       'add the column, or leave inbox.columns.counted out' AS advice,
       CASE WHEN a.attnum IS NULL THEN format('ALTER TABLE %s ADD COLUMN %I bytea;', t.name, $3::text) END AS sql
FROM (SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1::name AND c.relname = $2::name) t
LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = $3::name AND a.attnum > 0 AND NOT a.attisdropped
WHERE a.atttypid IS DISTINCT FROM 'bytea'::regtype;
