/* A transactional producer: records out in transactions, with a mark of their progress in the same
 * transaction.
 *
 * Transactions of one id exclude each other: the transactor that opens it last fences all others.
 * Transactions that they had begun are settled before the opening is answered: rolled back or
 * committed. The mark is a number that Kafka keeps as the offset of a consumer group and moves with
 * the records: after a crash it shows which records are published, without reading them. Blocking
 * calls of librdkafka run in threads. Call from the loop's thread only; one call at a time.
 */
#ifndef RECEIPTD_KAFKA_TRANSACTOR_H
#define RECEIPTD_KAFKA_TRANSACTOR_H

#include "receiptd/base/text.h"
#include "receiptd/kafka/consumer.h"

struct rcpt_transactor;

struct rcpt_transactor_header {
    const char *name;
    struct rcpt_text value; /* `at` NULL: the header is left out */
};

#define RCPT_TRANSACTOR_HEADERS 8u

struct rcpt_transactor_record { /* borrowed for the call */
    const char *topic;
    struct rcpt_text key, value; /* `at` NULL: none; a value: a tombstone */
    struct rcpt_transactor_header headers[RCPT_TRANSACTOR_HEADERS]; /* the first ones with a name */
};

struct rcpt_transactor_settings {
    uv_loop_t *loop;
    const char *brokers;
    const struct rcpt_kafka_property *properties; /* the consumer's own are passed over */
    size_t property_count;
    const char *id;         /* transactional.id, and name of the group that holds the mark */
    const char *mark_topic; /* an existing topic: the mark is the group's offset in partition 0 */
    void *context;
    /* Answer to open: the mark, -1 if there was never one. RETRY: later. FATAL: the configuration
     * is at fault. */
    void (*on_opened)(void *context, int64_t mark, const struct rcpt_error *error);
    /* Answer to publish: NULL: committed. RETRY: rolled back, nothing of it is visible. RECONNECT:
     * fenced, or the outcome is unknown: it is closed, and only opening it again shows. */
    void (*on_published)(void *context, const struct rcpt_error *error);
};

/* Copies the settings. */
struct rcpt_transactor *rcpt_transactor_new(const struct rcpt_transactor_settings *settings);
/* Makes a client, fences the others with the id, reads the mark. */
void rcpt_transactor_open(struct rcpt_transactor *transactor);
/* One transaction with these records and the mark. Must be open. */
void rcpt_transactor_publish(struct rcpt_transactor *transactor,
                             const struct rcpt_transactor_record *records, size_t count,
                             int64_t mark);
bool rcpt_transactor_is_open(const struct rcpt_transactor *transactor);
bool rcpt_transactor_is_busy(const struct rcpt_transactor *transactor);
/* True if no call is under way, and no client is left. */
bool rcpt_transactor_is_settled(const struct rcpt_transactor *transactor);
/* Gives the client up; a call under way is still answered. */
void rcpt_transactor_drop(struct rcpt_transactor *transactor);
/* As rcpt_kafka_set_credentials; a transaction that is under way goes on with the former ones. */
void rcpt_transactor_set_credentials(struct rcpt_transactor *transactor,
                                     const struct rcpt_kafka_credentials *credentials);
void rcpt_transactor_tick(struct rcpt_transactor *transactor); /* now and then: answers the late */
/* A call under way is answered first, as RECONNECT. */
void rcpt_transactor_close(struct rcpt_transactor *transactor, void (*on_closed)(void *context),
                           void *context);

#endif
