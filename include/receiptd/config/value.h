/* Single values: from text to number and back, names that are allowed, secrets from files. */
#ifndef RECEIPTD_CONFIG_VALUE_H
#define RECEIPTD_CONFIG_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receiptd/base/error.h"

enum rcpt_config_type {
    RCPT_CONFIG_TEXT,       /* char *; range: bytes */
    RCPT_CONFIG_IDENTIFIER, /* char *; an SQL name of letters, digits and _ */
    RCPT_CONFIG_TREE,       /* char *: JSON of a list with a grammar of its own; range: how many */
    RCPT_CONFIG_TOPIC,      /* char *; the name of a Kafka topic */
    RCPT_CONFIG_TABLE,      /* char *; two identifiers: schema.table */
    RCPT_CONFIG_LIST,       /* char **; texts; range: how many */
    RCPT_CONFIG_INTEGER,
    RCPT_CONFIG_SIZE,     /* bytes; written with a unit */
    RCPT_CONFIG_DURATION, /* milliseconds; written with a unit */
    RCPT_CONFIG_RATIO,    /* 0 to 1 as a decimal fraction; kept in millionths */
    RCPT_CONFIG_CHOICE,   /* an enum or a bool; `choices` */
    RCPT_CONFIG_MAP,      /* free names with values: struct rcpt_config_pair * */
    RCPT_CONFIG_RECORDS,  /* a list of records that have their own rows: `record` */
    RCPT_CONFIG_TYPE__COUNT,
};

#define RCPT_CONFIG_NUMBER_BYTES 32 /* enough for every formatted number */

/* Reads an INTEGER, SIZE (plain: bytes) or DURATION (unit needed, except for 0). False: not such a
 * value, or it does not fit into 63 bits. */
RCPT_MUST_CHECK bool rcpt_config_parse_number(enum rcpt_config_type type, const char *text,
                                              int64_t *value);

/* The shortest exact way to write it: 24MiB, 5s, 24h, 8. */
void rcpt_config_format_number(enum rcpt_config_type type, int64_t value,
                               char out[RCPT_CONFIG_NUMBER_BYTES]);

/* How an error names the values of a type: "a duration such as 500ms, 5s or 24h". */
const char *rcpt_config_expected(enum rcpt_config_type type);

bool rcpt_config_is_identifier(const char *text); /* 1…63 of [A-Za-z0-9_], no digit first */
bool rcpt_config_is_table_name(const char *text); /* identifier.identifier */
bool rcpt_config_is_topic(const char *text);      /* 1…249 of [A-Za-z0-9._-] */

/* Contents of a regular file without one trailing newline. A relative path is taken from the folder
 * of `config_name`. `is_open`: users that neither own it nor are of its group may read or change
 * it. Returns a new text, or NULL with the reason in `problem` (names the path, never
 * the contents). */
RCPT_MUST_CHECK char *rcpt_config_read_secret(const char *path, const char *config_name,
                                              bool *is_open, char problem[160]);

/* Text for an error: cut to a line's length, control bytes replaced. */
const char *rcpt_config_shown(const char *text, char out[64]);

#endif
