-- Ends what blocks us: $1 int4[] process ids of our own waiting backends, $2 int8 age in ms. Terminates backends of our own
-- role in this database that one of ours waits for and whose transaction is older; never one of $1. Needed because no
-- time-out fires for a client that is stalled in the middle of a pipeline or does not read its results.
-- One row for each: pid, application_name, age_ms, terminated.
SELECT a.pid, a.application_name, (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000)::int8 AS age_ms,
       pg_terminate_backend(a.pid) AS terminated
FROM pg_stat_activity a
WHERE a.pid IN (SELECT blocker FROM unnest($1::int4[]) waiting, unnest(pg_blocking_pids(waiting)) blocker)
  AND a.pid <> ALL ($1::int4[])
  AND a.pid <> pg_backend_pid()
  AND a.usename = current_user
  AND a.application_name NOT IN ('receiptd/migrate', 'receiptd/audit') -- an operator's command, bounded by itself
  AND a.datname = current_database()
  AND a.xact_start < clock_timestamp() - $2::int8 * interval '1 millisecond';
