/* The way past a batch that inflate.c refused for its size. Called by messages.c.
 *
 * librdkafka reports the batch's first offset, but not its end, and the consumer may skip only
 * offsets of this batch. So it probes: a fetch within the batch brings the same refusal; a fetch
 * behind it brings something else, or nothing. The distance doubles, then halves: some twenty
 * fetches for a batch of a thousand records, none for a single record. When the end is known, the
 * owner gets one message for the whole batch, with the offset of its last record. Until then its
 * position does not move, and a restart begins the search again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define SILENT_MS 5000

/* One message in place of the whole batch, without a value and with the reason. */
static void give(struct rcpt_kafka *kafka, struct partition *partition)
{
    const struct oversized *found = &partition->oversized;
    char text[120];
    snprintf(text, sizeof(text),
             "offsets %" PRId64 " to %" PRId64
             ": a compressed batch of %zu bytes holds more than %zu",
             found->first, found->inside, found->in_size, rcpt_inflate_get_limit());
    rcpt_log_error("kafka",
                   "%s [%d] %s: it is passed over as one dead letter; HINT: find its producer, see "
                   "kafka.batch_limit",
                   partition->topic, partition->partition, text);
    struct rcpt_kafka_message message = {
        .topic = partition->topic,
        .partition = partition->partition,
        .offset = found->inside,
        .timestamp_ms = -1,
        .unreadable = text,
    };
    partition->next = found->inside + 1;
    partition->retries = 0;
    rcpt_kafka_partition_fine(kafka, partition);
    kafka->callbacks.on_message(kafka->callbacks.context, partition->tag, &message);
}

/* Chooses the offset to ask for next. False: the end is known. */
static bool choose(struct rcpt_kafka *kafka, struct partition *partition)
{
    struct oversized *search = &partition->oversized;
    int64_t low, high;
    if (search->behind == INT64_MAX) {
        search->probe = search->inside + search->step;
        search->step *= 2;
        if (rd_kafka_get_watermark_offsets(kafka->handle, partition->topic, partition->partition,
                                           &low, &high) == RD_KAFKA_RESP_ERR_NO_ERROR &&
            high > search->inside && search->probe >= high)
            search->behind = high;
    }
    if (search->behind != INT64_MAX)
        search->probe = search->inside + (search->behind - search->inside) / 2;
    return search->behind - search->inside > 1;
}

void rcpt_kafka_probe_again(struct rcpt_kafka *kafka, struct partition *partition)
{
    struct oversized search = partition->oversized;
    rcpt_kafka_seek_now(kafka, partition,
                        search.probe); /* which ends a search, if it is not ours */
    search.until_ms = rcpt_kafka_now_ms(kafka) + SILENT_MS;
    partition->oversized = search;
    partition->next = search.start;
}

/* False: the search has ended, the message is given. */
static bool go_on(struct rcpt_kafka *kafka, struct partition *partition)
{
    if (choose(kafka, partition)) {
        rcpt_kafka_probe_again(kafka, partition);
        return true;
    }
    partition->oversized.searching = false;
    give(kafka, partition);
    return false;
}

/* The first refusal begins the search; a later one says that `probe` is inside the batch. */
void rcpt_kafka_refused(struct rcpt_kafka *kafka, struct partition *partition, int64_t base,
                        size_t in_size)
{
    struct oversized *search = &partition->oversized;
    if (search->searching && search->base != base && !rcpt_kafka_is_behind(kafka, partition))
        return; /* the other batch is searched later */
    if (search->searching) {
        search->inside = search->probe;
    } else {
        int64_t first = partition->next > base ? partition->next : base;
        *search = (struct oversized){.searching = true,
                                     .base = base,
                                     .start = partition->next,
                                     .first = first,
                                     .inside = first,
                                     .behind = INT64_MAX,
                                     .step = 1,
                                     .in_size = in_size};
    }
    if (!go_on(kafka, partition))
        rcpt_kafka_seek_now(kafka, partition, partition->next);
}

/* `probe` lies behind the batch: something else came from there, or nothing for a while. */
bool rcpt_kafka_is_behind(struct rcpt_kafka *kafka, struct partition *partition)
{
    partition->oversized.behind = partition->oversized.probe;
    return !go_on(kafka, partition);
}

void rcpt_kafka_tick_search(struct rcpt_kafka *kafka, struct partition *partition)
{
    if (kafka->polling && partition->oversized.searching &&
        rcpt_kafka_now_ms(kafka) >= partition->oversized.until_ms &&
        rcpt_kafka_is_behind(kafka, partition))
        rcpt_kafka_seek_now(kafka, partition, partition->next);
}
