/* The table of metrics, one row each: names, types, labels, limits and help. The pages,
 * docs/metrics.md and a test come from it. */
#include "metrics.h"

#define COUNTER     .type = RCPT_METRIC_COUNTER
#define GAUGE       .type = RCPT_METRIC_GAUGE
#define HISTOGRAM   .type = RCPT_METRIC_HISTOGRAM
#define LABELS(...) .labels = {__VA_ARGS__}
#define SECONDS     .unit = "seconds"
#define BYTES       .unit = "bytes"

#define MOST_GATEWAYS    16
#define MOST_PARTITIONS  10000
#define MOST_CONNECTIONS 65
#define MOST_ACCOUNTS    200
#define MOST_TARGETS     1008

static const double second_bounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                       0.5,   1,      2.5,   5,    10,    30,   0};
static const double delay_bounds[] = {0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 0};
/* As in src/gateways/stats.c, which keeps them. */
static const double ack_bounds[] = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                                    0.2,    0.5,   1,     2,     5,    10,   0};
static const double size_bounds[] = {1,   2,    5,    10,   20,    50,    100, 200,
                                     500, 1000, 2000, 5000, 10000, 20000, 0};
static const double event_bounds[] = {1, 10, 50, 100, 250, 500, 1000, 2000, 4000, 8000, 0};

