/* Every key of the configuration: one array of rows for each section, and the list of sections at
 * the end. The fields of records stand in accounts.c, endpoints.c, expiry.c, folds.c, ladder.c,
 * machine.c and retention.c. rows.h explains the columns. To add a key, add a member to struct
 * rcpt_config and a row here, then run scripts/update-docs (docs/contributing.md).
 *
 * Ranges are wide: they refuse mistakes of a unit, not bad ideas. RELOADABLE is set only where the
 * module reads the value again after a reload. */
#include "rows.h"

#define RECORD struct rcpt_config

static const cyaml_strval_t gap_policies[] = {
    {"halt", RCPT_GAP_HALT},
    {"skip", RCPT_GAP_SKIP},
};
static const struct rcpt_config_row kafka_rows[] = {
    TEXT("kafka.brokers", kafka.brokers, REQUIRED | ACTIVE, "127.0.0.1:9092", 1, 4096,
         "brokers to ask for the cluster: `host:port`, separated by commas"),
    KEY(TOPICS, "kafka.topics", LIST_AT(kafka.topics, kafka.topics_count), REQUIRED | ACTIVE,
        "[dlr-events]", 1, 100, "topics that carry receipts"),
    TEXT("kafka.group", kafka.group, ACTIVE, "receiptd", 1, 249,
         "consumer group: instances of one group share the partitions"),
    TEXT("kafka.instance_id", kafka.instance_id, NULLABLE, "receiptd-0", 1, 249,
         "static membership: an instance that starts again goes on at once with its partitions; "
         "unique for each. Default: environment variable `RECEIPTD_INSTANCE_ID`, if it is set",
         .environment = "RECEIPTD_INSTANCE_ID"),
    MAP("kafka.properties", kafka.properties, kafka.properties_count, ACTIVE, 200, pair_record,
        "any property of librdkafka, checked; a reload takes user and password of SASL"),
    /* This bounds records that librdkafka has fetched; memory.budget those taken in by lanes. */
    SIZE("kafka.fetch_budget", kafka.fetch_budget_bytes, 0, "32MiB", MIB, GIB,
         "memory for records that are fetched and not yet taken in, 1 KiB at least for each"),
    SIZE("kafka.batch_limit", kafka.batch_limit_bytes, 0, "32MiB", 8 * MIB, GIB,
         "what a compressed batch of records may inflate to; a larger one is passed over, as one "
         "dead letter"),
    DURATION("kafka.commit_interval", kafka.commit_interval_ms, 0, "5s", 100, HOUR,
             "how often positions are committed to Kafka, for figures of lag only"),
    CHOICE("kafka.on_retention_gap", kafka.on_retention_gap, 0, "halt", gap_policies,
           "when retention has deleted receipts that were never read: `halt` stops and says so, "
           "`skip` counts them and goes on"),
};

static const struct rcpt_config_row postgres_rows[] = {
    /* A rotated password needs no restart. */
    TEXT("postgres.dsn", postgres.dsn, REQUIRED | SECRET | ACTIVE | RELOADABLE,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}dsn", 1, 65536,
         "connection string of libpq, keywords or URI; new connections take a new one"),
    INTEGER("postgres.connections", postgres.connections, ACTIVE | RELOADABLE, "2", 1, 64,
            "connections that write, at most as many as there are lanes"),
    IDENTIFIER("postgres.schema", postgres.schema, 0, "receiptd", 1, 63,
               "schema of receiptd's own tables"),
    /* Two time-outs at two places: the server ends a wait by lock_timeout, and a session that holds
     * the lock for longer than zombie_timeout is ended by the control connection. */
    DURATION("postgres.lock_timeout", postgres.lock_timeout_ms, 0, "5s", 10, 10 * MINUTE,
             "a transaction that waits longer for a lock is rolled back; the log names the session "
             "that holds it"),
    DURATION("postgres.statement_timeout", postgres.statement_timeout_ms, 0, "30s", 100, HOUR,
             "a statement that runs longer is cancelled by the server"),
    DURATION("postgres.connect_timeout", postgres.connect_timeout_ms, 0, "10s", 100, 10 * MINUTE,
             "limit for making a connection"),
    DURATION("postgres.zombie_timeout", postgres.zombie_timeout_ms, 0, "10s", 100, HOUR,
             "a session of receiptd that has blocked a lane for longer is terminated"),
    DURATION("postgres.retry_min", postgres.retry_min_ms, 0, "100ms", 1, HOUR,
             "shortest back-off before the next attempt"),
    DURATION("postgres.retry_max", postgres.retry_max_ms, 0, "10s", 1, HOUR,
             "longest back-off before the next attempt"),
};

