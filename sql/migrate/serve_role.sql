-- For `receiptd migrate --serve-role`: receiptd serve reads what it shows; it executes no function of ours. Of tables
-- that hold more than the interface shows, columns: no payload, and no answer of a receiver. serve_role_columns.sql
-- adds to those of the inbox. Variables: schema, serve_role.
REVOKE ALL ON SCHEMA :"schema" FROM :"serve_role";
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM :"serve_role";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA :"schema" FROM :"serve_role";
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM PUBLIC, :"serve_role";
GRANT USAGE ON SCHEMA :"schema" TO :"serve_role";
GRANT SELECT ON action_deferred, campaign_changed, campaign_count, campaign_funnel_total, campaign_org, campaign_tally, counter_delta, counters_behind, gateway_hour,
    gateway_time, held_count, database_accepted, dead_letter_size, instance_status, kpi_part, message_alias, message_part, message_status_priority, message_timeline, partition_position, pipeline,
    pipeline_count, pipeline_pause, pipeline_step, serve_token, status_path TO :"serve_role";
GRANT SELECT (message_id, org_id, campaign_id, status, flags, status_at, updated_at) ON message_inbox TO :"serve_role";
GRANT SELECT (id, run_id, pipeline_id, step, org_id, message_id, perform_at, status, attempt, awaits, held_by, created_at, started_at, ended_at, class, answer_status)
    ON action TO :"serve_role";
GRANT SELECT (topic, partition, "offset", index, reason, detail, dead_at, indexes) ON dead_letter TO :"serve_role";
GRANT SELECT (topic, partition, "offset", index, message_id, org_id, status, flags, at, parked_at, gateway, account, reason_class, part, parts) ON parked_event TO :"serve_role";
