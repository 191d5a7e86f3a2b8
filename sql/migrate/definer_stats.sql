-- What watch_server() reads. Variables: watcher_role.
GRANT pg_read_all_stats TO :"watcher_role";
