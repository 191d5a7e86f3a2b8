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
/* The consumer. Properties of librdkafka without a key here go into kafka.properties. */
static const struct rcpt_config_row kafka_rows[] = {
    TEXT("kafka.brokers", kafka.brokers, REQUIRED | ACTIVE, "127.0.0.1:9092", 1, 4096,
         "addresses of brokers, `host:port`, separated by commas"),
    /* rcpt_config_take_over() takes the entries only where their names are the same. */
    RECORDS("kafka.topics", kafka.accounts, kafka.accounts_count,
            REQUIRED | ACTIVE | RELOADABLE | PLAIN, "[dlr-events]", 1, 100,
            rcpt_config_topic_record,
            "topics that carry receipts; an entry is a name, or a mapping for a topic in another "
            "form; a reload takes changes of entries, other names need a restart; examples: "
            "docs/topics.md"),
    TEXT("kafka.group", kafka.group, ACTIVE, "receiptd", 1, 249,
         "consumer group; its instances share the partitions"),
    TEXT("kafka.instance_id", kafka.instance_id, NULLABLE, "receiptd-0", 1, 249,
         "id for static membership, unique for each instance: a restarted instance keeps its "
         "partitions. Default: environment variable `RECEIPTD_INSTANCE_ID`, if set",
         .environment = "RECEIPTD_INSTANCE_ID"),
    MAP("kafka.properties", kafka.properties, kafka.properties_count, ACTIVE, 200, pair_record,
        "properties of librdkafka, checked; a reload takes user and password of SASL"),
    /* This bounds records that librdkafka has fetched; memory.budget those taken in by lanes. */
    SIZE("kafka.fetch_budget", kafka.fetch_budget_bytes, 0, "32MiB", MIB, GIB,
         "memory for fetched records that no lane has taken in; each counts at least 1 KiB"),
    SIZE("kafka.batch_limit", kafka.batch_limit_bytes, 0, "32MiB", 8 * MIB, GIB,
         "size to which a compressed batch may inflate; a larger batch is skipped and becomes one "
         "dead letter"),
    DURATION("kafka.commit_interval", kafka.commit_interval_ms, 0, "5s", 100, HOUR,
             "how often positions are committed to Kafka; only figures of lag use them"),
    CHOICE("kafka.on_retention_gap", kafka.on_retention_gap, 0, "halt", gap_policies,
           "what to do when retention has deleted unread receipts: `halt` stops and reports it, "
           "`skip` counts them and continues"),
    LIST(
        "kafka.message_topics", kafka.message_topics, kafka.message_topics_count, 0, 100,
        "topics on which the platform announces its messages, for platforms that do not write into "
        "PostgreSQL; docs/messages.md"),
};

static const struct rcpt_config_row postgres_rows[] = {
    /* A rotated password needs no restart. */
    TEXT("postgres.dsn", postgres.dsn, REQUIRED | SECRET | ACTIVE | RELOADABLE,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}dsn", 1, 65536,
         "connection string of libpq, keywords or URI; a reload applies to new connections"),
    INTEGER("postgres.connections", postgres.connections, ACTIVE | RELOADABLE, "2", 1, 64,
            "connections that write, at most one for each lane"),
    IDENTIFIER("postgres.schema", postgres.schema, 0, "receiptd", 1, 63,
               "schema of receiptd's own tables"),
    /* Two time-outs at two places: the server ends a wait by lock_timeout, and a session that holds
     * the lock for longer than zombie_timeout is ended by the control connection. */
    DURATION("postgres.lock_timeout", postgres.lock_timeout_ms, 0, "5s", 10, 10 * MINUTE,
             "longest wait for a lock; then the transaction is rolled back, and the log names the "
             "session that holds the lock"),
    DURATION("postgres.statement_timeout", postgres.statement_timeout_ms, 0, "30s", 100, HOUR,
             "longest run of a statement; then the server cancels it"),
    DURATION("postgres.connect_timeout", postgres.connect_timeout_ms, 0, "10s", 100, 10 * MINUTE,
             "limit for making a connection"),
    DURATION("postgres.zombie_timeout", postgres.zombie_timeout_ms, 0, "10s", 100, HOUR,
             "how long a session of receiptd may block a lane; then it is terminated"),
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
    INTEGER(
        "lanes", lanes, ACTIVE, "8", 1, 256,
        "unit of order and parallelism, a power of two; the first start pins it in the database"),
    CHOICE("unknown", unknown, ACTIVE, "park", unknown_policies,
           "what to do with a receipt whose message row does not exist: `park` keeps it until the "
           "row lands, `insert` makes the row, `dead-letter` stores it as a dead letter"),
    /* A tree with a grammar of its own: pipelines.c checks it after the ladder is made. */
    KEY(TREE, "pipelines", AT(pipelines), RELOADABLE, "[]", 0, 200,
        "what happens after a status change, or without one; grammar: docs/actions.md"),
    RECORDS("folds", folds, folds_count, RELOADABLE, "[]", 0, 100, rcpt_config_fold_record,
            "rules that publish many changes as one; examples: docs/folds.md"),
};