static const cyaml_strval_t unknown_policies[] = {
    {"park", RCPT_UNKNOWN_PARK},
    {"insert", RCPT_UNKNOWN_INSERT},
    {"dead-letter", RCPT_UNKNOWN_DEAD_LETTER},
};
static const struct rcpt_config_row top_rows[] = {
    /* The number of lanes is pinned: positions in the database belong to lanes, so a change needs
     * `re-lane` (docs/glossary.md, "re-lane"). */
    INTEGER("lanes", lanes, ACTIVE, "8", 1, 256,
            "unit of order and of parallelism, a power of two; pinned in the database at the first "
            "start"),
    CHOICE("unknown", unknown, ACTIVE, "park", unknown_policies,
           "a receipt whose message row does not exist: `park` keeps it until the row lands, "
           "`insert` makes the row, `dead-letter` stores it as a dead letter"),
    /* A tree with a grammar of its own: pipelines.c checks it after the ladder is made. */
    KEY(TREE, "pipelines", AT(pipelines), RELOADABLE, "[]", 0, 200,
        "what happens after a status change, or without one; docs/actions.md has the grammar"),
    RECORDS("folds", folds, folds_count, RELOADABLE, "[]", 0, 100, rcpt_config_fold_record,
            "rules that tell others once when many things have changed; docs/folds.md shows some"),
};

static const struct rcpt_config_row batch_rows[] = {
    /* A batch ends at whichever limit it meets first; batch.linger counts for idle lanes only. */
    INTEGER("batch.max_events", batch.max_events, RELOADABLE, "4000", 1, 100000,
            "receipts of one transaction; a larger record goes alone"),
    SIZE("batch.max_bytes", batch.max_bytes, RELOADABLE, "4MiB", 4 * KIB, 256 * MIB,
         "bytes of one transaction; a larger record goes alone"),
    INTEGER("batch.catch_up", batch.catch_up, RELOADABLE, "2", 1, 16,
            "how many times as many receipts a transaction may have while every partition is two "
            "seconds behind or more: then no fresh receipt waits for it, and more receipts of a "
            "message meet in it; 1: no more than ever"),
    DURATION("batch.linger", batch.linger_ms, RELOADABLE, "0s", 0, 10 * SECOND,
             "how long a small batch waits for more; 0s: not at all"),
};

static const struct rcpt_config_row memory_rows[] = {
    SIZE("memory.budget", memory.budget_bytes, RELOADABLE, "16MiB", 64 * KIB, 64 * GIB,
         "memory for records that are queued or in flight; above it nothing more is taken in"),
};

static const struct rcpt_config_row progress_rows[] = {
    DURATION("progress.verify_interval", progress.verify_interval_ms, RELOADABLE, "5s", 100, HOUR,
             "how often a lane without work compares its positions with the database"),
    DURATION("progress.idle_interval", progress.idle_interval_ms, RELOADABLE, "1s", 10, HOUR,
             "how often a lane without receipts moves its positions"),
    DURATION("progress.rewind_timeout", progress.rewind_timeout_ms, RELOADABLE, "10s", 100, HOUR,
             "a rewind that has brought no record for so long is repeated, by assigning the "
             "partition again"),
};

static const struct rcpt_config_row parked_rows[] = {
    /* Their message may never come: so both age and number of parked receipts are bounded. */
    DURATION("parked.max_age", parked.max_age_ms, RELOADABLE, "24h", SECOND, 365 * DAY,
             "older parked receipts become dead letters"),
    DURATION("parked.alias_wait", parked.alias_wait_ms, RELOADABLE, "1m", 0, 30 * DAY,
             "how long `unknown: insert` waits for an alias"),
    INTEGER("parked.max_rows", parked.max_rows, RELOADABLE, "1000000", 1, 1000000000,
            "above it nothing more is taken in until some have gone"),
    DURATION("parked.poll_interval", parked.poll_interval_ms, RELOADABLE, "1s", 10, HOUR,
             "how often at most to check for their rows"),
    INTEGER("parked.wake_limit", parked.wake_limit, RELOADABLE, "1000", 1, 100000,
            "parked receipts of one transaction"),
};

static const struct rcpt_config_row counters_rows[] = {
    DURATION("counters.rollup_interval", counters.rollup_interval_ms, RELOADABLE, "1s", 10, HOUR,
             "how often appended counts are added to the totals; less often where that takes long"),
    INTEGER("counters.rollup_rows", counters.rollup_rows, RELOADABLE, "10000", 1, 10000000,
            "appended rows of one roll-up"),
    DURATION("counters.series", counters.series_ms, 0, "0s", 0, 3650 * DAY,
             "how long the funnel is kept as a series by hour (by minute: one day). 0s: no series"),
    BOOLEAN("counters.reasons", counters.reasons, 0, "false",
            "counts receipts by the `reason_class` that they name, per campaign and gateway"),
    DURATION("counters.gateways", counters.gateways_ms, 0, "0s", 0, 3650 * DAY,
             "how long hourly figures of gateways are kept, for `receiptd gateways`. 0s: none"),
    BOOLEAN("counters.times", counters.times, 0, "false",
            "histograms of the time to deliver and to open, from first times in the row of the "
            "message. A table of the platform's needs six columns for it"),
    LIST("counters.by", counters.by, counters.by_count, 0, 3,
         "columns of the inbox by which the funnel is counted, too: `variant`, `channel`, "
         "`gateway`, for `receiptd funnel --by`. Then run `receiptd migrate`"),
    LIST("counters.groups", counters.groups, counters.groups_count, 0, 2,
         "messages that count as one, in a funnel beside that of messages: those of one "
         "`customer`, attempts at one `logical` message. Then run `receiptd migrate`"),
};

