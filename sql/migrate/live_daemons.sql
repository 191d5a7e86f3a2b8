-- Daemons with sessions for receipts in this database, whatever their schema: instances (text; NULL: none). Their
-- names are those of application_name (HOST-PID), which PostgreSQL cuts to 63 bytes; the client's address is hidden
-- from roles without pg_read_all_stats. Every role may call itself so, so only those count that have a daemon's right
-- on the positions of this schema.
SELECT string_agg(format('%s (role %s, %s, backends %s)', d.instance, d.usename,
                         COALESCE(d.address, 'local or hidden'), d.pids),
                  '; ' ORDER BY d.instance) AS instances
FROM (
    SELECT split_part(a.application_name, '/', 2) AS instance, a.usename, host(min(a.client_addr)) AS address,
           string_agg(a.pid::text, ' ' ORDER BY a.pid) AS pids
    FROM pg_stat_activity a
    WHERE a.datname = current_database() AND (a.application_name ~ '^receiptd/[^/]*/(control|lane-)'
                                             OR a.application_name ~ '^receiptd/.{54}$')
      AND has_table_privilege(a.usesysid, 'consumer_progress'::regclass, 'UPDATE')
    GROUP BY 1, 2
) d;