/* A batch is one transaction of one lane. */
static const struct rcpt_config_row batch_rows[] = {
    /* A batch ends at whichever limit it meets first; batch.linger counts for idle lanes only. */
    INTEGER("batch.max_events", batch.max_events, RELOADABLE, "4000", 1, 100000,
            "receipts of one transaction; a larger record goes alone"),
    SIZE("batch.max_bytes", batch.max_bytes, RELOADABLE, "4MiB", 4 * KIB, 256 * MIB,
         "bytes of one transaction; a larger record goes alone"),
    INTEGER("batch.catch_up", batch.catch_up, RELOADABLE, "2", 1, 16,
            "factor on the receipts of one transaction while every partition is at least two "
            "seconds behind: no fresh receipt waits for it then; 1: no larger transactions"),
    DURATION("batch.linger", batch.linger_ms, RELOADABLE, "0s", 0, 10 * SECOND,
             "how long a small batch waits for more; 0s: not at all"),
};

/* The budget counts records that are queued or in flight. */
static const struct rcpt_config_row memory_rows[] = {
    SIZE("memory.budget", memory.budget_bytes, RELOADABLE, "16MiB", 64 * KIB, 64 * GIB,
         "memory for records that are queued or in flight; above it no record is taken in"),
};

/* Work of lanes while no receipts come. */
static const struct rcpt_config_row progress_rows[] = {
    DURATION("progress.verify_interval", progress.verify_interval_ms, RELOADABLE, "5s", 100, HOUR,
             "how often an idle lane compares its positions with the database"),
    DURATION("progress.idle_interval", progress.idle_interval_ms, RELOADABLE, "1s", 10, HOUR,
             "how often a lane without receipts moves its positions"),
    DURATION("progress.rewind_timeout", progress.rewind_timeout_ms, RELOADABLE, "10s", 100, HOUR,
             "how long a rewind may bring no record; then the partition is assigned again, which "
             "repeats it"),
};

static const struct rcpt_config_row parked_rows[] = {
    /* Their message may never come: so both age and number of parked receipts are bounded. */
    DURATION("parked.max_age", parked.max_age_ms, RELOADABLE, "24h", SECOND, 365 * DAY,
             "age at which a parked receipt becomes a dead letter"),
    DURATION("parked.alias_wait", parked.alias_wait_ms, RELOADABLE, "1m", 0, 30 * DAY,
             "how long `unknown: insert` waits for an alias"),
    INTEGER("parked.max_rows", parked.max_rows, RELOADABLE, "1000000", 1, 1000000000,
            "parked receipts above which no receipt is taken in"),
    DURATION("parked.poll_interval", parked.poll_interval_ms, RELOADABLE, "1s", 10, HOUR,
             "shortest time between two looks for their rows"),
    INTEGER("parked.wake_limit", parked.wake_limit, RELOADABLE, "1000", 1, 100000,
            "parked receipts of one transaction"),
};

/* Keys that switch a count on are not reloadable: the statements of lanes depend on them. */
static const struct rcpt_config_row counters_rows[] = {
    DURATION(
        "counters.rollup_interval", counters.rollup_interval_ms, RELOADABLE, "1s", 10, HOUR,
        "how often appended counts are added to the totals; less often when a roll-up takes long"),
    INTEGER("counters.rollup_rows", counters.rollup_rows, RELOADABLE, "10000", 1, 10000000,
            "appended rows of one roll-up"),
    DURATION(
        "counters.series", counters.series_ms, 0, "0s", 0, 3650 * DAY,
        "how long the hourly series of the funnel is kept (by minute: one day); 0s: no series"),
    BOOLEAN("counters.reasons", counters.reasons, 0, "false",
            "counts receipts by their `reason_class`, per campaign and gateway"),
    DURATION("counters.gateways", counters.gateways_ms, 0, "0s", 0, 3650 * DAY,
             "how long hourly figures of gateways are kept, for `receiptd gateways`; 0s: none"),
    BOOLEAN("counters.times", counters.times, 0, "false",
            "histograms of the times to deliver and to open, from first times in the message's "
            "row; an existing table needs six more columns"),
    BOOLEAN("counters.links", counters.links, 0, "false",
            "counts clicks by the `link` that receipts name, without its query, per campaign"),
    BOOLEAN("counters.cost", counters.cost, 0, "false",
            "sums the `cost` that receipts name, per campaign and currency"),
    LIST("counters.by", counters.by, counters.by_count, 0, 3,
         "columns of the inbox that divide the funnel, for `receiptd funnel --by`: `variant`, "
         "`channel`, `gateway`; needs `receiptd migrate`"),
    LIST("counters.groups", counters.groups, counters.groups_count, 0, 2,
         "messages that count as one in a second funnel: those of one `customer`, attempts at one "
         "`logical` message; needs `receiptd migrate`"),
};

/* Off by default: the database remembers each receipt for the window. */
static const struct rcpt_config_row dedup_rows[] = {
    DURATION("dedup.window", dedup.window_ms, 0, "0s", 0, 7 * DAY,
             "how long after its event time a receipt is remembered, so that a copy is no event; "
             "at least as long as a gateway repeats; 0s: every copy counts"),
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
          "existing table of messages, `schema.table`; not set: `message_inbox` in "
          "`postgres.schema`"),
