/* Reads a topic to its end as it was at the start: for commands. Blocks; never
 * on the daemon's loop. Joins no group, commits nothing. */
#ifndef RECEIPTD_KAFKA_HISTORY_H
#define RECEIPTD_KAFKA_HISTORY_H

#include "receiptd/kafka/consumer.h"

struct rcpt_kafka_history {
    const char *brokers, *topic;
    const struct rcpt_kafka_property *properties;
    size_t property_count;
    /* The first offset of each partition; a partition with a negative one is left out. NULL: all,
     * from their beginning. */
    const int64_t *from;
    size_t from_count;
    int64_t since_ms; /* only records with this time or a later one; 0: all */
    void *context;
    /* False: enough; with `from` of this partition only. Borrowed for the call. */
    bool (*on_message)(void *context, const struct rcpt_kafka_message *message);
};

/* During on_message: the value of the record's last header of this name, not terminated; NULL:
 * none. */
const char *rcpt_kafka_history_header(const struct rcpt_kafka_message *message, const char *name,
                                      size_t *size);

RCPT_MUST_CHECK bool rcpt_kafka_read_history(const struct rcpt_kafka_history *history,
                                             struct rcpt_error *error);

#endif
