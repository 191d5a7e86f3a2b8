/* The fields of an entry of actions.endpoints. config.c checks them together (URL, secrets,
 * headers, time-out against the lease); src/actions uses them. */
#include "rows.h"

#include "receiptd/base/error.h"

#define FIELD(member)       MEMBER(struct rcpt_config_endpoint, member)
#define LIST(member, count) MEMBER_LIST(struct rcpt_config_endpoint, member, count)

static const struct rcpt_config_row rows[] = {
    {"name", RCPT_CONFIG_TEXT, RCPT_CONFIG_REQUIRED, FIELD(name), .min = 1, .max = 63,
     .doc = "what pipelines call it"},
    /* A URL often contains a token in its path or query. So it counts as a secret, and logs and
     * errors name the endpoint instead. */
    {"url", RCPT_CONFIG_TEXT, RCPT_CONFIG_REQUIRED | RCPT_CONFIG_SECRET, FIELD(url), .min = 8,
     .max = 4000, .doc = "where to POST; http or https; it may hold a secret, so it is not shown"},
    {"secrets", RCPT_CONFIG_LIST, RCPT_CONFIG_SECRET, LIST(secrets, secrets_count), .initial = "[]",
     .max = RCPT_WEBHOOK_MOST_SECRETS,
     .doc = "keys of Standard Webhooks, `whsec_…`; each signs, so that they can be rotated"},
    {"headers", RCPT_CONFIG_LIST, RCPT_CONFIG_SECRET, LIST(headers, headers_count), .initial = "[]",
     .max = 50, .doc = "further headers, `Name: value`; none that every call has already"},
    {"timeout", RCPT_CONFIG_DURATION, 0, FIELD(timeout_ms), .initial = "15s", .min = 10,
     .max = 600000, .doc = "from the start of a call to the end of its answer"},
    {"connect_timeout", RCPT_CONFIG_DURATION, 0, FIELD(connect_timeout_ms), .initial = "5s",
     .min = 10, .max = 600000, .doc = "for name, connection and TLS"},
    {"max_answer", RCPT_CONFIG_SIZE, 0, FIELD(max_answer_bytes), .initial = "2KiB", .min = 0,
     .max = 65536, .doc = "how much of an answer is read and kept"},
    {"concurrency", RCPT_CONFIG_INTEGER, 0, FIELD(concurrency), .initial = "32", .min = 1,
     .max = 10000, .doc = "calls of one instance at a time"},
};
_Static_assert(RCPT_COUNT_OF(rows) <= RCPT_CONFIG_MAX_ROWS, "arrays with one entry per row");

const struct rcpt_config_table rcpt_config_endpoint_record = {rows, RCPT_COUNT_OF(rows),
                                                              sizeof(struct rcpt_config_endpoint)};
