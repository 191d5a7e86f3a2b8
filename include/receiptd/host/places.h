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

struct app_places;

struct app_places_settings {
    struct app_context *context;
    const char *reader;        /* "receipts", "folds", "actions": for people and metrics */
    struct rcpt_kafka **kafka; /* NULL behind it: there is no consumer now */
    struct rcpt_asker *asker;
    bool remembers;        /* its group's offsets carry notes of the database */
    const char *statement; /* topics, partitions → the position of each, or NULL */
};

struct app_place { /* as far as it is known now */
    const char *topic;
    int32_t partition;
    int64_t position, low, high, lag; /* -1: not known */
    enum rcpt_kafka_owner owner;
    const char *member; /* NULL: no member has it, or it is not known */
};

/* Registers it with the context. Borrows what the settings name. */
struct app_places *app_places_new(const struct app_places_settings *settings);
/* Call as often as the owner's ticker runs. */
void app_places_tick(struct app_places *places);
/* Call when its consumer and its connection are closed. */
void app_places_free(struct app_places *places);
/* Surveys now instead of after the interval, because the group has changed. */
void app_places_refresh(struct app_places *places);
/* The consumer is gone: forgets everything known. */
void app_places_forget(struct app_places *places);

/* The next one of the process, behind context->places; NULL: no more. */
const struct app_places *app_places_next(const struct app_places *places);
const char *app_places_reader(const struct app_places *places);
/* False: there is no partition with this index. Ordered by topic, as configured, and partition. */
bool app_places_get(const struct app_places *places, size_t index, struct app_place *place);
bool app_places_find(const struct app_places *places, const char *topic, int32_t partition,
                     struct app_place *place);
/* Why work is not done, by these places and all behind them: a partition that no receiptd has, or a
 * group whose coordinator does not answer. NULL: no reason is known. */
const char *app_places_reason(const struct app_places *places);

#endif
