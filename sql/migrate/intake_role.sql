-- For `receiptd migrate --intake-role`: the intake looks up aliases and does nothing else in the database.
-- Variables: schema, intake_role. Comments above grants: role.sql.
REVOKE ALL ON SCHEMA :"schema" FROM :"intake_role";
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM :"intake_role";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA :"schema" FROM :"intake_role";
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM PUBLIC, :"intake_role";
-- It names objects of the schema.
GRANT USAGE ON SCHEMA :"schema" TO :"intake_role";
-- The intake looks up which message a gateway's id means.
GRANT SELECT ON message_alias TO :"intake_role";
