/* Rows of some sections (table.h explains their columns). Parts of table.c, which would be too long
 * with them; AT and LIST_AT are its shorthands. */
#ifndef RECEIPTD_CONFIG_ROWS_SECTIONS_H
#define RECEIPTD_CONFIG_ROWS_SECTIONS_H

/* The section `serve`. */
#define RCPT_CONFIG_SERVE_ROWS                                                                     \
    {"serve.enabled",                                                                              \
     RCPT_CONFIG_CHOICE,                                                                           \
     0,                                                                                            \
     AT(serve.enabled),                                                                            \
     .initial = "false",                                                                           \
     CHOICES(booleans),                                                                            \
     .doc = "whether `receiptd run` answers as `receiptd serve` does"},                            \
        {"serve.listen",                                                                           \
         RCPT_CONFIG_TEXT,                                                                         \
         0,                                                                                        \
         AT(serve.listen),                                                                         \
         .initial = "127.0.0.1:8322",                                                              \
         .min = 2,                                                                                 \
         .max = 120,                                                                               \
         .doc = "address to listen on, with the certificate of `http`"},                           \
        {"serve.dsn",                                                                              \
         RCPT_CONFIG_TEXT,                                                                         \
         NULLABLE | SECRET | RELOADABLE,                                                           \
         AT(serve.dsn),                                                                            \
         .min = 1,                                                                                 \
         .max = 65536,                                                                             \
         .example = "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}serve-dsn",                   \
         .doc =                                                                                    \
             "connection string, as the role of `migrate --serve-role`; not set: `postgres.dsn`"}, \
        {"serve.operate_dsn",                                                                      \
         RCPT_CONFIG_TEXT,                                                                         \
         NULLABLE | SECRET | RELOADABLE,                                                           \
         AT(serve.operate_dsn),                                                                    \
         .min = 1,                                                                                 \
         .max = 65536,                                                                             \
         .example = "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}operate-dsn",                 \
         .doc =                                                                                    \
             "connection string for what operators may change, as the role of `migrate --role`; "  \
             "not set: nothing"},                                                                  \
        {"serve.connections",                                                                      \
         RCPT_CONFIG_INTEGER,                                                                      \
         0,                                                                                        \
         AT(serve.connections),                                                                    \
         .initial = "2",                                                                           \
         .min = 2,                                                                                 \
         .max = 8,                                                                                 \
         .doc = "connections that read: so many questions are answered at a time, of one caller "  \
                "one less"},                                                                       \
        {"serve.statement_timeout",                                                                \
         RCPT_CONFIG_DURATION,                                                                     \
         0,                                                                                        \
         AT(serve.statement_timeout_ms),                                                           \
         .initial = "5s",                                                                          \
         .min = 100,                                                                               \
         .max = HOUR,                                                                              \
         .doc = "longer questions are answered with 503"},                                         \
        {"serve.metrics_listen",                                                                   \
         RCPT_CONFIG_TEXT,                                                                         \
         0,                                                                                        \
         AT(serve.metrics_listen),                                                                 \
         .initial = "127.0.0.1:9466",                                                              \
         .min = 0,                                                                                 \
         .max = 255,                                                                               \
         .doc = "as `intake.metrics_listen`, of `receiptd serve`"},                                \
        {"serve.open",                                                                             \
         RCPT_CONFIG_CHOICE,                                                                       \
         0,                                                                                        \
         AT(serve.open),                                                                           \
         .initial = "false",                                                                       \
         CHOICES(booleans),                                                                        \
         .doc = "no token is needed: for a demonstration, on a loopback address only"},            \
        {"serve.page",                                                                             \
         RCPT_CONFIG_CHOICE,                                                                       \
         0,                                                                                        \
         AT(serve.page),                                                                           \
         .initial = "true",                                                                        \
         CHOICES(booleans),                                                                        \
         .doc = "whether there is a page for people beside the interface for programs"},           \
        {"serve.link_secret",                                                                      \
         RCPT_CONFIG_TEXT,                                                                         \
         NULLABLE | SECRET,                                                                        \
         AT(serve.link_secret),                                                                    \
         .min = 16,                                                                                \
         .max = 4096,                                                                              \
         .doc = "signs the links of `receiptd serve link`; not set: there are none",               \
         .example = "file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}link-secret"},                \
        {"serve.hosts",                                                                            \
         RCPT_CONFIG_TEXT,                                                                         \
         NULLABLE,                                                                                 \
         AT(serve.hosts),                                                                          \
         .min = 1,                                                                                 \
         .max = 1024,                                                                              \
         .example = "a.internal",                                                                  \
         .doc = "names for `Host`; not set: any, on loopback this machine's"},                     \
        {"serve.campaigns",                                                                        \
         RCPT_CONFIG_TABLE,                                                                        \
         NULLABLE,                                                                                 \
         AT(serve.campaigns),                                                                      \
         .min = 3,                                                                                 \
         .max = 127,                                                                               \
         .example = "marketing.campaigns",                                                         \
         .doc = "a view with `id`, `name` and, if you like, `date` and `org_id` of campaigns, "    \
                "`schema.view`, which the role of `serve.dsn` may read"},                          \
        {"serve.trusted_proxies",                                                                  \
         RCPT_CONFIG_TEXT,                                                                         \
         NULLABLE,                                                                                 \
         AT(serve.trusted_proxies),                                                                \
         .min = 1,                                                                                 \
         .max = 999,                                                                               \
         .example = "::1",                                                                         \
         .doc = "addresses whose `proxy_header` counts, by commas"},                               \
        {"serve.proxy_header",                                                                     \
         RCPT_CONFIG_TEXT,                                                                         \
         NULLABLE,                                                                                 \
         AT(serve.proxy_header),                                                                   \
         .min = 1,                                                                                 \
         .max = 64,                                                                                \
         .example = "X-Organisation",                                                              \
         .doc =                                                                                    \
             "header in which a trusted proxy names the organisation that may be read; `*`: all"},

