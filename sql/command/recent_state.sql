-- How the inbox is laid out, and its recent set. One row, or none where there is no such table. Parameters: $1 text
-- its schema, $2 text its name, $3 text the name there of message_id, $4 text that of created_at ('': none). Column
-- expression: as the statements see message_id (functions/map_inbox); an index must have it. Column next: name of the
-- next index. It holds a hash of receiptd's schema: several schemas may share a table, and each may drop only its own
-- indexes (recent_unused.sql).
--
-- A partitioned table has further columns. by_key: the message's id alone leads to the partition, which needs a text,
-- as receipts bring it. Columns by_time and by_range: the partitions are ranges of created_at, or of the id.
-- key_column, key_type: the column of message_inbox of these ranges, and its type. Column since: of a recent set
-- whose index is there, or that is of such partitions.
WITH t AS (
    SELECT c.oid, c.relkind, c.relnamespace, n.nspname, c.relname, format('%I.%I', n.nspname, c.relname) AS name,
           COALESCE((SELECT sum(pg_relation_size(l.relid)) FROM pg_partition_tree(c.oid) l WHERE l.isleaf),
                    pg_relation_size(c.oid)) AS bytes
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::name AND c.relname = $2::name AND c.relkind IN ('r', 'p')
),
own AS (
    SELECT 'message_inbox_recent_' || left(encode(sha256(convert_to(current_schema(), 'UTF8')), 'hex'), 8)
               || '_' AS prefix
),
made AS (
    SELECT i.relname, x.indisvalid, substring(i.relname FROM '\d+$')::int8 AS number
    FROM own JOIN t ON true JOIN pg_index x ON x.indrelid = t.oid JOIN pg_class i ON i.oid = x.indexrelid
    WHERE i.relname ~ ('^' || own.prefix || '\d{1,9}$')
),
-- A domain counts as its base type. message_inbox shows an id of text as it is, and others as text, beside
-- message_key.
id AS (
    SELECT a.attname, a.atttypid, COALESCE(l.collisdeterministic, true) AS exact, k.typname AS type,
           p.partattrs::text = a.attnum::text AND p.partcollation[0] = a.attcollation AS leads, p.partstrat,
           CASE WHEN a.atttypid IN ('text'::regtype, 'varchar'::regtype) AND l.collisdeterministic THEN 'message_id'
                ELSE 'message_key' END AS shown
    FROM t
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = $3::name AND NOT a.attisdropped
    JOIN pg_type y ON y.oid = a.atttypid
    JOIN pg_type k ON k.oid = COALESCE(NULLIF(y.typbasetype, 0), y.oid)
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
    LEFT JOIN pg_partitioned_table p ON p.partrelid = t.oid
),
way AS (
    SELECT COALESCE(id.leads, false) AS by_id,
           COALESCE(id.leads AND id.type IN ('text', 'varchar') AND id.exact, false) AS by_key,
           COALESCE(id.leads AND id.partstrat = 'r', false)
               AND EXISTS (SELECT FROM pg_attribute m
                           WHERE m.attrelid = to_regclass('message_inbox')
                             AND m.attname = id.shown
                             AND NOT m.attisdropped) AS by_range,
           EXISTS (SELECT FROM pg_partitioned_table p
                   JOIN pg_attribute d ON d.attrelid = p.partrelid AND d.attnum = p.partattrs[0]
                   WHERE p.partrelid = t.oid
                     AND p.partstrat = 'r'
                     AND d.attname = $4::name
                     AND d.atttypid = 'timestamptz'::regtype) AS by_time
    FROM t JOIN id ON true
)
SELECT t.name, t.relkind = 'p' AS partitioned,
       has_schema_privilege(t.relnamespace, 'USAGE') AND has_table_privilege(t.oid, 'SELECT') AS readable,
       LEAST(100, 100 * 4000 * current_setting('block_size')::float8 / GREATEST(t.bytes, 1))::numeric(9, 4) AS percent,
       CASE WHEN NOT id.exact THEN format('((%I::text) COLLATE "C")', id.attname)
            WHEN id.atttypid IN ('text'::regtype, 'varchar'::regtype) THEN format('%I', id.attname)
            ELSE format('(%I::text)', id.attname) END AS expression,
       EXISTS (SELECT FROM pg_attribute d
               WHERE d.attrelid = t.oid AND d.attname = $4::name AND d.atttypid = 'timestamptz'::regtype
                 AND NOT d.attisdropped) AS has_time,
       (SELECT count(*) FROM pg_inherits h WHERE h.inhparent = t.oid) AS partitions,
       pg_get_partkeydef(t.oid) AS partition_key,
       way.by_id, way.by_key, way.by_time, way.by_range,
       CASE WHEN way.by_time THEN 'created_at' ELSE id.shown END AS key_column,
       CASE WHEN way.by_time THEN 'timestamptz' ELSE id.type END AS key_type,
       (SELECT CASE WHEN way.by_range THEN r.first_id ELSE r.since::text END FROM inbox_recent r
        WHERE r.index_schema = t.nspname AND ((t.relkind = 'p' AND r.index_name = t.relname)
                                              OR r.index_name IN (SELECT m.relname FROM made m WHERE m.indisvalid))
       ) AS since,
       own.prefix || COALESCE((SELECT max(m.number) FROM made m), 0) + 1 AS next
FROM own JOIN t ON true JOIN id ON true JOIN way ON true
