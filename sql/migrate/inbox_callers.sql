-- Functions that PostgreSQL may call when it plans a query over a mapped inbox, before it reads a row, and their
-- owners. The planner evaluates constant parts of the expressions of indexes, statistics and partition keys, with the
-- rights of the role that reads. Columns: object, function, owner. Parameters: $1 text schema and $2 text name of the
-- table that is the inbox, or becomes it. Functions of superusers and of the session's role are trusted. Lock the
-- inbox first: SHARE UPDATE EXCLUSIVE keeps new ones of these away. Checks of partitions are left out by
-- constraint_exclusion = off.
WITH RECURSIVE base (oid) AS (
    SELECT d.refobjid
    FROM pg_rewrite w
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
    WHERE w.ev_class = to_regclass('message_inbox') AND d.refobjid <> w.ev_class
    UNION
    SELECT c.oid
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::name AND c.relname = $2::name
    UNION
    SELECT i.inhrelid FROM base b JOIN pg_inherits i ON i.inhparent = b.oid
),
object (class, oid) AS (
    SELECT 'pg_class'::regclass, b.oid FROM base b
    UNION ALL
    SELECT 'pg_class'::regclass, x.indexrelid FROM base b JOIN pg_index x ON x.indrelid = b.oid
    UNION ALL
    SELECT 'pg_statistic_ext'::regclass, s.oid FROM base b JOIN pg_statistic_ext s ON s.stxrelid = b.oid
)
SELECT pg_describe_object(o.class, o.oid, 0) AS object, pg_describe_object(d.refclassid, d.refobjid, 0) AS function,
       r.rolname AS owner
FROM object o
JOIN pg_depend d ON d.classid = o.class AND d.objid = o.oid
LEFT JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid
LEFT JOIN pg_operator q ON d.refclassid = 'pg_operator'::regclass AND q.oid = d.refobjid
JOIN pg_roles r ON r.oid IN (p.proowner, q.oprowner)
WHERE NOT r.rolsuper AND r.rolname <> current_user
UNION ALL
-- An empty table can become a view, before PostgreSQL 16.
SELECT pg_describe_object('pg_class'::regclass, c.oid, 0), 'what a view has in it', r.rolname
FROM base b JOIN pg_class c ON c.oid = b.oid JOIN pg_roles r ON r.oid = c.relowner
WHERE c.relkind = 'v'
ORDER BY 1, 2
LIMIT 1;
