/* What the tests of the configuration share. */
#ifndef RECEIPTD_TESTS_UNIT_CONFIG_HELPERS_H
#define RECEIPTD_TESTS_UNIT_CONFIG_HELPERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <cmocka.h>

#include "config/table.h"
#include "receiptd/base/text.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define SMALLEST                                                                                   \
    "kafka: {brokers: \"127.0.0.1:9092\", topics: [dlr-events]}\n"                                 \
    "postgres: {dsn: \"host=/run/postgresql dbname=receiptd\"}\n"

#define SMALL_LADDER                                                                               \
    SMALLEST "ladder:\n"                                                                           \
             "  statuses:\n"                                                                       \
             "  - {name: NEW, code: 0}\n"                                                          \
             "  - {name: GONE, code: 10, parent: NEW, terminal: true}\n"                           \
             "  - {name: LOST, code: 20, parent: NEW}\n"                                           \
             "  overrides: [{channel: sms, status: GONE, becomes: LOST}]\n"

static inline struct rcpt_config *parse(const char *text, struct rcpt_error *error)
{
    rcpt_error_clear(error);
    return rcpt_config_parse("t.yaml", text, strlen(text), error);
}

static inline struct rcpt_config *parse_good(const char *text)
{
    struct rcpt_error error;
    struct rcpt_config *config = parse(text, &error);
    if (config == NULL)
        fail_msg("%s\n%s", error.text, text);
    return config;
}

static inline void expect_error(const char *text, const char *message, const char *hint)
{
    struct rcpt_error error;
    struct rcpt_config *config = parse(text, &error);
    if (config != NULL)
        fail_msg("is taken: %s", text);
    assert_string_equal(error.text, message);
    assert_int_equal(error.decision, RCPT_DECISION_FATAL);
    assert_int_equal(error.exit_code, EX_CONFIG);
    if (hint != NULL)
        assert_string_equal(error.hint, hint);
}

static inline char *printed(const struct rcpt_config *config)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    rcpt_config_print(config, out);
    fclose(out);
    return text;
}

static inline char *printed_of(const char *text)
{
    struct rcpt_config *config = parse_good(text);
    char *result = printed(config);
    rcpt_config_free(config);
    return result;
}

/* What a generator or printer writes. */
static inline char *text_of(void (*write)(FILE *out))
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    write(out);
    fclose(out);
    return text;
}

#endif
