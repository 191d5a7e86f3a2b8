-- The problems by their numbers, the most important first.
problem (n, problem, advice, sql) AS (
    SELECT 0, format('inbox table %s.%s does not exist', $1::text, $2::text),
           'check inbox.table; it is written schema.table, without quotes, in '
           'upper and lower case as the table was made', NULL
    WHERE NOT EXISTS (SELECT FROM named)
    UNION ALL
    SELECT 1, format('inbox table %s is a %s: neither its inserts can be counted nor its keys be trusted', t.name,
                     CASE t.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table'
                                    ELSE 'relation of another kind' END),
           CASE t.relkind WHEN 'v' THEN 'map the table behind it'
                ELSE 'leave inbox.table out, and insert into message_inbox' END,
           NULL
    FROM named t
    WHERE t.relkind NOT IN ('r', 'p')
    UNION ALL
    SELECT 2, format('inbox table %s has no column %I', c.name, c.theirs),
           format('let inbox.columns.%s name another column', c.ours)
           || CASE WHEN c.n > 1 THEN ', or add it' ELSE '' END,
           CASE WHEN c.n > 1 THEN format('ALTER TABLE %s ADD COLUMN %I %s', c.name, c.theirs, c.definition) END
    FROM col c WHERE c.attnum IS NULL AND c.feature = '' AND c.filler <> 'receiptd'
    UNION ALL
    SELECT 3, format('inbox table %s has no column %I for %s', c.name, c.theirs, c.feature),
           format('add the column, or leave %s out', c.feature),
           format('ALTER TABLE %s ADD COLUMN %I %s;', c.name, c.theirs, c.definition)
    FROM col c WHERE c.attnum IS NULL AND c.feature <> ''
    UNION ALL
    SELECT 4, format('column %I of inbox table %s is of type %s: its text may depend on settings, or on '
                     'functions of another role', c.theirs,
                     c.name, c.declared),
           format('make it text, or let inbox.columns.%s name another column', c.ours),
           format('ALTER TABLE %s ALTER COLUMN %I TYPE text', c.name, c.theirs)
    FROM col c WHERE c.filler = 'platform' AND NOT c.plain
    UNION ALL
    SELECT 5, format('column %I of inbox table %s is of type %s, not %s', c.theirs, c.name, c.declared, c.asked),
           format('let inbox.columns.%s name a%s', c.ours,
                  CASE WHEN c.filler = 'receiptd' THEN ' new column, which migrate adds' ELSE 'nother column' END)
               || CASE WHEN c.declared IN ('smallint', 'integer', 'bigint')
                       THEN '; or, if its values are codes of the ladder'
                       ELSE '' END,
           CASE WHEN c.declared IN ('smallint', 'integer', 'bigint')
                THEN format('ALTER TABLE %s ALTER COLUMN %I TYPE %s', c.name, c.theirs, c.asked) END
    FROM col c WHERE c.filler <> 'platform' AND c.feature = '' AND c.declared <> c.asked
    UNION ALL
    SELECT 5, format('column %I of inbox table %s, for %s, is of type %s, not %s',
                     c.theirs, c.name, c.feature, c.declared, c.asked),
           format('give that column another name, then add this one; or leave %s out', c.feature), NULL
    FROM col c WHERE c.feature <> '' AND c.declared <> c.asked
    UNION ALL
    SELECT 6, format('column %I of inbox table %s may be NULL: such a row would never take a receipt',
                     c.theirs, c.name),
           'make it NOT NULL',
           format('UPDATE %s SET %I = 0 WHERE %2$I IS NULL; ALTER TABLE %1$s ALTER COLUMN %2$I SET DEFAULT 0, ALTER '
                  'COLUMN %2$I SET NOT NULL',
                  c.name, c.theirs)
    FROM col c
    WHERE c.filler = 'receiptd' AND c.definition LIKE '% NOT NULL %' AND NOT c.attnotnull AND c.declared = c.asked
    UNION ALL
    SELECT 7, format('column %I of inbox table %s is %s: receipts cannot change it', c.theirs, c.name,
                     CASE WHEN c.attgenerated <> '' THEN 'generated' ELSE 'an identity' END), 'make it a plain column',
           CASE WHEN c.attgenerated <> 'v' THEN format('ALTER TABLE %s ALTER COLUMN %I DROP %s', c.name, c.theirs,
                CASE WHEN c.attgenerated <> '' THEN 'EXPRESSION' ELSE 'IDENTITY' END)
                || CASE WHEN c.attnotnull
                        THEN format('; ALTER TABLE %s ALTER COLUMN %I SET DEFAULT 0', c.name, c.theirs)
                        ELSE '' END END
    FROM col c WHERE c.filler = 'receiptd' AND (c.attgenerated <> '' OR c.attidentity <> '')
    UNION ALL
    SELECT 8, format('inbox table %s has no unique index on %I %s that always holds: two rows of one message '
                     'would both be counted',
                     id.name, id.theirs,
                     CASE WHEN p.apart THEN 'with the columns by which it is partitioned' ELSE 'alone' END),
           CASE WHEN p.apart THEN 'its primary key should be the id and these columns'
                WHEN keys.undeferred IS NOT NULL THEN 'the one it has is deferrable'
                ELSE 'each receipt finds its message by it' END,
           CASE WHEN keys.undeferred IS NOT NULL THEN keys.undeferred
                WHEN p.apart THEN format('CREATE UNIQUE INDEX ON %s (%I, %s)', id.name, id.theirs,
                                         (SELECT string_agg(quote_ident(a.attname), ', ')
                                          FROM pg_attribute a
                                          WHERE a.attrelid = id.base
                                            AND a.attnum = ANY (p.columns)
                                            AND a.attnum <> id.attnum))
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
