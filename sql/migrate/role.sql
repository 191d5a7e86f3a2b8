-- For `receiptd migrate --role`: exactly the rights that the daemon and its commands need; others that the role had in
-- the schema go. Variables: schema, receiptd_role (it owns nothing here: the tables belong to the role that runs the
-- migration), platform_columns and receiptd_columns (of the inbox, by who writes them). The comment above a grant is
-- its reason: scripts/rights makes the table in docs/security.md of both. Functions stand by name, those that the
-- daemon's statements and the functions among them call. A role that may execute a trigger function could put it on a
-- table of its own.
REVOKE ALL ON SCHEMA :"schema" FROM :"receiptd_role";
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM :"receiptd_role";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA :"schema" FROM :"receiptd_role";
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM PUBLIC, :"receiptd_role";
-- It names objects of the schema.
GRANT USAGE ON SCHEMA :"schema" TO :"receiptd_role";
-- Batches: the fence, details of dead letters, deleted messages, aliases.
GRANT EXECUTE ON FUNCTION
    alias_target, erased_alias_hash, fate_detail, fence, letter_detail, message_is_erased, message_is_retired,
    messages_held, parked_applicable
    TO :"receiptd_role";
-- Batches, the roll-up and views count.
GRANT EXECUTE ON FUNCTION
    bounded_minute, bounded_time, delay_bucket, dimension_key, group_key, group_pending, group_steps, groups_fold,
    groups_merged, receipt_codes, time_bucket, time_counts, time_key, time_place, transition_codes
    TO :"receiptd_role";
-- `receiptd audit` recounts.
GRANT EXECUTE ON FUNCTION
    campaign_recount, detached_messages, detached_times, inbox_has_times
    TO :"receiptd_role";
-- Folds gather, merge and publish.
GRANT EXECUTE ON FUNCTION
    fold_as_of, fold_check_gone, fold_columns, fold_fence, fold_id, fold_lane_of, fold_meaning, fold_merge,
    fold_merge_parts, fold_rules_of, fold_sum, fold_time
    TO :"receiptd_role";
-- Pipelines start runs, claim actions and store answers.
GRANT EXECUTE ON FUNCTION
    action_best_hour, action_crosses, action_field, action_json, action_lane_of, action_once_key, action_path,
    action_reached, action_stage_fault, action_subject_hash, action_turns, action_value, action_zone,
    actions_are_capped, actions_begin, actions_begun_key, actions_cap, actions_capped, actions_charge, actions_claim,
    actions_counts, actions_decide, actions_end_leases, actions_fates, actions_finish, actions_go_on, actions_grant,
    actions_hold, actions_import, actions_keep_back, actions_leave, actions_lock, actions_make_runs, actions_own,
    actions_pick_due, actions_pick_fair, actions_rank, actions_release_held, actions_release_waiting, actions_request,
    actions_room, actions_settings, actions_settle_awaits, actions_split, actions_take, actions_tidy, actions_topic,
    actions_unsubscribed, actions_windows, pipelines_store, push_deal, push_decide, push_figures, push_place,
    pushes_start, pushes_step
    TO :"receiptd_role";
-- Suppressed persons are added and looked up.
GRANT EXECUTE ON FUNCTION
    is_suppressed, suppression_key, suppressions_import
    TO :"receiptd_role";
-- Readers of topics move their positions.
GRANT EXECUTE ON FUNCTION
    topic_fence
    TO :"receiptd_role";
-- Topics announce messages.
GRANT EXECUTE ON FUNCTION
    messages_announce, messages_parse, messages_store
    TO :"receiptd_role";
-- It sees the oldest snapshot and the number of connections, and nothing else of other sessions.
GRANT EXECUTE ON FUNCTION
    watch_server
    TO :"receiptd_role";
