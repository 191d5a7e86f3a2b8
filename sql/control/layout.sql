-- How a partitioned inbox is laid out: in how many of its partitions a receipt is looked up. It reads catalogs only.
-- Parameters: $1 text schema and $2 text name of its table, $3 text its column of the message's id, $4 text that of
-- created_at ('': none). One row, or none where the table is not partitioned. key: by what it is partitioned. Column
-- leads: the message's id alone leads to the partition, as text, which is what receipts bring. probes: partitions in
-- which one id may be. Columns by_time, by_id: the first level is ranges of created_at, or it is by the id. Column
-- by_range: by ranges of the id, so that a recent set has few partitions. Column below: by what partitions are
-- partitioned again, to which the id does not lead (NULL: none).
WITH parted AS (
    SELECT p.partrelid AS oid, b.by_id AND k.typname IN ('text', 'varchar') AND l.collisdeterministic AS leads,
           b.by_id, b.by_id AND p.partstrat = 'r' AS by_range,
           p.partstrat = 'r'
               AND EXISTS (SELECT FROM pg_attribute d
                           WHERE d.attrelid = p.partrelid
                             AND d.attname = $4::name
                             AND d.atttypid = 'timestamptz'::regtype
                             AND NOT d.attisdropped
                             AND p.partattrs::text = d.attnum::text) AS by_time
    FROM pg_partitioned_table p
    JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attname = $3::name AND NOT a.attisdropped
    JOIN pg_type y ON y.oid = a.atttypid
    JOIN pg_type k ON k.oid = COALESCE(NULLIF(y.typbasetype, 0), y.oid)
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
    CROSS JOIN LATERAL (SELECT p.partattrs::text = a.attnum::text AND p.partcollation[0] = a.attcollation AS by_id) b
),
t AS (
    SELECT p.* FROM parted p JOIN pg_class c ON c.oid = p.oid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::name AND c.relname = $2::name
),
below AS (
    SELECT i.inhrelid AS oid, NOT q.leads AS again,
           CASE WHEN q.leads THEN 1
                ELSE (SELECT count(*) FROM pg_partition_tree(i.inhrelid) l WHERE l.isleaf) END AS probes
    FROM t JOIN pg_inherits i ON i.inhparent = t.oid LEFT JOIN parted q ON q.oid = i.inhrelid
)
SELECT pg_get_partkeydef(t.oid) AS key, COALESCE(t.leads, false) AS leads,
       COALESCE((SELECT CASE WHEN t.leads THEN max(b.probes) ELSE sum(b.probes) END FROM below b), 0)::int8 AS probes,
       t.by_time, t.by_id, t.by_range,
       (SELECT pg_get_partkeydef(b.oid) FROM below b WHERE b.again ORDER BY b.oid LIMIT 1) AS below
FROM t;
