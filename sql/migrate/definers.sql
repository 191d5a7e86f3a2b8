-- Whom the functions belong to that work with rights of their own (SECURITY DEFINER): two roles that cannot log in, made for
-- this schema of this database alone, with the rights that are written here and no others. Whoever finds a way to run code in
-- such a function has those, not the owner's. Variables: schema, counter_role, watcher_role. After inbox_trigger.sql; can be run
-- again. An owner has to be able to create in the schema at the moment when he becomes it.
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM :"counter_role", :"watcher_role";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA :"schema" FROM :"counter_role", :"watcher_role";
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM :"counter_role", :"watcher_role";
GRANT CREATE ON SCHEMA :"schema" TO :"counter_role", :"watcher_role";
