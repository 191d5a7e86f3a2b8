/* The configuration: one YAML file, declared once in a table (src/config/table.c).
 *
 * From the table come parsing (libcyaml), checks with line and column, `check-config --print`,
 * docs/configuration.md and config/receiptd.yaml. `${NAME}` in a value is replaced from the
 * environment, `file:PATH` in a secret is read from the file. Secrets are never printed. After
 * loading only a reload changes it (rcpt_config_take_over). Defaults and ranges stand in the table.
 */
#ifndef RECEIPTD_CONFIG_CONFIG_H
#define RECEIPTD_CONFIG_CONFIG_H

#include <stdint.h>
#include <stdio.h>

#include "receiptd/base/log.h"
#include "receiptd/config/inbox_columns.h"
#include "receiptd/core/fold_kind.h"
#include "receiptd/core/id_time.h"
#include "receiptd/core/ladder.h"
#include "receiptd/core/machine.h"
#include "receiptd/gateways/adapter.h"
#include "receiptd/http/webhook.h"

enum rcpt_unknown_policy { RCPT_UNKNOWN_PARK, RCPT_UNKNOWN_INSERT, RCPT_UNKNOWN_DEAD_LETTER };
enum rcpt_gap_policy { RCPT_GAP_HALT, RCPT_GAP_SKIP };
enum rcpt_alias_policy { RCPT_ALIAS_OPTIONAL, RCPT_ALIAS_REQUIRED, RCPT_ALIAS_OFF };
enum rcpt_partitions { RCPT_PARTITIONS_NONE, RCPT_PARTITIONS_OWN, RCPT_PARTITIONS_EXTERNAL };
enum rcpt_letter_payload { RCPT_LETTER_RAW, RCPT_LETTER_MASKED, RCPT_LETTER_NONE };

struct rcpt_config_pair {
    char *name;
    char *value;
    unsigned line, column; /* of the value in the file, for errors found later */
};

struct rcpt_config_retention { /* an entry of inbox.retention_overrides */
    char *campaign, *org_id;   /* one of them; NULL: the other */
    int64_t keep_ms;           /* 0: without limit */
};

struct rcpt_config_expiry { /* an entry of inbox.expiry */
    char *column, *value;   /* of the messages that it is for; NULL: of all */
    char *status, *to;      /* NULL: SENT, UNKNOWN */
    int64_t after_ms;       /* 0: never */
};

enum rcpt_beyond_open_runs { RCPT_BEYOND_REFUSE, RCPT_BEYOND_DEFER, RCPT_BEYOND_DROP };
enum rcpt_beyond_subject_cap { RCPT_BEYOND_WAIT, RCPT_BEYOND_PASS };
enum rcpt_cap_unit { RCPT_CAP_DAY, RCPT_CAP_WEEK };
enum rcpt_stream_mode { RCPT_STREAM_CHANGES, RCPT_STREAM_STATE };
#define RCPT_CONFIG_STREAM_COLUMNS 16u
#define RCPT_CONFIG_SUPPRESSING    32u

enum rcpt_fold_source { RCPT_FOLD_TRANSITIONS, RCPT_FOLD_TOPIC };
struct rcpt_fold_collect_config { /* an entry of folds.collect */
    char *name;
    char *field; /* NULL: the same as the name */
    enum rcpt_fold_kind kind;
};

#define RCPT_FOLD_COLUMN_PREFIX                                                                    \
    "inbox." /* of fields of transitions that the platform's table has */

struct rcpt_fold_config { /* an entry of folds (folds.c) */
    char *name;
    enum rcpt_fold_source source;
    char *topic;                    /* that is read; NULL unless source is topic */
    struct rcpt_config_pair *match; /* field and values, separated by | */
    size_t match_count;
    char **group_key;
    size_t group_key_count;
    int64_t window_ms, max_hold_ms;
    uint64_t max_events, max_values;
    struct rcpt_fold_collect_config *collect;
    size_t collect_count;
    bool funnel;
    struct {
        struct {
            char *topic, *key; /* topic NULL: a webhook */
        } kafka;
        struct {
            char *url; /* NULL: Kafka */
            char **secrets;
            size_t secrets_count;
            int64_t timeout_ms, retry_min_ms, retry_max_ms, max_age_ms;
            unsigned concurrency;
            bool allow_private;
        } webhook;
    } publish;
};

struct rcpt_config_endpoint { /* an entry of actions.endpoints */
    char *name, *url;
    char **secrets, **headers;
    unsigned secrets_count, headers_count;
    int64_t timeout_ms, connect_timeout_ms;
    uint64_t max_answer_bytes;
    unsigned concurrency;
};

