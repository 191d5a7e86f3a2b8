/* The fields of an entry of actions.endpoints. config.c checks them together (URL, secrets,
 * headers, time-out against the lease); src/actions uses them. */
#include "rows.h"

#define RECORD struct rcpt_config_endpoint
static const struct rcpt_config_row rows[] = {
    TEXT("name", name, REQUIRED, NULL, 1, 63, "name in pipelines"),
    /* A URL often contains a token in its path or query. So it counts as a secret, and logs and
     * errors name the endpoint instead. */
    TEXT("url", url, REQUIRED | SECRET, NULL, 8, 4000,
         "URL to POST to, http or https; never shown, since it may hold a secret"),
    LIST("secrets", secrets, secrets_count, SECRET, RCPT_WEBHOOK_MOST_SECRETS,
         "keys of Standard Webhooks, `whsec_…`; each signs, for rotation"),
    LIST("headers", headers, headers_count, SECRET, 50,
         "further headers, `Name: value`; none that every call has already"),
    DURATION("timeout", timeout_ms, 0, "15s", 10, 600000,
             "from the start of a call to the end of its answer"),
    DURATION("connect_timeout", connect_timeout_ms, 0, "5s", 10, 600000,
             "for name, connection and TLS"),
    SIZE("max_answer", max_answer_bytes, 0, "2KiB", 0, 65536,
         "how much of an answer is read and kept"),
    INTEGER("concurrency", concurrency, 0, "32", 1, 10000, "concurrent calls of one instance"),
};

const struct rcpt_config_table rcpt_config_endpoint_record = RECORD_OF(rows);
