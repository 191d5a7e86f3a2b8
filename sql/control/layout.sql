-- How a partitioned inbox is laid out: in how many of its partitions a receipt is looked up. $1 text schema and $2 text name of its table, $3 text its column
-- of the message's id, $4 text that of created_at ('': none). One row, or none where the table is not partitioned. key: by what it is
-- partitioned; leads: the message's id alone leads to the partition; probes: partitions in which one id may be; by_time: the first level is by
-- created_at, so that a recent set has few partitions. Catalogs only.
WITH parted AS (
    SELECT p.partrelid AS oid, p.partattrs::text = a.attnum::text AS leads,
           p.partstrat = 'r' AND EXISTS (SELECT FROM pg_attribute d WHERE d.attrelid = p.partrelid AND d.attname = $4::name AND d.atttypid = 'timestamptz'::regtype
                                                AND NOT d.attisdropped AND p.partattrs::text = d.attnum::text) AS by_time
    FROM pg_partitioned_table p JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attname = $3::name AND NOT a.attisdropped
),
t AS (
    SELECT p.* FROM parted p JOIN pg_class c ON c.oid = p.oid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::name AND c.relname = $2::name
),
below AS (
    SELECT CASE WHEN q.leads THEN 1 ELSE (SELECT count(*) FROM pg_partition_tree(i.inhrelid) l WHERE l.isleaf) END AS probes
    FROM t JOIN pg_inherits i ON i.inhparent = t.oid LEFT JOIN parted q ON q.oid = i.inhrelid
)
SELECT pg_get_partkeydef(t.oid) AS key, t.leads,
       COALESCE((SELECT CASE WHEN t.leads THEN max(b.probes) ELSE sum(b.probes) END FROM below b), 0)::int8 AS probes, t.by_time
FROM t;
