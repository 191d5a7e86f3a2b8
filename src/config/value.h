/* Single values: from text to number and back, names that are allowed, names that are close. Pure.
 */
#ifndef RECEIPTD_CONFIG_VALUE_H
#define RECEIPTD_CONFIG_VALUE_H

#include "table.h"

#define RCPT_CONFIG_NUMBER_BYTES 32 /* enough for every formatted number */

/* Reads an INTEGER, SIZE (plain: bytes) or DURATION (unit needed, except for 0). False: not such a
 * value, or it does not fit into 63 bits. */
RCPT_MUST_CHECK bool rcpt_config_parse_number(enum rcpt_config_type type, const char *text,
                                              int64_t *value);

/* The shortest exact way to write it: 24MiB, 5s, 24h, 8. */
void rcpt_config_format_number(enum rcpt_config_type type, int64_t value,
                               char out[RCPT_CONFIG_NUMBER_BYTES]);

/* An integer member of 1, 4 or 8 bytes. */
int64_t rcpt_config_read_number(const struct rcpt_config_row *row, const void *base);

/* What values of a type may be, for errors: "a duration such as 500ms, 5s or 24h". */
const char *rcpt_config_expected(enum rcpt_config_type type);

bool rcpt_config_is_identifier(const char *text); /* 1…63 of [A-Za-z0-9_], no digit first */
bool rcpt_config_is_table_name(const char *text); /* identifier.identifier */
bool rcpt_config_is_topic(const char *text);      /* 1…249 of [A-Za-z0-9._-] */

/* Text for an error: cut to a line's length, control bytes replaced. */
const char *rcpt_config_shown(const char *text, char out[64]);

#endif
