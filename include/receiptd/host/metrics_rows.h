/* The metrics of receiptd, one row each: METRIC(NAME, fields of struct rcpt_metric_row). The enum,
 * the table, docs/metrics.md and a test come from here. `who` is an alert, a panel of the dashboard
 * or a section of the pages that looks at the metric; test_agreement.py checks it. Included several
 * times, by metrics.h and metrics.c. */
METRIC(BUILD, "receiptd_build_info", .type = RCPT_METRIC_INFO,
       LABELS("version", "librdkafka", "config_hash"), .most = 4, OF_ALL,
       .who = "operations.md, Reload",
       .help = "Versions, and the hash of the configuration that is in effect")
METRIC(READY, "receiptd_ready", GAUGE, OF_ALL, .who = "alert ReceiptdNotReady",
       .help = "1 while consuming with all connections, as /readyz says")
METRIC(HALTED, "receiptd_halted", GAUGE, .who = "alert ReceiptdHalted",
       .help = "1 while some of the work stands still until an operator decides")
METRIC(PAUSED, "receiptd_paused", GAUGE, .who = "alert ReceiptdPaused",
       .help = "1 while an operator has paused or drained the instance")

/* what came in */
METRIC(RECORDS_RECEIVED, "receiptd_records_received_total", COUNTER,
       .who = "panel Records read, and read again", .help = "Records that were taken in from Kafka")
METRIC(EVENTS_RECEIVED, "receiptd_events_received_total", COUNTER, LABELS("gateway"),
       .most = MOST_GATEWAYS, .who = "alert ReceiptdContradictions",
       .help = "Valid receipts in the records received, by the `gateway` that they name")
METRIC(EVENTS_DELAY, "receiptd_events_delay_seconds", HISTOGRAM, SECONDS, LABELS("gateway"),
       .most = MOST_GATEWAYS, .bounds = age_bounds,
       .who = "panel Receipts before Kafka, 99th percentile of the delay",
       .help = "How long after the time that a receipt names its record came to Kafka")
METRIC(MACHINES, "receiptd_machine_receipts_total", COUNTER, LABELS("kind", "policy"), .most = 6,
       .who = "rules.md, Machines",
       .help = "Receipts with the flag of a machine, by kind (open, click) and the policy that was "
               "applied to them (flag, count, ignore)")

/* what became of it */
METRIC(EVENTS_APPLIED, "receiptd_events_applied_total", COUNTER, LABELS("gateway"),
       .most = MOST_GATEWAYS, .who = "panel Receipts by effect",
       .help = "Receipts that changed their message's row")
METRIC(EVENTS_STALE, "receiptd_events_stale_total", COUNTER, LABELS("gateway"),
       .most = MOST_GATEWAYS, .who = "panel Receipts by effect",
       .help = "Receipts of a stage that the message has passed")
METRIC(EVENTS_DUPLICATE, "receiptd_events_duplicate_total", COUNTER, LABELS("gateway"),
       .most = MOST_GATEWAYS, .who = "panel Receipts by effect",
       .help = "Receipts of the status or flag that the message has")
METRIC(EVENTS_CONTRADICTION, "receiptd_events_contradiction_total", COUNTER,
       LABELS("gateway", "side"), .most = 2 * MOST_GATEWAYS, .who = "alert ReceiptdContradictions",
       .help = "Receipts of another branch of the ladder than the message stood in: side won (they "
               "moved it across; counted as applied too) or lost")
METRIC(EVENTS_UNCLASSIFIED, "receiptd_events_unclassified_total", COUNTER,
       .who = "panel Receipts by effect",
       .help = "Receipts of batches too diverse to tell applied, stale and duplicate apart")
METRIC(EVENTS_PARKED, "receiptd_events_parked_total", COUNTER, LABELS("gateway"),
       .most = MOST_GATEWAYS, .who = "panel Receipts by effect",
       .help = "Receipts parked until their message's row exists")
METRIC(EVENTS_WOKEN, "receiptd_events_woken_total", COUNTER, LABELS("gateway"),
       .most = MOST_GATEWAYS, .who = "panel Receipts by effect",
       .help = "Parked receipts that were applied since")
