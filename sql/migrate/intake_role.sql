-- For `receiptd migrate --intake-role`: the intake looks up aliases and does nothing else in the database.
-- Variables: schema, intake_role.
REVOKE ALL ON SCHEMA :"schema" FROM :"intake_role";
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM :"intake_role";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA :"schema" FROM :"intake_role";
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM PUBLIC, :"intake_role";
GRANT USAGE ON SCHEMA :"schema" TO :"intake_role";
GRANT SELECT ON message_alias TO :"intake_role";
