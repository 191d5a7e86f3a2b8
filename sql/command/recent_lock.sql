-- Says whether another session builds an index or vacuums on a table: $1 text its schema, $2 text its name. One row:
-- free. Sets of several schemas may share the table. CREATE INDEX CONCURRENTLY waits for snapshots, so two of them
-- would wait for each other. Autovacuum gives way by itself.
SELECT NOT EXISTS (
    SELECT FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
      AND l.mode = 'ShareUpdateExclusiveLock'
      AND a.usesysid IS NOT NULL
      AND l.pid <> pg_backend_pid()
      AND n.nspname = $1::name
      AND c.relname = $2::name) AS free
