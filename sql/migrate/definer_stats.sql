-- Variables: watcher_role. Comments above grants: role.sql.

-- `watch_server()` looks at the sessions of all roles.
GRANT pg_read_all_stats TO :"watcher_role";
