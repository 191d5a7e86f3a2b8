-- Identifies this server: system_identifier, timeline, address, port.
SELECT s.system_identifier, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int AS timeline,
       COALESCE(host(inet_server_addr()), 'a socket of this machine') AS address, current_setting('port') AS port
FROM pg_control_system() s;
