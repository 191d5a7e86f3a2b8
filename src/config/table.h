/* The table that declares the configuration: one row per key.
 *
 * Everything about a key is in its row. The checks (check.c), libcyaml's schema (schema.c),
 * `check-config --print` (print.c), the manual (manual.c), the reference page and the example
 * (pages.c) are derived.
 */
#ifndef RECEIPTD_CONFIG_TABLE_H
#define RECEIPTD_CONFIG_TABLE_H

#include <cyaml/cyaml.h>

#include "receiptd/config/config.h"
#include "receiptd/config/value.h"

enum {
    RCPT_CONFIG_REQUIRED = 1,   /* no default */
    RCPT_CONFIG_NULLABLE = 2,   /* default: not set (NULL, false) */
    RCPT_CONFIG_RELOADABLE = 4, /* may change while running */
    RCPT_CONFIG_SECRET = 8,     /* may be file:PATH, is never shown */
    RCPT_CONFIG_ACTIVE = 16,    /* not commented out in config/receiptd.yaml */
    RCPT_CONFIG_NAMED = 32,     /* records: may be a mapping from their first field to the rest */
    RCPT_CONFIG_PLAIN = 64,     /* records: an entry may be its first field alone; it is printed so
                                   where the second field has its default */
};

struct rcpt_config_row {
    const char *path; /* "kafka.brokers"; in a record: the field's name */
    enum rcpt_config_type type;
    unsigned flags;
    size_t offset, size;             /* of the member in struct rcpt_config, or in the record */
    size_t count_offset, count_size; /* of its count, for lists */
    const char *initial; /* default, as one would write it; NULL: none, or the default ladder */
    int64_t min, max;    /* both inclusive; of the value, the text's length or the list's count */
    const cyaml_strval_t *choices;
    unsigned choice_count;
    const struct rcpt_config_table *record;
    const char
        *environment;    /* variable that gives the value of a key that is not set; NULL: none */
    const char *example; /* value in config/receiptd.yaml where it is not the default */
    const char *doc;     /* one line */
};

struct rcpt_config_section {
    const char *path; /* "kafka"; "" for the keys that stand in no section, and in a record */
    const char *doc;  /* a sentence or two */
    const struct rcpt_config_row *rows;
    size_t count;
};

struct rcpt_config_table {
    const struct rcpt_config_section *sections;
    size_t section_count;
    size_t record_size; /* of the struct that the rows describe */
};

/* Fields of the entries of lists of records: accounts.c, caps.c, endpoints.c, expiry.c,
 * folds.c, ladder.c, machine.c, retention.c. */
extern const struct rcpt_config_table rcpt_config_account_record;
extern const struct rcpt_config_table rcpt_config_topic_record;
extern const struct rcpt_config_table rcpt_config_endpoint_record;
extern const struct rcpt_config_table rcpt_config_expiry_record;
extern const struct rcpt_config_table rcpt_config_machine_record;
extern const struct rcpt_config_table rcpt_config_retention_record;
extern const struct rcpt_config_table rcpt_config_fold_record;
extern const struct rcpt_config_table rcpt_config_status_record;
extern const struct rcpt_config_table rcpt_config_flag_record;
extern const struct rcpt_config_table rcpt_config_override_record;
extern const struct rcpt_config_table rcpt_config_subject_cap_record;

#define RCPT_CONFIG_MAX_ROWS 192 /* asserted; sizes of arrays that have one entry per row */

const struct rcpt_config_table *rcpt_config_table(void);

/* Rows of all sections, at most RCPT_CONFIG_MAX_ROWS. */
size_t rcpt_config_count(const struct rcpt_config_table *table);
/* A row by its index, counted through the sections in their order. */
const struct rcpt_config_row *rcpt_config_row(const struct rcpt_config_table *table, size_t index);
/* An integer member of 1, 4 or 8 bytes. */
int64_t rcpt_config_read_number(const struct rcpt_config_row *row, const void *base);
/* The name of a type on the pages: "size", "list of topics". */
const char *rcpt_config_type_name(enum rcpt_config_type type);

/* Why the inbox cannot have a retention, as a sentence; NULL: it can. */
const char *rcpt_config_retention_problem(const struct rcpt_config *config);
/* Why it cannot have partitions of its own, likewise. */
const char *rcpt_config_partitions_problem(const struct rcpt_config *config);
/* Fills in inbox.partition_span and inbox.fillfactor from other keys where they are not set. */
void rcpt_config_follow(struct rcpt_config *config);

/* Puts the names of kafka.topics beside its accounts, and tells those what they are. */
void rcpt_config_name_topics(struct rcpt_config *config);
void rcpt_config_free_topics(struct rcpt_config *config);
/* Whether the topics' accounts are right, and the intake's topics native. */
RCPT_MUST_CHECK bool rcpt_config_check_topics(const struct rcpt_config *config,
                                              struct rcpt_error *error);
RCPT_MUST_CHECK bool rcpt_config_check_message_topics(const struct rcpt_config *config,
                                                      struct rcpt_error *error);

/* Whether inbox.expiry fits the ladder. */
RCPT_MUST_CHECK bool rcpt_config_check_expiry(const struct rcpt_config *config,
                                              struct rcpt_error *error);

/* Reads the file of machine.networks. False: `error` names the file, and the line that is wrong. */
RCPT_MUST_CHECK bool rcpt_config_read_networks(struct rcpt_config *config, const char *config_name,
                                               struct rcpt_error *error);
/* Whether the ladder has the statuses and flags of machine.rules. */
RCPT_MUST_CHECK bool rcpt_config_check_machine(const struct rcpt_config *config,
                                               struct rcpt_error *error);

/* Index of a row, -1 if there is none. */
int rcpt_config_find(const struct rcpt_config_table *where, const char *path);
/* Whether some row stands below this path: "kafka", "inbox.columns". */
bool rcpt_config_is_section(const struct rcpt_config_table *where, const char *path);

/* Whether it is one of the three lists that make a ladder and are checked together. */
bool rcpt_config_is_ladder(const struct rcpt_config_row *row);

/* Whether the value of a kafka.properties entry is a secret, judged by its name. */
bool rcpt_config_is_secret_property(const char *name);

#endif
