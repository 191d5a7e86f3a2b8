-- Sessions for which a backend waits: $1 int4 its process id. Columns: pid, usename, application_name, state, age
-- (whole seconds of its transaction), began (its last query, in UTC). A column is NULL where this role may not see
-- it. It shows no text of a query, which may hold personal data.
SELECT a.pid, a.usename, a.application_name, a.state, extract(epoch FROM clock_timestamp() - a.xact_start)::int8 AS age,
       to_char(a.query_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS began
FROM (SELECT DISTINCT unnest(pg_blocking_pids($1::int4)) AS pid) b JOIN pg_stat_activity a ON a.pid = b.pid
ORDER BY a.xact_start, a.pid
