/* Shorthands for rows of the configuration's tables (table.h), and the parts that several tables
 * share. Included by the files that declare rows, and by no others. */
#ifndef RECEIPTD_CONFIG_ROWS_H
#define RECEIPTD_CONFIG_ROWS_H

#include "table.h"

#include "receiptd/base/error.h"

#define MEMBER(type, member)                                                                       \
    .offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)
#define MEMBER_LIST(type, member, count)                                                           \
    MEMBER(type, member), .count_offset = offsetof(type, count),                                   \
                          .count_size = sizeof(((type *)NULL)->count)
#define CHOICES(array) .choices = (array), .choice_count = RCPT_COUNT_OF(array)

#define SECOND 1000LL
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define KIB    1024LL
#define MIB    (1024 * KIB)
#define GIB    (1024 * MIB)

enum {
    REQUIRED = RCPT_CONFIG_REQUIRED,
    NULLABLE = RCPT_CONFIG_NULLABLE,
    RELOADABLE = RCPT_CONFIG_RELOADABLE,
    SECRET = RCPT_CONFIG_SECRET,
    ACTIVE = RCPT_CONFIG_ACTIVE,
};

static const cyaml_strval_t booleans[] = {{"true", true}, {"false", false}};

/* The entries of a MAP: the check has made a list of struct rcpt_config_pair of it. */
static const struct rcpt_config_row pair_rows[] = {
    {"name", RCPT_CONFIG_TEXT, REQUIRED, MEMBER(struct rcpt_config_pair, name)},
    {"value", RCPT_CONFIG_TEXT, REQUIRED, MEMBER(struct rcpt_config_pair, value)},
    {"line", RCPT_CONFIG_INTEGER, REQUIRED, MEMBER(struct rcpt_config_pair, line)},
    {"column", RCPT_CONFIG_INTEGER, REQUIRED, MEMBER(struct rcpt_config_pair, column)},
};
static const struct rcpt_config_table pair_record = {pair_rows, RCPT_COUNT_OF(pair_rows),
                                                     sizeof(struct rcpt_config_pair)};

#endif