static const struct rcpt_config_row dedup_rows[] = {
    DURATION("dedup.window", dedup.window_ms, 0, "0s", 0, 7 * DAY,
             "for how long after its event time a receipt is remembered, so that a second copy is "
             "not an event. At least the time in which a gateway repeats. 0s: every copy counts"),
};

/* A bool with telling names, so that a third value may come without a new key. */
static const cyaml_strval_t targeted_policies[] = {
    {"trigger", true},
    {"none", false},
};
static const cyaml_strval_t partition_makers[] = {
    {"none", RCPT_PARTITIONS_NONE},
    {"own", RCPT_PARTITIONS_OWN},
    {"external", RCPT_PARTITIONS_EXTERNAL},
};
static const cyaml_strval_t id_kinds[] = {
    {"any", RCPT_ID_ANY},     {"uuidv7", RCPT_ID_UUIDV7},       {"ulid", RCPT_ID_ULID},
    {"ksuid", RCPT_ID_KSUID}, {"snowflake", RCPT_ID_SNOWFLAKE},
};
static const struct rcpt_config_row inbox_rows[] = {
    TABLE("inbox.table", inbox.table, NULLABLE, "messaging.outbound", 3, 127,
          "an existing table of messages, `schema.table`; not set: `message_inbox` in "
          "`postgres.schema`"),
#define COLUMN(column, type, constraint, filler, feature, meaning)                                 \
    IDENTIFIER("inbox.columns." #column, inbox.column, 0, #column, 1, 63, "column of " meaning),
    RCPT_INBOX_COLUMNS(COLUMN)
#undef COLUMN
        IDENTIFIER("inbox.columns.created_at", inbox.created_at, NULLABLE, "created_at", 1, 63,
                   "column of the time when the message was inserted (timestamptz), which nothing "
                   "changes later; never added. Without it an existing table has no retention"),
    IDENTIFIER("inbox.columns.variant", inbox.variant, NULLABLE, "variant", 1, 63,
               "column of the variant of a message, for `counters.by`; written by INSERT, never "
               "changed later, and never added"),
    IDENTIFIER("inbox.columns.channel", inbox.channel, NULLABLE, "channel", 1, 63,
               "likewise, of its channel"),
    IDENTIFIER("inbox.columns.gateway", inbox.gateway, NULLABLE, "gateway", 1, 63,
               "likewise, of the gateway that it is sent by"),
    IDENTIFIER("inbox.columns.customer_id", inbox.customer_id, NULLABLE, "customer_id", 1, 63,
               "column of the person that a message goes to, for `receiptd erase --customer` and "
               "`counters.groups`; never added or changed in your table, and best with an index"),
    IDENTIFIER(
        "inbox.columns.logical_id", inbox.logical_id, NULLABLE, "logical_id", 1, 63,
        "column of the logical message that a message is an attempt at, for `counters.groups`: the "
        "id of the first attempt; NULL: of itself. Written by INSERT, never changed later"),
    IDENTIFIER("inbox.columns.recipient", inbox.recipient, NULLABLE, "recipient", 1, 63,
               "column of the person's id at the gateway (text), for receipts that mean all "
               "messages to a person up to a time; needs the account in `inbox.columns.gateway`. "
               "Not set: such receipts are ignored"),
    IDENTIFIER("inbox.columns.sent_at", inbox.sent_at, NULLABLE, "sent_at", 1, 63,
               "column of the time when a message was sent (timestamptz), for these receipts; "
               "NULL: it was not. Not set: `created_at`"),
    CHOICE("inbox.targeted", inbox.count_targeted, 0, "trigger", targeted_policies,
           "who counts new rows: `trigger` puts an insert trigger on the table, `none` leaves "
           "TARGETED uncounted"),
    DURATION("inbox.retention", inbox.retention_ms, 0, "0s", 0, 3650 * DAY,
             "how long `receiptd retire` leaves messages in the inbox, from their insertion on; "
             "counters stay. 0s: without limit"),
    RECORDS("inbox.retention_overrides", inbox.overrides, inbox.overrides_count, 0, "[]", 0, 1000,
            rcpt_config_retention_record,
            "campaigns and organisations whose messages are kept longer or shorter"),
    RECORDS("inbox.expiry", inbox.expiry, inbox.expiry_count, 0, "[]", 0, 100,
            rcpt_config_expiry_record,
            "when `receiptd expire` stops to wait for a final status; the first entry that fits"),
    DURATION("inbox.remember_retired", inbox.remember_ms, RELOADABLE, "30d", 0, 3650 * DAY,
             "how long the id of a deleted message is kept, by which a late receipt is recognised"),
    DURATION("inbox.alias_retention", inbox.alias_retention_ms, 0, "0s", 0, 3650 * DAY,
             "age from which `receiptd retire` deletes aliases whose message has gone and is no "
             "longer remembered; 0s: they stay"),
    INTEGER("inbox.fillfactor", inbox.fillfactor, NULLABLE, "50", 10, 100,
            "how full the pages of the own table are made; not set: 50, which leaves space for one "
            "more version of each row, so that updates need no new index entries; 40 with "
            "`counters.times`, whose columns make rows longer"),
    INTEGER("inbox.recent_rows", inbox.recent_rows, 0, "2000000", 0, 1000000000,
            "of a table with twice as many messages, ids in no order of time and created_at: so "
            "many of the newest get an index of their own from `receiptd maintain`; in ranges of "
            "created_at, or many of time-ordered ids: the newest partitions with so many are read "
            "first. 0: none"),
    CHOICE("inbox.partitions", inbox.partitions, 0, "none", partition_makers,
           "who partitions the inbox: `own` lets `receiptd maintain` make and drop partitions of "
           "receiptd's own table, by the time in message ids; `external` leaves that to somebody "
           "else"),
    CHOICE("inbox.ids", inbox.ids, 0, "any", id_kinds,
           "what message ids are: `uuidv7` (in lower case), `ulid` (in upper case) and `ksuid` "
           "begin with the time, as `inbox.partitions: own` needs; `snowflake` grows with it"),
    DURATION(
        "inbox.partition_span", inbox.partition_span_ms, NULLABLE, "1d", HOUR, 122 * DAY,
        "time of one partition's messages; not set: the fewest whole days of which 30 hold "
        "`inbox.retention` (3d for 90d); 1d without it, or if `inbox.partitions` is not `own`"),
    INTEGER("inbox.probe_partitions", inbox.probe_partitions, 0, "8", 1, 100000,
            "in so many partitions of the inbox a receipt may be looked up, where a message's id "
            "does not lead to its partition; a table with more is refused, unless it is "
            "partitioned by `inbox.columns.created_at`, or by ranges of an id that `inbox.ids` "
            "says to begin with the time, and has a recent set"),
    BOOLEAN("inbox.drop_detached", inbox.drop_detached, 0, "false",
            "with `inbox.partitions: external`: whether `receiptd maintain` drops a partition that "
            "has left the inbox, in a run after the one that has booked it"),
};

static const cyaml_strval_t machine_policies[] = {
    {"flag", RCPT_MACHINE_FLAG},
    {"count", RCPT_MACHINE_COUNT},
    {"ignore", RCPT_MACHINE_IGNORE},
};
static const struct rcpt_config_row machine_rows[] = {
    CHOICE("machine.opens", machine.opens, RELOADABLE, "flag", machine_policies,
           "opens with the flag MACHINE_OPEN: the `flag` alone, `count` as OPENED as well, or "
           "`ignore` as if they had not come"),
    CHOICE("machine.clicks", machine.clicks, RELOADABLE, "flag", machine_policies,
           "the same for clicks with the flag BOT_CLICK"),
    RECORDS("machine.rules", machine.rules, machine.rule_count, RELOADABLE, "[]", 0, 1000,
            rcpt_config_machine_record,
            "other policies for some receipts; the first entry that fits"),
    TEXT("machine.networks", machine_networks, NULLABLE | RELOADABLE,
         "${RECEIPTD_LISTS:-/etc/receiptd/}scanners.txt", 1, 4096,
         "file with networks of scanners, one a line: the intake takes opens and clicks that come "
         "from them for those of machines; a reload reads it again"),
};

static const cyaml_strval_t alias_policies[] = {
    {"optional", RCPT_ALIAS_OPTIONAL},
    {"required", RCPT_ALIAS_REQUIRED},
    {"off", RCPT_ALIAS_OFF},
};
static const cyaml_strval_t letter_payloads[] = {
    {"raw", RCPT_LETTER_RAW},
    {"masked", RCPT_LETTER_MASKED},
    {"none", RCPT_LETTER_NONE},
};
static const struct rcpt_config_row intake_rows[] = {
    /* Keys of the intake count for `receiptd intake`, and for `run` where intake.enabled is set. */
    BOOLEAN("intake.enabled", intake.enabled, 0, "false",
            "whether `receiptd run` takes webhooks as well, in one process"),
    TEXT("intake.listen", intake.listen, 0, "127.0.0.1:8080", 2, 120,
         "address to listen on: `host:port`, `[IPv6]:port`, `:port` for all"),
    TEXT("intake.metrics_listen", intake.metrics_listen, 0, "127.0.0.1:9465", 0, 255,
         "address and port of /metrics, /livez, /readyz, /startupz and /statusz of `receiptd "
         "intake`, with the token and the certificate of `http`; \"\": none. In one process with "
         "`receiptd run`: on http.listen"),
    BOOLEAN("intake.reuse_port", intake.reuse_port, 0, "false",
            "several processes share the address: the kernel spreads connections over them"),
    TEXT("intake.topic", intake.topic, NULLABLE, "dlr-events", 1, 249,
         "topic that the receipts go to; not set: the first of `kafka.topics`"),
    TEXT("intake.dead_letter_topic", intake.dead_letter_topic, 0, "dlr-dead", 1, 249,
         "topic for what cannot be understood, with the reason in a header"),
    CHOICE("intake.dead_letters", intake.dead_letters, 0, "raw", letter_payloads,
           "what a dead letter holds: the bytes as they came (`raw`), with every run of seven or "
           "more digits hidden (`masked`), or nothing (`none`)"),
    TEXT("intake.compression", intake.compression, 0, "lz4", 2, 6,
         "codec of the records: none, gzip, snappy, lz4 or zstd"),
    INTEGER("intake.batch.max_events", intake.max_events, 0, "1000", 1, 10000,
            "receipts of one record"),
    SIZE("intake.batch.max_bytes", intake.max_bytes, 0, "512KiB", 4 * KIB, 8 * MIB,
         "bytes of one record, below the topic's `max.message.bytes`"),
    DURATION("intake.batch.linger", intake.linger_ms, 0, "4ms", 0, SECOND,
             "how long a receipt may wait for others while its partition is busy; never when idle"),
    SIZE("intake.memory", intake.memory_bytes, 0, "128MiB", 4 * MIB, 16 * GIB,
         "bodies of requests (half of it), what is made of them and records that wait for Kafka "
         "(the other half); above it requests are answered with 503"),
    DURATION("intake.ack_timeout", intake.ack_timeout_ms, 0, "8s", 100, 5 * MINUTE,
             "how long Kafka may take to acknowledge before the gateway is asked to send again; "
             "below the gateways' own time-outs"),
    TEXT("intake.dsn", intake.dsn, NULLABLE | SECRET | RELOADABLE,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}intake-dsn", 1, 65536,
         "connection string for the look-ups of aliases, as the role of `receiptd migrate "
         "--intake-role`; not set: `postgres.dsn`. New connections of `receiptd run` take a new "
         "one, `receiptd intake` needs a restart"),
    CHOICE("intake.alias", intake.alias, 0, "optional", alias_policies,
           "receipts that carry only the gateway's id are looked up in `message_alias`: `optional` "
           "goes on with the gateway's id while the database is away, `required` answers 503, "
           "`off` never looks"),
    DURATION("intake.alias_timeout", intake.alias_timeout_ms, 0, "1s", 10, MINUTE,
             "limit for one look-up"),
    INTEGER("intake.alias_cache", intake.alias_cache, 0, "100000", 20000, 100000000,
            "aliases that are remembered"),
    INTEGER(
        "intake.replay_keys", intake.replay_keys, 0, "200000", 1000, 100000000,
        "signed requests that are remembered, so that a copy is answered and not counted again"),
    TEXT("intake.trusted_proxies", intake.trusted_proxies, NULLABLE, "10.0.0.0/8, ::1", 1, 1024,
         "addresses or networks whose `X-Forwarded-For` is believed, separated by commas"),
    TEXT("intake.tls.certificate", intake.tls_certificate, NULLABLE,
         "/etc/receiptd/tls/fullchain.pem", 1, 4096,
         "file with the certificate and its chain (PEM); checked for a change every 10 s"),
    TEXT("intake.tls.key", intake.tls_key, NULLABLE, "/etc/receiptd/tls/key.pem", 1, 4096,
         "file with the private key (PEM); not set: that of the certificate"),
    /* Limits of one client's cost: the intake faces the Internet. */
    SIZE("intake.limits.body", intake.limits.body_bytes, 0, "1MiB", KIB, 8 * MIB,
         "bytes of a request, sent and decompressed: 413 above"),
    SIZE("intake.limits.headers", intake.limits.header_bytes, 0, "16KiB", KIB, 64 * KIB,
         "bytes of request line and headers: 414 or 431 above"),
    INTEGER("intake.limits.connections", intake.limits.connections, 0, "4096", 1, 1000000,
            "connections at once; above it the server closes those that never end a request, then "
            "the idlest"),
    INTEGER(
        "intake.limits.connections_per_source", intake.limits.connections_per_source, 0, "0", 0,
        1000000,
        "connections of one address; 0: no limit, for behind a proxy all connections are its own"),
    INTEGER("intake.limits.pipelined", intake.limits.pipelined, 0, "16", 1, 1000,
            "requests of one connection that may wait for their answers"),
    INTEGER("intake.limits.rate_per_source", intake.limits.rate_per_source, 0, "50", 0, 1000000,
            "requests of one address (IPv6: of its /64) and second that are not verified: 429 for "
            "all of the address above it, before anything is read; addresses of private networks "
            "that are no trusted proxies are not counted; 0: no limit"),
    INTEGER("intake.limits.rate_per_account", intake.limits.rate_per_account, 0, "0", 0, 1000000,
            "verified requests of one account and second: 429 above; 0: no limit"),
    DURATION("intake.limits.header_time", intake.limits.header_ms, 0, "10s", 100, 10 * MINUTE,
             "from connecting or the first byte to the end of the headers: 408 after it"),
    DURATION("intake.limits.body_time", intake.limits.body_ms, 0, "30s", 100, 10 * MINUTE,
             "for the body: 408 after it"),
    DURATION("intake.limits.idle_time", intake.limits.idle_ms, 0, "75s", 100, HOUR,
             "a connection without a request is closed after it"),
    DURATION("intake.limits.write_time", intake.limits.write_ms, 0, "20s", 100, 10 * MINUTE,
             "a client that takes nothing of an answer for so long is cut off"),
    RECORDS("intake.accounts", intake.accounts, intake.accounts_count, RELOADABLE, "[]", 0, 10000,
            rcpt_config_account_record,
            "one entry for each gateway and tenant; docs/gateways.md shows some"),
};

