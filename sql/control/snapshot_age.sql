-- The oldest snapshot or transaction that keeps dead rows alive: age_ms (0: none), pid, application_name. For a
-- warning. And how full the server is: backends (of clients), max_connections. hidden: sessions that this role cannot
-- see.
SELECT age_ms, pid, application_name, backends, max_connections, hidden FROM watch_server();
