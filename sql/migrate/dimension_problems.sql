-- Columns of an existing table by which messages cannot be counted (counters.by, counters.groups), or persons not be
-- suppressed (suppression.subject). One row for each problem, as inbox_problems has them. Parameters: $1 text its
-- schema, $2 text its name, $3 text[] columns. The text of a value must not depend on a session's settings: the trigger
-- and the lanes each make it.
SELECT CASE WHEN a.attnum IS NULL
            THEN format('inbox table %s has no column %I, by which messages are counted', t.name, d.name)
            ELSE format('column %I of inbox table %s, by which messages are counted, is of type %s: its text may '
                        'depend on settings, or on functions of another role',
                        d.name, t.name, format_type(a.atttypid, NULL)) END AS problem,
       CASE WHEN a.attnum IS NULL
            THEN 'let inbox.columns name another column, or take it out of counters.by, counters.groups, suppression'
            ELSE format('keep it beside a column of text that a trigger fills, and let inbox.columns name that (%I), '
                        'or take it out of counters.by, counters.groups, suppression',
                        left(d.name, 58) || '_text') END AS advice,
       -- A generated column cannot do it: the text of such a type is not immutable.
       CASE WHEN a.attnum IS NOT NULL
            THEN format('ALTER TABLE %1$s ADD COLUMN %2$I text; UPDATE %1$s SET %2$I = %3$I::text; '
                        'CREATE FUNCTION %4$I.%5$I() RETURNS trigger LANGUAGE plpgsql AS '
                        '$$BEGIN NEW.%2$I := NEW.%3$I::text; RETURN NEW; END$$; '
                        'CREATE TRIGGER %5$I BEFORE INSERT OR UPDATE ON %1$s FOR EACH ROW EXECUTE FUNCTION %4$I.%5$I()',
                        t.name, left(d.name, 58) || '_text', d.name, $1::text,
                        left(d.name, 53) || '_as_text') END AS sql
FROM (SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name
      FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1::name AND c.relname = $2::name) t
CROSS JOIN unnest($3::text[]) WITH ORDINALITY AS d (name, n)
LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = d.name::name AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_type y ON y.oid = a.atttypid
WHERE (y.typnamespace = 'pg_catalog'::regnamespace
       AND y.typname IN ('text', 'varchar', 'bpchar', 'name', 'bool', 'int2',
                         'int4', 'int8', 'numeric', 'uuid')) IS NOT TRUE
ORDER BY d.n;
