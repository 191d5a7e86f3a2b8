-- The oldest snapshot or transaction that keeps dead rows alive: age_ms (0: none), pid, application_name. For a warning.
-- And how full the server is: backends (of clients), max_connections.
SELECT COALESCE((extract(epoch FROM clock_timestamp() - a.xact_start) * 1000)::int8, 0) AS age_ms, a.pid,
       a.application_name,
       (SELECT count(*) FROM pg_stat_activity c WHERE c.backend_type = 'client backend') AS backends,
       current_setting('max_connections')::int8 AS max_connections
FROM (SELECT 1) one
LEFT JOIN LATERAL (
    SELECT s.xact_start, s.pid, s.application_name
    FROM pg_stat_activity s
    WHERE s.backend_xmin IS NOT NULL AND s.xact_start IS NOT NULL AND s.pid <> pg_backend_pid()
    ORDER BY age(s.backend_xmin) DESC, s.xact_start
    LIMIT 1
) a ON true;