METRIC(EVENTS_ALIASED, "receiptd_events_aliased_total", COUNTER,
       .who = "intake.md, How the intake finds the message",
       .help = "Parked receipts that got a message id when their alias landed")
METRIC(RANGES_IDLE, "receiptd_ranges_idle_total", COUNTER, .who = "ranges.md, What a range changes",
       .help = "Receipts of all messages to a person up to a time that had no message to raise, "
               "such as repetitions")
METRIC(EVENTS_DEAD, "receiptd_events_dead_total", COUNTER, LABELS("reason", "gateway"),
       .most = 24 * MOST_GATEWAYS, .who = "alert ReceiptdDeadLetters",
       .help = "Dead letters written, by reason; gateway as far as the letter names one")
METRIC(TRANSITIONS, "receiptd_transitions_total", COUNTER, LABELS("status"), .most = 128,
       .who = "panel Messages by the status they reach",
       .help = "Messages that came to stand in the status")

/* transactions */
METRIC(TRANSACTIONS, "receiptd_transactions_total", COUNTER, LABELS("kind", "outcome"), .most = 36,
       .who = "panel Transactions by outcome",
       .help = "Transactions of lanes by kind and outcome (unknown: the connection was lost)")
METRIC(BATCH_EVENTS, "receiptd_batch_events", HISTOGRAM, .bounds = event_bounds,
       .who = "panel Receipts of a batch", .help = "Receipts of a committed batch")
METRIC(TRANSACTION_SECONDS, "receiptd_transaction_seconds", HISTOGRAM, SECONDS,
       .bounds = second_bounds, .who = "panel Transaction time",
       .help = "From sending a lane's transaction to its answer")
METRIC(FENCE_CONFLICTS, "receiptd_fence_conflicts_total", COUNTER,
       .who = "operations.md, ReceiptdFenceConflicts",
       .help = "Transactions that found another position than they expected")
METRIC(EXCLUSIVITY_CONFLICTS, "receiptd_exclusivity_conflicts_total", COUNTER,
       .who = "alert ReceiptdFenceConflicts",
       .help = "Positions that another owner had moved while this instance owned the partition")
METRIC(EXCLUSIVITY_MESSAGES, "receiptd_exclusivity_messages_total", COUNTER,
       .who = "operations.md, ReceiptdFenceConflicts",
       .help = "Messages that transactions of two instances had in hand: those of a transaction "
               "that the fence rolled back because another owner had moved its positions")
METRIC(RESYNCS, "receiptd_resyncs_total", COUNTER, LABELS("direction"), .most = 3,
       .who = "alert ReceiptdDatabaseWentBack",
       .help = "Positions compared with the database: same, ahead (others moved it) or back")
METRIC(RECORDS_REPLAYED, "receiptd_records_replayed_total", COUNTER,
       .who = "panel Records read, and read again",
       .help = "Offsets that are read again because the database went back")
METRIC(REWINDS, "receiptd_rewinds_total", COUNTER, .who = "operations.md, ReceiptdDatabaseWentBack",
       .help = "Times that a partition was set back")

/* how far it is */
METRIC(PARTITION_POSITION, "receiptd_partition_position", GAUGE, LABELS("topic", "partition"),
       .most = MOST_PARTITIONS, .who = "alert ReceiptdNoProgress",
       .help = "Everything below this offset is applied")
METRIC(PARTITION_LAG_RECORDS, "receiptd_partition_lag_records", GAUGE, LABELS("topic", "partition"),
       .most = MOST_PARTITIONS, .who = "alert ReceiptdNoProgress",
       .help = "Records in the log that are not applied")
METRIC(PARTITION_LAG_SECONDS, "receiptd_partition_lag_seconds", GAUGE, SECONDS,
       LABELS("topic", "partition"), .most = MOST_PARTITIONS, .who = "alert ReceiptdLagging",
       .help = "Age of the oldest record that is not applied; 0 without any")
METRIC(PARKED, "receiptd_parked_events", GAUGE, .who = "panel Parked receipts",
       .help = "Receipts that wait for their message's row")
