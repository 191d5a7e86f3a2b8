-- Tables whose inserts are counted into our schema ($1 text): inbox_schema, inbox_table, mapping (as in state.sql;
-- NULL for partitions). Columns: is_inbox (it is the table that $2 text, its schema, and $3 text name) and in_inbox
-- (it is that or one of its partitions). Partitions come last: a trigger that they have from their table goes with
-- the table's.
SELECT n.nspname AS inbox_schema, c.relname AS inbox_table, obj_description(t.oid, 'pg_trigger') AS mapping,
       c.oid = b.oid IS TRUE AS is_inbox,
       c.oid = b.oid IS TRUE OR EXISTS (SELECT FROM pg_partition_ancestors(c.oid) a WHERE a.relid = b.oid) AS in_inbox
FROM pg_trigger t
JOIN pg_proc f ON f.oid = t.tgfoid
JOIN pg_namespace s ON s.oid = f.pronamespace
JOIN pg_class c ON c.oid = t.tgrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_namespace bn ON bn.nspname = $2::name
LEFT JOIN pg_class b ON b.relnamespace = bn.oid AND b.relname = $3::name
WHERE t.tgname = 'receiptd_count_inserted' AND s.nspname = $1::name
ORDER BY c.relispartition, 1, 2;
