-- Tables whose inserts are counted into our schema ($1 text): inbox_schema, inbox_table, mapping (as in state.sql).
SELECT n.nspname AS inbox_schema, c.relname AS inbox_table, obj_description(t.oid, 'pg_trigger') AS mapping
FROM pg_trigger t
JOIN pg_proc f ON f.oid = t.tgfoid
JOIN pg_namespace s ON s.oid = f.pronamespace
JOIN pg_class c ON c.oid = t.tgrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE t.tgname = 'receiptd_count_inserted' AND s.nspname = $1::name
ORDER BY 1, 2;
