-- Other reasons why an existing table cannot be an exact inbox, where its shape is right (inbox_problems). Its rows
-- may be hidden, changed or refused, or rights may be missing. Rows and whose rights: as in inbox_additions.sql.
-- Parameters: $1 text its schema, $2 text its name, $3 jsonb our columns (src/commands/inbox/place.h), $4 text our
-- schema, $5 bool unknown is insert, $6 bool inserts are counted, $7 bool topics announce messages.
WITH t AS (
    SELECT c.*, n.nspname, format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::name AND c.relname = $2::name AND c.relkind IN ('r', 'p')
),
v AS (SELECT c.relowner
      FROM pg_class c
      WHERE c.oid = to_regclass(format('%I.message_inbox', $4::text)) AND c.relkind = 'v'),
me AS (
    SELECT r.* FROM pg_roles r
    WHERE r.oid = COALESCE((SELECT relowner FROM v), (SELECT s.nspowner FROM pg_namespace s WHERE s.nspname = $4::name),
                           (SELECT u.oid FROM pg_roles u WHERE u.rolname = current_user))
),
col AS (
    SELECT a.*, o.ours, o.filler
    FROM t
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN jsonb_to_recordset($3::jsonb) AS o (ours text, theirs text, filler text, wanted boolean)
        ON o.wanted AND o.theirs = a.attname
),
-- Names of columns that a trigger's function assigns to, as far as its text shows: NEW.status := …
trigger AS (
    SELECT g.tgname, c.attname
    FROM t
    JOIN pg_trigger g ON g.tgrelid = t.oid AND NOT g.tgisinternal AND g.tgenabled IN ('O', 'A') AND g.tgtype & 19 = 19
    JOIN pg_proc p ON p.oid = g.tgfoid
    JOIN col c ON c.filler = 'receiptd' AND c.ours <> 'updated_at' -- which no counter reads
    WHERE p.prosrc ~* format('(^|;|\mthen|\mbegin|\melse)\s*new\."?%s"?\s*:?=',
                             regexp_replace(c.attname, '(\W)', '\\\1', 'g'))
),
-- The key that makes receiptd insert rows, and the way without it.
maker AS (
    SELECT CASE WHEN $5::bool THEN 'unknown is insert' ELSE 'kafka.message_topics is set' END AS key,
           CASE WHEN $5::bool THEN 'set unknown to park, or' ELSE 'insert messages in SQL, or' END AS advice
    WHERE $5::bool OR $7::bool
),
problem (n, problem, advice, sql) AS (
    SELECT 1, format('inbox table %s has row-level security that applies to role "%s", which owns the view: it would '
                     'hide rows from receipts and from the audit', t.name, me.rolname),
           CASE WHEN pg_has_role(me.oid, t.relowner, 'USAGE') THEN 'let it not hold for the owner'
                ELSE 'have a superuser run' END,
           CASE WHEN pg_has_role(me.oid, t.relowner, 'USAGE')
                THEN format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', t.name)
                ELSE format('ALTER ROLE %I BYPASSRLS', me.rolname) END
    FROM t, me
    WHERE t.relrowsecurity AND (t.relforcerowsecurity OR NOT pg_has_role(me.oid, t.relowner, 'USAGE'))
      AND NOT me.rolsuper AND NOT me.rolbypassrls
    UNION ALL
    SELECT 2, format('inbox table %s has child %s: the keys of a table do not hold for what inherits from it',
                     t.name, i.inhrelid::regclass),
           'partition the table, or separate them', format('ALTER TABLE %s NO INHERIT %s', i.inhrelid::regclass, t.name)
    FROM t JOIN pg_inherits i ON i.inhparent = t.oid WHERE t.relkind = 'r'
    UNION ALL
    SELECT 3, format('inbox table %s is not logged: a crash would empty it and keep the counters', t.name),
           'make it permanent',
           CASE t.relpersistence WHEN 'u' THEN format('ALTER TABLE %s SET LOGGED', t.name) END
    FROM t WHERE t.relpersistence <> 'p'
    UNION ALL
    SELECT 4, format('inbox table %s has rule %I: it would replace what receipts do', t.name, w.rulename),
           'a trigger can do the same',
           format('DROP RULE %I ON %s', w.rulename, t.name)
    FROM t JOIN pg_rewrite w ON w.ev_class = t.oid AND w.ev_type <> '1' AND w.ev_enabled <> 'D'
    UNION ALL
    SELECT 5, format('trigger %I of inbox table %s sets %s before each update: the counters would not follow',
                     g.tgname, t.name, string_agg(quote_ident(g.attname), ', ')),
           'only receipts set these columns: change its function, or',
           format('ALTER TABLE %s DISABLE TRIGGER %I', t.name, g.tgname)
    FROM t, trigger g GROUP BY g.tgname, t.name
    UNION ALL
    SELECT 6, format('%s, but column %I of inbox table %s %s: a new row could not be made', maker.key,
                     c.attname, t.name,
                     CASE WHEN c.attgenerated <> '' THEN 'is generated'
                          WHEN c.filler = 'platform' THEN 'is no plain text'
                          ELSE 'may not be NULL and has no default' END), maker.advice,
           CASE WHEN c.attgenerated = 's'
                THEN format('ALTER TABLE %s ALTER COLUMN %I DROP EXPRESSION', t.name, c.attname)
                WHEN c.filler = 'platform' AND c.attgenerated = ''
                THEN CASE WHEN c.attidentity <> ''
                          THEN format('ALTER TABLE %s ALTER COLUMN %I DROP IDENTITY; ', t.name, c.attname)
                          ELSE '' END
                     || format('ALTER TABLE %s ALTER COLUMN %I TYPE text COLLATE "C"', t.name, c.attname)
                WHEN c.attgenerated = ''
                THEN format('ALTER TABLE %s ALTER COLUMN %I DROP NOT NULL', t.name, c.attname) END
    FROM t, maker, col c LEFT JOIN pg_collation l ON l.oid = c.attcollation
    WHERE CASE WHEN c.filler = 'platform'
               THEN c.attgenerated <> ''
                    OR c.atttypid NOT IN ('text'::regtype, 'varchar'::regtype)
                    OR NOT l.collisdeterministic
               ELSE $5::bool AND c.attnotnull AND NOT c.atthasdef AND c.attidentity = '' AND c.attgenerated = '' END
    UNION ALL
    SELECT 7, format('%s, but constraint %I of inbox table %s is deferrable: a new row could not be made', maker.key,
                     k.conname, t.name),
           maker.advice,
           format('ALTER TABLE %s DROP CONSTRAINT %I, ADD CONSTRAINT %2$I %s', t.name, k.conname,
                  regexp_replace(pg_get_constraintdef(k.oid), ' DEFERRABLE.*', ''))
    FROM t JOIN pg_constraint k ON k.conrelid = t.oid AND k.contype IN ('p', 'u', 'x') AND k.condeferrable, maker
    UNION ALL
    SELECT 8, format('role "%s" is no member of "%s", which owns inbox table %s: it cannot put a trigger there '
                     'that counts new rows', me.rolname, o.rolname, t.name),
           CASE WHEN o.rolsuper THEN 'set inbox.targeted to none, or' ELSE 'have an administrator run' END,
           CASE WHEN o.rolsuper THEN format('ALTER TABLE %s OWNER TO %I', t.name, me.rolname)
                ELSE format('GRANT %I TO %I', o.rolname, me.rolname) END
    FROM t JOIN pg_roles o ON o.oid = t.relowner, me
    WHERE $6::bool AND NOT pg_has_role(me.oid, t.relowner, 'USAGE')
      AND NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = t.oid AND g.tgname = 'receiptd_count_inserted')
    UNION ALL
    SELECT 9, format('role "%s" has not all rights on inbox table %s that view message_inbox needs',
                     me.rolname, t.name),
           'have its owner run',
           format('GRANT USAGE ON SCHEMA %I TO %I; GRANT SELECT, INSERT, UPDATE%s ON %s TO %2$I',
                  t.nspname, me.rolname, CASE WHEN $7::bool THEN ', DELETE' END, t.name)
    FROM t, me
    WHERE NOT (has_schema_privilege(me.oid, t.relnamespace, 'USAGE') AND has_table_privilege(me.oid, t.oid, 'SELECT')
               AND has_table_privilege(me.oid, t.oid, 'UPDATE')
               AND (has_table_privilege(me.oid, t.oid, 'INSERT') OR NOT EXISTS (SELECT FROM maker))
               AND (has_table_privilege(me.oid, t.oid, 'DELETE') OR NOT $7::bool))
)
SELECT problem, advice, sql FROM problem ORDER BY n, problem;
