-- The same for watch_server(), which reads the sessions of all roles: its role has no right on any object of the
-- schema. Variables: schema, watcher_role.
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM :"watcher_role";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA :"schema" FROM :"watcher_role";
-- The function runs with these rights and no others.
GRANT CREATE ON SCHEMA :"schema" TO :"watcher_role";
ALTER FUNCTION watch_server() OWNER TO :"watcher_role";
REVOKE ALL ON SCHEMA :"schema" FROM :"watcher_role";