#define COLUMN(column, type, constraint, filler, feature, meaning)                                 \
    IDENTIFIER("inbox.columns." #column, inbox.column, 0, #column, 1, 63, "column of " meaning),
    RCPT_INBOX_COLUMNS(COLUMN)
#undef COLUMN
        IDENTIFIER("inbox.columns.created_at", inbox.created_at, NULLABLE, "created_at", 1, 63,
                   "column of the time of insertion (timestamptz), which must never change; "
                   "`migrate` never adds it; an existing table without it has no retention"),
    IDENTIFIER("inbox.columns.variant", inbox.variant, NULLABLE, "variant", 1, 63,
               "column of the message's variant, for `counters.by`; written by INSERT, never "
               "changed, never added by `migrate`"),
    IDENTIFIER("inbox.columns.channel", inbox.channel, NULLABLE, "channel", 1, 63,
               "the same for its channel"),
    IDENTIFIER("inbox.columns.gateway", inbox.gateway, NULLABLE, "gateway", 1, 63,
               "the same for the gateway that sends it"),
    IDENTIFIER("inbox.columns.customer_id", inbox.customer_id, NULLABLE, "customer_id", 1, 63,
               "column of the customer, for `receiptd erase --customer` and `counters.groups`; "
               "`migrate` never adds or changes it in an existing table; an index helps"),
    IDENTIFIER("inbox.columns.logical_id", inbox.logical_id, NULLABLE, "logical_id", 1, 63,
               "column of the logical message that a message attempts, for `counters.groups`: the "
               "first attempt's id, NULL for itself; written by INSERT, never changed"),
    IDENTIFIER("inbox.columns.recipient", inbox.recipient, NULLABLE, "recipient", 1, 63,
               "column of the person's id at the gateway (text), for receipts that mean all "
               "messages to a person up to a time; needs `inbox.columns.gateway` for the account; "
               "not set: such receipts are ignored"),
    IDENTIFIER("inbox.columns.sent_at", inbox.sent_at, NULLABLE, "sent_at", 1, 63,
               "column of the time of sending (timestamptz), for such receipts; NULL: not sent; "
               "not set: `created_at`"),
    CHOICE("inbox.targeted", inbox.count_targeted, 0, "trigger", targeted_policies,
           "who counts new rows: `trigger` puts an insert trigger on the table, `none` leaves "
           "TARGETED uncounted"),
    DURATION("inbox.retention", inbox.retention_ms, 0, "0s", 0, 3650 * DAY,
             "how long messages stay after their insertion, until `receiptd retire` deletes them; "
             "counters stay; 0s: without limit"),
    RECORDS("inbox.retention_overrides", inbox.overrides, inbox.overrides_count, 0, "[]", 0, 1000,
            rcpt_config_retention_record, "other retentions for campaigns and organisations"),
    RECORDS(
        "inbox.expiry", inbox.expiry, inbox.expiry_count, 0, "[]", 0, 100,
        rcpt_config_expiry_record,
        "when `receiptd expire` stops waiting for a final status; the first fitting entry counts"),
    DURATION("inbox.remember_retired", inbox.remember_ms, RELOADABLE, "30d", 0, 3650 * DAY,
             "how long the id of a deleted message is kept, to recognise late receipts"),
    DURATION("inbox.alias_retention", inbox.alias_retention_ms, 0, "0s", 0, 3650 * DAY,
             "age at which `receiptd retire` deletes aliases of messages that are gone and no "
             "longer remembered; 0s: never"),
    INTEGER("inbox.fillfactor", inbox.fillfactor, NULLABLE, "50", 10, 100,
            "percentage to which pages of the own table are filled; not set: 50, which leaves room "
            "for one more version of each row, so updates need no new index entries; 40 with "
            "`counters.times`, whose rows are longer"),
    INTEGER("inbox.recent_rows", inbox.recent_rows, 0, "2000000", 0, 1000000000,
            "newest messages that get an index of their own from `receiptd maintain`, in a table "
            "with `created_at`, ids in no order of time and twice as many messages. With "
            "partitions by `created_at`, or many by time-ordered ids: messages of the newest "
            "partitions, which are read first. 0: none"),
    CHOICE("inbox.partitions", inbox.partitions, 0, "none", partition_makers,
           "who partitions the inbox: `own` lets `receiptd maintain` make and drop partitions of "
           "receiptd's own table, by the time in message ids; `external` is another tool"),
    CHOICE("inbox.ids", inbox.ids, 0, "any", id_kinds,
           "kind of message ids: `uuidv7` (lower case), `ulid` (upper case) and `ksuid` begin with "
           "the time, as `inbox.partitions: own` needs; `snowflake` grows with it"),
    DURATION(
        "inbox.partition_span", inbox.partition_span_ms, NULLABLE, "1d", HOUR, 122 * DAY,
        "time of one partition's messages; not set: the fewest whole days of which 30 hold "
        "`inbox.retention` (3d for 90d); 1d without it, or if `inbox.partitions` is not `own`"),
    INTEGER("inbox.probe_partitions", inbox.probe_partitions, 0, "8", 1, 100000,
            "partitions in which a receipt may be looked up where its message id does not lead to "
            "one. A table with more is refused, unless it has a recent set and is partitioned by "
            "`inbox.columns.created_at` or by ids that begin with the time. docs/retention.md"),
    BOOLEAN("inbox.drop_detached", inbox.drop_detached, 0, "false",
            "with `inbox.partitions: external`: `receiptd maintain` drops a detached partition, in "
            "a run after the one that booked it"),
};

