-- Optional: who owns which column, enforced. Variables: schema, platform_role (inserts messages), receiptd_role (runs the
-- daemon; the tables belong to whoever runs the migration). For a mapped inbox grant the same on its base table's columns.
GRANT USAGE ON SCHEMA :"schema" TO :"platform_role", :"receiptd_role";
GRANT SELECT ON ALL TABLES IN SCHEMA :"schema" TO :"receiptd_role";
GRANT SELECT ON message_inbox, campaign_funnel, campaign_kpi, message_status_priority TO :"platform_role";
GRANT INSERT (message_id, org_id, campaign_id) ON message_inbox TO :"platform_role", :"receiptd_role";
GRANT UPDATE (status, prev_status, flags, prev_flags, status_at, updated_at) ON message_inbox TO :"receiptd_role";
GRANT SELECT, INSERT, UPDATE, DELETE ON message_alias TO :"platform_role";
GRANT INSERT, DELETE ON campaign_funnel_delta, parked_event, dead_letter, message_timeline TO :"receiptd_role";
GRANT USAGE ON SEQUENCE campaign_funnel_delta_id_seq TO :"receiptd_role";
GRANT INSERT, UPDATE ON campaign_funnel_total, consumer_topic, consumer_progress TO :"receiptd_role";
GRANT INSERT, UPDATE, DELETE ON fold_rule, fold_event, fold_group, fold_outbox, fold_call, fold_total, fold_progress
    TO :"receiptd_role";
GRANT UPDATE ON fold_lane TO :"receiptd_role";
GRANT USAGE ON SEQUENCE fold_event_id_seq TO :"receiptd_role";