/* The sections `counters` and `dedup`. */
#define RCPT_CONFIG_COUNTERS_ROWS                                                                  \
    {"counters.rollup_interval",                                                                   \
     RCPT_CONFIG_DURATION,                                                                         \
     RELOADABLE,                                                                                   \
     AT(counters.rollup_interval_ms),                                                              \
     .initial = "1s",                                                                              \
     .min = 10,                                                                                    \
     .max = HOUR,                                                                                  \
     .doc =                                                                                        \
         "how often appended counts are added to the totals; less often where that takes long"},   \
        {"counters.rollup_rows",                                                                   \
         RCPT_CONFIG_INTEGER,                                                                      \
         RELOADABLE,                                                                               \
         AT(counters.rollup_rows),                                                                 \
         .initial = "10000",                                                                       \
         .min = 1,                                                                                 \
         .max = 10000000,                                                                          \
         .doc = "appended rows of one roll-up"},                                                   \
        {"counters.series",                                                                        \
         RCPT_CONFIG_DURATION,                                                                     \
         0,                                                                                        \
         AT(counters.series_ms),                                                                   \
         .initial = "0s",                                                                          \
         .min = 0,                                                                                 \
         .max = 3650 * DAY,                                                                        \
         .doc = "how long the funnel is kept as a series by hour (by minute: one day). 0s: no "    \
                "series"},                                                                         \
        {"counters.reasons",                                                                       \
         RCPT_CONFIG_CHOICE,                                                                       \
         0,                                                                                        \
         AT(counters.reasons),                                                                     \
         .initial = "false",                                                                       \
         CHOICES(booleans),                                                                        \
         .doc = "counts receipts by the `reason_class` that they name, per campaign and gateway"}, \
        {"counters.gateways",                                                                      \
         RCPT_CONFIG_DURATION,                                                                     \
         0,                                                                                        \
         AT(counters.gateways_ms),                                                                 \
         .initial = "0s",                                                                          \
         .min = 0,                                                                                 \
         .max = 3650 * DAY,                                                                        \
         .doc =                                                                                    \
             "how long hourly figures of gateways are kept, for `receiptd gateways`. 0s: none"},   \
        {"counters.times",                                                                         \
         RCPT_CONFIG_CHOICE,                                                                       \
         0,                                                                                        \
         AT(counters.times),                                                                       \
         .initial = "false",                                                                       \
         CHOICES(booleans),                                                                        \
         .doc = "histograms of the time to deliver and to open, from first times in the row of "   \
                "the message. A table of the platform's needs six columns for it"},                \
        {"counters.by",                                                                            \
         RCPT_CONFIG_LIST,                                                                         \
         0,                                                                                        \
         LIST_AT(counters.by, counters.by_count),                                                  \
         .initial = "[]",                                                                          \
         .max = 3,                                                                                 \
         .doc = "columns of the inbox by which the funnel is counted, too: `variant`, `channel`, " \
                "`gateway`, for `receiptd funnel --by`. Then run `receiptd migrate`"},             \
        {"counters.groups",                                                                        \
         RCPT_CONFIG_LIST,                                                                         \
         0,                                                                                        \
         LIST_AT(counters.groups, counters.groups_count),                                          \
         .initial = "[]",                                                                          \
         .max = 2,                                                                                 \
         .doc = "messages that count as one, in a funnel beside that of messages: those of one "   \
                "`customer`, attempts at one `logical` message. Then run `receiptd migrate`"},     \
        {"dedup.window",                                                                           \
         RCPT_CONFIG_DURATION,                                                                     \
         0,                                                                                        \
         AT(dedup.window_ms),                                                                      \
         .initial = "0s",                                                                          \
         .min = 0,                                                                                 \
         .max = 7 * DAY,                                                                           \
         .doc =                                                                                    \
             "for how long after its event time a receipt is remembered, so that a second copy "   \
             "is "                                                                                 \
             "not an event. At least the time in which a gateway repeats. 0s: every copy counts"},

