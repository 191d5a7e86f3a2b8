-- since: the boundary of the inbox's recent set. No row while there is none, or while its index is missing or not finished, or its table is
-- no longer partitioned, or the inbox has no created_at (another mapping since). by_time: it is the newest partitions of a table in ranges of created_at.
SELECT r.since, c.relkind = 'p' AS by_time
FROM inbox_recent r
JOIN pg_namespace s ON s.nspname = r.index_schema
JOIN pg_class c ON c.relnamespace = s.oid AND c.relname = r.index_name
WHERE (c.relkind = 'p' OR EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = c.oid AND i.indisvalid))
  AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = to_regclass('message_inbox') AND a.attname = 'created_at'
                                           AND a.atttypid = 'timestamptz'::regtype AND NOT a.attisdropped);