static const struct rcpt_metric_row rows[] = {
    [RCPT_METRIC_BUILD] = {"receiptd_build_info", .type = RCPT_METRIC_INFO,
                           LABELS("version", "librdkafka", "config_hash"), .most = 4,
                           .help = "Versions, and the hash of the configuration that is in effect"},
    [RCPT_METRIC_READY] = {"receiptd_ready", GAUGE,
                           .help = "1 while consuming with all connections, as /readyz says"},
    [RCPT_METRIC_HALTED] = {"receiptd_halted", GAUGE,
                            .help = "1 while some of the work stands still until a person decides"},
    [RCPT_METRIC_PAUSED] = {"receiptd_paused", GAUGE,
                            .help = "1 while an operator has paused or drained the instance"},

    [RCPT_METRIC_RECORDS_RECEIVED] = {"receiptd_records_received_total", COUNTER,
                                      .help = "Records that were taken in from Kafka"},
    [RCPT_METRIC_RECORDS_DROPPED] =
        {"receiptd_records_dropped_total", COUNTER, LABELS("cause"), .most = 2,
         .help = "Records that Kafka delivered and that were not taken in: old (applied already) "
                 "or rewinding (above a position that is read again)"},
    [RCPT_METRIC_OFFSETS_SKIPPED] =
        {"receiptd_offsets_skipped_total", COUNTER,
         .help = "Offsets that the log does not have: retention, compaction, aborted transactions"},
    [RCPT_METRIC_EVENTS_RECEIVED] =
        {"receiptd_events_received_total", COUNTER, LABELS("gateway"), .most = MOST_GATEWAYS,
         .help = "Valid receipts in the records received, by the `gateway` that they name"},

    [RCPT_METRIC_EVENTS_APPLIED] = {"receiptd_events_applied_total", COUNTER, LABELS("gateway"),
                                    .most = MOST_GATEWAYS,
                                    .help = "Receipts that changed their message's row"},
    [RCPT_METRIC_EVENTS_STALE] = {"receiptd_events_stale_total", COUNTER, LABELS("gateway"),
                                  .most = MOST_GATEWAYS,
                                  .help = "Receipts of a stage that the message has passed"},
    [RCPT_METRIC_EVENTS_DUPLICATE] = {"receiptd_events_duplicate_total", COUNTER, LABELS("gateway"),
                                      .most = MOST_GATEWAYS,
                                      .help =
                                          "Receipts of the status or flag that the message has"},
    [RCPT_METRIC_EVENTS_CONTRADICTION] =
        {"receiptd_events_contradiction_total", COUNTER, LABELS("gateway", "side"),
         .most = 2 * MOST_GATEWAYS,
         .help = "Receipts of another branch of the ladder than the message stood in: side won "
                 "(they moved it across; counted as applied too) or lost"},
    [RCPT_METRIC_EVENTS_UNCLASSIFIED] =
        {"receiptd_events_unclassified_total", COUNTER,
         .help = "Receipts of batches too diverse to tell applied, stale and duplicate apart"},
    [RCPT_METRIC_EVENTS_PARKED] = {"receiptd_events_parked_total", COUNTER, LABELS("gateway"),
                                   .most = MOST_GATEWAYS,
                                   .help = "Receipts parked until their message's row exists"},
    [RCPT_METRIC_EVENTS_WOKEN] = {"receiptd_events_woken_total", COUNTER, LABELS("gateway"),
                                  .most = MOST_GATEWAYS,
                                  .help = "Parked receipts that were applied since"},
    [RCPT_METRIC_EVENTS_AGED_OUT] =
        {"receiptd_events_aged_out_total", COUNTER, LABELS("gateway"), .most = MOST_GATEWAYS,
         .help = "Parked receipts that became dead letters after parked.max_age"},
    [RCPT_METRIC_EVENTS_DEAD] =
        {"receiptd_events_dead_total", COUNTER, LABELS("reason", "gateway"),
         .most = 16 * MOST_GATEWAYS,
         .help = "Dead letters written, by reason; gateway as far as the letter names one"},
    [RCPT_METRIC_STATUSES_IMPLIED] =
        {"receiptd_statuses_implied_total", COUNTER, LABELS("gateway"), .most = MOST_GATEWAYS,
         .help = "Stages counted because a later one was reported and they were not"},
    [RCPT_METRIC_MESSAGES_CHANGED] = {"receiptd_messages_changed_total", COUNTER,
                                      .help = "Message rows that were updated"},
    [RCPT_METRIC_TRANSITIONS] = {"receiptd_transitions_total", COUNTER, LABELS("status"),
                                 .most = 128, .help = "Messages that came to stand in the status"},

    [RCPT_METRIC_TRANSACTIONS] = {"receiptd_transactions_total", COUNTER, LABELS("kind", "outcome"),
                                  .most = 40,
                                  .help =
                                      "Transactions of lanes by kind and outcome (unknown: the "
                                      "connection was lost; again: the raw events were needed)"},
    [RCPT_METRIC_BATCH_EVENTS] = {"receiptd_batch_events", HISTOGRAM, .bounds = event_bounds,
                                  .help = "Receipts of a committed batch"},
    [RCPT_METRIC_BATCH_BYTES] = {"receiptd_batch_payload_bytes_total", COUNTER, BYTES,
                                 .help = "Payload of the receipts in committed batches"},
    [RCPT_METRIC_TRANSACTION_SECONDS] = {"receiptd_transaction_seconds", HISTOGRAM, SECONDS,
                                         .bounds = second_bounds,
                                         .help = "From sending a lane's transaction to its answer"},
    [RCPT_METRIC_RETRIES] = {"receiptd_retries_total", COUNTER,
                             .help = "Transactions rolled back for a passing reason"},
    [RCPT_METRIC_FENCE_CONFLICTS] =
        {"receiptd_fence_conflicts_total", COUNTER,
         .help = "Transactions that found another position than they expected"},
    [RCPT_METRIC_EXCLUSIVITY_CONFLICTS] =
        {"receiptd_exclusivity_conflicts_total", COUNTER,
         .help = "Positions that another owner had moved while this instance owned the partition"},
    [RCPT_METRIC_EXCLUSIVITY_MESSAGES] =
        {"receiptd_exclusivity_messages_total", COUNTER,
         .help = "Messages that transactions of two instances had in hand: those of a transaction "
                 "that the fence rolled back because another owner had moved its positions"},
    [RCPT_METRIC_RESYNCS] =
        {"receiptd_resyncs_total", COUNTER, LABELS("direction"), .most = 3,
         .help = "Positions compared with the database: same, ahead (others moved it) or back"},
    [RCPT_METRIC_EVENTS_ROLLED_BACK] =
        {"receiptd_events_rolled_back_total", COUNTER, LABELS("outcome"), .most = 8,
         .help = "Receipts of transactions that did not commit, or whose answer was lost"},
    [RCPT_METRIC_RECORDS_REPLAYED] =
        {"receiptd_records_replayed_total", COUNTER,
         .help = "Offsets that are read again because the database went back"},
    [RCPT_METRIC_REWINDS] = {"receiptd_rewinds_total", COUNTER,
                             .help = "Times that a partition was set back"},
    [RCPT_METRIC_EVICTIONS] = {"receiptd_evictions_total", COUNTER,
                               .help = "Stalled sessions that were ended for blocking a lane"},
    [RCPT_METRIC_LAST_COMMIT] = {"receiptd_last_commit_timestamp_seconds", GAUGE, SECONDS,
                                 .help = "When a lane's transaction was committed last"},

    [RCPT_METRIC_PARTITION_POSITION] = {"receiptd_partition_position", GAUGE,
                                        LABELS("topic", "partition"), .most = MOST_PARTITIONS,
                                        .help = "Everything below this offset is applied"},
    [RCPT_METRIC_PARTITION_LAG_RECORDS] = {"receiptd_partition_lag_records", GAUGE,
                                           LABELS("topic", "partition"), .most = MOST_PARTITIONS,
                                           .help = "Records in the log that are not applied"},
    [RCPT_METRIC_PARTITION_LAG_SECONDS] =
        {"receiptd_partition_lag_seconds", GAUGE, SECONDS, LABELS("topic", "partition"),
         .most = MOST_PARTITIONS,
         .help = "Age of the oldest record that is not applied; 0 without any"},
    [RCPT_METRIC_PARTITION_SHOWS] = {"receiptd_partition_applied_timestamp_seconds", GAUGE, SECONDS,
                                     LABELS("topic", "partition"), .most = MOST_PARTITIONS,
                                     .help = "The database shows this partition as of this time"},
    [RCPT_METRIC_OLDEST_UNAPPLIED] =
        {"receiptd_oldest_unapplied_seconds", GAUGE, SECONDS,
         .help = "Age of the oldest record that is not applied, over all partitions"},
    [RCPT_METRIC_PARKED] = {"receiptd_parked_events", GAUGE,
                            .help = "Receipts that wait for their message's row"},
    [RCPT_METRIC_PARKED_OLDEST] = {"receiptd_parked_oldest_seconds", GAUGE, SECONDS,
                                   .help = "Age of the oldest parked receipt"},
    [RCPT_METRIC_QUEUE_BYTES] = {"receiptd_queue_bytes", GAUGE, BYTES,
                                 .help = "Memory of records that are queued or in flight"},
    [RCPT_METRIC_QUEUE_BUDGET] = {"receiptd_queue_budget_bytes", GAUGE, BYTES,
                                  .help = "Limit of that memory, memory.budget"},
    [RCPT_METRIC_LANES] = {"receiptd_lanes", GAUGE, LABELS("state"), .most = 8,
                           .help = "Lanes in each state"},
    [RCPT_METRIC_LANE_RECORDS] = {"receiptd_lane_queued_records", GAUGE, LABELS("lane"),
                                  .most = 256, .help = "Records that the lane holds"},

    [RCPT_METRIC_PARTITIONS_ASSIGNED] = {"receiptd_partitions_assigned", GAUGE,
                                         .help = "Partitions that this instance consumes"},
    [RCPT_METRIC_REBALANCES] =
        {"receiptd_rebalances_total", COUNTER, LABELS("kind"), .most = 3,
         .help = "Times that the group gave partitions (assigned) or took them (revoked, lost)"},
    [RCPT_METRIC_KAFKA_UP] = {"receiptd_kafka_up", GAUGE, .help = "1 while the brokers answer"},
    [RCPT_METRIC_CONNECTION_UP] =
        {"receiptd_postgres_connection_up", GAUGE, LABELS("connection"), .most = MOST_CONNECTIONS,
         .help = "1 while the connection is ready: control, or the lanes' by number"},
    [RCPT_METRIC_CONNECTION_FAILURES] =
        {"receiptd_postgres_connection_failures_total", COUNTER, LABELS("connection"),
         .most = MOST_CONNECTIONS,
         .help = "Times that the connection was lost or could not be made"},
    [RCPT_METRIC_SNAPSHOT_AGE] =
        {"receiptd_postgres_oldest_xmin_age_seconds", GAUGE, SECONDS,
         .help = "Age of the oldest transaction that keeps dead rows alive (backend_xmin)"},
    [RCPT_METRIC_BACKENDS] = {"receiptd_postgres_server_connections", GAUGE,
                              .help = "Client connections that the server has"},
    [RCPT_METRIC_BACKENDS_MOST] = {"receiptd_postgres_server_connections_max", GAUGE,
                                   .help = "Its max_connections"},

    [RCPT_METRIC_INTAKE_ACCOUNT] = {"receiptd_intake_account_info", .type = RCPT_METRIC_INFO,
                                    LABELS("account", "gateway"), .most = MOST_ACCOUNTS,
                                    .help = "Accounts of the intake and their adapters"},
    [RCPT_METRIC_INTAKE_REQUESTS] = {"receiptd_intake_requests_total", COUNTER, LABELS("account"),
                                     .most = MOST_ACCOUNTS,
                                     .help = "Webhooks that came for an account"},
    [RCPT_METRIC_INTAKE_ANSWERS] = {"receiptd_intake_answers_total", COUNTER,
                                    LABELS("account", "code"), .most = 12 * MOST_ACCOUNTS,
                                    .help = "Their answers by HTTP status"},
    [RCPT_METRIC_INTAKE_VERIFICATIONS] =
        {"receiptd_intake_verifications_total", COUNTER, LABELS("account", "verdict"),
         .most = 6 * MOST_ACCOUNTS,
         .help = "What their signatures were found to be: verified, unverified (and that is "
                 "allowed), missing, bad, stale, needs_certificate"},
    [RCPT_METRIC_INTAKE_REFUSED] =
        {"receiptd_intake_refused_total", COUNTER, LABELS("account", "cause"),
         .most = 3 * MOST_ACCOUNTS,
         .help = "Webhooks that were to come again: rate (429), unavailable (Kafka away or memory "
                 "full), unacknowledged (Kafka did not confirm in time)"},
    [RCPT_METRIC_INTAKE_COPIES] = {"receiptd_intake_copies_total", COUNTER, LABELS("account"),
                                   .most = MOST_ACCOUNTS,
                                   .help = "Signed webhooks that had been answered before"},
    [RCPT_METRIC_INTAKE_EVENTS] =
        {"receiptd_intake_events_total", COUNTER, LABELS("account", "id"),
         .most = 3 * MOST_ACCOUNTS,
         .help = "Receipts sent to Kafka, by where their message id came from: request, alias, "
                 "gateway (its own id, for there was no alias)"},
    [RCPT_METRIC_INTAKE_DROPS] =
        {"receiptd_intake_drops_total", COUNTER, LABELS("account", "cause"),
         .most = 3 * MOST_ACCOUNTS,
         .help = "What became no receipt: ignored (of no interest), unmapped (a status that no "
                 "table knows), rejected (not understood)"},
    [RCPT_METRIC_INTAKE_UNMAPPED_STATUS] =
        {"receiptd_intake_unmapped_status_info", .type = RCPT_METRIC_INFO,
         LABELS("account", "status"), .most = MOST_ACCOUNTS,
         .help = "The last status of the account that no table knew; other: more than a word"},
    [RCPT_METRIC_INTAKE_DEAD_LETTERS] = {"receiptd_intake_dead_letters_total", COUNTER,
                                         LABELS("account"), .most = MOST_ACCOUNTS,
                                         .help = "Records sent to intake.dead_letter_topic"},
    [RCPT_METRIC_INTAKE_ACK_SECONDS] = {"receiptd_intake_ack_seconds", HISTOGRAM, SECONDS,
                                        LABELS("account"), .most = MOST_ACCOUNTS,
                                        .bounds = ack_bounds,
                                        .help = "From the complete webhook to its answer, behind "
                                                "Kafka's acknowledgement"},
    [RCPT_METRIC_INTAKE_REQUEST_EVENTS] = {"receiptd_intake_request_events", HISTOGRAM,
                                           LABELS("account"), .most = MOST_ACCOUNTS,
                                           .bounds = size_bounds, .help = "Receipts in a webhook"},
    [RCPT_METRIC_INTAKE_RECORDS] =
        {"receiptd_intake_records_total", COUNTER, LABELS("result"), .most = 2,
         .help = "Records given to Kafka (sent), and those that it did not take (failed)"},
    [RCPT_METRIC_INTAKE_RECORD_BYTES] = {"receiptd_intake_record_bytes_total", COUNTER, BYTES,
                                         .help = "Their sizes"},
    [RCPT_METRIC_INTAKE_RECORD_EVENTS] = {"receiptd_intake_record_events", HISTOGRAM,
                                          .bounds = size_bounds,
                                          .help = "Receipts that were aggregated into a record"},
    [RCPT_METRIC_INTAKE_ALIASES] =
        {"receiptd_intake_alias_lookups_total", COUNTER, LABELS("result"), .most = 3,
         .help = "Ids of gateways that PostgreSQL was asked for: found, missing, failed (the "
                 "queries)"},
    [RCPT_METRIC_INTAKE_WAITING_REQUESTS] = {"receiptd_intake_waiting_requests", GAUGE,
                                             .help = "Webhooks that wait for their answer"},
    [RCPT_METRIC_INTAKE_WAITING_BYTES] = {"receiptd_intake_waiting_bytes", GAUGE, BYTES,
                                          .help = "Receipts on their way to Kafka; "
                                                  "intake.memory is the limit"},
    [RCPT_METRIC_INTAKE_CONNECTIONS] = {"receiptd_intake_connections", GAUGE,
                                        .help = "Connections of gateways"},
    [RCPT_METRIC_INTAKE_CLOSED] =
        {"receiptd_intake_connections_closed_total", COUNTER, LABELS("cause"), .most = 4,
         .help = "Connections that the intake ended: evicted (for a new one), refused (at the "
                 "limit), timeout (too slow), tls (no handshake)"},
    [RCPT_METRIC_FOLD_EVENTS] = {"receiptd_fold_events_total", COUNTER, LABELS("rule"), .most = 100,
                                 .help = "Events that a rule took into groups; like all of folds "
                                         "from the database, the same on every instance"},
    [RCPT_METRIC_FOLD_GROUPS] = {"receiptd_fold_groups_total", COUNTER, LABELS("rule"), .most = 100,
                                 .help = "Groups that were opened"},
    [RCPT_METRIC_FOLD_FOLDED] = {"receiptd_fold_folded_total", COUNTER, LABELS("rule"), .most = 100,
                                 .help = "Events that found their group open: no publication of "
                                         "their own"},
    [RCPT_METRIC_FOLD_PUBLISHED] = {"receiptd_fold_published_total", COUNTER,
                                    LABELS("rule", "cause"), .most = 400,
                                    .help = "Publications claimed: the group was quiet, on hold "
                                            "for too long, full, or its rule removed"},
    [RCPT_METRIC_FOLD_AVOIDABLE] = {"receiptd_fold_avoidable_total", COUNTER, LABELS("rule"),
                                    .most = 100,
                                    .help = "Groups that opened again within the window after "
                                            "their publication"},
    [RCPT_METRIC_FOLD_OPEN] = {"receiptd_fold_open_groups", GAUGE, LABELS("rule"), .most = 100,
                               .help = "Groups that wait to be published"},
    [RCPT_METRIC_FOLD_RATIO] = {"receiptd_fold_ratio", GAUGE, LABELS("rule"), .most = 100,
                                .help = "Share of the events that were folded"},
    [RCPT_METRIC_FOLD_SKIPPED] =
        {"receiptd_fold_skipped_total", COUNTER, LABELS("topic"), .most = 100,
         .help = "Records of topics that are no JSON object, or lack a group key of a rule that "
                 "they match"},
    [RCPT_METRIC_PIPELINE_RUNS] = {"receiptd_pipeline_runs_total", COUNTER, LABELS("pipeline"),
                                   .most = 200, .help = "Runs that began, over all instances"},
    [RCPT_METRIC_PIPELINE_REPEATED] =
        {"receiptd_pipeline_repeated_total", COUNTER, LABELS("pipeline"), .most = 200,
         .help = "Runs that did not begin because of once_per, over all instances"},
    [RCPT_METRIC_PIPELINE_BEGIN_LAG] =
        {"receiptd_pipeline_begin_lag_seconds", GAUGE,
         .help = "Age of what this instance made runs of last: how far that is behind receipts"},
    [RCPT_METRIC_ACTIONS] = {"receiptd_actions", GAUGE, LABELS("status"), .most = 3,
                             .help = "Actions that are held, running or dead, over all instances"},
    [RCPT_METRIC_ACTIONS_IN_FLIGHT] = {"receiptd_actions_in_flight", GAUGE,
                                       .help = "Actions that this instance carries out"},
    [RCPT_METRIC_ACTION_LANES] = {"receiptd_action_lanes", GAUGE,
                                  .help = "Lanes of actions that this instance schedules"},
    [RCPT_METRIC_ACTION_LATE_SECONDS] =
        {"receiptd_action_late_seconds", HISTOGRAM, SECONDS, .bounds = second_bounds,
         .help = "How long after it was due an action was claimed for the first time"},
    [RCPT_METRIC_ACTION_ATTEMPTS] = {"receiptd_action_attempts_total", COUNTER,
                                     LABELS("target", "class"), .most = MOST_TARGETS,
                                     .help = "Webhooks and records by receiver and outcome"},
    [RCPT_METRIC_ACTION_CALL_SECONDS] = {"receiptd_action_call_seconds", HISTOGRAM, SECONDS,
                                         LABELS("target"), .most = MOST_TARGETS,
                                         .bounds = second_bounds,
                                         .help =
                                             "Webhooks from their start to the end of the answer"},
    [RCPT_METRIC_ACTIONS_DECIDED] = {"receiptd_actions_decided_total", COUNTER,
                                     .help =
                                         "Waits that were over and steps that were passed over"},
    [RCPT_METRIC_ACTIONS_DEFERRED] = {"receiptd_actions_deferred_total", COUNTER,
                                      .help = "How often a due action had to wait for a limit"},
    [RCPT_METRIC_ACTIONS_DEAD_TOTAL] = {"receiptd_actions_dead_total", COUNTER,
                                        .help = "Actions that were given up"},
    [RCPT_METRIC_ACTION_OVERLAPS] =
        {"receiptd_action_overlaps_total", COUNTER,
         .help = "Results that came after their action had been claimed again, over all instances: "
                 "none of them counted"},
    [RCPT_METRIC_ENDPOINTS_DISABLED] = {"receiptd_endpoints_disabled", GAUGE,
                                        .help = "Receivers of webhooks that are disabled"},

    [RCPT_METRIC_FOLD_CALLS] = {"receiptd_fold_calls_total", COUNTER, LABELS("rule", "outcome"),
                                .most = 1000,
                                .help = "Attempts to publish by webhook, of this instance"},

    [RCPT_METRIC_LOOP_DELAY] = {"receiptd_loop_delay_seconds", HISTOGRAM, SECONDS,
                                .bounds = delay_bounds,
                                .help = "How late the loop's 50 ms timer comes"},
    [RCPT_METRIC_SCRAPE] = {"receiptd_scrape_seconds", GAUGE, SECONDS,
                            .help = "How long the loop took to make the page before this one"},
    [RCPT_METRIC_RELOADS] = {"receiptd_reloads_total", COUNTER, LABELS("result"), .most = 2,
                             .help = "Reloads of the configuration: applied or refused"},
    [RCPT_METRIC_LAST_RELOAD] = {"receiptd_last_reload_timestamp_seconds", GAUGE, SECONDS,
                                 .help = "When the configuration in effect was read"},
    [RCPT_METRIC_LOG_LINES] = {"receiptd_log_lines_total", COUNTER, LABELS("level"), .most = 4,
                               .help = "Log lines written"},
    [RCPT_METRIC_LOG_SUPPRESSED] = {"receiptd_log_lines_suppressed_total", COUNTER,
                                    .help = "Log lines above log.burst of one kind"},
    [RCPT_METRIC_LOG_DROPPED] = {"receiptd_log_lines_dropped_total", COUNTER,
                                 .help = "Log lines lost because the error output was not read"},
    [RCPT_METRIC_HTTP_REQUESTS] = {"receiptd_http_requests_total", COUNTER, LABELS("code"),
                                   .most = 32, .help = "Answers of the HTTP server by status"},
    [RCPT_METRIC_SPANS_EXPORTED] = {"receiptd_spans_exported_total", COUNTER,
                                    .help = "Spans that the collector has taken"},
    [RCPT_METRIC_SPANS_DROPPED] = {"receiptd_spans_dropped_total", COUNTER, LABELS("reason"),
                                   .most = 3,
                                   .help = "Spans dropped: the queue was full (full), the "
                                           "collector refused them (refused), or did not "
                                           "answer (lost)"},
    [RCPT_METRIC_SPANS_QUEUE_BYTES] = {"receiptd_spans_queue_bytes", GAUGE, BYTES,
                                       .help = "Memory of spans that wait for the collector"},
    [RCPT_METRIC_PROCESS_CPU] = {"process_cpu_seconds_total", COUNTER, SECONDS,
                                 .help = "Processor time, user and system"},
    [RCPT_METRIC_PROCESS_RSS] = {"process_resident_memory_bytes", GAUGE, BYTES,
                                 .help = "Resident memory"},
    [RCPT_METRIC_PROCESS_START] = {"process_start_time_seconds", GAUGE, SECONDS,
                                   .help = "When the process started"},
    [RCPT_METRIC_PROCESS_FDS] = {"process_open_fds", GAUGE, .help = "Open file descriptors"},
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) == RCPT_METRIC__COUNT, "one row per metric");

const struct rcpt_metric_row *rcpt_metrics_table(void)
{
    return rows;
}
