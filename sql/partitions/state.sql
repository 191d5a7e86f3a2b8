-- How the inbox is laid out: $1 text its schema, $2 text its name. One row, or none where there is no such table.
-- Columns: partitioned; partition_key; by_id: ranges of the message's id lead to the partition ($3 text: its column).
-- Columns: prunes: the id alone leads there, by ranges or otherwise; partitions: how many; other (NULL: none): name
-- of the default partition; owner; now_ms. Column pending: a CHECK receiptd_bounds that an interrupted run has left,
-- on the default partition or on the table itself. readable: the session may read the default partition.
SELECT c.relkind = 'p' AS partitioned, pg_get_partkeydef(c.oid) AS partition_key,
       COALESCE(p.partstrat = 'r' AND p.partattrs::text = a.attnum::text, false) AS by_id,
       COALESCE(p.partattrs::text = a.attnum::text, false) AS prunes,
       (SELECT count(*) FROM pg_inherits i WHERE i.inhparent = c.oid) AS partitions,
       d.relname AS other, pg_get_userbyid(c.relowner) AS owner,
       (extract(epoch FROM now()) * 1000)::int8 AS now_ms,
       EXISTS (SELECT FROM pg_constraint k
               WHERE k.conrelid IN (c.oid, d.oid) AND k.conname = 'receiptd_bounds') AS pending,
       COALESCE(has_table_privilege(d.oid, 'SELECT'), false) AS readable
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = $3::name AND NOT a.attisdropped
LEFT JOIN pg_partitioned_table p ON p.partrelid = c.oid
LEFT JOIN pg_class d ON d.oid = NULLIF(p.partdefid, 0)
WHERE n.nspname = $1::name AND c.relname = $2::name AND c.relkind IN ('r', 'p');