static const cyaml_strval_t machine_policies[] = {
    {"flag", RCPT_MACHINE_FLAG},
    {"count", RCPT_MACHINE_COUNT},
    {"ignore", RCPT_MACHINE_IGNORE},
};
/* core/machine.c applies the policies; a reload may change all of them. */
static const struct rcpt_config_row machine_rows[] = {
    CHOICE("machine.opens", machine.opens, RELOADABLE, "flag", machine_policies,
           "opens with the flag MACHINE_OPEN: `flag` sets the flag alone, `count` counts OPENED as "
           "well, `ignore` drops them"),
    CHOICE("machine.clicks", machine.clicks, RELOADABLE, "flag", machine_policies,
           "the same for clicks with the flag BOT_CLICK"),
    RECORDS("machine.rules", machine.rules, machine.rule_count, RELOADABLE, "[]", 0, 1000,
            rcpt_config_machine_record,
            "other policies for some receipts; the first fitting entry counts"),
    TEXT("machine.networks", machine_networks, NULLABLE | RELOADABLE,
         "${RECEIPTD_LISTS:-/etc/receiptd/}scanners.txt", 1, 4096,
         "file with networks of scanners, one a line; the intake takes their opens and clicks for "
         "those of machines; a reload reads it again"),
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
            "whether `receiptd run` also takes webhooks"),
    TEXT("intake.listen", intake.listen, 0, "127.0.0.1:8080", 2, 120,
         "address to listen on: `host:port`, `[IPv6]:port`, `:port` for all"),
    TEXT("intake.metrics_listen", intake.metrics_listen, 0, "127.0.0.1:9465", 0, 255,
         "address of /metrics, /livez, /readyz, /startupz and /statusz of `receiptd intake`, with "
         "token and certificate of `http`; \"\": none; `receiptd run` has them on `http.listen`"),
    BOOLEAN("intake.reuse_port", intake.reuse_port, 0, "false",
            "several processes share the address; the kernel spreads connections"),
    TOPIC("intake.topic", intake.topic, NULLABLE, "dlr-events", 1, 249,
          "topic of the receipts; not set: the first of `kafka.topics` that is native"),
    TEXT("intake.dead_letter_topic", intake.dead_letter_topic, 0, "dlr-dead", 1, 249,
         "topic for what cannot be understood; a header has the reason"),
    CHOICE("intake.dead_letters", intake.dead_letters, 0, "raw", letter_payloads,
           "contents of a dead letter: the bytes (`raw`), the bytes with runs of seven or more "
           "digits hidden (`masked`), or nothing (`none`)"),
    TEXT("intake.compression", intake.compression, 0, "lz4", 2, 6,
         "codec of the records: none, gzip, snappy, lz4 or zstd"),
    INTEGER("intake.batch.max_events", intake.max_events, 0, "1000", 1, 10000,
            "receipts of one record"),
    SIZE("intake.batch.max_bytes", intake.max_bytes, 0, "512KiB", 4 * KIB, 8 * MIB,
         "bytes of one record, below the topic's `max.message.bytes`"),
    DURATION("intake.batch.linger", intake.linger_ms, 0, "4ms", 0, SECOND,
             "how long a receipt may wait for others while its partition is busy; never when idle"),
    SIZE("intake.memory", intake.memory_bytes, 0, "128MiB", 4 * MIB, 16 * GIB,
         "half for bodies of requests, half for what is made of them and for records that wait for "
         "Kafka; above it requests get 503"),
    DURATION("intake.ack_timeout", intake.ack_timeout_ms, 0, "8s", 100, 5 * MINUTE,
             "how long Kafka may take to acknowledge; then the gateway is asked to send again; "
             "below the gateways' own time-outs"),
    TEXT("intake.dsn", intake.dsn, NULLABLE | SECRET | RELOADABLE,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}intake-dsn", 1, 65536,
         "connection string for look-ups of aliases, as the role of `receiptd migrate "
         "--intake-role`; not set: `postgres.dsn`; a reload applies to new connections of "
         "`receiptd run`, `receiptd intake` needs a restart"),
    CHOICE("intake.alias", intake.alias, 0, "optional", alias_policies,
           "look-up in `message_alias` of receipts that have only the gateway's id: while the "
           "database is away, `optional` continues with the gateway's id and `required` answers "
           "503; `off` never looks"),
    DURATION("intake.alias_timeout", intake.alias_timeout_ms, 0, "1s", 10, MINUTE,
             "limit for one look-up"),
    INTEGER("intake.alias_cache", intake.alias_cache, 0, "100000", 20000, 100000000,
            "remembered aliases"),
    INTEGER("intake.replay_keys", intake.replay_keys, 0, "200000", 1000, 100000000,
            "remembered signed requests; a copy is answered and not counted"),
    TEXT("intake.trusted_proxies", intake.trusted_proxies, NULLABLE, "10.0.0.0/8, ::1", 1, 1024,
         "addresses or networks whose `X-Forwarded-For` is believed, separated by commas"),
    TEXT("intake.tls.certificate", intake.tls_certificate, NULLABLE,
         "/etc/receiptd/tls/fullchain.pem", 1, 4096,
         "PEM file with certificate and chain; checked for a change every 10 s"),
    TEXT("intake.tls.key", intake.tls_key, NULLABLE, "/etc/receiptd/tls/key.pem", 1, 4096,
         "PEM file with the private key; not set: the certificate's file"),
    /* Limits of one client's cost: the intake faces the Internet. */
    SIZE("intake.limits.body", intake.limits.body_bytes, 0, "1MiB", KIB, 8 * MIB,
         "bytes of a request, sent and decompressed; above: 413"),
    SIZE("intake.limits.headers", intake.limits.header_bytes, 0, "16KiB", KIB, 64 * KIB,
         "bytes of request line and headers; above: 414 or 431"),
    INTEGER("intake.limits.connections", intake.limits.connections, 0, "4096", 1, 1000000,
            "open connections; above it the server closes those that never end a request, then the "
            "idlest"),
    INTEGER("intake.limits.connections_per_source", intake.limits.connections_per_source, 0, "0", 0,
            1000000, "connections of one address; 0: no limit, as a proxy needs"),
    INTEGER("intake.limits.pipelined", intake.limits.pipelined, 0, "16", 1, 1000,
            "requests of one connection that may wait for answers"),
    INTEGER("intake.limits.rate_per_source", intake.limits.rate_per_source, 0, "50", 0, 1000000,
            "unverified requests of one address (IPv6: of its /64) per second; above: 429 for all "
            "its requests, before they are read; private addresses that are no trusted proxies do "
            "not count; 0: no limit"),
    INTEGER("intake.limits.rate_per_account", intake.limits.rate_per_account, 0, "0", 0, 1000000,
            "verified requests of one account per second; above: 429; 0: no limit"),
    DURATION("intake.limits.header_time", intake.limits.header_ms, 0, "10s", 100, 10 * MINUTE,
             "from connection or first byte to the end of the headers; then 408"),
    DURATION("intake.limits.body_time", intake.limits.body_ms, 0, "30s", 100, 10 * MINUTE,
             "for the body; then 408"),
    DURATION("intake.limits.idle_time", intake.limits.idle_ms, 0, "75s", 100, HOUR,
             "time without a request; then the connection is closed"),
    DURATION("intake.limits.write_time", intake.limits.write_ms, 0, "20s", 100, 10 * MINUTE,
             "time in which a client takes nothing of an answer; then it is cut off"),
    RECORDS("intake.accounts", intake.accounts, intake.accounts_count, RELOADABLE, "[]", 0, 10000,
            rcpt_config_account_record,
            "one entry for each gateway and tenant; examples: docs/gateways.md"),
};