METRIC(PARKED_OLDEST, "receiptd_parked_oldest_seconds", GAUGE, SECONDS,
       .who = "alert ReceiptdParkedTooLong", .help = "Age of the oldest parked receipt")
METRIC(PARKED_FOR_ALIAS, "receiptd_parked_for_alias_events", GAUGE,
       .who = "intake.md, How the intake finds the message",
       .help = "Those of them that came under the gateway's id and wait for a row of message_alias")
METRIC(QUEUE_BYTES, "receiptd_queue_bytes", GAUGE, BYTES,
       .who = "panel Queued memory and its limit",
       .help = "Memory of records that are queued or in flight")
METRIC(QUEUE_BUDGET, "receiptd_queue_budget_bytes", GAUGE, BYTES,
       .who = "panel Queued memory and its limit", .help = "Limit of that memory, memory.budget")
METRIC(LANES, "receiptd_lanes", GAUGE, LABELS("state"), .most = 8, .who = "panel Lanes by state",
       .help = "Lanes in each state")

/* Kafka and PostgreSQL */
METRIC(PLACE_POSITION, "receiptd_topic_partition_position", GAUGE,
       LABELS("reader", "topic", "partition"), .most = MOST_PARTITIONS,
       .who = "alert ReceiptdPartitionIdle",
       .help = "Everything below this offset is applied, by whichever instance; of all partitions")
METRIC(PLACE_LAG, "receiptd_topic_partition_lag_records", GAUGE,
       LABELS("reader", "topic", "partition"), .most = MOST_PARTITIONS,
       .who = "alert ReceiptdPartitionIdle",
       .help = "Records above the position in the database, of all partitions; absent while it is "
               "not known")
METRIC(PLACE_OWNED, "receiptd_topic_partition_owned", GAUGE, LABELS("reader", "topic", "partition"),
       .most = MOST_PARTITIONS, .who = "alert ReceiptdPartitionIdle",
       .help = "1 while the group has given the partition to a receiptd, 0 while nobody or another "
               "program has it; absent while that is not known")
METRIC(REBALANCES, "receiptd_rebalances_total", COUNTER, LABELS("kind"), .most = 3,
       .who = "panel Rebalances",
       .help = "Times that the group gave partitions (assigned) or took them (revoked, lost)")
METRIC(KAFKA_UP, "receiptd_kafka_up", GAUGE, .who = "panel Connections up: PostgreSQL and Kafka",
       .help = "1 while the brokers answer")
METRIC(CONNECTION_UP, "receiptd_postgres_connection_up", GAUGE, LABELS("connection"),
       .most = MOST_CONNECTIONS, .who = "panel Connections up: PostgreSQL and Kafka",
       .help = "1 while the connection is ready: control, or the lanes' by number")
METRIC(CONNECTION_FAILURES, "receiptd_postgres_connection_failures_total", COUNTER,
       LABELS("connection"), .most = MOST_CONNECTIONS, .who = "alert ReceiptdConnectionFlapping",
       .help = "Times that the connection was lost; attempts to make it again do not count")
METRIC(SNAPSHOT_AGE, "receiptd_postgres_oldest_xmin_age_seconds", GAUGE, SECONDS,
       .who = "alert ReceiptdOldSnapshot",
       .help = "Age of the oldest transaction that keeps dead rows alive (backend_xmin)")
METRIC(DELTA_AGE, "receiptd_counters_oldest_delta_age_seconds", GAUGE, SECONDS,
       .who = "alert ReceiptdRollUpStalled",
       .help = "For how long the oldest delta has waited to be rolled up, at least, since this "
               "instance started")
METRIC(BACKENDS, "receiptd_postgres_server_connections", GAUGE,
       .who = "alert ReceiptdDatabaseConnections", .help = "Client connections that the server has")
METRIC(BACKENDS_MOST, "receiptd_postgres_server_connections_max", GAUGE,
       .who = "alert ReceiptdDatabaseConnections", .help = "Its max_connections")

