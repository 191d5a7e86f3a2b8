-- Reasons why an existing table cannot be the inbox, from the catalogs, which every role may read.
-- inbox_additions.sql has the columns that migrate adds. The statement is this file, 20_keys.sql and 90_list.sql. One
-- row for each problem, the most important first: problem, advice, sql (NULL: no statement mends it). Parameters: $1
-- text its schema, $2 text its name, $3 jsonb our columns (src/commands/inbox/place.h).
WITH RECURSIVE named AS (
    SELECT c.*, format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1::name AND c.relname = $2::name
),
t AS (SELECT * FROM named WHERE relkind IN ('r', 'p')),
ours AS (
    SELECT o.*
    FROM jsonb_to_recordset($3::jsonb) AS o (n int4, ours text, theirs text, type text,
                                             definition text, filler text, feature text, wanted boolean)
    WHERE o.wanted
),
-- A domain counts as its base type.
kind (attnum, declared, type, coll) AS (
    SELECT a.attnum, a.atttypid, a.atttypid, a.attcollation
    FROM t
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0
    UNION ALL
    SELECT k.attnum, k.declared, y.typbasetype, k.coll
    FROM kind k
    JOIN pg_type y ON y.oid = k.type
    WHERE y.typtype = 'd'
),
col AS (
    SELECT o.n, o.ours, format_type(o.type::regtype, NULL) AS asked, o.definition, o.theirs,
           o.filler, o.feature, t.oid AS base, t.name, a.attnum, a.attnotnull, a.attgenerated,
           a.attidentity, format_type(a.atttypid, NULL) AS declared,
           -- types whose text never depends on a session's settings
           y.typnamespace = 'pg_catalog'::regnamespace
               AND y.typname IN ('text', 'varchar', 'bpchar', 'name', 'int2',
                                 'int4', 'int8', 'numeric', 'uuid') AS plain,
           y.typname IN ('text', 'varchar') AS texty,
           CASE WHEN l.collisdeterministic THEN l.oid ELSE '"C"'::regcollation END AS coll,
           l.collisdeterministic AS exact
    FROM t CROSS JOIN ours o
    LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = o.theirs::name AND a.attnum > 0
        AND NOT a.attisdropped
    LEFT JOIN kind k ON k.attnum = a.attnum
        AND NOT EXISTS (SELECT FROM pg_type d WHERE d.oid = k.type AND d.typtype = 'd')
    LEFT JOIN pg_type y ON y.oid = k.type
    LEFT JOIN pg_collation l ON l.oid = k.coll
),
