-- For `receiptd migrate --platform-role`: the platform inserts messages and reads their statuses. It may not write the
-- columns of the status, so that it cannot take one back by accident. A mapped inbox is the platform's own table, and
-- the platform grants its rights there. Variables: schema, platform_role, platform_columns. Comments above grants:
-- role.sql.
REVOKE ALL ON SCHEMA :"schema" FROM :"platform_role";
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM :"platform_role";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA :"schema" FROM :"platform_role";
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM PUBLIC, :"platform_role";
-- It names objects of the schema.
GRANT USAGE ON SCHEMA :"schema" TO :"platform_role";
-- Statuses, funnels and rates.
GRANT SELECT ON message_inbox, campaign_funnel, campaign_kpi, message_status_priority TO :"platform_role";
-- New messages; `counters.by` adds its columns.
GRANT INSERT (:platform_columns) ON message_inbox TO :"platform_role";
-- Its senders share their work by lanes.
GRANT EXECUTE ON FUNCTION lane_of TO :"platform_role";
-- Its senders claim a subject of a push.
GRANT EXECUTE ON FUNCTION claim_push TO :"platform_role";
-- They pass over suppressed persons.
GRANT EXECUTE ON FUNCTION is_suppressed, suppression_key TO :"platform_role";
GRANT SELECT ON suppression_state TO :"platform_role";
-- The ids that gateways gave to messages.
GRANT SELECT, INSERT, UPDATE, DELETE ON message_alias TO :"platform_role";