/* what `receiptd maintain` looks after; the same in each instance */
METRIC(MAINTAINED, "receiptd_maintained_timestamp_seconds", GAUGE, SECONDS,
       .who = "alert ReceiptdMaintainOverdue",
       .help = "When receiptd maintain last ended a walk of all tables; 0: never; absent where the "
               "configuration leaves it nothing to do")
METRIC(OTHER_MESSAGES, "receiptd_inbox_other_messages", GAUGE, .who = "alert ReceiptdInboxCatchAll",
       .help = "Messages in the default partition of receiptd's own inbox, as PostgreSQL's "
               "statistics count them; absent where there is none")
METRIC(PARTITIONS_UNBOOKED, "receiptd_inbox_partitions_unbooked", GAUGE,
       .who = "alert ReceiptdPartitionsUnbooked",
       .help = "Partitions that have left the inbox, or were dropped, and are not booked; absent "
               "without inbox.partitions: external")
METRIC(PARTITIONS_AHEAD, "receiptd_inbox_partitions_ahead", GAUGE,
       .who = "alert ReceiptdPartitionsEnd",
       .help = "Spans (inbox.partition_span) from now to the end of the last "
               "partition; below 0: there is none for messages of now; absent without partitions")
METRIC(PROVEN, "receiptd_campaigns_proven_timestamp_seconds", GAUGE, SECONDS,
       .who = "alert ReceiptdProofOverdue",
       .help =
           "The oldest of the times at which receiptd maintain last recounted a campaign; absent "
           "before the first")
METRIC(DRIFTING, "receiptd_campaigns_drifting", GAUGE, .who = "alert ReceiptdCounterDrift",
       .help = "Campaigns whose counters differed from their messages when receiptd maintain last "
               "recounted them; absent before the first")

/* the intake */
METRIC(INTAKE_ANSWERS, "receiptd_intake_answers_total", COUNTER, LABELS("account", "code"),
       .most = 12 * MOST_ACCOUNTS, OF_INTAKE, .who = "panel Webhooks by answer",
       .help = "Webhooks by the HTTP status of their answer")
METRIC(INTAKE_VERIFICATIONS, "receiptd_intake_verifications_total", COUNTER,
       LABELS("account", "verdict"), .most = 6 * MOST_ACCOUNTS, OF_INTAKE,
       .who = "alert ReceiptdIntakeSignatures",
       .help =
           "Webhooks by what their signatures were found to be: verified, unverified (and that is "
           "allowed), missing, bad, stale, needs_certificate")
METRIC(INTAKE_REFUSED, "receiptd_intake_refused_total", COUNTER, LABELS("account", "cause"),
       .most = 3 * MOST_ACCOUNTS, OF_INTAKE, .who = "alert ReceiptdIntakeRefuses",
       .help = "Webhooks that were to come again: rate (429), unavailable (Kafka away or memory "
               "full), unacknowledged (Kafka did not confirm in time)")
METRIC(INTAKE_EVENTS, "receiptd_intake_events_total", COUNTER, LABELS("account", "id"),
       .most = 3 * MOST_ACCOUNTS, OF_INTAKE, .who = "alert ReceiptdIntakeUnmapped",
       .help = "Receipts sent to Kafka, by where their message id came from: request, alias, "
               "gateway (its own id, for there was no alias)")
METRIC(INTAKE_DROPS, "receiptd_intake_drops_total", COUNTER, LABELS("account", "cause"),
       .most = 4 * MOST_ACCOUNTS, OF_INTAKE, .who = "alert ReceiptdIntakeUnmapped",
       .help = "What became no receipt: ignored (of no interest), unmapped (a status that no table "
               "knows), rejected (not understood), unknown_form (nothing of a receipt was found, "
               "and it is "
               "not known to be none)")
METRIC(INTAKE_UNMAPPED_STATUS, "receiptd_intake_unmapped_status_info", .type = RCPT_METRIC_INFO,
       LABELS("account", "status"), .most = MOST_ACCOUNTS, OF_INTAKE,
       .who = "operations.md, ReceiptdIntakeUnmapped",
       .help = "The last status of the account that no table knew; other: more than a word")