/* Keys of the interface count for `receiptd serve`, and for `run` where serve.enabled is set. */
static const struct rcpt_config_row serve_rows[] = {
    BOOLEAN("serve.enabled", serve.enabled, 0, "false",
            "whether `receiptd run` also answers as `receiptd serve`"),
    TEXT("serve.listen", serve.listen, 0, "127.0.0.1:8322", 2, 120,
         "address to listen on, with the certificate of `http`"),
    TEXT("serve.dsn", serve.dsn, NULLABLE | SECRET | RELOADABLE,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}serve-dsn", 1, 65536,
         "connection string, as the role of `migrate --serve-role`; not set: `postgres.dsn`"),
    TEXT("serve.operate_dsn", serve.operate_dsn, NULLABLE | SECRET | RELOADABLE,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}operate-dsn", 1, 65536,
         "connection string for changes by operators, as the role of `migrate --role`; not set: no "
         "changes"),
    INTEGER(
        "serve.connections", serve.connections, 0, "2", 2, 8,
        "connections that read, one for each question under way; one caller may use all but one"),
    DURATION("serve.statement_timeout", serve.statement_timeout_ms, 0, "5s", 100, HOUR,
             "limit of a question; then 503"),
    TEXT("serve.metrics_listen", serve.metrics_listen, 0, "127.0.0.1:9466", 0, 255,
         "as `intake.metrics_listen`, for `receiptd serve`"),
    BOOLEAN("serve.open", serve.open, 0, "false",
            "asks for no token: for a demonstration, on a loopback address only"),
    BOOLEAN("serve.page", serve.page, 0, "true",
            "whether people get a page beside the interface for programs"),
    TEXT("serve.link_secret", serve.link_secret, NULLABLE | SECRET,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}link-secret", 16, 4096,
         "key that signs the links of `receiptd serve link`; not set: no links"),
    TEXT("serve.hosts", serve.hosts, NULLABLE, "a.internal", 1, 1024,
         "names allowed in `Host`; not set: any, on loopback this machine's"),
    TABLE("serve.campaigns", serve.campaigns, NULLABLE, "marketing.campaigns", 3, 127,
          "view of campaigns, `schema.view`, with `id`, `name` and optionally `date` and `org_id`; "
          "the role of `serve.dsn` may read it"),
    TEXT("serve.trusted_proxies", serve.trusted_proxies, NULLABLE, "::1", 1, 999,
         "addresses whose `proxy_header` counts, separated by commas"),
    TEXT("serve.proxy_header", serve.proxy_header, NULLABLE, "X-Organisation", 1, 64,
         "header in which a trusted proxy names the organisation that may be read; `*`: all"),
};

