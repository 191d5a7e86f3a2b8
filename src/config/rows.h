/* The words in which the tables of keys are written: one row a key (table.h). Included by the files
 * that declare rows, and by no others.
 *
 * A row reads: TYPE(path, member, flags, value, least, most, doc). `value` is the default. A key
 * without a default (REQUIRED, NULLABLE) has its value in config/receiptd.yaml there, and the field
 * of a record NULL. Each file defines RECORD, the struct that its rows describe. */
#ifndef RECEIPTD_CONFIG_ROWS_H
#define RECEIPTD_CONFIG_ROWS_H

#include "table.h"

#define AT(member) .offset = offsetof(RECORD, member), .size = sizeof(((RECORD *)NULL)->member)
#define LIST_AT(member, count)                                                                     \
    AT(member), .count_offset = offsetof(RECORD, count),                                           \
                .count_size = sizeof(((RECORD *)NULL)->count)

/* Further columns may follow the doc. */
#define KEY(kind, name, place, bits, value, least, most, ...)                                      \
    {                                                                                              \
        .path = (name), .type = RCPT_CONFIG_##kind, .flags = (bits), place,                        \
        .initial = (bits) & (REQUIRED | NULLABLE) ? NULL : (value),                                \
        .example = (bits) & (REQUIRED | NULLABLE) ? (value) : NULL, .min = (least), .max = (most), \
        .doc = __VA_ARGS__                                                                         \
    }
#define TEXT(name, member, ...)       KEY(TEXT, name, AT(member), __VA_ARGS__)
#define IDENTIFIER(name, member, ...) KEY(IDENTIFIER, name, AT(member), __VA_ARGS__)
#define TOPIC(name, member, ...)      KEY(TOPIC, name, AT(member), __VA_ARGS__)
#define TABLE(name, member, ...)      KEY(TABLE, name, AT(member), __VA_ARGS__)
#define INTEGER(name, member, ...)    KEY(INTEGER, name, AT(member), __VA_ARGS__)
#define SIZE(name, member, ...)       KEY(SIZE, name, AT(member), __VA_ARGS__)
#define DURATION(name, member, ...)   KEY(DURATION, name, AT(member), __VA_ARGS__)
#define RATIO(name, member, ...)      KEY(RATIO, name, AT(member), __VA_ARGS__)
/* Choices and lists say what they choose from and what an entry is, instead of a range. */
#define CHOICE(name, member, bits, value, names, ...)                                              \
    KEY(CHOICE, name, AT(member), bits, value, 0, 0, __VA_ARGS__, .choices = (names),              \
        .choice_count = RCPT_COUNT_OF(names))
#define BOOLEAN(name, member, bits, value, ...)                                                    \
    CHOICE(name, member, bits, value, booleans, __VA_ARGS__)
#define LIST(name, member, count, bits, most, ...)                                                 \
    KEY(LIST, name, LIST_AT(member, count), bits, "[]", 0, most, __VA_ARGS__)
#define MAP(name, member, count, bits, most, entry, ...)                                           \
    KEY(MAP, name, LIST_AT(member, count), bits, "{}", 0, most, __VA_ARGS__, .record = &(entry))
#define RECORDS(name, member, count, bits, value, least, most, entry, ...)                         \
    KEY(RECORDS, name, LIST_AT(member, count), bits, value, least, most, __VA_ARGS__,              \
        .record = &(entry))

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
    NAMED = RCPT_CONFIG_NAMED,
    PLAIN = RCPT_CONFIG_PLAIN,
};

/* The table of a record: these rows of RECORD. */
#define RECORD_OF(rows)                                                                            \
    {                                                                                              \
        &(const struct rcpt_config_section){"", NULL, (rows), RCPT_COUNT_OF(rows)}, 1,             \
            sizeof(RECORD)                                                                         \
    }

static const cyaml_strval_t booleans[] = {{"true", true}, {"false", false}};

/* The entries of a MAP: the check has made a list of struct rcpt_config_pair of it. */
#define RECORD struct rcpt_config_pair
static const struct rcpt_config_row pair_rows[] = {
    TEXT("name", name, REQUIRED, NULL, 0, 0, NULL),
    TEXT("value", value, REQUIRED, NULL, 0, 0, NULL),
    INTEGER("line", line, REQUIRED, NULL, 0, 0, NULL),
    INTEGER("column", column, REQUIRED, NULL, 0, 0, NULL),
};
static const struct rcpt_config_table pair_record = RECORD_OF(pair_rows);
#undef RECORD

#endif
