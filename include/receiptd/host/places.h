/* The position of every partition of a reader's topics, also of those that other instances have. It
 * compares the position in PostgreSQL with the end of Kafka's log, and names the group's member
 * that has the partition.
 *
 * The receipts, and each reader of topics, own one. It surveys every few seconds; figures without a
 * recent answer are not known. Readiness, metrics and status read it. Call from the loop's thread
 * only.
 */
#ifndef RECEIPTD_HOST_PLACES_H
#define RECEIPTD_HOST_PLACES_H

#include "receiptd/host/context.h"
#include "receiptd/kafka/survey.h"
#include "receiptd/postgres/ask.h"

struct host_places;

struct host_places_settings {
    struct host_context *context;
    const char *reader;        /* "receipts", or of a reader of topics: for people and metrics */
    struct rcpt_kafka **kafka; /* NULL behind it: there is no consumer now */
    struct rcpt_asker *asker;
    bool remembers;        /* its group's offsets carry notes of the database */
    const char *statement; /* topics, partitions → the position of each, or NULL */
};

struct host_place { /* as far as it is known now */
    const char *topic;
    int32_t partition;
    int64_t position, low, high, lag; /* -1: not known */
    enum rcpt_kafka_owner owner;
    const char *member; /* NULL: no member has it, or it is not known */
};

/* Registers it with the context. Borrows what the settings name. */
struct host_places *host_places_new(const struct host_places_settings *settings);
/* Call as often as the owner's ticker runs. */
void host_places_tick(struct host_places *places);
/* Call when its consumer and its connection are closed. */
void host_places_free(struct host_places *places);
/* Surveys now instead of after the interval, because the group has changed. */
void host_places_refresh(struct host_places *places);
/* The consumer is gone: forgets everything known. */
void host_places_forget(struct host_places *places);

/* The next one of the process, behind context->places; NULL: no more. */
const struct host_places *host_places_next(const struct host_places *places);
const char *host_places_reader(const struct host_places *places);
/* False: there is no partition with this index. Ordered by topic, as configured, and partition. */
bool host_places_get(const struct host_places *places, size_t index, struct host_place *place);
bool host_places_find(const struct host_places *places, const char *topic, int32_t partition,
                      struct host_place *place);
/* Why work is not done, by these places and all behind them: a partition that no receiptd has, or a
 * group whose coordinator does not answer. NULL: no reason is known. */
const char *host_places_reason(const struct host_places *places);

#endif