/* After the deadline open batches are given up; Kafka delivers their receipts again. */
static const struct rcpt_config_row shutdown_rows[] = {
    DURATION("shutdown.deadline", shutdown.deadline_ms, RELOADABLE, "20s", 100, HOUR,
             "how long open batches may take after SIGTERM"),
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
/* The whole section is reloadable, so that an operator can look closer while it runs. */
static const struct rcpt_config_row log_rows[] = {
    CHOICE("log.level", log.level, RELOADABLE, "info", log_levels,
           "least severe level that is written"),
    CHOICE("log.format", log.format, RELOADABLE, "logfmt", log_formats, "form of a line"),
    DURATION("log.stats_interval", log.stats_interval_ms, RELOADABLE, "10s", 0, DAY,
             "how often figures are written; 0s: never"),
    MAP("log.levels", log.levels, log.levels_count, RELOADABLE, RCPT_LOG_MAX_COMPONENTS,
        pair_record, "levels of components, `kafka: debug`; components: " RCPT_CONFIG_COMPONENTS),
    INTEGER("log.burst", log.burst, RELOADABLE, "50", 0, 1000000,
            "lines of one kind within 10 s; more are counted and summed up in one; 0: no limit"),
    CHOICE("log.message_ids", log.plain_message_ids, RELOADABLE, "hash", message_id_forms,
           "how lines show message ids: as a `hash`, or `plain`"),
};

/* One listener for machines. The intake and serve have listeners of their own. */
static const struct rcpt_config_row http_rows[] = {
    TEXT("http.listen", http.listen, ACTIVE, "127.0.0.1:9464", 0, 255,
         "address of /metrics, /livez, /readyz, /startupz and /statusz; \"\": none"),
    TEXT("http.tls_certificate", http.tls_certificate, NULLABLE, "/etc/receiptd/tls.crt", 1, 4096,
         "PEM file with certificate and chain, for HTTPS; a reload reads it again"),
    TEXT("http.tls_key", http.tls_key, NULLABLE, "/etc/receiptd/tls.key", 1, 4096,
         "PEM file with the private key"),
    TEXT("http.token", http.token, NULLABLE | SECRET,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}http-token", 16, 4096,
         "bearer token for /metrics and /statusz; the probes stay open"),
    TEXT("http.runs_token", http.runs_token, NULLABLE | SECRET,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}runs-token", 16, 4096,
         "bearer token for POST /runs; not set: POST /runs is refused"),
};

static const struct rcpt_config_row control_rows[] = {
    TEXT("control.socket", control.socket, 0, "/run/receiptd/control.sock", 0, 96,
         "path of the socket, for the same user only; \"\": none; no socket without its folder"),
};

/* Without an endpoint nothing of this section is used. */
static const struct rcpt_config_row tracing_rows[] = {
    TEXT("tracing.endpoint", tracing.endpoint, NULLABLE, "http://127.0.0.1:4318/v1/traces", 8, 2048,
         "URL for OTLP over HTTP (JSON), with path, without user name; not set: no traces"),
    RATIO("tracing.sample", tracing.sample_millionths, RELOADABLE, "0.01", 0, 1000000,
          "traced share of work without a sampled parent; work with one is always traced"),
    TEXT("tracing.token", tracing.token, NULLABLE | SECRET,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}tracing-token", 1, 4096,
         "bearer token for the collector"),
    SIZE("tracing.queue", tracing.queue_bytes, 0, "4MiB", 64 * KIB, GIB,
         "memory for spans that wait for the collector; further spans are dropped and counted"),
    DURATION("tracing.timeout", tracing.timeout_ms, 0, "10s", 100, 10 * MINUTE,
             "limit of one request to the collector"),
};

static const struct rcpt_config_row timeline_rows[] = {
    DURATION("timeline.retention", timeline.retention_ms, RELOADABLE, "0s", 0, 365 * DAY,
             "how long the history of each receipt is kept; 0s: none is written"),
};

static const struct rcpt_config_row dead_letters_rows[] = {
    DURATION("dead_letters.retention", dead_letters.retention_ms, RELOADABLE, "0s", 0, 3650 * DAY,
             "how long dead letters are kept; 0s: without limit"),
};