struct rcpt_config_subject_cap { /* an entry of actions.subject_caps */
    unsigned max;
    enum rcpt_cap_unit per;
};

/* A secret in an unsafe place, noted while it is read. */
enum rcpt_secret_source { RCPT_SECRET_LITERAL, RCPT_SECRET_ENVIRONMENT, RCPT_SECRET_OPEN_FILE };
#define RCPT_CONFIG_MOST_NOTES        20
#define RCPT_CONFIG_LONGEST_WINDOW_MS INT64_C(604800000) /* of dedup.window */
struct rcpt_secret_notes {
    struct rcpt_secret_note {
        char key[128];
        enum rcpt_secret_source source;
    } at[RCPT_CONFIG_MOST_NOTES];
    unsigned count;
};

/* A file that a secret was read from, or that librdkafka reads, and how it looked then. */
struct rcpt_config_source {
    char key[128];
    char *path;
    uint64_t mark, warned_mark;
    bool needs_restart; /* a client of librdkafka reads it once */
};
struct rcpt_config_sources {
    struct rcpt_config_source *at;
    size_t count;
};

struct pipelines;

struct rcpt_config {
    struct rcpt_fold_config *folds; /* folds */
    size_t folds_count;
    struct {
        char *brokers;                                /* kafka.brokers */
        struct rcpt_gateway_account_config *accounts; /* kafka.topics */
        size_t accounts_count;
        char **topics; /* their names */
        unsigned topics_count;
        char *group;                         /* kafka.group */
        char *instance_id;                   /* kafka.instance_id, NULL: dynamic member */
        struct rcpt_config_pair *properties; /* kafka.properties */
        unsigned properties_count;
        uint64_t fetch_budget_bytes;           /* kafka.fetch_budget */
        uint64_t batch_limit_bytes;            /* kafka.batch_limit */
        int64_t commit_interval_ms;            /* kafka.commit_interval */
        enum rcpt_gap_policy on_retention_gap; /* kafka.on_retention_gap: halt | skip */
        char **message_topics;                 /* kafka.message_topics */
        size_t message_topics_count;
    } kafka;
    struct {
        char *dsn;                    /* postgres.dsn, secret parts redacted when printed */
        unsigned connections;         /* postgres.connections; at most lanes */
        char *schema;                 /* postgres.schema */
        int64_t lock_timeout_ms;      /* postgres.lock_timeout */
        int64_t statement_timeout_ms; /* postgres.statement_timeout */
        int64_t connect_timeout_ms;   /* postgres.connect_timeout */
        int64_t
            zombie_timeout_ms; /* postgres.zombie_timeout: sessions that block longer are ended */
        int64_t retry_min_ms, retry_max_ms; /* postgres.retry_* */
    } postgres;
    unsigned lanes;                   /* lanes; a power of two */
    enum rcpt_unknown_policy unknown; /* unknown: park | insert | dead-letter */
    char *pipelines;                  /* pipelines, JSON; include/receiptd/config/pipelines.h */
    struct {
        uint64_t max_events; /* batch.max_events */
        uint64_t max_bytes;  /* batch.max_bytes */
        unsigned catch_up;   /* batch.catch_up */
        int64_t linger_ms;   /* batch.linger */
    } batch;
    struct {
        uint64_t budget_bytes; /* memory.budget: records fetched, queued, in flight */
    } memory;
    struct {
        int64_t verify_interval_ms; /* progress.verify_interval */
        int64_t idle_interval_ms;   /* progress.idle_interval */
        int64_t rewind_timeout_ms;  /* progress.rewind_timeout */
    } progress;
    struct {
        int64_t max_age_ms;       /* parked.max_age */
        int64_t alias_wait_ms;    /* parked.alias_wait: with `unknown: insert` */
        uint64_t max_rows;        /* parked.max_rows: above it nothing more is taken in */
        int64_t poll_interval_ms; /* parked.poll_interval; longer where probes cost more */
        uint64_t wake_limit;      /* parked.wake_limit: rows of one waking transaction */
    } parked;
    struct {
        int64_t rollup_interval_ms; /* counters.rollup_interval */
        uint64_t rollup_rows;       /* counters.rollup_rows */
        int64_t series_ms;          /* counters.series; 0: not counted */
        int64_t gateways_ms;        /* counters.gateways; 0: not counted */
        bool reasons;               /* counters.reasons */
        bool times;                 /* counters.times */
        bool links;                 /* counters.links */
        bool cost;                  /* counters.cost */
        char **by;                  /* counters.by: columns of the inbox; see rule_columns.h */
        size_t by_count;
        char **groups; /* counters.groups: messages that count as one; likewise */
        size_t groups_count;
    } counters;
    struct {
        int64_t window_ms; /* dedup.window; 0: every receipt counts */
    } dedup;
    struct {
        char *table; /* inbox.table: NULL = own message_inbox; "schema.table" otherwise */
#define RCPT_CONFIG_COLUMN(column, ...) char *column;
        RCPT_INBOX_COLUMNS(RCPT_CONFIG_COLUMN) /* inbox.columns.*: their names in that table */
        unsigned named;                        /* bit n: the file names the n-th of these columns */
        char *created_at;     /* inbox.columns.created_at; NULL: an existing table has none */
        char *variant;        /* inbox.columns.variant, for counters.by; NULL: not named */
        char *channel;        /* inbox.columns.channel; likewise */
        char *gateway;        /* inbox.columns.gateway; likewise */
        char *customer_id;    /* inbox.columns.customer_id; NULL: customers are not known */
        char *logical_id;     /* inbox.columns.logical_id, for counters.groups; NULL: not named */
        char *recipient;      /* inbox.columns.recipient; NULL: ranges are off */
        char *sent_at;        /* inbox.columns.sent_at; NULL: created_at */
        bool count_targeted;  /* inbox.targeted: trigger | none */
        int64_t retention_ms; /* inbox.retention; 0: messages are not deleted */
        struct rcpt_config_retention *overrides; /* inbox.retention_overrides */
        size_t overrides_count;
        struct rcpt_config_expiry *expiry; /* inbox.expiry; none: nothing expires */
        size_t expiry_count;
        int64_t remember_ms;             /* inbox.remember_retired */
        int64_t alias_retention_ms;      /* inbox.alias_retention; 0: aliases are not deleted */
        unsigned fillfactor;             /* inbox.fillfactor */
        uint64_t recent_rows;            /* inbox.recent_rows; 0: no recent set */
        enum rcpt_partitions partitions; /* inbox.partitions */
        enum rcpt_id_kind ids;           /* inbox.ids */
        int64_t partition_span_ms;       /* inbox.partition_span */
        unsigned probe_partitions;       /* inbox.probe_partitions */
        bool drop_detached;              /* inbox.drop_detached */
    } inbox;
    struct rcpt_machine_rules machine; /* machine.opens, .clicks, .rules */
    char *machine_networks;            /* machine.networks: path; NULL: no list */
    struct {
        int64_t retention_ms; /* dead_letters.retention; 0: they are not deleted */
    } dead_letters;
    struct {
        struct rcpt_gateway_account_config *accounts; /* intake.accounts */
        size_t accounts_count;
        bool enabled;                          /* intake.enabled: beside `run` in one process */
        char *listen;                          /* intake.listen */
        bool reuse_port;                       /* intake.reuse_port */
        char *topic;                           /* intake.topic, NULL: the first of kafka.topics */
        char *dead_letter_topic;               /* intake.dead_letter_topic */
        enum rcpt_letter_payload dead_letters; /* intake.dead_letters: raw | masked | none */
        char *compression;                     /* intake.compression */
        uint64_t max_events, max_bytes;        /* intake.batch.max_events, max_bytes */
        int64_t linger_ms;                     /* intake.batch.linger */
        uint64_t memory_bytes;                 /* intake.memory */
        int64_t ack_timeout_ms;                /* intake.ack_timeout */
        char *dsn;                             /* intake.dsn, NULL: postgres.dsn */
        enum rcpt_alias_policy alias;          /* intake.alias: required | optional | off */
        int64_t alias_timeout_ms;              /* intake.alias_timeout */
        uint64_t alias_cache;                  /* intake.alias_cache */
        uint64_t replay_keys;                  /* intake.replay_keys */
        char *metrics_listen;                  /* intake.metrics_listen */
        char *trusted_proxies;                 /* intake.trusted_proxies, separated by commas */
        char *tls_certificate, *tls_key;       /* intake.tls.* */
        struct {
            uint64_t body_bytes, header_bytes, connections, connections_per_source, pipelined;
            unsigned rate_per_source, rate_per_account;
            int64_t header_ms, body_ms, idle_ms, write_ms;
        } limits; /* intake.limits.* */
    } intake;
    struct {
        bool enabled;                 /* serve.enabled: beside `run` in one process */
        char *listen;                 /* serve.listen */
        char *dsn;                    /* serve.dsn, NULL: postgres.dsn */
        char *operate_dsn;            /* serve.operate_dsn, NULL: nothing is written */
        unsigned connections;         /* serve.connections */
        int64_t statement_timeout_ms; /* serve.statement_timeout */
        char *metrics_listen;         /* serve.metrics_listen */
        bool open;                    /* serve.open: everything without a token */
        bool page;                    /* serve.page: the page beside the interface */
        char *link_secret;            /* serve.link_secret, NULL: no links */
        char *hosts;                  /* serve.hosts, separated by commas; NULL: see table.c */
        char *trusted_proxies;        /* serve.trusted_proxies, separated by commas */
        char *proxy_header;           /* serve.proxy_header, NULL: none is believed */
        char *campaigns;              /* serve.campaigns: a view; NULL: campaigns have no names */
    } serve;
    struct {
        int64_t deadline_ms; /* shutdown.deadline */
    } shutdown;
    struct {
        enum rcpt_log_level level;       /* log.level */
        enum rcpt_log_format format;     /* log.format: logfmt | json */
        int64_t stats_interval_ms;       /* log.stats_interval; 0: no statistics line */
        struct rcpt_config_pair *levels; /* log.levels: component and level */
        unsigned levels_count;
        unsigned burst;         /* log.burst; 0: no limit */
        bool plain_message_ids; /* log.message_ids: hash | plain */
    } log;
    struct {
        char *listen;                    /* http.listen; "": none */
        char *tls_certificate, *tls_key; /* http.tls_*, files; NULL: plain HTTP */
        char *token;                     /* http.token; NULL: open */
        char *runs_token;                /* http.runs_token; NULL: POST /runs is refused */
    } http;
    struct {
        char *socket; /* control.socket; "": none */
    } control;
    struct {
        char *endpoint;             /* tracing.endpoint, NULL: nothing is traced */
        char *token;                /* tracing.token; NULL: none */
        uint64_t sample_millionths; /* tracing.sample */
        uint64_t queue_bytes;       /* tracing.queue */
        int64_t timeout_ms;         /* tracing.timeout */
    } tracing;
    struct {
        int64_t retention_ms; /* timeline.retention; 0: not written */
    } timeline;
    struct {
        struct rcpt_config_endpoint *endpoints; /* actions.endpoints */
        size_t endpoints_count;
        bool allow_private;     /* actions.allow_private */
        char *ca_file;          /* actions.ca_file; NULL: the system's */
        unsigned max_in_flight; /* actions.max_in_flight */
        int64_t poll_interval_ms, lease_ms, lane_lease_ms, retry_min_ms, retry_max_ms, max_age_ms,
            breaker_open_ms, disable_after_ms, retention_ms, once_retention_ms; /* actions.* */
        unsigned max_attempts, breaker_failures;
        unsigned begin_share; /* actions.begin_share: percent of the scheduler's time */
        unsigned org_rate, org_burst, org_concurrency; /* rates are per minute; 0: no limit */
        unsigned rate, burst, concurrency;
        unsigned open_runs;                           /* actions.open_runs; 0: no cap */
        enum rcpt_beyond_open_runs beyond_open_runs;  /* actions.beyond_open_runs */
        struct rcpt_config_subject_cap *subject_caps; /* actions.subject_caps */
        size_t subject_caps_count;
        enum rcpt_beyond_subject_cap beyond_subject_cap; /* actions.beyond_subject_cap */
        char *zone, *zone_field;   /* actions.zone; actions.zone_field, NULL: none */
        char *lookup_dsn;          /* actions.lookup_dsn, NULL: postgres.dsn */
        int64_t lookup_timeout_ms; /* actions.lookup_timeout */
    } actions;
    struct {
        char *topic;                /* stream.topic; NULL: off */
        enum rcpt_stream_mode mode; /* stream.mode: changes | state */
        char **columns;             /* stream.columns, of the inbox */
        size_t columns_count;
    } stream;
    struct {
        char *subject; /* suppression.subject, of the inbox; NULL: nobody is suppressed */
        char **on;     /* suppression.on: statuses and flags */
        size_t on_size;
        char **soft; /* suppression.soft, likewise */
        size_t soft_size;
        unsigned soft_count;    /* suppression.soft_count */
        int64_t soft_within_ms; /* suppression.soft_within */
    } suppression;
    struct rcpt_secret_notes secret_notes;
    struct rcpt_config_sources sources;
    struct pipelines *compiled; /* `pipelines`; NULL: none, or taken (pipelines_take) */
    struct rcpt_ladder *ladder; /* ladder.*, or the default one; owned */
    struct rcpt_ladder_definition ladder_definition; /* what `ladder` was made from */
    struct rcpt_network_set *scanners; /* contents of machine.networks; NULL: no list */
};

