-- Why an existing table cannot be the inbox, from the catalogs, which every role may read. $1 text its schema, $2 text
-- its name, $3 jsonb our columns (src/commands/inbox/place.h). One row for each problem, the most important first:
-- problem, advice, sql (NULL: no statement mends it). Columns that migrate adds: inbox_additions.sql.
WITH RECURSIVE named AS (
    SELECT c.*, format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1::name AND c.relname = $2::name
),
t AS (SELECT * FROM named WHERE relkind IN ('r', 'p')),
ours AS (
    SELECT o.* FROM jsonb_to_recordset($3::jsonb) AS o (n int4, ours text, theirs text, type text, definition text, filler text, feature text, wanted boolean)
    WHERE o.wanted
),
-- A domain counts as what it stands on.
kind (attnum, declared, type, coll) AS (
    SELECT a.attnum, a.atttypid, a.atttypid, a.attcollation FROM t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0
    UNION ALL
    SELECT k.attnum, k.declared, y.typbasetype, k.coll FROM kind k JOIN pg_type y ON y.oid = k.type WHERE y.typtype = 'd'
),
col AS (
    SELECT o.n, o.ours, format_type(o.type::regtype, NULL) AS asked, o.definition, o.theirs, o.filler, o.feature, t.oid AS base, t.name, a.attnum, a.attnotnull, a.attgenerated,
           a.attidentity, format_type(a.atttypid, NULL) AS declared,
           -- types whose text never depends on a session's settings
           y.typnamespace = 'pg_catalog'::regnamespace
               AND y.typname IN ('text', 'varchar', 'bpchar', 'name', 'int2', 'int4', 'int8', 'numeric', 'uuid') AS plain,
           y.typname IN ('text', 'varchar') AS texty,
           CASE WHEN l.collisdeterministic THEN l.oid ELSE '"C"'::regcollation END AS coll, l.collisdeterministic AS exact
    FROM t CROSS JOIN ours o
    LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = o.theirs::name AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN kind k ON k.attnum = a.attnum AND NOT EXISTS (SELECT FROM pg_type d WHERE d.oid = k.type AND d.typtype = 'd')
    LEFT JOIN pg_type y ON y.oid = k.type
    LEFT JOIN pg_collation l ON l.oid = k.coll
),
id AS (
    SELECT c.*, CASE WHEN c.texty AND c.exact THEN format('%I', c.theirs) WHEN c.texty THEN format('%I COLLATE "C"', c.theirs) ELSE format('(%I::text)', c.theirs) END AS key
    FROM col c WHERE c.n = 1 AND c.attnum IS NOT NULL
),
-- A unique index of a partitioned table has to have the columns by which it is partitioned, and those by which its
-- partitions are. 0: an expression.
parted AS (
    SELECT array_agg(DISTINCT COALESCE(s.attnum, 0)) AS columns, bool_or(COALESCE(s.attnum, 0) <> id.attnum) AS apart
    FROM t CROSS JOIN id CROSS JOIN pg_partition_tree(t.oid) l JOIN pg_partitioned_table p ON p.partrelid = l.relid CROSS JOIN unnest(p.partattrs::int2[]) k
    LEFT JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = k LEFT JOIN pg_attribute s ON s.attrelid = t.oid AND s.attname = a.attname HAVING count(*) > 0
),
-- Indexes of the id alone, or with such columns behind it: on the column itself (own), and on what statements compare
-- (found).
key AS (
    SELECT x.*, k.oid AS constraint_oid, k.conname, x.indkey[0] = id.attnum AS own,
           CASE WHEN id.texty THEN x.indkey[0] = id.attnum AND x.indcollation[0] = id.coll
                ELSE x.indkey[0] = 0 AND pg_get_expr(x.indexprs, x.indrelid) = format('(%I)::text', id.theirs) END AS found
    FROM id JOIN pg_index x ON x.indrelid = id.base JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_am m ON m.oid = i.relam AND m.amname IN ('btree', 'hash')
    LEFT JOIN pg_constraint k ON k.conindid = x.indexrelid AND k.conrelid = x.indrelid AND k.contype IN ('p', 'u')
    LEFT JOIN parted p ON p.apart WHERE x.indisvalid AND x.indpred IS NULL
      AND (x.indnkeyatts = 1 OR (SELECT bool_and(a = ANY (p.columns)) FROM unnest((x.indkey::int2[])[1:x.indnkeyatts - 1]) a))
),
keys AS (
    SELECT bool_or(k.found) IS TRUE AS found, bool_or(k.indisunique AND k.indimmediate AND (k.found OR k.own)) IS TRUE AS is_unique,
           min(format('ALTER TABLE %s DROP CONSTRAINT %I, ADD CONSTRAINT %2$I %s', (SELECT name FROM t), k.conname,
                      regexp_replace(pg_get_constraintdef(k.constraint_oid), ' DEFERRABLE.*', '')))
               FILTER (WHERE k.own AND NOT k.indimmediate) AS undeferred
    FROM key k
),
problem (n, problem, advice, sql) AS (
    SELECT 0, format('inbox table %s.%s does not exist', $1::text, $2::text), 'check inbox.table; it is written schema.table, without quotes, in '
           'upper and lower case as the table was made', NULL
    WHERE NOT EXISTS (SELECT FROM named)
    UNION ALL
    SELECT 1, format('inbox table %s is a %s: neither its inserts can be counted nor its keys be trusted', t.name,
                     CASE t.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table'
                                    ELSE 'relation of another kind' END),
           CASE t.relkind WHEN 'v' THEN 'map the table behind it' ELSE 'leave inbox.table out, and insert into message_inbox' END, NULL FROM named t WHERE t.relkind NOT IN ('r', 'p')
    UNION ALL
    SELECT 2, format('inbox table %s has no column %I', c.name, c.theirs), format('let inbox.columns.%s name another column', c.ours)
           || CASE WHEN c.n > 1 THEN ', or add it' ELSE '' END,
           CASE WHEN c.n > 1 THEN format('ALTER TABLE %s ADD COLUMN %I %s', c.name, c.theirs, c.definition) END
    FROM col c WHERE c.attnum IS NULL AND c.feature = '' AND c.filler <> 'receiptd'
    UNION ALL
    SELECT 3, format('inbox table %s has no column %I for %s', c.name, c.theirs, c.feature), format('add the column, or leave %s out', c.feature),
           format('ALTER TABLE %s ADD COLUMN %I %s;', c.name, c.theirs, c.definition)
    FROM col c WHERE c.attnum IS NULL AND c.feature <> ''
    UNION ALL
    SELECT 4, format('column %I of inbox table %s is of type %s: its text may depend on settings, or on functions of another role', c.theirs,
                     c.name, c.declared),
           format('make it text, or let inbox.columns.%s name another column', c.ours), format('ALTER TABLE %s ALTER COLUMN %I TYPE text', c.name, c.theirs)
    FROM col c WHERE c.filler = 'platform' AND NOT c.plain
    UNION ALL
    SELECT 5, format('column %I of inbox table %s is of type %s, not %s', c.theirs, c.name, c.declared, c.asked),
           format('let inbox.columns.%s name a%s', c.ours, CASE WHEN c.filler = 'receiptd' THEN ' new column, which migrate adds' ELSE 'nother column' END)
               || CASE WHEN c.declared IN ('smallint', 'integer', 'bigint') THEN '; or, if its values are codes of the ladder' ELSE '' END,
           CASE WHEN c.declared IN ('smallint', 'integer', 'bigint') THEN format('ALTER TABLE %s ALTER COLUMN %I TYPE %s', c.name, c.theirs, c.asked) END
    FROM col c WHERE c.filler <> 'platform' AND c.feature = '' AND c.declared <> c.asked
    UNION ALL
    SELECT 5, format('column %I of inbox table %s, for %s, is of type %s, not %s', c.theirs, c.name, c.feature, c.declared, c.asked),
           format('give that column another name, then add this one; or leave %s out', c.feature), NULL
    FROM col c WHERE c.feature <> '' AND c.declared <> c.asked
    UNION ALL
    SELECT 6, format('column %I of inbox table %s may be NULL: such a row would never take a receipt', c.theirs, c.name), 'make it NOT NULL',
           format('UPDATE %s SET %I = 0 WHERE %2$I IS NULL; ALTER TABLE %1$s ALTER COLUMN %2$I SET DEFAULT 0, ALTER COLUMN %2$I SET NOT NULL',
                  c.name, c.theirs)
    FROM col c WHERE c.filler = 'receiptd' AND c.definition LIKE '% NOT NULL %' AND NOT c.attnotnull AND c.declared = c.asked
    UNION ALL
    SELECT 7, format('column %I of inbox table %s is %s: receipts cannot change it', c.theirs, c.name,
                     CASE WHEN c.attgenerated <> '' THEN 'generated' ELSE 'an identity' END), 'make it a plain column',
           CASE WHEN c.attgenerated <> 'v' THEN format('ALTER TABLE %s ALTER COLUMN %I DROP %s', c.name, c.theirs,
                CASE WHEN c.attgenerated <> '' THEN 'EXPRESSION' ELSE 'IDENTITY' END)
                || CASE WHEN c.attnotnull THEN format('; ALTER TABLE %s ALTER COLUMN %I SET DEFAULT 0', c.name, c.theirs) ELSE '' END END
    FROM col c WHERE c.filler = 'receiptd' AND (c.attgenerated <> '' OR c.attidentity <> '')
    UNION ALL
    SELECT 8, format('inbox table %s has no unique index on %I %s that always holds: two rows of one message would both be counted',
                     id.name, id.theirs, CASE WHEN p.apart THEN 'with the columns by which it is partitioned' ELSE 'alone' END),
           CASE WHEN p.apart THEN 'its primary key should be the id and these columns'
                WHEN keys.undeferred IS NOT NULL THEN 'the one it has is deferrable' ELSE 'each receipt finds its message by it' END,
           CASE WHEN keys.undeferred IS NOT NULL THEN keys.undeferred
                WHEN p.apart THEN format('CREATE UNIQUE INDEX ON %s (%I, %s)', id.name, id.theirs,
                                         (SELECT string_agg(quote_ident(a.attname), ', ') FROM pg_attribute a WHERE a.attrelid = id.base AND a.attnum = ANY (p.columns) AND a.attnum <> id.attnum))
                WHEN p.apart IS NOT NULL AND NOT id.texty
                THEN format('CREATE UNIQUE INDEX ON %s (%I); CREATE INDEX ON %1$s (%s)', id.name, id.theirs, id.key)
                ELSE format('CREATE UNIQUE INDEX ON %s (%s)', id.name, id.key) END
    FROM id CROSS JOIN keys LEFT JOIN parted p ON true WHERE id.plain AND NOT keys.is_unique
    UNION ALL
    SELECT 9, format('inbox table %s has no index that finds %I (%s) by its text', id.name, id.theirs, id.declared),
           'each receipt finds its message by it', format('CREATE INDEX ON %s (%s)', id.name, id.key)
    FROM id CROSS JOIN keys WHERE id.plain AND keys.is_unique AND NOT keys.found
)
SELECT problem, advice, sql FROM problem ORDER BY n, problem;
