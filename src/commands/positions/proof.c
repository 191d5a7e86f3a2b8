/* Checks that the log is the one that was consumed: it reads and compares the record just below
 * each position, as the daemon does at each assignment. Called by positions.c and change.c. */
#include <stdlib.h>

#include "positions.h"
#include "receiptd/core/hash.h"
#include "receiptd/core/record.h"
#include "receiptd/kafka/history.h"

struct proof {
    struct standing *standings;
    size_t count;
};

/* The first record from the anchor's offset on; a later one proves nothing. */
static bool on_anchor(void *context, const struct rcpt_kafka_message *message)
{
    struct proof *proof = context;
    for (size_t index = 0; index < proof->count; index++) {
        struct standing *standing = &proof->standings[index];
        if (standing->partition == message->partition &&
            message->offset == standing->anchor.offset &&
            (rcpt_record_bound_ms(message->timestamp_ms) !=
                 rcpt_record_bound_ms(standing->anchor.timestamp_ms) ||
             rcpt_hash_record(message->key, message->key_size, message->value,
                              message->value_size) != (uint32_t)standing->anchor.crc))
            standing->fit = LOG_OTHER;
    }
    return false;
}

static bool has_anchor(const struct standing *standing)
{
    const struct rcpt_kafka_place *place = standing->place;
    return standing->fit == LOG_FITS && place != NULL && standing->anchor.offset >= place->low &&
           standing->anchor.offset >= 0 && standing->anchor.offset < place->high;
}

bool positions_prove(struct positions *positions, const char *topic, struct standing *standings,
                     size_t count)
{
    const struct rcpt_config *config = positions->context.config;
    struct proof proof = {standings, count};
    int32_t last = -1;
    for (size_t index = 0; index < count; index++)
        if (has_anchor(&standings[index]) && standings[index].partition > last)
            last = standings[index].partition;
    if (last < 0)
        return true;
    int64_t *from = rcpt_calloc((size_t)last + 1, sizeof(*from));
    for (int32_t partition = 0; partition <= last; partition++)
        from[partition] = -1;
    for (size_t index = 0; index < count; index++)
        if (has_anchor(&standings[index]))
            from[standings[index].partition] = standings[index].anchor.offset;
    const struct rcpt_kafka_history history = {.brokers = config->kafka.brokers,
                                               .topic = topic,
                                               .properties = positions->properties,
                                               .property_count = config->kafka.properties_count,
                                               .from = from,
                                               .from_count = (size_t)last + 1,
                                               .context = &proof,
                                               .on_message = on_anchor};
    bool good = rcpt_kafka_read_history(&history, &positions->context.error);
    free(from);
    return good;
}