#define RCPT_CONFIG_DEFAULT_PATH "/etc/receiptd/receiptd.yaml"

/* Loads and checks. Errors are FATAL with EX_CONFIG (78; EX_NOINPUT 66 if the file cannot be read)
 * and begin with "FILE:LINE:COLUMN: "; unknown keys come with the nearest known one as hint. NULL
 * on error. */
RCPT_MUST_CHECK struct rcpt_config *rcpt_config_load(const char *path, struct rcpt_error *error);
/* The same for commands that need accounts and ladder only: other required keys may be missing, and
 * are NULL then. */
RCPT_MUST_CHECK struct rcpt_config *rcpt_config_load_for_try(const char *path,
                                                             struct rcpt_error *error);
/* The same from memory; `name` stands for the path in errors, and relative `file:` paths are taken
 * from its folder. */
RCPT_MUST_CHECK struct rcpt_config *rcpt_config_parse(const char *name, const char *text,
                                                      size_t size, struct rcpt_error *error);
void rcpt_config_free(struct rcpt_config *config);

/* The folders of src that write log lines under their own names; log.levels may name them. */
#define RCPT_CONFIG_COMPONENTS                                                                     \
    "actions, app, commands, config, folds, http, intake, kafka, messages, operate, postgres, "    \
    "receipts, trace"
