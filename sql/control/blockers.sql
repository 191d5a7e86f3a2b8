-- Sessions that block us: $1 int4[] process ids of our own waiting backends, $2 int8 age in ms. One row for each
-- backend and session that it waits for, the oldest transaction first: waiting, pid, usename, application_name,
-- state, age_ms, query, ended. A column is NULL where this role may not see it. Literals and long numbers are taken
-- out of the query, for they may be personal data. It ends sessions of receiptd's own (by role and application_name)
-- whose transaction is older than $2, never one of $1. No time-out fires for a client that is stalled in the middle
-- of a pipeline or does not read its results.
SELECT w.waiting, a.pid, a.usename, a.application_name, a.state,
       (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000)::int8 AS age_ms,
       left(regexp_replace(regexp_replace(regexp_replace(regexp_replace(
           CASE WHEN a.xact_start IS NOT NULL THEN a.query END,
           '\$([[:alpha:]_]*?)\$.*?(\$\1\$|$)', '?', 'g'), '''[^'']*(''|$)', '?', 'g'), '\d{4,}', '?', 'g'),
           '\s+', ' ', 'g'),
           200) AS query,
       CASE WHEN a.usename = current_user
             AND a.application_name LIKE 'receiptd/%'
             -- An operator's command is bounded by itself.
             AND a.application_name NOT IN ('receiptd/migrate', 'receiptd/audit')
             AND a.datname = current_database()
             AND a.xact_start < clock_timestamp() - $2::int8 * interval '1 millisecond'
            THEN pg_terminate_backend(a.pid) END AS ended
FROM (SELECT DISTINCT waiting, blocker FROM unnest($1::int4[]) waiting, unnest(pg_blocking_pids(waiting)) blocker) w
JOIN pg_stat_activity a ON a.pid = w.blocker
WHERE a.pid <> ALL ($1::int4[])
  AND a.pid <> pg_backend_pid()
ORDER BY a.xact_start, a.pid;