METRIC(INTAKE_ACK_SECONDS, "receiptd_intake_ack_seconds", HISTOGRAM, SECONDS, LABELS("account"),
       .most = MOST_ACCOUNTS, .bounds = ack_bounds, OF_INTAKE,
       .who = "panel Time to the acknowledgement, 99th percentile",
       .help = "From the complete webhook to its answer, behind Kafka's acknowledgement")
METRIC(
    INTAKE_ALIASES, "receiptd_intake_alias_lookups_total", COUNTER, LABELS("result"), .most = 3,
    OF_INTAKE, .who = "panel Aliases looked up",
    .help = "Ids of gateways that PostgreSQL was asked for: found, missing, failed (the queries)")
METRIC(INTAKE_WAITING_REQUESTS, "receiptd_intake_waiting_requests", GAUGE, OF_INTAKE,
       .who = "panel Waiting webhooks", .help = "Webhooks that wait for their answer")
METRIC(INTAKE_WAITING_BYTES, "receiptd_intake_waiting_bytes", GAUGE, BYTES, OF_INTAKE,
       .who = "operations.md, ReceiptdIntakeRefuses",
       .help = "Receipts on their way to Kafka; intake.memory is the limit")
METRIC(INTAKE_CLOSED, "receiptd_intake_connections_closed_total", COUNTER, LABELS("cause"),
       .most = 4, OF_INTAKE, .who = "panel Connections that the intake ended",
       .help = "Connections that the intake ended: evicted (for newer ones), refused (too "
               "many), timeout (too slow), tls (no handshake)")

/* folds */
METRIC(FOLD_EVENTS, "receiptd_fold_events_total", COUNTER, LABELS("rule"), .most = 100,
       .who = "panel Events and publications of rules",
       .help = "Events that a rule took into groups; like all of folds from the database, the same "
               "on every instance")
METRIC(FOLD_PUBLISHED, "receiptd_fold_published_total", COUNTER, LABELS("rule", "cause"),
       .most = 400, .who = "panel Events and publications of rules",
       .help = "Publications claimed: the group was idle, on hold for too long, full, or its rule "
               "removed")
METRIC(FOLD_OPEN, "receiptd_fold_open_groups", GAUGE, LABELS("rule"), .most = 100,
       .who = "panel Open groups", .help = "Groups that wait to be published")
METRIC(
    FOLD_SKIPPED, "receiptd_fold_skipped_total", COUNTER, LABELS("topic"), .most = 100,
    .who = "folds.md, What is published",
    .help =
        "Records of topics that are no JSON object, or lack a group key of a rule that they match")
METRIC(FOLD_CALLS, "receiptd_fold_calls_total", COUNTER, LABELS("rule", "outcome"), .most = 1000,
       .who = "alert ReceiptdFoldCallsFail",
       .help = "Attempts to publish by webhook, of this instance")
METRIC(FOLD_LAG, "receiptd_fold_lag_seconds", GAUGE, SECONDS, .who = "alert ReceiptdFoldsBehind",
       .help = "How long the oldest event, due group or claimed record has waited, the same on "
               "every instance; webhooks that are claimed do not count")

/* stream */
METRIC(STREAM_LAG, "receiptd_stream_lag_seconds", GAUGE, .who = "alert ReceiptdStreamBehind",
       .help = "Age of the oldest transition that waits to be published, the same on every "
               "instance; 0: none waits")
METRIC(STREAM_PUBLISHED, "receiptd_stream_published_total", COUNTER,
       .who = "panel Records of the status stream",
       .help = "Records of the status stream that this instance has published")
METRIC(STREAM_REFUSED, "receiptd_stream_refused_total", COUNTER,
       .who = "panel Records of the status stream",
       .help = "Transactions of the status stream that Kafka did not take from this instance")

/* suppression */
METRIC(SUPPRESSIONS, "receiptd_suppressions_total", COUNTER, LABELS("class"), .most = 64,
       .who = "suppression.md, Figures",
       .help = "Transitions that suppressed their person, of this instance, by status or flag")

