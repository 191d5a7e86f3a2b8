-- For `receiptd migrate --serve-role`: receiptd serve reads what it shows and nothing else; it executes no function of ours.
-- Variables: schema, serve_role.
REVOKE ALL ON SCHEMA :"schema" FROM :"serve_role";
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM :"serve_role";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA :"schema" FROM :"serve_role";
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM PUBLIC, :"serve_role";
GRANT USAGE ON SCHEMA :"schema" TO :"serve_role";
GRANT SELECT ON action, action_deferred, campaign_changed, campaign_count, campaign_funnel_delta, campaign_funnel_total, campaign_org, campaign_tally, counters_behind, gateway_hour,
    gateway_time, held_count, database_accepted, dead_letter, instance_status, kpi_part, message_alias, message_inbox, message_part, message_status_priority, message_timeline, parked_event, partition_position, pipeline,
    pipeline_count, pipeline_pause, pipeline_step, serve_token, status_path TO :"serve_role";