static const struct rcpt_config_row serve_rows[] = {
    BOOLEAN("serve.enabled", serve.enabled, 0, "false",
            "whether `receiptd run` answers as `receiptd serve` does"),
    TEXT("serve.listen", serve.listen, 0, "127.0.0.1:8322", 2, 120,
         "address to listen on, with the certificate of `http`"),
    TEXT("serve.dsn", serve.dsn, NULLABLE | SECRET | RELOADABLE,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}serve-dsn", 1, 65536,
         "connection string, as the role of `migrate --serve-role`; not set: `postgres.dsn`"),
    TEXT("serve.operate_dsn", serve.operate_dsn, NULLABLE | SECRET | RELOADABLE,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}operate-dsn", 1, 65536,
         "connection string for what operators may change, as the role of `migrate --role`; not "
         "set: nothing"),
    INTEGER(
        "serve.connections", serve.connections, 0, "2", 2, 8,
        "connections that read: so many questions are answered at a time, of one caller one less"),
    DURATION("serve.statement_timeout", serve.statement_timeout_ms, 0, "5s", 100, HOUR,
             "longer questions are answered with 503"),
    TEXT("serve.metrics_listen", serve.metrics_listen, 0, "127.0.0.1:9466", 0, 255,
         "as `intake.metrics_listen`, of `receiptd serve`"),
    BOOLEAN("serve.open", serve.open, 0, "false",
            "no token is needed: for a demonstration, on a loopback address only"),
    BOOLEAN("serve.page", serve.page, 0, "true",
            "whether there is a page for people beside the interface for programs"),
    TEXT("serve.link_secret", serve.link_secret, NULLABLE | SECRET,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}link-secret", 16, 4096,
         "signs the links of `receiptd serve link`; not set: there are none"),
    TEXT("serve.hosts", serve.hosts, NULLABLE, "a.internal", 1, 1024,
         "names for `Host`; not set: any, on loopback this machine's"),
    TABLE("serve.campaigns", serve.campaigns, NULLABLE, "marketing.campaigns", 3, 127,
          "a view with `id`, `name` and, if you like, `date` and `org_id` of campaigns, "
          "`schema.view`, which the role of `serve.dsn` may read"),
    TEXT("serve.trusted_proxies", serve.trusted_proxies, NULLABLE, "::1", 1, 999,
         "addresses whose `proxy_header` counts, by commas"),
    TEXT("serve.proxy_header", serve.proxy_header, NULLABLE, "X-Organisation", 1, 64,
         "header in which a trusted proxy names the organisation that may be read; `*`: all"),
};

