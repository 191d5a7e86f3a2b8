-- For `receiptd migrate --serve-role`: receiptd serve reads what it shows; it executes no function of ours. Some tables
-- hold more than the interface shows: the role gets columns of those, without payloads and answers of receivers.
-- serve_role_columns.sql adds to those of the inbox. Variables: schema, serve_role. Comments above grants: role.sql.
REVOKE ALL ON SCHEMA :"schema" FROM :"serve_role";
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM :"serve_role";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA :"schema" FROM :"serve_role";
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM PUBLIC, :"serve_role";
-- It names objects of the schema.
GRANT USAGE ON SCHEMA :"schema" TO :"serve_role";
-- The interface shows them.
GRANT SELECT ON action_deferred, campaign_changed, campaign_count, campaign_funnel_total, campaign_org,
    campaign_proof, campaign_tally, counter_delta, counters_behind, database_accepted, dead_letter_size, gateway_hour,
    gateway_time, held_count, instance_status, kpi_part, message_alias, message_part, message_status_priority,
    message_timeline, partition_position, pipeline, pipeline_count, pipeline_pause, pipeline_step, status_path,
    suppression, suppression_state
    TO :"serve_role";
-- Tokens of readers, as hashes.
GRANT SELECT ON serve_token TO :"serve_role";
-- The status of a message.
GRANT SELECT (message_id, org_id, campaign_id, status, flags, status_at, updated_at) ON message_inbox TO :"serve_role";
-- Actions, without what a receiver answered.
GRANT SELECT (id, run_id, pipeline_id, step, org_id, message_id, perform_at, status, attempt, awaits, held_by,
    created_at, started_at, ended_at, class, answer_status) ON action TO :"serve_role";
-- Dead letters and parked receipts, without payloads.
GRANT SELECT (topic, partition, "offset", index, reason, detail, dead_at, indexes) ON dead_letter TO :"serve_role";
GRANT SELECT (topic, partition, "offset", index, message_id, org_id, status, flags, at, parked_at, gateway, account,
    reason_class, part, parts) ON parked_event TO :"serve_role";