/* actions */
METRIC(PIPELINE_RUNS, "receiptd_pipeline_runs_total", COUNTER, LABELS("pipeline"), .most = 200,
       .who = "panel Runs of pipelines", .help = "Runs that began, over all instances")
METRIC(PIPELINE_REPEATED, "receiptd_pipeline_repeated_total", COUNTER, LABELS("pipeline"),
       .most = 200, .who = "panel Runs of pipelines",
       .help = "Runs that did not begin because of once_per, over all instances")
METRIC(PIPELINE_BEGIN_LAG, "receiptd_pipeline_begin_lag_seconds", GAUGE,
       .who = "panel Oldest due action, and beginning of runs",
       .help = "Age of what this instance made runs of last: how far that is behind receipts")
METRIC(ACTIONS, "receiptd_actions", GAUGE, LABELS("status"), .most = 3,
       .who = "alert ReceiptdDeadActions",
       .help = "Actions that are held (not by a push), running or dead, over all instances")
METRIC(ACTION_LATE_SECONDS, "receiptd_action_late_seconds", HISTOGRAM, SECONDS,
       .bounds = late_bounds, .who = "alert ReceiptdActionsLate",
       .help = "How long after it was due an action was claimed for the first time")
METRIC(ACTION_ATTEMPTS, "receiptd_action_attempts_total", COUNTER, LABELS("target", "class"),
       .most = MOST_TARGETS, .who = "panel Attempts by outcome",
       .help = "Webhooks and records by receiver and outcome")
METRIC(ACTION_CALL_SECONDS, "receiptd_action_call_seconds", HISTOGRAM, SECONDS, LABELS("target"),
       .most = MOST_TARGETS, .bounds = second_bounds,
       .who = "panel Time of webhooks, 99th percentile",
       .help = "Webhooks from their start to the end of the answer")
METRIC(ACTIONS_DEFERRED, "receiptd_actions_deferred_total", COUNTER,
       .who = "panel Actions that waited for a limit",
       .help = "How often a due action had to wait for a limit")
METRIC(ACTION_OVERLAPS, "receiptd_action_overlaps_total", COUNTER,
       .who = "alert ReceiptdActionOverlaps",
       .help = "Results that came after their action had been claimed again, over all instances: "
               "none of them counted")
METRIC(ENDPOINTS_DISABLED, "receiptd_endpoints_disabled", GAUGE,
       .who = "alert ReceiptdEndpointDisabled", .help = "Receivers of webhooks that are disabled")
METRIC(ACTIONS_DUE, "receiptd_actions_due_seconds", GAUGE, SECONDS,
       .who = "alert ReceiptdActionsLate",
       .help = "How long the oldest due action, or a run that is to begin, has waited, over all "
               "instances; without held ones")
METRIC(PIPELINE_BEYOND_CAP, "receiptd_pipeline_beyond_cap_total", COUNTER,
       LABELS("pipeline", "outcome"), .most = 800, .who = "actions.md, Caps",
       .help = "Runs beyond the cap of their organisation (refused, dropped, deferred) and calls "
               "beyond those of their subject (capped), over all instances")
METRIC(ACTION_LOOKUPS, "receiptd_action_lookups_total", COUNTER, LABELS("result"), .most = 4,
       .who = "actions.md, Look-up",
       .help = "Look-ups before calls, by result: found, none (no row), passed_over, failed")

/* messages by topic */
METRIC(ANNOUNCEMENTS, "receiptd_announcements_total", COUNTER, LABELS("result"), .most = 9,
       .who = "messages.md, What becomes of an announcement",
       .help = "Announcements and tombstones of `kafka.message_topics`, by result: announced, "
               "repeated, retired, unknown (a tombstone without a message), or the reason of the "
               "dead letter")

/* the interface for readers */
METRIC(SERVE_REQUESTS, "receiptd_serve_requests_total", COUNTER, LABELS("route", "code"),
       .most = 400, OF_SERVE, .who = "alert ReceiptdServeErrors",
       .help = "Requests of readers by route (page: the page and its files; none: there is no such "
               "route) and HTTP status")
