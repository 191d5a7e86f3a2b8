-- For `receiptd migrate --role`: exactly the rights that the daemon and its commands need; others that the role had in
-- the schema go. Variables: schema, receiptd_role (it owns nothing here: the tables belong to the role that runs the
-- migration), platform_columns and receiptd_columns (of the inbox, by who writes them). Functions by name, those that its statements and the functions among them call: docs/security.md lists
-- the others, which it may not execute. A role that may execute a trigger function could put it on a table of its own.
REVOKE ALL ON SCHEMA :"schema" FROM :"receiptd_role";
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM :"receiptd_role";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA :"schema" FROM :"receiptd_role";
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM PUBLIC, :"receiptd_role";
GRANT USAGE ON SCHEMA :"schema" TO :"receiptd_role";
GRANT EXECUTE ON FUNCTION
    action_crosses, action_field, action_json, action_lane_of, action_once_key, action_path, action_reached, action_subject_hash,
    actions_begin, actions_begun_key, actions_charge, actions_claim, actions_counts, actions_decide,
    actions_end_leases, actions_finish, actions_go_on,
    actions_grant, actions_hold, actions_import, actions_leave, actions_lock, actions_make_runs, actions_own,
    actions_pick_due, actions_pick_fair, actions_rank, actions_release_held, actions_settle_awaits, actions_take,
    actions_tidy, actions_topic, actions_unsubscribed, alias_target, bounded_minute, bounded_time,
    campaign_recount, delay_bucket, detached_messages, detached_times, dimension_key, fence, fold_as_of,
    fold_check_gone, fold_columns,
    fold_fence, fold_id, fold_lane_of, fold_meaning, fold_merge, fold_merge_parts, fold_rules_of, fold_sum, fold_time,
    fold_topic_fence, fate_detail, group_key, group_pending, group_steps, groups_fold, groups_merged, inbox_has_times, letter_detail, messages_held, erased_alias_hash, message_is_erased, message_is_retired, parked_applicable, pipelines_store, receipt_codes,
    time_bucket, time_counts, time_key, time_place, transition_codes, watch_server
    TO :"receiptd_role";
GRANT SELECT ON ALL TABLES IN SCHEMA :"schema" TO :"receiptd_role";
GRANT INSERT (:platform_columns) ON message_inbox TO :"receiptd_role";
GRANT UPDATE (:receiptd_columns) ON message_inbox TO :"receiptd_role";
GRANT INSERT, DELETE ON run_begun TO :"receiptd_role";
GRANT INSERT, DELETE ON counter_delta, group_delta, parked_event, dead_letter, message_timeline TO :"receiptd_role";
GRANT DELETE ON inbox_partition, retired_message TO :"receiptd_role";
GRANT INSERT, UPDATE, DELETE ON message_part, range_receipt TO :"receiptd_role";
GRANT UPDATE (message_id, gateway_id, lane, part, parts, event_key) ON parked_event TO :"receiptd_role";
GRANT UPDATE (message_id) ON message_timeline TO :"receiptd_role";
GRANT USAGE ON SEQUENCE counter_delta_id_seq, group_delta_id_seq TO :"receiptd_role";
GRANT INSERT, UPDATE, DELETE ON campaign_tally_total, instance_status, message_group TO :"receiptd_role";
GRANT INSERT, DELETE ON receipt_counted TO :"receiptd_role";
GRANT DELETE ON receipt_counted_other TO :"receiptd_role";
GRANT INSERT, UPDATE ON campaign_changed, campaign_funnel_total, consumer_topic, consumer_progress TO :"receiptd_role";
GRANT INSERT ON position_change, database_accepted, campaign_retired TO :"receiptd_role";
GRANT INSERT, UPDATE, DELETE ON fold_rule, fold_event, fold_group, fold_outbox, fold_call, fold_total, fold_progress
    TO :"receiptd_role";
GRANT UPDATE ON turn TO :"receiptd_role";
GRANT UPDATE ON fold_lane TO :"receiptd_role";
GRANT USAGE ON SEQUENCE fold_event_id_seq TO :"receiptd_role";
GRANT INSERT, UPDATE, DELETE ON pipeline, pipeline_step, pipeline_trigger, pipeline_source, action_progress, pipeline_pause, pipeline_delta, pipeline_total, run_intent, run,
    action, action_overlap, action_lane, action_instance, org_limit TO :"receiptd_role";
