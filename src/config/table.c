/* The table itself: every key of the configuration but the fields of records, which stand in
 * accounts.c, endpoints.c, folds.c and ladder.c. table.h explains the columns of a row. To add a
 * key, add a member to struct rcpt_config and a row here, then run scripts/update-docs
 * (docs/contributing.md). */
#include "choices.h"
#include "rows.h"
#include "rows_sections.h"

#include "receiptd/base/error.h"

#define AT(member)            MEMBER(struct rcpt_config, member)
#define LIST_AT(member, size) MEMBER_LIST(struct rcpt_config, member, size)

/* Rows of a section stand together, in the order of `sections`: print.c opens and closes mappings
 * by it. Ranges are wide: they refuse mistakes of a unit, not bad ideas. RELOADABLE is set only
 * where the module reads the value again after a reload. */
static const struct rcpt_config_row rows[] = {
    {"kafka.brokers", RCPT_CONFIG_TEXT, REQUIRED | ACTIVE, AT(kafka.brokers), .min = 1, .max = 4096,
     .example = "127.0.0.1:9092",
     .doc = "brokers to ask for the cluster: `host:port`, separated by commas"},
    {"kafka.topics", RCPT_CONFIG_TOPICS, REQUIRED | ACTIVE,
     LIST_AT(kafka.topics, kafka.topics_count), .min = 1, .max = 100, .example = "[dlr-events]",
     .doc = "topics that carry receipts"},
    {"kafka.group", RCPT_CONFIG_TEXT, ACTIVE, AT(kafka.group), .initial = "receiptd", .min = 1,
     .max = 249, .doc = "consumer group: instances of one group share the partitions"},
    {"kafka.instance_id", RCPT_CONFIG_TEXT, NULLABLE, AT(kafka.instance_id), .min = 1, .max = 249,
     .environment = "RECEIPTD_INSTANCE_ID", .example = "receiptd-0",
     .doc = "static membership: an instance that starts again goes on at once with its partitions; "
            "unique for each. Default: environment variable `RECEIPTD_INSTANCE_ID`, if it is set"},
    {"kafka.properties", RCPT_CONFIG_MAP, ACTIVE, LIST_AT(kafka.properties, kafka.properties_count),
     .initial = "{}", .max = 200, .record = &pair_record,
     .doc = "any property of librdkafka, checked; a reload takes user and password of SASL"},
    /* This bounds records that librdkafka has fetched; memory.budget those taken in by lanes. */
    {"kafka.fetch_budget", RCPT_CONFIG_SIZE, 0, AT(kafka.fetch_budget_bytes), .initial = "32MiB",
     .min = MIB, .max = GIB,
     .doc = "memory for records that are fetched and not yet taken in, 1 KiB at least for each"},
    {"kafka.batch_limit", RCPT_CONFIG_SIZE, 0, AT(kafka.batch_limit_bytes), .initial = "32MiB",
     .min = 8 * MIB, .max = GIB,
     .doc =
         "what a compressed batch of records may inflate to; a larger one is passed over, as one "
         "dead letter"},
    {"kafka.commit_interval", RCPT_CONFIG_DURATION, 0, AT(kafka.commit_interval_ms),
     .initial = "5s", .min = 100, .max = HOUR,
     .doc = "how often positions are committed to Kafka, for figures of lag only"},
    {"kafka.on_retention_gap", RCPT_CONFIG_CHOICE, 0, AT(kafka.on_retention_gap), .initial = "halt",
     CHOICES(gap_policies),
     .doc = "when retention has deleted receipts that were never read: `halt` stops and says so, "
            "`skip` counts them and goes on"},

    /* A rotated password needs no restart. */
    {"postgres.dsn", RCPT_CONFIG_TEXT, REQUIRED | SECRET | ACTIVE | RELOADABLE, AT(postgres.dsn),
     .min = 1, .max = 65536, .example = "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}dsn",
     .doc = "connection string of libpq, keywords or URI; new connections take a new one"},
    {"postgres.connections", RCPT_CONFIG_INTEGER, ACTIVE | RELOADABLE, AT(postgres.connections),
     .initial = "2", .min = 1, .max = 64,
     .doc = "connections that write, at most as many as there are lanes"},
    {"postgres.schema", RCPT_CONFIG_IDENTIFIER, 0, AT(postgres.schema), .initial = "receiptd",
     .min = 1, .max = 63, .doc = "schema of receiptd's own tables"},
    /* Two time-outs at two places: the server ends a wait by lock_timeout, and a session that holds
     * the lock for longer than zombie_timeout is ended by the control connection. */
    {"postgres.lock_timeout", RCPT_CONFIG_DURATION, 0, AT(postgres.lock_timeout_ms),
     .initial = "5s", .min = 10, .max = 10 * MINUTE,
     .doc = "a transaction that waits longer for a lock is rolled back; the log names the session "
            "that holds it"},
    {"postgres.statement_timeout", RCPT_CONFIG_DURATION, 0, AT(postgres.statement_timeout_ms),
     .initial = "30s", .min = 100, .max = HOUR,
     .doc = "a statement that runs longer is cancelled by the server"},
    {"postgres.connect_timeout", RCPT_CONFIG_DURATION, 0, AT(postgres.connect_timeout_ms),
     .initial = "10s", .min = 100, .max = 10 * MINUTE, .doc = "limit for making a connection"},
    {"postgres.zombie_timeout", RCPT_CONFIG_DURATION, 0, AT(postgres.zombie_timeout_ms),
     .initial = "10s", .min = 100, .max = HOUR,
     .doc = "a session of receiptd that has blocked a lane for longer is terminated"},
    {"postgres.retry_min", RCPT_CONFIG_DURATION, 0, AT(postgres.retry_min_ms), .initial = "100ms",
     .min = 1, .max = HOUR, .doc = "shortest back-off before the next attempt"},
    {"postgres.retry_max", RCPT_CONFIG_DURATION, 0, AT(postgres.retry_max_ms), .initial = "10s",
     .min = 1, .max = HOUR, .doc = "longest back-off before the next attempt"},

    /* The number of lanes is pinned: positions in the database belong to lanes, so a change needs
     * `re-lane` (docs/glossary.md, "re-lane"). */
    {"lanes", RCPT_CONFIG_INTEGER, ACTIVE, AT(lanes), .initial = "8", .min = 1, .max = 256,
     .doc = "unit of order and of parallelism, a power of two; pinned in the database at the first "
            "start"},
    {"unknown", RCPT_CONFIG_CHOICE, ACTIVE, AT(unknown), .initial = "park",
     CHOICES(unknown_policies),
     .doc = "a receipt whose message row does not exist: `park` keeps it until the row lands, "
            "`insert` makes the row, `dead-letter` stores it as a dead letter"},

    /* A tree with a grammar of its own: pipelines.c checks it after the ladder is made. */
    {"pipelines", RCPT_CONFIG_TREE, RELOADABLE, AT(pipelines), .initial = "[]", .max = 200,
     .doc = "what happens after a status change, or without one; docs/actions.md has the grammar"},

    /* A batch ends at whichever limit it meets first; batch.linger counts for idle lanes only. */
    {"batch.max_events", RCPT_CONFIG_INTEGER, RELOADABLE, AT(batch.max_events), .initial = "4000",
     .min = 1, .max = 100000, .doc = "receipts of one transaction; a larger record goes alone"},
    {"batch.max_bytes", RCPT_CONFIG_SIZE, RELOADABLE, AT(batch.max_bytes), .initial = "4MiB",
     .min = 4 * KIB, .max = 256 * MIB,
     .doc = "bytes of one transaction; a larger record goes alone"},
    {"batch.catch_up", RCPT_CONFIG_INTEGER, RELOADABLE, AT(batch.catch_up), .initial = "2",
     .min = 1, .max = 16,
     .doc = "how many times as many receipts a transaction may have while every partition is two "
            "seconds behind or more: then no fresh receipt waits for it, and more receipts of a "
            "message meet in it; 1: no more than ever"},
    {"batch.linger", RCPT_CONFIG_DURATION, RELOADABLE, AT(batch.linger_ms), .initial = "0s",
     .min = 0, .max = 10 * SECOND, .doc = "how long a small batch waits for more; 0s: not at all"},

    {"memory.budget", RCPT_CONFIG_SIZE, RELOADABLE, AT(memory.budget_bytes), .initial = "16MiB",
     .min = 64 * KIB, .max = 64 * GIB,
     .doc = "memory for records that are queued or in flight; above it nothing more is taken in"},

    {"progress.verify_interval", RCPT_CONFIG_DURATION, RELOADABLE, AT(progress.verify_interval_ms),
     .initial = "5s", .min = 100, .max = HOUR,
     .doc = "how often a lane without work compares its positions with the database"},
    {"progress.idle_interval", RCPT_CONFIG_DURATION, RELOADABLE, AT(progress.idle_interval_ms),
     .initial = "1s", .min = 10, .max = HOUR,
     .doc = "how often a lane without receipts moves its positions"},
    {"progress.rewind_timeout", RCPT_CONFIG_DURATION, RELOADABLE, AT(progress.rewind_timeout_ms),
     .initial = "10s", .min = 100, .max = HOUR,
     .doc = "a rewind that has brought no record for so long is repeated, by assigning the "
            "partition again"},

    /* Their message may never come: so both age and number of parked receipts are bounded. */
    {"parked.max_age", RCPT_CONFIG_DURATION, RELOADABLE, AT(parked.max_age_ms), .initial = "24h",
     .min = SECOND, .max = 365 * DAY, .doc = "older parked receipts become dead letters"},
    {"parked.alias_wait", RCPT_CONFIG_DURATION, RELOADABLE, AT(parked.alias_wait_ms),
     .initial = "1m", .max = 30 * DAY, .doc = "how long `unknown: insert` waits for an alias"},
    {"parked.max_rows", RCPT_CONFIG_INTEGER, RELOADABLE, AT(parked.max_rows), .initial = "1000000",
     .min = 1, .max = 1000000000, .doc = "above it nothing more is taken in until some have gone"},
    {"parked.poll_interval", RCPT_CONFIG_DURATION, RELOADABLE, AT(parked.poll_interval_ms),
     .initial = "1s", .min = 10, .max = HOUR, .doc = "how often at most to check for their rows"},
    {"parked.wake_limit", RCPT_CONFIG_INTEGER, RELOADABLE, AT(parked.wake_limit), .initial = "1000",
     .min = 1, .max = 100000, .doc = "parked receipts of one transaction"},

    RCPT_CONFIG_COUNTERS_ROWS

    {"inbox.table", RCPT_CONFIG_TABLE, NULLABLE, AT(inbox.table), .min = 3, .max = 127,
     .example = "messaging.outbound",
     .doc = "an existing table of messages, `schema.table`; not set: `message_inbox` in "
            "`postgres.schema`"},
#define COLUMN(column, type, constraint, filler, feature, meaning)                                 \
    {"inbox.columns." #column,                                                                     \
     RCPT_CONFIG_IDENTIFIER,                                                                       \
     0,                                                                                            \
     AT(inbox.column),                                                                             \
     .initial = #column,                                                                           \
     .min = 1,                                                                                     \
     .max = 63,                                                                                    \
     .doc = "column of " meaning},
    RCPT_INBOX_COLUMNS(COLUMN)
#undef COLUMN
        {"inbox.columns.created_at", RCPT_CONFIG_IDENTIFIER, NULLABLE, AT(inbox.created_at),
         .min = 1, .max = 63, .example = "created_at",
         .doc = "column of the time when the message was inserted (timestamptz), which nothing "
                "changes later; never added. Without it an existing table has no retention"},
    {"inbox.columns.variant", RCPT_CONFIG_IDENTIFIER, NULLABLE, AT(inbox.variant), .min = 1,
     .max = 63, .example = "variant",
     .doc = "column of the variant of a message, for `counters.by`; written by INSERT, never "
            "changed later, and never added"},
    {"inbox.columns.channel", RCPT_CONFIG_IDENTIFIER, NULLABLE, AT(inbox.channel), .min = 1,
     .max = 63, .example = "channel", .doc = "likewise, of its channel"},
    {"inbox.columns.gateway", RCPT_CONFIG_IDENTIFIER, NULLABLE, AT(inbox.gateway), .min = 1,
     .max = 63, .example = "gateway", .doc = "likewise, of the gateway that it is sent by"},
    {"inbox.columns.customer_id", RCPT_CONFIG_IDENTIFIER, NULLABLE, AT(inbox.customer_id), .min = 1,
     .max = 63, .example = "customer_id",
     .doc = "column of the person that a message goes to, for `receiptd erase --customer` and "
            "`counters.groups`; never added or changed in your table, and best with an index"},
    {"inbox.columns.logical_id", RCPT_CONFIG_IDENTIFIER, NULLABLE, AT(inbox.logical_id), .min = 1,
     .max = 63, .example = "logical_id",
     .doc = "column of the logical message that a message is an attempt at, for `counters.groups`: "
            "the id of the first attempt; NULL: of itself. Written by INSERT, never changed later"},
    RCPT_CONFIG_RANGE_ROWS

    {"inbox.targeted", RCPT_CONFIG_CHOICE, 0, AT(inbox.count_targeted), .initial = "trigger",
     CHOICES(targeted_policies),
     .doc = "who counts new rows: `trigger` puts an insert trigger on the table, `none` leaves "
            "TARGETED uncounted"},
    {"inbox.retention", RCPT_CONFIG_DURATION, 0, AT(inbox.retention_ms), .initial = "0s", .min = 0,
     .max = 3650 * DAY,
     .doc = "how long `receiptd retire` leaves messages in the inbox, from their insertion on; "
            "counters stay. 0s: without limit"},
    {"inbox.retention_overrides", RCPT_CONFIG_RECORDS, 0,
     LIST_AT(inbox.overrides, inbox.overrides_count), .initial = "[]", .max = 1000,
     .record = &rcpt_config_retention_record,
     .doc = "campaigns and organisations whose messages are kept longer or shorter"},
    {"inbox.expiry", RCPT_CONFIG_RECORDS, 0, LIST_AT(inbox.expiry, inbox.expiry_count),
     .initial = "[]", .max = 100, .record = &rcpt_config_expiry_record,
     .doc = "when `receiptd expire` stops to wait for a final status; the first entry that fits"},
    {"inbox.remember_retired", RCPT_CONFIG_DURATION, RELOADABLE, AT(inbox.remember_ms),
     .initial = "30d", .min = 0, .max = 3650 * DAY,
     .doc = "how long the id of a deleted message is kept, by which a late receipt is "
            "recognised"},
    {"inbox.alias_retention", RCPT_CONFIG_DURATION, 0, AT(inbox.alias_retention_ms),
     .initial = "0s", .min = 0, .max = 3650 * DAY,
     .doc = "age from which `receiptd retire` deletes aliases whose message has gone and is no "
            "longer remembered; 0s: they stay"},
    {"inbox.fillfactor", RCPT_CONFIG_INTEGER, NULLABLE, AT(inbox.fillfactor), .min = 10, .max = 100,
     .example = "50",
     .doc = "how full the pages of the own table are made; not set: 50, which leaves space for one "
            "more version of each row, so that updates need no new index entries; 40 with "
            "`counters.times`, whose columns make rows longer"},
    {"inbox.recent_rows", RCPT_CONFIG_INTEGER, 0, AT(inbox.recent_rows), .initial = "2000000",
     .min = 0, .max = 1000000000,
     .doc =
         "of a table with twice as many messages, ids in no order of time and created_at: so many "
         "of the newest get an index of their own from `receiptd maintain`; in ranges of "
         "created_at, or many of time-ordered ids: the newest partitions with so many are read "
         "first. 0: none"},
    {"inbox.partitions", RCPT_CONFIG_CHOICE, 0, AT(inbox.partitions), .initial = "none",
     CHOICES(partition_makers),
     .doc = "who partitions the inbox: `own` lets `receiptd maintain` make and drop partitions of "
            "receiptd's own table, by the time in message ids; `external` leaves that to somebody "
            "else"},
    {"inbox.ids", RCPT_CONFIG_CHOICE, 0, AT(inbox.ids), .initial = "any", CHOICES(id_kinds),
     .doc = "what message ids are: `uuidv7` (in lower case), `ulid` (in upper case) and `ksuid` "
            "begin with the time, as `inbox.partitions: own` needs; `snowflake` grows with it"},
    {"inbox.partition_span", RCPT_CONFIG_DURATION, NULLABLE, AT(inbox.partition_span_ms),
     .min = HOUR, .max = 122 * DAY, .example = "1d",
     .doc = "time of one partition's messages; not set: the fewest whole days of which 30 hold "
            "`inbox.retention` (3d for 90d); 1d without it, or if `inbox.partitions` is not `own`"},
    RCPT_CONFIG_LAYOUT_ROWS

        RCPT_CONFIG_MACHINE_ROWS

    /* Keys of the intake count for `receiptd intake`, and for `run` where intake.enabled is set. */
    {"intake.enabled", RCPT_CONFIG_CHOICE, 0, AT(intake.enabled), .initial = "false",
     CHOICES(booleans), .doc = "whether `receiptd run` takes webhooks as well, in one process"},
    {"intake.listen", RCPT_CONFIG_TEXT, 0, AT(intake.listen), .initial = "127.0.0.1:8080", .min = 2,
     .max = 120, .doc = "address to listen on: `host:port`, `[IPv6]:port`, `:port` for all"},
    {"intake.metrics_listen", RCPT_CONFIG_TEXT, 0, AT(intake.metrics_listen),
     .initial = "127.0.0.1:9465", .min = 0, .max = 255,
     .doc = "address and port of /metrics, /livez, /readyz, /startupz and /statusz of "
            "`receiptd intake`, with the token and the certificate of `http`; \"\": none. In one "
            "process "
            "with `receiptd run`: on http.listen"},
    {"intake.reuse_port", RCPT_CONFIG_CHOICE, 0, AT(intake.reuse_port), .initial = "false",
     CHOICES(booleans),
     .doc = "several processes share the address: the kernel spreads connections over them"},
    {"intake.topic", RCPT_CONFIG_TEXT, NULLABLE, AT(intake.topic), .min = 1, .max = 249,
     .example = "dlr-events",
     .doc = "topic that the receipts go to; not set: the first of `kafka.topics`"},
    {"intake.dead_letter_topic", RCPT_CONFIG_TEXT, 0, AT(intake.dead_letter_topic),
     .initial = "dlr-dead", .min = 1, .max = 249,
     .doc = "topic for what cannot be understood, with the reason in a header"},
    {"intake.dead_letters", RCPT_CONFIG_CHOICE, 0, AT(intake.dead_letters), .initial = "raw",
     CHOICES(letter_payloads),
     .doc = "what a dead letter holds: the bytes as they came (`raw`), with every run of seven or "
            "more digits hidden (`masked`), or nothing (`none`)"},
    {"intake.compression", RCPT_CONFIG_TEXT, 0, AT(intake.compression), .initial = "lz4", .min = 2,
     .max = 6, .doc = "codec of the records: none, gzip, snappy, lz4 or zstd"},
    {"intake.batch.max_events", RCPT_CONFIG_INTEGER, 0, AT(intake.max_events), .initial = "1000",
     .min = 1, .max = 10000, .doc = "receipts of one record"},
    {"intake.batch.max_bytes", RCPT_CONFIG_SIZE, 0, AT(intake.max_bytes), .initial = "512KiB",
     .min = 4 * KIB, .max = 8 * MIB,
     .doc = "bytes of one record, below the topic's `max.message.bytes`"},
    {"intake.batch.linger", RCPT_CONFIG_DURATION, 0, AT(intake.linger_ms), .initial = "4ms",
     .min = 0, .max = SECOND,
     .doc = "how long a receipt may wait for others while its partition is busy; never when idle"},
    {"intake.memory", RCPT_CONFIG_SIZE, 0, AT(intake.memory_bytes), .initial = "128MiB",
     .min = 4 * MIB, .max = 16 * GIB,
     .doc = "bodies of requests (half of it), what is made of them and records that wait for Kafka "
            "(the other "
            "half); above it requests are answered with 503"},
    {"intake.ack_timeout", RCPT_CONFIG_DURATION, 0, AT(intake.ack_timeout_ms), .initial = "8s",
     .min = 100, .max = 5 * MINUTE,
     .doc =
         "how long Kafka may take to acknowledge before the gateway is asked to send again; below "
         "the gateways' own time-outs"},
    {"intake.dsn", RCPT_CONFIG_TEXT, NULLABLE | SECRET | RELOADABLE, AT(intake.dsn), .min = 1,
     .max = 65536, .example = "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}intake-dsn",
     .doc = "connection string for the look-ups of aliases, as the role of `receiptd migrate "
            "--intake-role`; not set: `postgres.dsn`. New connections of `receiptd run` take a new "
            "one, `receiptd intake` needs a restart"},
    {"intake.alias", RCPT_CONFIG_CHOICE, 0, AT(intake.alias), .initial = "optional",
     CHOICES(alias_policies),
     .doc =
         "receipts that carry only the gateway's id are looked up in `message_alias`: `optional` "
         "goes on with the gateway's id while the database is away, `required` answers 503, `off` "
         "never looks"},
    {"intake.alias_timeout", RCPT_CONFIG_DURATION, 0, AT(intake.alias_timeout_ms), .initial = "1s",
     .min = 10, .max = MINUTE, .doc = "limit for one look-up"},
    {"intake.alias_cache", RCPT_CONFIG_INTEGER, 0, AT(intake.alias_cache), .initial = "100000",
     .min = 20000, .max = 100000000, .doc = "aliases that are remembered"},
    {"intake.replay_keys", RCPT_CONFIG_INTEGER, 0, AT(intake.replay_keys), .initial = "200000",
     .min = 1000, .max = 100000000,
     .doc =
         "signed requests that are remembered, so that a copy is answered and not counted again"},
    {"intake.trusted_proxies", RCPT_CONFIG_TEXT, NULLABLE, AT(intake.trusted_proxies), .min = 1,
     .max = 1024, .example = "10.0.0.0/8, ::1",
     .doc = "addresses or networks whose `X-Forwarded-For` is believed, separated by commas"},
    {"intake.tls.certificate", RCPT_CONFIG_TEXT, NULLABLE, AT(intake.tls_certificate), .min = 1,
     .max = 4096, .example = "/etc/receiptd/tls/fullchain.pem",
     .doc = "file with the certificate and its chain (PEM); checked for a change every 10 s"},
    {"intake.tls.key", RCPT_CONFIG_TEXT, NULLABLE, AT(intake.tls_key), .min = 1, .max = 4096,
     .example = "/etc/receiptd/tls/key.pem",
     .doc = "file with the private key (PEM); not set: that of the certificate"},
    /* Limits of one client's cost: the intake faces the Internet. */
    {"intake.limits.body", RCPT_CONFIG_SIZE, 0, AT(intake.limits.body_bytes), .initial = "1MiB",
     .min = KIB, .max = 8 * MIB, .doc = "bytes of a request, sent and decompressed: 413 above"},
    {"intake.limits.headers", RCPT_CONFIG_SIZE, 0, AT(intake.limits.header_bytes),
     .initial = "16KiB", .min = KIB, .max = 64 * KIB,
     .doc = "bytes of request line and headers: 414 or 431 above"},
    {"intake.limits.connections", RCPT_CONFIG_INTEGER, 0, AT(intake.limits.connections),
     .initial = "4096", .min = 1, .max = 1000000,
     .doc = "connections at once; above it the server closes those that never end a request, then "
            "the idlest"},
    {"intake.limits.connections_per_source", RCPT_CONFIG_INTEGER, 0,
     AT(intake.limits.connections_per_source), .initial = "0", .min = 0, .max = 1000000,
     .doc =
         "connections of one address; 0: no limit, for behind a proxy all connections are its own"},
    {"intake.limits.pipelined", RCPT_CONFIG_INTEGER, 0, AT(intake.limits.pipelined),
     .initial = "16", .min = 1, .max = 1000,
     .doc = "requests of one connection that may wait for their answers"},
    {"intake.limits.rate_per_source", RCPT_CONFIG_INTEGER, 0, AT(intake.limits.rate_per_source),
     .initial = "50", .min = 0, .max = 1000000,
     .doc =
         "requests of one address (IPv6: of its /64) and second that are not verified: 429 for all "
         "of "
         "the address above it, before anything is read; addresses of private networks that are no "
         "trusted proxies are not counted; 0: no limit"},
    {"intake.limits.rate_per_account", RCPT_CONFIG_INTEGER, 0, AT(intake.limits.rate_per_account),
     .initial = "0", .min = 0, .max = 1000000,
     .doc = "verified requests of one account and second: 429 above; 0: no limit"},
    {"intake.limits.header_time", RCPT_CONFIG_DURATION, 0, AT(intake.limits.header_ms),
     .initial = "10s", .min = 100, .max = 10 * MINUTE,
     .doc = "from connecting or the first byte to the end of the headers: 408 after it"},
    {"intake.limits.body_time", RCPT_CONFIG_DURATION, 0, AT(intake.limits.body_ms),
     .initial = "30s", .min = 100, .max = 10 * MINUTE, .doc = "for the body: 408 after it"},
    {"intake.limits.idle_time", RCPT_CONFIG_DURATION, 0, AT(intake.limits.idle_ms),
     .initial = "75s", .min = 100, .max = HOUR,
     .doc = "a connection without a request is closed after it"},
    {"intake.limits.write_time", RCPT_CONFIG_DURATION, 0, AT(intake.limits.write_ms),
     .initial = "20s", .min = 100, .max = 10 * MINUTE,
     .doc = "a client that takes nothing of an answer for so long is cut off"},

    {"intake.accounts", RCPT_CONFIG_RECORDS, RELOADABLE,
     LIST_AT(intake.accounts, intake.accounts_count), .initial = "[]", .max = 10000,
     .record = &rcpt_config_account_record,
     .doc = "one entry for each gateway and tenant; docs/gateways.md shows some"},

    {"shutdown.deadline", RCPT_CONFIG_DURATION, RELOADABLE, AT(shutdown.deadline_ms),
     .initial = "20s", .min = 100, .max = HOUR,
     .doc = "after SIGTERM: how long open batches may take to finish"},

    {"log.level", RCPT_CONFIG_CHOICE, RELOADABLE, AT(log.level), .initial = "info",
     CHOICES(log_levels), .doc = "least severe kind of line that is written"},
    {"log.format", RCPT_CONFIG_CHOICE, RELOADABLE, AT(log.format), .initial = "logfmt",
     CHOICES(log_formats), .doc = "shape of a line"},
    {"log.stats_interval", RCPT_CONFIG_DURATION, RELOADABLE, AT(log.stats_interval_ms),
     .initial = "10s", .min = 0, .max = DAY,
     .doc = "how often a line of figures is written; 0s: never"},
    {"log.levels", RCPT_CONFIG_MAP, RELOADABLE, LIST_AT(log.levels, log.levels_count),
     .initial = "{}", .max = RCPT_LOG_MAX_COMPONENTS, .record = &pair_record,
     .doc = "levels of single components, `kafka: debug`; components are " RCPT_CONFIG_COMPONENTS},
    {"log.burst", RCPT_CONFIG_INTEGER, RELOADABLE, AT(log.burst), .initial = "50", .min = 0,
     .max = 1000000,
     .doc = "lines of one kind within 10 s; more are counted and summed up in one; 0: no limit"},
    {"log.message_ids", RCPT_CONFIG_CHOICE, RELOADABLE, AT(log.plain_message_ids),
     .initial = "hash", CHOICES(message_id_forms),
     .doc = "how message ids appear in log lines: as a `hash`, or `plain`"},

    RCPT_CONFIG_SERVE_ROWS

    {"http.listen", RCPT_CONFIG_TEXT, ACTIVE, AT(http.listen), .initial = "127.0.0.1:9464",
     .min = 0, .max = 255,
     .doc = "address and port of /metrics, /livez, /readyz, /startupz and /statusz; \"\": none"},
    {"http.tls_certificate", RCPT_CONFIG_TEXT, NULLABLE, AT(http.tls_certificate), .min = 1,
     .max = 4096, .example = "/etc/receiptd/tls.crt",
     .doc = "PEM file with the certificate and its chain: HTTPS; read again at a reload"},
    {"http.tls_key", RCPT_CONFIG_TEXT, NULLABLE, AT(http.tls_key), .min = 1, .max = 4096,
     .example = "/etc/receiptd/tls.key", .doc = "PEM file with its private key"},
    {"http.token", RCPT_CONFIG_TEXT, NULLABLE | SECRET, AT(http.token), .min = 16, .max = 4096,
     .example = "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}http-token",
     .doc = "bearer token that /metrics and /statusz ask for; the probes stay open"},
    {"http.runs_token", RCPT_CONFIG_TEXT, NULLABLE | SECRET, AT(http.runs_token), .min = 16,
     .max = 4096, .example = "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}runs-token",
     .doc = "bearer token that POST /runs asks for; not set: it begins none"},

    {"control.socket", RCPT_CONFIG_TEXT, 0, AT(control.socket),
     .initial = "/run/receiptd/control.sock", .min = 0, .max = 96,
     .doc = "path of the socket, for the same user only; \"\": none; without its folder there is "
            "none either"},

    {"tracing.endpoint", RCPT_CONFIG_TEXT, NULLABLE, AT(tracing.endpoint), .min = 8, .max = 2048,
     .example = "http://127.0.0.1:4318/v1/traces",
     .doc = "URL that takes OTLP over HTTP (JSON), with path, no user name; not set: no traces"},
    {"tracing.sample", RCPT_CONFIG_RATIO, RELOADABLE, AT(tracing.sample_millionths),
     .initial = "0.01", .min = 0, .max = 1000000,
     .doc = "share that is traced of what has no sampled parent; what has one is traced always"},
    {"tracing.token", RCPT_CONFIG_TEXT, NULLABLE | SECRET, AT(tracing.token), .min = 1, .max = 4096,
     .example = "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}tracing-token",
     .doc = "bearer token that the collector asks for"},
    {"tracing.queue", RCPT_CONFIG_SIZE, 0, AT(tracing.queue_bytes), .initial = "4MiB",
     .min = 64 * KIB, .max = GIB,
     .doc = "memory for spans that wait for the collector; what does not fit is dropped and "
            "counted"},
    {"tracing.timeout", RCPT_CONFIG_DURATION, 0, AT(tracing.timeout_ms), .initial = "10s",
     .min = 100, .max = 10 * MINUTE, .doc = "limit of one request to the collector"},

    {"timeline.retention", RCPT_CONFIG_DURATION, RELOADABLE, AT(timeline.retention_ms),
     .initial = "0s", .min = 0, .max = 365 * DAY,
     .doc = "how long to keep what each receipt did; 0s: nothing is written"},

    {"dead_letters.retention", RCPT_CONFIG_DURATION, RELOADABLE, AT(dead_letters.retention_ms),
     .initial = "0s", .min = 0, .max = 3650 * DAY,
     .doc = "how long to keep dead letters; 0s: without limit"},

    {"folds", RCPT_CONFIG_RECORDS, RELOADABLE, LIST_AT(folds, folds_count), .initial = "[]",
     .max = 100, .record = &rcpt_config_fold_record,
     .doc = "rules that tell others once when many things have changed; docs/folds.md shows some"},
    {"actions.endpoints", RCPT_CONFIG_RECORDS, RELOADABLE,
     LIST_AT(actions.endpoints, actions.endpoints_count), .initial = "[]", .max = 1000,
     .record = &rcpt_config_endpoint_record, .doc = "receivers of webhooks"},
    {"actions.allow_private", RCPT_CONFIG_CHOICE, RELOADABLE, AT(actions.allow_private),
     .initial = "false", CHOICES(booleans),
     .doc = "whether webhooks may go to addresses that are not public"},
    {"actions.ca_file", RCPT_CONFIG_TEXT, NULLABLE | RELOADABLE, AT(actions.ca_file), .min = 1,
     .max = 4096, .example = "/etc/ssl/certs/ca-certificates.crt",
     .doc = "PEM file of the authorities that certify receivers; not set: the system's"},
    {"actions.max_in_flight", RCPT_CONFIG_INTEGER, RELOADABLE, AT(actions.max_in_flight),
     .initial = "512", .min = 1, .max = 100000, .doc = "actions that one instance carries out"},
    /* Actions: how often the scheduler asks, how long a claim lasts, how failures are retried, and
     * how fast each organisation may go. */
    {"actions.poll_interval", RCPT_CONFIG_DURATION, RELOADABLE, AT(actions.poll_interval_ms),
     .initial = "200ms", .min = 10, .max = 10 * SECOND,
     .doc = "how often a shard without work polls for due actions"},
    {"actions.begin_share", RCPT_CONFIG_INTEGER, RELOADABLE, AT(actions.begin_share),
     .initial = "15", .min = 1, .max = 100,
     .doc = "percent of its time in which an instance makes runs of what receipts began, while "
            "more receipts wait; 100: as fast as it can, which slows receipts down"},
    {"actions.lease", RCPT_CONFIG_DURATION, RELOADABLE, AT(actions.lease_ms), .initial = "60s",
     .min = 200, .max = HOUR,
     .doc = "an action without a result for so long is claimed again; more than twice any "
            "time-out of an endpoint"},
    {"actions.lane_lease", RCPT_CONFIG_DURATION, RELOADABLE, AT(actions.lane_lease_ms),
     .initial = "10s", .min = 200, .max = 10 * MINUTE,
     .doc = "lanes of an instance that has not been seen for so long go to the others"},
    {"actions.retry_min", RCPT_CONFIG_DURATION, RELOADABLE, AT(actions.retry_min_ms),
     .initial = "1s", .min = 1, .max = HOUR, .doc = "shortest wait before another attempt"},
    {"actions.retry_max", RCPT_CONFIG_DURATION, RELOADABLE, AT(actions.retry_max_ms),
     .initial = "1h", .min = SECOND, .max = 30 * DAY,
     .doc = "longest wait, also where the receiver asks for more"},
    {"actions.max_attempts", RCPT_CONFIG_INTEGER, RELOADABLE, AT(actions.max_attempts),
     .initial = "12", .min = 1, .max = 1000, .doc = "then the action is dead"},
    {"actions.max_age", RCPT_CONFIG_DURATION, RELOADABLE, AT(actions.max_age_ms), .initial = "3d",
     .min = SECOND, .max = 365 * DAY, .doc = "an older action that fails is dead"},
    {"actions.breaker_failures", RCPT_CONFIG_INTEGER, RELOADABLE, AT(actions.breaker_failures),
     .initial = "5", .min = 1, .max = 100000,
     .doc = "failures in a row after which an endpoint is left alone"},
    {"actions.breaker_open", RCPT_CONFIG_DURATION, RELOADABLE, AT(actions.breaker_open_ms),
     .initial = "30s", .min = 10, .max = HOUR, .doc = "for how long, before one call tries again"},
    {"actions.disable_after", RCPT_CONFIG_DURATION, RELOADABLE, AT(actions.disable_after_ms),
     .initial = "5d", .min = 0, .max = 365 * DAY,
     .doc = "an endpoint that has failed for so long is disabled until a restart or reload; 0: "
            "never"},
    {"actions.org_rate", RCPT_CONFIG_INTEGER, RELOADABLE, AT(actions.org_rate), .initial = "0",
     .min = 0, .max = 60000000, .doc = "attempts per minute of each organisation; 0: no limit"},
    {"actions.org_burst", RCPT_CONFIG_INTEGER, RELOADABLE, AT(actions.org_burst), .initial = "1",
     .min = 1, .max = 1000000, .doc = "how many of them may come at once"},
    {"actions.org_concurrency", RCPT_CONFIG_INTEGER, RELOADABLE, AT(actions.org_concurrency),
     .initial = "0", .min = 0, .max = 1000000,
     .doc = "actions of an organisation that run at once, over all instances; 0: no limit"},
    {"actions.rate", RCPT_CONFIG_INTEGER, RELOADABLE, AT(actions.rate), .initial = "0", .min = 0,
     .max = 60000000, .doc = "attempts per minute of all organisations together; 0: no limit"},
    {"actions.burst", RCPT_CONFIG_INTEGER, RELOADABLE, AT(actions.burst), .initial = "1", .min = 1,
     .max = 1000000, .doc = "how many of them may come at once"},
    {"actions.concurrency", RCPT_CONFIG_INTEGER, RELOADABLE, AT(actions.concurrency),
     .initial = "0", .min = 0, .max = 1000000,
     .doc = "actions that run at once, over all instances; 0: no limit"},
    {"actions.retention", RCPT_CONFIG_DURATION, RELOADABLE, AT(actions.retention_ms),
     .initial = "7d", .min = 0, .max = 3650 * DAY,
     .doc = "how long actions and runs that are done are kept; dead ones stay"},
    {"actions.once_retention", RCPT_CONFIG_DURATION, RELOADABLE, AT(actions.once_retention_ms),
     .initial = "0s", .min = 0, .max = 3650 * DAY,
     .doc = "how long once_per remembers a run that is done, and on a message for which it has "
            "fired, at least actions.retention; then these may begin another; 0s: without limit"},

    {"ladder.statuses", RCPT_CONFIG_RECORDS, RELOADABLE,
     LIST_AT(ladder_definition.statuses, ladder_definition.status_count), .min = 1,
     .max = RCPT_LADDER_MAX_STATUSES, .record = &rcpt_config_status_record,
     .doc = "statuses, parents before or after their children"},
    {"ladder.flags", RCPT_CONFIG_RECORDS, RELOADABLE,
     LIST_AT(ladder_definition.flags, ladder_definition.flag_count), .max = RCPT_LADDER_MAX_FLAGS,
     .record = &rcpt_config_flag_record, .doc = "marks that a message can bear beside its status"},
    {"ladder.overrides", RCPT_CONFIG_RECORDS, RELOADABLE,
     LIST_AT(ladder_definition.overrides, ladder_definition.override_count),
     .max = RCPT_LADDER_MAX_OVERRIDES, .record = &rcpt_config_override_record,
     .doc = "statuses that mean another one on some channel"},
};
static const struct rcpt_config_table table = {rows, RCPT_COUNT_OF(rows),
                                               sizeof(struct rcpt_config)};

_Static_assert(RCPT_COUNT_OF(rows) <= RCPT_CONFIG_MAX_ROWS, "arrays with one entry per row");

const struct rcpt_config_table *rcpt_config_table(void)
{
    return &table;
}