static const struct rcpt_config_row shutdown_rows[] = {
    DURATION("shutdown.deadline", shutdown.deadline_ms, RELOADABLE, "20s", 100, HOUR,
             "after SIGTERM: how long open batches may take to finish"),
};

static const cyaml_strval_t log_levels[] = {
    {"error", RCPT_LOG_ERROR},
    {"warn", RCPT_LOG_WARN},
    {"info", RCPT_LOG_INFO},
    {"debug", RCPT_LOG_DEBUG},
};
static const cyaml_strval_t log_formats[] = {
    {"logfmt", RCPT_LOG_LOGFMT},
    {"json", RCPT_LOG_JSON},
};
static const cyaml_strval_t message_id_forms[] = {
    {"hash", false},
    {"plain", true},
};
static const struct rcpt_config_row log_rows[] = {
    CHOICE("log.level", log.level, RELOADABLE, "info", log_levels,
           "least severe kind of line that is written"),
    CHOICE("log.format", log.format, RELOADABLE, "logfmt", log_formats, "shape of a line"),
    DURATION("log.stats_interval", log.stats_interval_ms, RELOADABLE, "10s", 0, DAY,
             "how often a line of figures is written; 0s: never"),
    MAP("log.levels", log.levels, log.levels_count, RELOADABLE, RCPT_LOG_MAX_COMPONENTS,
        pair_record,
        "levels of single components, `kafka: debug`; components are " RCPT_CONFIG_COMPONENTS),
    INTEGER("log.burst", log.burst, RELOADABLE, "50", 0, 1000000,
            "lines of one kind within 10 s; more are counted and summed up in one; 0: no limit"),
    CHOICE("log.message_ids", log.plain_message_ids, RELOADABLE, "hash", message_id_forms,
           "how message ids appear in log lines: as a `hash`, or `plain`"),
};