static const cyaml_strval_t beyond_open_runs[] = {
    {"refuse", RCPT_BEYOND_REFUSE},
    {"defer", RCPT_BEYOND_DEFER},
    {"drop", RCPT_BEYOND_DROP},
};
static const cyaml_strval_t beyond_subject_cap[] = {
    {"wait", RCPT_BEYOND_WAIT},
    {"pass", RCPT_BEYOND_PASS},
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
            "actions under way in one instance"),
    /* Actions: how often the scheduler asks, how long a claim lasts, how failures are retried, and
     * how fast each organisation may go. */
    DURATION("actions.poll_interval", actions.poll_interval_ms, RELOADABLE, "200ms", 10,
             10 * SECOND, "how often an idle shard polls for due actions"),
    INTEGER("actions.begin_share", actions.begin_share, RELOADABLE, "15", 1, 100,
            "percentage of an instance's time for making runs that receipts began, while more "
            "receipts wait; 100: no limit, which slows receipts down"),
    DURATION("actions.lease", actions.lease_ms, RELOADABLE, "60s", 200, HOUR,
             "time without a result after which an action is claimed again; more than twice any "
             "time-out of an endpoint"),
    DURATION("actions.lane_lease", actions.lane_lease_ms, RELOADABLE, "10s", 200, 10 * MINUTE,
             "time after which the lanes of an unseen instance go to the others"),
    DURATION("actions.retry_min", actions.retry_min_ms, RELOADABLE, "1s", 1, HOUR,
             "shortest wait before another attempt"),
    DURATION("actions.retry_max", actions.retry_max_ms, RELOADABLE, "1h", SECOND, 30 * DAY,
             "longest wait, even where the receiver asks for more"),
    INTEGER("actions.max_attempts", actions.max_attempts, RELOADABLE, "12", 1, 1000,
            "attempts after which an action is dead"),
    DURATION("actions.max_age", actions.max_age_ms, RELOADABLE, "3d", SECOND, 365 * DAY,
             "age at which a failing action is dead"),
    INTEGER("actions.breaker_failures", actions.breaker_failures, RELOADABLE, "5", 1, 100000,
            "consecutive failures after which an endpoint is left alone"),
    DURATION("actions.breaker_open", actions.breaker_open_ms, RELOADABLE, "30s", 10, HOUR,
             "how long it is left alone, before one call tries again"),
    DURATION(
        "actions.disable_after", actions.disable_after_ms, RELOADABLE, "5d", 0, 365 * DAY,
        "how long an endpoint may fail; then it is disabled until a restart or reload; 0: never"),
    INTEGER("actions.org_rate", actions.org_rate, RELOADABLE, "0", 0, 60000000,
            "attempts per minute of each organisation; 0: no limit"),
    INTEGER("actions.org_burst", actions.org_burst, RELOADABLE, "1", 1, 1000000,
            "attempts of it at once"),
    INTEGER("actions.org_concurrency", actions.org_concurrency, RELOADABLE, "0", 0, 1000000,
            "running actions of an organisation, over all instances; 0: no limit"),
    INTEGER("actions.rate", actions.rate, RELOADABLE, "0", 0, 60000000,
            "attempts per minute of all organisations; 0: no limit"),
    INTEGER("actions.burst", actions.burst, RELOADABLE, "1", 1, 1000000, "attempts at once"),
    INTEGER("actions.concurrency", actions.concurrency, RELOADABLE, "0", 0, 1000000,
            "running actions over all instances; 0: no limit"),
    DURATION("actions.retention", actions.retention_ms, RELOADABLE, "7d", 0, 3650 * DAY,
             "how long finished actions and runs are kept; dead ones stay"),
    DURATION("actions.once_retention", actions.once_retention_ms, RELOADABLE, "0s", 0, 3650 * DAY,
             "how long `once_per` remembers a finished run, and a message for which it has fired, "
             "at least `actions.retention`; then they may begin another; 0s: without limit"),
    INTEGER("actions.open_runs", actions.open_runs, RELOADABLE, "0", 0, 10000000,
            "runs of an organisation that may be open at once, over all instances; 0: no cap"),
    CHOICE("actions.beyond_open_runs", actions.beyond_open_runs, RELOADABLE, "refuse",
           beyond_open_runs,
           "runs beyond that cap: `refuse` and `drop` do not begin them, and `drop` answers as if "
           "all were well; `defer` lets them wait"),
    RECORDS("actions.subject_caps", actions.subject_caps, actions.subject_caps_count, RELOADABLE,
            "[]", 0, 8, rcpt_config_subject_cap_record,
            "successful calls that a subject may have, over all pipelines"),
    CHOICE("actions.beyond_subject_cap", actions.beyond_subject_cap, RELOADABLE, "wait",
           beyond_subject_cap,
           "calls beyond these caps: they `wait` for the next day or week, or the run may `pass` "
           "them over"),
    TEXT("actions.zone", actions.zone, RELOADABLE, "UTC", 1, 63,
         "time zone of a person's hours and days, by a name that PostgreSQL knows"),
    TEXT("actions.zone_field", actions.zone_field, NULLABLE | RELOADABLE, "time_zone", 1, 63,
         "field that holds the person's own zone, such as Europe/Berlin: a member of an import's "
         "data, else a column of the inbox; not set, or no name of a zone: `actions.zone`"),
    TEXT("actions.lookup_dsn", actions.lookup_dsn, NULLABLE | SECRET | RELOADABLE,
         "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}lookup-dsn", 1, 65536,
         "connection string of look-ups, of a role that may only read what they name; not set: "
         "`postgres.dsn`"),
    DURATION("actions.lookup_timeout", actions.lookup_timeout_ms, RELOADABLE, "2s", 10, MINUTE,
             "longest look-up for the runs of a claim, and at most a quarter of `actions.lease`"),
};

/* Three lists that make one ladder; check.c treats them as one key. */
static const cyaml_strval_t stream_modes[] = {
    {"changes", RCPT_STREAM_CHANGES},
    {"state", RCPT_STREAM_STATE},
};
static const struct rcpt_config_row stream_rows[] = {
    TEXT("stream.topic", stream.topic, NULLABLE | RELOADABLE, "message-status", 1, 249,
         "topic to which every transition of a message is published; not set: none is"),
    CHOICE("stream.mode", stream.mode, RELOADABLE, "changes", stream_modes,
           "`changes` publishes a record for each transition, `state` the message as it is then, "
           "for a compacted topic"),
    LIST("stream.columns", stream.columns, stream.columns_count, RELOADABLE,
         RCPT_CONFIG_STREAM_COLUMNS,
         "columns of the inbox that each record carries, as texts of up to 1000 characters"),
};

