-- For `receiptd migrate --platform-role`: the platform inserts messages and reads their statuses. It may not write the
-- columns of the status, so that it cannot take one back by accident. Variables: schema, platform_role, platform_columns. A mapped inbox
-- is the platform's own table; there the same is for the platform to see to.
REVOKE ALL ON SCHEMA :"schema" FROM :"platform_role";
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM :"platform_role";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA :"schema" FROM :"platform_role";
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM PUBLIC, :"platform_role";
GRANT USAGE ON SCHEMA :"schema" TO :"platform_role";
GRANT SELECT ON message_inbox, campaign_funnel, campaign_kpi, message_status_priority TO :"platform_role";
GRANT INSERT (:platform_columns) ON message_inbox TO :"platform_role";
GRANT SELECT, INSERT, UPDATE, DELETE ON message_alias TO :"platform_role";