static const struct rcpt_config_row http_rows[] = {
    TEXT("http.listen", http.listen, ACTIVE, "127.0.0.1:9464", 0, 255,
         "address and port of /metrics, /livez, /readyz, /startupz and /statusz; \"\": none"),
    TEXT("http.tls_certificate", http.tls_certificate, NULLABLE, "/etc/receiptd/tls.crt", 1, 4096,
         "PEM file with the certificate and its chain: HTTPS; read again at a reload"),
    TEXT("http.tls_key", http.tls_key, NULLABLE, "/etc/receiptd/tls.key", 1, 4096,
         "PEM file with its private key"),
    TEXT("http.token", http.token, NULLABLE | SECRET,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}http-token", 16, 4096,
         "bearer token that /metrics and /statusz ask for; the probes stay open"),
    TEXT("http.runs_token", http.runs_token, NULLABLE | SECRET,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}runs-token", 16, 4096,
         "bearer token that POST /runs asks for; not set: it begins none"),
};

static const struct rcpt_config_row control_rows[] = {
    TEXT("control.socket", control.socket, 0, "/run/receiptd/control.sock", 0, 96,
         "path of the socket, for the same user only; \"\": none; without its folder there is none "
         "either"),
};

static const struct rcpt_config_row tracing_rows[] = {
    TEXT("tracing.endpoint", tracing.endpoint, NULLABLE, "http://127.0.0.1:4318/v1/traces", 8, 2048,
         "URL that takes OTLP over HTTP (JSON), with path, no user name; not set: no traces"),
    RATIO("tracing.sample", tracing.sample_millionths, RELOADABLE, "0.01", 0, 1000000,
          "share that is traced of what has no sampled parent; what has one is traced always"),
    TEXT("tracing.token", tracing.token, NULLABLE | SECRET,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}tracing-token", 1, 4096,
         "bearer token that the collector asks for"),
    SIZE("tracing.queue", tracing.queue_bytes, 0, "4MiB", 64 * KIB, GIB,
         "memory for spans that wait for the collector; what does not fit is dropped and counted"),
    DURATION("tracing.timeout", tracing.timeout_ms, 0, "10s", 100, 10 * MINUTE,
             "limit of one request to the collector"),
};

