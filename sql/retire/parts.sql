-- The parts of a table that have rows: the table itself, or its partitions. $1 text its schema, $2 text its name. One
-- row for each: schema, name, pages; booked: the table has the trigger that books deleted rows; now_ms. Columns lower
-- and upper: the bounds of a partition where they are single texts (else NULL).
SELECT n.nspname AS schema, c.relname AS name, pg_relation_size(c.oid) / current_setting('block_size')::int4 AS pages,
       EXISTS (SELECT FROM pg_trigger g
               WHERE g.tgrelid = b.oid AND g.tgname = 'receiptd_count_deleted' AND g.tgenabled IN ('O', 'A')) AS booked,
       substring(pg_get_expr(c.relpartbound, c.oid) FROM '^FOR VALUES FROM \(''([^'']*)''\)') AS lower,
       substring(pg_get_expr(c.relpartbound, c.oid) FROM ' TO \(''([^'']*)''\)$') AS upper,
       (extract(epoch FROM now()) * 1000)::int8 AS now_ms
FROM (SELECT to_regclass(format('%I.%I', $1::text, $2::text)) AS oid) b
JOIN pg_class c ON c.relkind = 'r' AND (c.oid = b.oid OR c.oid IN (SELECT t.relid FROM pg_partition_tree(b.oid) t))
JOIN pg_namespace n ON n.oid = c.relnamespace
ORDER BY n.nspname, c.relname;