bool rcpt_config_is_component(const char *name);
/* The levels of log.level and log.levels, log.format and the limits go into effect. */
void rcpt_config_apply_log(const struct rcpt_config *config);
/* Calls back for each setting that works and is weak: its key, what is wrong, what to do. */
typedef void (*rcpt_config_on_weak)(void *context, const char *key, const char *what,
                                    const char *hint);
void rcpt_config_find_weak(const struct rcpt_config *config, rcpt_config_on_weak on_weak,
                           void *context);
/* Logs each weak setting as a warning. The log must be open. */
void rcpt_config_warn(const struct rcpt_config *config);
/* Warns once of each file of a secret that has changed since it was read. */
void rcpt_config_warn_of_changed(const struct rcpt_config *config);
/* 16 hexadecimal digits over every key but secrets. Equal digits mean equal settings.
 */
void rcpt_config_hash(const struct rcpt_config *config, char text[17]);

/* ---- reload ---- */

#define RCPT_CONFIG_MAX_CHANGES 160

#define RCPT_CONFIG_MAX_NAMED 16

struct rcpt_config_changes { /* paths of keys whose values differ, in the order of the table */
    char named[RCPT_CONFIG_MAX_NAMED][192]; /* those of single properties of Kafka */
    unsigned named_count;
    const char *applied[RCPT_CONFIG_MAX_CHANGES];
    const char *needs_restart[RCPT_CONFIG_MAX_CHANGES];
    unsigned applied_count, needs_restart_count;
};