static const struct rcpt_config_row timeline_rows[] = {
    DURATION("timeline.retention", timeline.retention_ms, RELOADABLE, "0s", 0, 365 * DAY,
             "how long to keep what each receipt did; 0s: nothing is written"),
};

static const struct rcpt_config_row dead_letters_rows[] = {
    DURATION("dead_letters.retention", dead_letters.retention_ms, RELOADABLE, "0s", 0, 3650 * DAY,
             "how long to keep dead letters; 0s: without limit"),
};

static const struct rcpt_config_row actions_rows[] = {
    RECORDS("actions.endpoints", actions.endpoints, actions.endpoints_count, RELOADABLE, "[]", 0,
            1000, rcpt_config_endpoint_record, "receivers of webhooks"),
    BOOLEAN("actions.allow_private", actions.allow_private, RELOADABLE, "false",
            "whether webhooks may go to addresses that are not public"),
    TEXT("actions.ca_file", actions.ca_file, NULLABLE | RELOADABLE,
         "/etc/ssl/certs/ca-certificates.crt", 1, 4096,
         "PEM file of the authorities that certify receivers; not set: the system's"),
    INTEGER("actions.max_in_flight", actions.max_in_flight, RELOADABLE, "512", 1, 100000,
            "actions that one instance carries out"),
    /* Actions: how often the scheduler asks, how long a claim lasts, how failures are retried, and
     * how fast each organisation may go. */
    DURATION("actions.poll_interval", actions.poll_interval_ms, RELOADABLE, "200ms", 10,
             10 * SECOND, "how often a shard without work polls for due actions"),
    INTEGER("actions.begin_share", actions.begin_share, RELOADABLE, "15", 1, 100,
            "percent of its time in which an instance makes runs of what receipts began, while "
            "more receipts wait; 100: as fast as it can, which slows receipts down"),
    DURATION("actions.lease", actions.lease_ms, RELOADABLE, "60s", 200, HOUR,
             "an action without a result for so long is claimed again; more than twice any "
             "time-out of an endpoint"),
    DURATION("actions.lane_lease", actions.lane_lease_ms, RELOADABLE, "10s", 200, 10 * MINUTE,
             "lanes of an instance that has not been seen for so long go to the others"),
    DURATION("actions.retry_min", actions.retry_min_ms, RELOADABLE, "1s", 1, HOUR,
             "shortest wait before another attempt"),
    DURATION("actions.retry_max", actions.retry_max_ms, RELOADABLE, "1h", SECOND, 30 * DAY,
             "longest wait, also where the receiver asks for more"),
    INTEGER("actions.max_attempts", actions.max_attempts, RELOADABLE, "12", 1, 1000,
            "then the action is dead"),
    DURATION("actions.max_age", actions.max_age_ms, RELOADABLE, "3d", SECOND, 365 * DAY,
             "an older action that fails is dead"),
    INTEGER("actions.breaker_failures", actions.breaker_failures, RELOADABLE, "5", 1, 100000,
            "failures in a row after which an endpoint is left alone"),
    DURATION("actions.breaker_open", actions.breaker_open_ms, RELOADABLE, "30s", 10, HOUR,
             "for how long, before one call tries again"),
    DURATION(
        "actions.disable_after", actions.disable_after_ms, RELOADABLE, "5d", 0, 365 * DAY,
        "an endpoint that has failed for so long is disabled until a restart or reload; 0: never"),
    INTEGER("actions.org_rate", actions.org_rate, RELOADABLE, "0", 0, 60000000,
            "attempts per minute of each organisation; 0: no limit"),
    INTEGER("actions.org_burst", actions.org_burst, RELOADABLE, "1", 1, 1000000,
            "how many of them may come at once"),
    INTEGER("actions.org_concurrency", actions.org_concurrency, RELOADABLE, "0", 0, 1000000,
            "actions of an organisation that run at once, over all instances; 0: no limit"),
    INTEGER("actions.rate", actions.rate, RELOADABLE, "0", 0, 60000000,
            "attempts per minute of all organisations together; 0: no limit"),
    INTEGER("actions.burst", actions.burst, RELOADABLE, "1", 1, 1000000,
            "how many of them may come at once"),
    INTEGER("actions.concurrency", actions.concurrency, RELOADABLE, "0", 0, 1000000,
            "actions that run at once, over all instances; 0: no limit"),
    DURATION("actions.retention", actions.retention_ms, RELOADABLE, "7d", 0, 3650 * DAY,
             "how long actions and runs that are done are kept; dead ones stay"),
    DURATION("actions.once_retention", actions.once_retention_ms, RELOADABLE, "0s", 0, 3650 * DAY,
             "how long once_per remembers a run that is done, and on a message for which it has "
             "fired, at least actions.retention; then these may begin another; 0s: without limit"),
};

