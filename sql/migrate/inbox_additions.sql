-- Reasons why migrate cannot add its columns to an existing table: it would take over one of the platform's, it does
-- not own the table, or PostgreSQL refuses. Columns: as in inbox_problems. Parameters: $1 text schema and $2 text
-- name of the table, $3 jsonb our columns (src/commands/inbox/place.h), $4 text our schema. A column is receiptd's
-- where its comment says so (map_inbox()), or where the view shows it: an inbox that was migrated before there were
-- such comments has the view. The rights are those of the view's owner; before there is a view, those of the owner of
-- our schema.
WITH RECURSIVE t AS (
    SELECT c.*, format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::name AND c.relname = $2::name AND c.relkind IN ('r', 'p')
),
v AS (
    SELECT c.* FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
    WHERE s.nspname = $4::name AND c.relname = 'message_inbox' AND c.relkind = 'v'
),
me AS (
    SELECT r.* FROM pg_roles r
    WHERE r.oid = COALESCE((SELECT v.relowner FROM v),
                           (SELECT s.nspowner FROM pg_namespace s WHERE s.nspname = $4::name),
                           (SELECT u.oid FROM pg_roles u WHERE u.rolname = current_user))
),
ours AS (
    SELECT o.*
    FROM jsonb_to_recordset($3::jsonb) AS o (n int4, ours text, theirs text, definition text,
                                             filler text, feature text, named boolean)
    WHERE o.filler = 'receiptd' AND o.feature = ''
),
col AS (
    SELECT o.*, a.attnum, t.oid AS base, t.name,
           col_description(t.oid, a.attnum) LIKE 'receiptd:%'
               OR EXISTS (SELECT FROM v JOIN pg_rewrite w ON w.ev_class = v.oid
                          JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                          WHERE d.refclassid = 'pg_class'::regclass
                            AND d.refobjid = t.oid
                            AND d.refobjsubid = a.attnum) AS is_ours
    FROM t CROSS JOIN ours o
    LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = o.theirs::name AND a.attnum > 0
        AND NOT a.attisdropped
),
missing AS (
    SELECT c.base, c.name, string_agg(quote_ident(c.theirs), ', ' ORDER BY c.n) AS columns,
           bool_or(c.definition LIKE '% DEFAULT %') AS has_default,
           string_agg(format('ADD COLUMN %I %s', c.theirs, c.definition), ', ' ORDER BY c.n) AS additions,
           string_agg(format('COMMENT ON COLUMN %s.%I IS %L', c.name, c.theirs, 'receiptd: only receipts write it'),
                      '; ' ORDER BY c.n) AS comments
    FROM col c WHERE c.attnum IS NULL GROUP BY c.base, c.name
),
-- The table's row type, and the types that are made of it.
made (type) AS (
    SELECT t.reltype FROM t
    UNION
    SELECT y.oid
    FROM made m
    JOIN pg_type k ON k.oid = m.type
    JOIN pg_type y ON y.oid = k.typarray OR y.typtype = 'd' AND y.typbasetype = k.oid
        OR EXISTS (SELECT FROM pg_class c
                   JOIN pg_attribute a ON a.attrelid = c.oid AND a.atttypid = k.oid AND a.attnum > 0
                       AND NOT a.attisdropped
                   WHERE c.oid = y.typrelid AND c.relkind = 'c')
),
problem (n, problem, advice, sql) AS (
    SELECT 1, format('inbox table %s has a column %I of its own, which inbox.columns does not name: '
                     'receipts would overwrite it', c.name, c.theirs),
           format('let inbox.columns.%s name another column, which migrate adds; or write inbox.columns.%1$s: %s, if '
                  'only receiptd is to write it',
                  c.ours, c.theirs), NULL
    FROM col c WHERE c.attnum IS NOT NULL AND c.is_ours IS NOT TRUE AND NOT c.named
    UNION ALL
    SELECT 2, format('inbox table %s has no column %s, and role "%s" does not own the table',
                     m.name, m.columns, me.rolname),
           'have its owner run', format('ALTER TABLE %s %s; %s', m.name, m.additions, m.comments)
    FROM t JOIN missing m ON m.base = t.oid CROSS JOIN me WHERE NOT pg_has_role(me.oid, t.relowner, 'USAGE')
    UNION ALL
    SELECT 3, format('inbox table %s is a partition of %s: no column can be added to it alone',
                     t.name, i.inhparent::regclass),
           format('let inbox.table name the whole table; or add %s there', m.columns), NULL
    FROM t JOIN missing m ON m.base = t.oid JOIN pg_inherits i ON i.inhrelid = t.oid WHERE t.relispartition
    UNION ALL
    SELECT 4, format('inbox table %s is made of type %s: no column can be added to it', t.name, t.reloftype::regtype),
           format('migrate adds %s to a table of its own columns', m.columns), format('ALTER TABLE %s NOT OF', t.name)
    FROM t JOIN missing m ON m.base = t.oid WHERE t.reloftype <> 0
    UNION ALL
    SELECT 5, format('column %I of %s is made of rows of inbox table %s: PostgreSQL adds no column '
                     'with a default to it', a.attname,
                     a.attrelid::regclass, t.name),
           'let that column be jsonb', NULL
    FROM t JOIN missing m ON m.base = t.oid AND m.has_default
    JOIN pg_attribute a ON a.atttypid IN (SELECT type FROM made) AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'm', 'p')
)
SELECT problem, advice, sql FROM problem ORDER BY n, problem;
