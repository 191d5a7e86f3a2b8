-- What watch_server() looks at. Variables: watcher_role.
GRANT pg_read_all_stats TO :"watcher_role";