static const struct rcpt_config_row ladder_rows[] = {
    RECORDS("ladder.statuses", ladder_definition.statuses, ladder_definition.status_count,
            RELOADABLE, NULL, 1, RCPT_LADDER_MAX_STATUSES, rcpt_config_status_record,
            "statuses, parents before or after their children"),
    RECORDS("ladder.flags", ladder_definition.flags, ladder_definition.flag_count, RELOADABLE, NULL,
            0, RCPT_LADDER_MAX_FLAGS, rcpt_config_flag_record,
            "marks that a message can bear beside its status"),
    RECORDS("ladder.overrides", ladder_definition.overrides, ladder_definition.override_count,
            RELOADABLE, NULL, 0, RCPT_LADDER_MAX_OVERRIDES, rcpt_config_override_record,
            "statuses that mean another one on some channel"),
};

#define ROWS(section) section##_rows, RCPT_COUNT_OF(section##_rows)

/* The order of sections on the pages and in `check-config --print`. "" holds the keys without a
 * section. */
static const struct rcpt_config_section sections[] = {
    {"kafka", "Where the receipts come from.", ROWS(kafka)},
    {"postgres", "Where statuses and counters go.", ROWS(postgres)},
    {"", "How receipts are spread, and what happens to those of messages without a row.",
     ROWS(top)},
    {"batch",
     "Whatever arrived while the last transaction ran is the next batch, up to these limits.",
     ROWS(batch)},
    {"memory", "Back-pressure begins where the budget ends.", ROWS(memory)},
    {"progress", "How positions are kept moving and compared with the database.", ROWS(progress)},
    {"parked", "Receipts whose message row does not exist yet.", ROWS(parked)},
    {"counters", "Every transaction appends what it counted; the roll-up adds it to the totals.",
     ROWS(counters)},
    {"dedup", "Receipts that come again count as duplicates and not as events.", ROWS(dedup)},
    {"inbox", "The table of messages: receiptd's own, or one that exists.", ROWS(inbox)},
    {"machine",
     "What opens and clicks count as that do not come from people: receipts with the flag "
     "MACHINE_OPEN or BOT_CLICK. docs/semantics.md.",
     ROWS(machine)},
    {"intake",
     "Webhooks of gateways come in here and go to Kafka: `receiptd intake`, or beside `run` where "
     "it is enabled.",
     ROWS(intake)},
    {"serve",
     "What is known about campaigns and messages, for people and programs: `receiptd serve`, or "
     "beside `run` where it is enabled.",
     ROWS(serve)},
    {"shutdown", "How the process ends.", ROWS(shutdown)},
    {"log", "Log lines go to the standard error output.", ROWS(log)},
    {"http", "Metrics, health and status for machines.", ROWS(http)},
    {"control", "The socket that `receiptd ctl` talks to.", ROWS(control)},
    {"tracing", "Spans of transactions and of webhooks go to a collector that speaks OTLP.",
     ROWS(tracing)},
    {"timeline", "What every receipt did, kept for `receiptd explain`.", ROWS(timeline)},
    {"dead_letters", "Receipts that could not be applied: `receiptd dead-letters`.",
     ROWS(dead_letters)},
    {"actions", "How the actions of `pipelines` are carried out; docs/actions.md.", ROWS(actions)},
    {"ladder",
     "The tree of statuses. A ladder in the file replaces the default one as a whole, flags and "
     "overrides included. A reload takes over what is added, after `receiptd migrate` has brought "
     "it into the database, and refuses other changes.",
     ROWS(ladder)},
};
static const struct rcpt_config_table table = {sections, RCPT_COUNT_OF(sections), sizeof(RECORD)};

const struct rcpt_config_table *rcpt_config_table(void)
{
    return &table;
}