METRIC(SERVE_SECONDS, "receiptd_serve_request_seconds", HISTOGRAM, SECONDS, LABELS("route"),
       .most = 40, .bounds = second_bounds, OF_SERVE,
       .who = "panel Time to the answer, 99th percentile",
       .help = "From a request to its answer; of a stream to its beginning, of a list to its end")
METRIC(SERVE_VIEWERS, "receiptd_serve_viewers", GAUGE, OF_SERVE,
       .who = "panel Viewers, and those cut off", .help = "Clients that follow a stream")
METRIC(SERVE_VIEWERS_CUT, "receiptd_serve_viewers_cut_total", COUNTER, OF_SERVE,
       .who = "panel Viewers, and those cut off",
       .help = "Viewers that did not read, and were cut off")
METRIC(SERVE_CONNECTIONS, "receiptd_serve_connections", GAUGE, LABELS("state"), .most = 3, OF_SERVE,
       .who = "operations.md, ReceiptdServeErrors",
       .help = "Connections of serve.connections that are busy, idle or down")
METRIC(SERVE_WAITING, "receiptd_serve_questions_waiting", GAUGE, OF_SERVE,
       .who = "operations.md, ReceiptdServeErrors",
       .help = "Questions to the database that wait for a connection")
METRIC(SERVE_WAIT_SECONDS, "receiptd_serve_wait_seconds", HISTOGRAM, SECONDS,
       .bounds = second_bounds, OF_SERVE, .who = "serve.md, Metrics",
       .help = "How long questions waited for a connection")
METRIC(SERVE_QUESTION_SECONDS, "receiptd_serve_question_seconds", HISTOGRAM, SECONDS,
       .bounds = second_bounds, OF_SERVE, .who = "serve.md, Metrics",
       .help = "How long the database took to answer them")

/* the process */
METRIC(LOOP_DELAY, "receiptd_loop_delay_seconds", HISTOGRAM, SECONDS, .bounds = delay_bounds,
       .who = "panel Loop delay, 99th percentile, and time of a scrape",
       .help = "How late the loop's 50 ms timer comes")
METRIC(SCRAPE, "receiptd_scrape_seconds", GAUGE, SECONDS, OF_ALL,
       .who = "panel Loop delay, 99th percentile, and time of a scrape",
       .help = "How long the loop took to make the page before this one")
METRIC(RELOADS, "receiptd_reloads_total", COUNTER, LABELS("result"), .most = 2,
       .who = "panel Reloads", .help = "Reloads of the configuration: applied or refused")
METRIC(LOG_LINES, "receiptd_log_lines_total", COUNTER, LABELS("level"), .most = 4, OF_ALL,
       .who = "panel Log lines by level", .help = "Log lines written")
METRIC(LOG_DROPPED, "receiptd_log_lines_dropped_total", COUNTER, OF_ALL,
       .who = "alert ReceiptdLogLost",
       .help = "Log lines lost because the error output was not read")
METRIC(SPANS_EXPORTED, "receiptd_spans_exported_total", COUNTER, OF_ALL,
       .who = "operations.md, Tracing", .help = "Spans that the collector has taken")
METRIC(SPANS_DROPPED, "receiptd_spans_dropped_total", COUNTER, LABELS("reason"), .most = 3, OF_ALL,
       .who = "operations.md, Tracing",
       .help = "Spans dropped: the queue was full (full), the collector refused them (refused), or "
               "did not answer (lost)")
METRIC(PROCESS_CPU, "process_cpu_seconds_total", COUNTER, SECONDS, OF_ALL, .who = "panel CPU",
       .help = "Processor time, user and system")
METRIC(PROCESS_RSS, "process_resident_memory_bytes", GAUGE, BYTES, OF_ALL,
       .who = "alert ReceiptdMemory", .help = "Resident memory")
METRIC(PROCESS_START, "process_start_time_seconds", GAUGE, SECONDS, OF_ALL,
       .who = "panel Time since the start", .help = "When the process started")
METRIC(PROCESS_FDS, "process_open_fds", GAUGE, OF_ALL, .who = "panel Open file descriptors",
       .help = "Open file descriptors")
