-- For `receiptd migrate --role`: exactly what the daemon and its commands need, whatever the role had in our schema before.
-- Variables: schema, receiptd_role (it owns nothing here: the tables belong to whoever runs the migration).
-- Functions: anybody who may execute a trigger function may put it on a table of his own, and the one that counts inserted
-- rows writes counters with its owner's rights.
REVOKE ALL ON SCHEMA :"schema" FROM :"receiptd_role";
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM :"receiptd_role";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA :"schema" FROM :"receiptd_role";
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM PUBLIC, :"receiptd_role";
GRANT USAGE ON SCHEMA :"schema" TO :"receiptd_role";
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA :"schema" TO :"receiptd_role";
GRANT SELECT ON ALL TABLES IN SCHEMA :"schema" TO :"receiptd_role";
GRANT INSERT (message_id, org_id, campaign_id) ON message_inbox TO :"receiptd_role";
GRANT UPDATE (status, prev_status, flags, prev_flags, status_at, updated_at) ON message_inbox TO :"receiptd_role";
GRANT INSERT, DELETE ON campaign_funnel_delta, parked_event, dead_letter, message_timeline TO :"receiptd_role";
GRANT USAGE ON SEQUENCE campaign_funnel_delta_id_seq TO :"receiptd_role";
GRANT INSERT, UPDATE ON campaign_funnel_total, consumer_topic, consumer_progress TO :"receiptd_role";
GRANT INSERT, UPDATE, DELETE ON fold_rule, fold_event, fold_group, fold_outbox, fold_call, fold_total, fold_progress
    TO :"receiptd_role";
GRANT UPDATE ON fold_lane TO :"receiptd_role";
GRANT USAGE ON SEQUENCE fold_event_id_seq TO :"receiptd_role";
GRANT INSERT, UPDATE, DELETE ON pipeline, pipeline_step, pipeline_trigger, pipeline_source, action_progress, pipeline_pause, pipeline_delta, pipeline_total, run_intent, run,
    action, action_overlap, action_lane, action_instance, org_limit TO :"receiptd_role";
