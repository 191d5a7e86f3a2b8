/* Topics as accounts: a record of Kafka that holds a gateway's webhook, or a platform's own JSON,
 * becomes the form in which the core reads receipts.
 *
 * The same adapters read it as read requests of the intake. A CloudEvents envelope (1.0:
 * structured, batched, or binary with headers ce_…) is opened first: the adapter sees the data as
 * the body, and the attributes as headers ce_…. Pure, like the adapters. An object serves one
 * thread.
 */
#ifndef RECEIPTD_GATEWAYS_TOPICS_H
#define RECEIPTD_GATEWAYS_TOPICS_H

#include "receiptd/core/record.h"
#include "receiptd/gateways/adapter.h"

struct rcpt_gateway_topics;

/* Makes the accounts of kafka.topics; native ones need none. The ladder is borrowed; the error is
 * that of rcpt_gateway_account_new. */
RCPT_MUST_CHECK struct rcpt_gateway_topics *rcpt_gateway_topics_new(
    const struct rcpt_gateway_account_config *configs, size_t count,
    const struct rcpt_ladder *ladder, struct rcpt_error *error);
void rcpt_gateway_topics_free(struct rcpt_gateway_topics *topics);

/* Whether records of this topic need a form: then their headers are of interest. NULL topics: no
 * record does. */
bool rcpt_gateway_topics_has(const struct rcpt_gateway_topics *topics, const char *topic);

/* What stands beside a record. */
struct rcpt_gateway_beside {
    const struct rcpt_gateway_header *headers;
    size_t header_count;
    const struct rcpt_network_set *scanners; /* as of a request; NULL: none */
    bool is_item; /* the value is the letter of one event, or of several as an array */
};

/* The form of the record's value, for rcpt_record_input; valid until the next call, as long as the
 * value stays. NULL: the topic is native, or the value cannot be read at all. */
const struct rcpt_record_form *rcpt_gateway_topics_form(struct rcpt_gateway_topics *topics,
                                                        const struct rcpt_record_input *input,
                                                        const struct rcpt_gateway_beside *beside);

#endif