-- Statements, views and commands read.
GRANT SELECT ON ALL TABLES IN SCHEMA :"schema" TO :"receiptd_role";
-- With `unknown: insert` a batch makes bare messages.
GRANT INSERT (:platform_columns) ON message_inbox TO :"receiptd_role";
-- Batches write the status, and no other role does.
GRANT UPDATE (:receiptd_columns) ON message_inbox TO :"receiptd_role";
-- Batches append changes; the roll-up adds them to the totals and deletes them.
GRANT INSERT, DELETE ON counter_delta, group_delta TO :"receiptd_role";
GRANT USAGE ON SEQUENCE counter_delta_id_seq, group_delta_id_seq TO :"receiptd_role";
-- The roll-up keeps totals.
GRANT INSERT, UPDATE ON campaign_changed, campaign_funnel_total TO :"receiptd_role";
GRANT INSERT, UPDATE, DELETE ON campaign_tally_total, message_group TO :"receiptd_role";
-- Batches move positions and pin the lanes; nothing deletes a position.
GRANT INSERT, UPDATE ON consumer_topic, consumer_progress TO :"receiptd_role";
-- Receipts wait or become dead letters, and go when they apply or are old.
GRANT INSERT, DELETE ON parked_event, dead_letter TO :"receiptd_role";
-- A landed alias or a noted part changes a parked receipt once.
GRANT UPDATE (message_id, gateway_id, lane, part, parts, event_key) ON parked_event TO :"receiptd_role";
-- Batches write the timeline; old rows go by age.
GRANT INSERT, DELETE, UPDATE (message_id) ON message_timeline TO :"receiptd_role";
-- Parts and ranges are noted, and go when they are old.
GRANT INSERT, UPDATE, DELETE ON message_part, range_receipt TO :"receiptd_role";
-- With `dedup.window`: keys of counted receipts.
GRANT INSERT, DELETE ON receipt_counted TO :"receiptd_role";
GRANT DELETE ON receipt_counted_other TO :"receiptd_role";
-- Ids of deleted messages go by age.
GRANT DELETE ON retired_message TO :"receiptd_role";
-- `receiptd audit --repair` books partitions that were dropped.
GRANT INSERT ON campaign_retired TO :"receiptd_role";
GRANT DELETE ON inbox_partition TO :"receiptd_role";
-- `receiptd positions` notes what it changed.
GRANT INSERT ON position_change, database_accepted TO :"receiptd_role";
-- Each instance writes its status for `receiptd serve`.
GRANT INSERT, UPDATE, DELETE ON instance_status TO :"receiptd_role";
-- Topics of messages are read; nothing deletes a position.
GRANT INSERT, UPDATE ON message_progress TO :"receiptd_role";
-- One session at a time locks its turn.
GRANT UPDATE ON turn TO :"receiptd_role";
-- Folds.
GRANT INSERT, UPDATE, DELETE ON fold_rule, fold_event, fold_group, fold_outbox, fold_call, fold_total, fold_progress
    TO :"receiptd_role";
GRANT UPDATE ON fold_lane TO :"receiptd_role";
GRANT USAGE ON SEQUENCE fold_event_id_seq TO :"receiptd_role";
-- The status stream: lanes append rows, and the publisher deletes them.
GRANT INSERT, DELETE ON stream_event TO :"receiptd_role";
GRANT USAGE ON SEQUENCE stream_event_id_seq TO :"receiptd_role";
-- Pipelines, runs, actions and limits.
GRANT INSERT, UPDATE, DELETE ON action, action_instance, action_lane, action_overlap, action_progress, org_limit,
    pipeline, pipeline_delta, pipeline_pause, pipeline_source, pipeline_step, pipeline_total, pipeline_trigger, push,
    push_member, run, run_intent
    TO :"receiptd_role";
-- A pipeline starts once for each message.
GRANT INSERT, DELETE ON run_begun TO :"receiptd_role";
-- Batches suppress persons; `receiptd suppressions` adds and removes. Nothing deletes one.
GRANT INSERT, UPDATE (removed_at, removed_by, removed_because) ON suppression TO :"receiptd_role";
-- Caps: each instance stores the keys, those who begin runs lock organisations, and calls of a subject are counted.
GRANT UPDATE ON action_setting TO :"receiptd_role";
GRANT INSERT, UPDATE ON org_open TO :"receiptd_role";
GRANT INSERT, DELETE ON subject_call TO :"receiptd_role";