/* The topic to which the intake writes an account's receipts. NULL account: those of accounts that
 * name none. NULL: there is no such topic. */
const char *rcpt_config_intake_topic(const struct rcpt_config *config,
                                     const struct rcpt_gateway_account_config *account);
/* The value of a property of Kafka; NULL: not set. */
const char *rcpt_config_kafka_property(const struct rcpt_config *config, const char *name);
/* Exchanges the values of all keys that differ and may change while running; `config` then holds
 * the values in effect, and the caller frees `fresh`. The paths may point into `changes`. */
void rcpt_config_take_over(struct rcpt_config *config, struct rcpt_config *fresh,
                           struct rcpt_config_changes *changes);

/* The statuses of an entry of inbox.expiry, or the defaults. */
const char *rcpt_config_expiry_status(const struct rcpt_config_expiry *rule);
const char *rcpt_config_expiry_to(const struct rcpt_config_expiry *rule);
/* The entries as a parameter of SQL, a JSON array (sql/expiry/candidates.sql); the caller frees it.
 * They have been checked. */
char *rcpt_config_expiry_rules(const struct rcpt_config *config);

/* The effective configuration as YAML, every key, secrets as "<redacted>". Without secrets, loading
 * the printed text gives the same configuration. */
void rcpt_config_print(const struct rcpt_config *config, FILE *out);
/* docs/configuration.md and config/receiptd.yaml, made from the table. */
void rcpt_config_write_reference(FILE *out);
void rcpt_config_write_example(FILE *out);
/* JSON Schema of the file, for editors. */
void rcpt_config_write_schema(FILE *out);
/* receiptd.yaml(5), as roff. */
void rcpt_config_write_manual(FILE *out);

#endif