/* Of the section `inbox`: whose a message is, and when it was sent, for ranges. */
#define RCPT_CONFIG_RANGE_ROWS                                                                     \
    {"inbox.columns.recipient",                                                                    \
     RCPT_CONFIG_IDENTIFIER,                                                                       \
     NULLABLE,                                                                                     \
     AT(inbox.recipient),                                                                          \
     .min = 1,                                                                                     \
     .max = 63,                                                                                    \
     .example = "recipient",                                                                       \
     .doc = "column of the person's id at the gateway (text), for receipts that mean all "         \
            "messages to a person up to a time; needs the account in `inbox.columns.gateway`. "    \
            "Not set: such receipts are ignored"},                                                 \
        {"inbox.columns.sent_at",                                                                  \
         RCPT_CONFIG_IDENTIFIER,                                                                   \
         NULLABLE,                                                                                 \
         AT(inbox.sent_at),                                                                        \
         .min = 1,                                                                                 \
         .max = 63,                                                                                \
         .example = "sent_at",                                                                     \
         .doc = "column of the time when a message was sent (timestamptz), for these receipts; "   \
                "NULL: it was not. Not set: `created_at`"},

/* Of the section `inbox`: how its table may be laid out. */
#define RCPT_CONFIG_LAYOUT_ROWS                                                                    \
    {"inbox.probe_partitions",                                                                     \
     RCPT_CONFIG_INTEGER,                                                                          \
     0,                                                                                            \
     AT(inbox.probe_partitions),                                                                   \
     .initial = "8",                                                                               \
     .min = 1,                                                                                     \
     .max = 100000,                                                                                \
     .doc =                                                                                        \
         "in so many partitions of the inbox a receipt may be looked up, where a message's id "    \
         "does not lead to its partition; a table with more is refused, unless it is "             \
         "partitioned by `inbox.columns.created_at`, or by ranges of an id that `inbox.ids` says " \
         "to begin with the time, and has a recent set"},                                          \
        {"inbox.drop_detached",                                                                    \
         RCPT_CONFIG_CHOICE,                                                                       \
         0,                                                                                        \
         AT(inbox.drop_detached),                                                                  \
         .initial = "false",                                                                       \
         CHOICES(booleans),                                                                        \
         .doc =                                                                                    \
             "with `inbox.partitions: external`: whether `receiptd maintain` drops a partition "   \
             "that has left the inbox, in a run after the one that has booked it"},

/* The section `machine`. */
#define RCPT_CONFIG_MACHINE_ROWS                                                                   \
    {"machine.opens",                                                                              \
     RCPT_CONFIG_CHOICE,                                                                           \
     RELOADABLE,                                                                                   \
     AT(machine.opens),                                                                            \
     .initial = "flag",                                                                            \
     CHOICES(machine_policies),                                                                    \
     .doc = "opens with the flag MACHINE_OPEN: the `flag` alone, `count` as OPENED as well, or "   \
            "`ignore` as if they had not come"},                                                   \
        {"machine.clicks",                                                                         \
         RCPT_CONFIG_CHOICE,                                                                       \
         RELOADABLE,                                                                               \
         AT(machine.clicks),                                                                       \
         .initial = "flag",                                                                        \
         CHOICES(machine_policies),                                                                \
         .doc = "the same for clicks with the flag BOT_CLICK"},                                    \
        {"machine.rules",                                                                          \
         RCPT_CONFIG_RECORDS,                                                                      \
         RELOADABLE,                                                                               \
         LIST_AT(machine.rules, machine.rule_count),                                               \
         .initial = "[]",                                                                          \
         .max = 1000,                                                                              \
         .record = &rcpt_config_machine_record,                                                    \
         .doc = "other policies for some receipts; the first entry that fits"},                    \
        {"machine.networks",                                                                       \
         RCPT_CONFIG_TEXT,                                                                         \
         NULLABLE | RELOADABLE,                                                                    \
         AT(machine_networks),                                                                     \
         .min = 1,                                                                                 \
         .max = 4096,                                                                              \
         .example = "${RECEIPTD_LISTS:-/etc/receiptd/}scanners.txt",                               \
         .doc = "file with networks of scanners, one a line: the intake takes opens and clicks "   \
                "that come from them for those of machines; a reload reads it again"},

#endif
