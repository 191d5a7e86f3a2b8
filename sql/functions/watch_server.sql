-- The session that keeps dead rows alive longest, and how full the server is, for a role that may not see the
-- sessions of others. It has the rights of a role of its own (migrate/definer_watcher.sql), and therefore gives these
-- numbers alone: pg_read_all_stats would show all roles' statements too.
--
-- hidden: how many sessions the owner may not see either.
CREATE OR REPLACE FUNCTION watch_server(OUT age_ms bigint, OUT pid integer,
                                        OUT application_name text, OUT backends bigint,
                                        OUT max_connections bigint, OUT hidden bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT COALESCE((extract(epoch FROM clock_timestamp() - a.xact_start) * 1000)::int8, 0), a.pid, a.application_name,
           c.n + c.hidden, current_setting('max_connections')::int8, c.hidden
    FROM (SELECT count(*) FILTER (WHERE s.backend_type = 'client backend') AS n,
                 count(*) FILTER (WHERE s.backend_type IS NULL AND s.datid IS NOT NULL) AS hidden
          FROM pg_stat_activity s) c
    LEFT JOIN LATERAL (
        SELECT s.xact_start, s.pid, s.application_name
        FROM pg_stat_activity s
        WHERE s.backend_xmin IS NOT NULL AND s.xact_start IS NOT NULL AND s.pid <> pg_backend_pid()
        ORDER BY age(s.backend_xmin) DESC, s.xact_start
        LIMIT 1
    ) a ON true
$$;
