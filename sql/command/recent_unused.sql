-- Indexes of recent sets that are not in use: of an earlier boundary, or of a run that did not end. Each comes with
-- the statement that drops it. Parameters: $1 text schema of the inbox's table, $2 text its name. Indexes of another
-- schema of receiptd on the same table are left out.
SELECT i.relname AS name, format('DROP INDEX CONCURRENTLY IF EXISTS %I.%I', n.nspname, i.relname) AS sql
FROM pg_class t
JOIN pg_namespace n ON n.oid = t.relnamespace
JOIN pg_index x ON x.indrelid = t.oid
JOIN pg_class i ON i.oid = x.indexrelid
WHERE n.nspname = $1::name AND t.relname = $2::name
  AND i.relname ~ ('^message_inbox_recent_' || left(encode(sha256(convert_to(current_schema(), 'UTF8')), 'hex'), 8)
                       || '_\d{1,9}$')
  AND NOT EXISTS (SELECT FROM inbox_recent r
                  WHERE r.index_schema = n.nspname AND r.index_name = i.relname AND x.indisvalid)
ORDER BY i.relname