static const struct rcpt_config_row suppression_rows[] = {
    IDENTIFIER("suppression.subject", suppression.subject, NULLABLE, "customer_id", 1, 63,
               "column of the inbox that says the person; not set: nobody is suppressed"),
    KEY(LIST, "suppression.on", LIST_AT(suppression.on, suppression.on_size), 0,
        "[UNSUBSCRIBED,COMPLAINED,BOUNCED_HARD,BOUNCED_HARD_EMAIL]", 0, RCPT_CONFIG_SUPPRESSING,
        "statuses and flags that suppress the person of their message"),
    KEY(LIST, "suppression.soft", LIST_AT(suppression.soft, suppression.soft_size), 0,
        "[BOUNCED_SOFT]", 0, RCPT_CONFIG_SUPPRESSING,
        "statuses and flags that suppress where `soft_count` of them come within `soft_within`"),
    INTEGER("suppression.soft_count", suppression.soft_count, 0, "3", 1, 1000,
            "how many of `soft` suppress together"),
    DURATION("suppression.soft_within", suppression.soft_within_ms, 0, "30d", 0, 3650 * DAY,
             "the time from the first of them to the last"),
};

static const struct rcpt_config_row ladder_rows[] = {
    RECORDS("ladder.statuses", ladder_definition.statuses, ladder_definition.status_count,
            RELOADABLE, NULL, 1, RCPT_LADDER_MAX_STATUSES, rcpt_config_status_record,
            "statuses, with parents before or after their children"),
    RECORDS("ladder.flags", ladder_definition.flags, ladder_definition.flag_count, RELOADABLE, NULL,
            0, RCPT_LADDER_MAX_FLAGS, rcpt_config_flag_record,
            "marks of a message beside its status"),
    RECORDS("ladder.overrides", ladder_definition.overrides, ladder_definition.override_count,
            RELOADABLE, NULL, 0, RCPT_LADDER_MAX_OVERRIDES, rcpt_config_override_record,
            "statuses that mean another one on some channel"),
};

#define ROWS(section) section##_rows, RCPT_COUNT_OF(section##_rows)

/* The order of sections on the pages and in `check-config --print`. "" holds the keys without a
 * section. */
static const struct rcpt_config_section sections[] = {
    {"kafka", "The source of receipts.", ROWS(kafka)},
    {"postgres", "The database of statuses and counters.", ROWS(postgres)},
    {"", "How receipts are spread, and what happens to receipts of messages without a row.",
     ROWS(top)},
    {"batch",
     "The receipts that arrive during one transaction make the next batch, up to these limits.",
     ROWS(batch)},
    {"memory", "Back-pressure begins where the budget ends.", ROWS(memory)},
    {"progress", "How positions move, and how they are compared with the database.",
     ROWS(progress)},
    {"parked", "Receipts whose message row does not exist yet.", ROWS(parked)},
    {"counters", "Every transaction appends what it counted; the roll-up adds it to the totals.",
     ROWS(counters)},
    {"dedup", "A repeated receipt counts as a duplicate and not as an event.", ROWS(dedup)},
    {"inbox", "The table of messages: receiptd's own, or an existing one.", ROWS(inbox)},
    {"machine",
     "How opens and clicks by machines count: receipts with the flag MACHINE_OPEN or BOT_CLICK. "
     "docs/rules.md.",
     ROWS(machine)},
    {"intake",
     "The intake takes webhooks of gateways and writes them to Kafka: `receiptd intake`, or within "
     "`run` where it is enabled.",
     ROWS(intake)},
    {"serve",
     "Answers about campaigns and messages, for people and programs: `receiptd serve`, or within "
     "`run` where it is enabled.",
     ROWS(serve)},
    {"shutdown", "How the process ends.", ROWS(shutdown)},
    {"log", "Log lines go to the standard error output.", ROWS(log)},
    {"http", "Metrics, health and status for machines.", ROWS(http)},
    {"control", "The socket that `receiptd ctl` talks to.", ROWS(control)},
    {"tracing", "Spans of transactions and of webhooks go to a collector that speaks OTLP.",
     ROWS(tracing)},
    {"timeline", "The history of every receipt, for `receiptd explain`.", ROWS(timeline)},
    {"dead_letters", "Receipts that could not be applied: `receiptd dead-letters`.",
     ROWS(dead_letters)},
    {"actions", "How actions of `pipelines` are carried out. docs/actions.md.", ROWS(actions)},
    {"stream", "Every transition of a message, as a record in Kafka. docs/stream.md.",
     ROWS(stream)},
    {"suppression", "Persons who are to get nothing more. docs/suppression.md.", ROWS(suppression)},
    {"ladder",
     "The tree of statuses. A ladder in the file replaces the whole default one. A reload takes "
     "additions after `receiptd migrate`, and refuses other changes.",
     ROWS(ladder)},
};
static const struct rcpt_config_table table = {sections, RCPT_COUNT_OF(sections), sizeof(RECORD)};

const struct rcpt_config_table *rcpt_config_table(void)
{
    return &table;
}
