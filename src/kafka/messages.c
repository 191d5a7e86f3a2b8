/* Rounds over the partition queues, and the handling of errors of a single partition. A round is
 * bounded in time and messages, then the loop serves PostgreSQL's sockets; within it partitions
 * take turns. Called by consumer.c; messages go to the owner's on_message.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* The bound of a round by time (and ROUND_MESSAGES): then the loop serves PostgreSQL's sockets. */
#define ROUND_NS      2000000u
#define TURN_MESSAGES 32u
#define TURN_BYTES    32768u /* partitions advance side by side, however large their records are */
#define CLOCK_BYTES   4096u  /* decoded between two readings of the clock … */
#define CLOCK_MESSAGE 512u   /* … where a message counts this much by itself */
#define RETRY_MIN_MS  250
#define RETRY_MAX_MS  10000

enum turn_end {
    TURN_EMPTY,    /* the queue is empty, a wake-up will come */
    TURN_UNWANTED, /* not to be polled: the owner kicks */
    TURN_MORE,     /* the turn's share is used up */
    TURN_STOP,     /* the round's share is used up */
};

struct round {
    uint64_t deadline_ns;
    unsigned messages;
    size_t unclocked_bytes; /* since the clock was read */
};

/* The last header of that name counts, as in Kafka's own clients. */
static void find_header(const rd_kafka_headers_t *headers, const char *name, const char **text,
                        size_t *text_size)
{
    const void *value;
    size_t size;
    if (rd_kafka_header_get_last(headers, name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        value != NULL) {
        *text = value;
        *text_size = size;
    }
}

bool rcpt_kafka_header(const struct rcpt_kafka_message *message, size_t number,
                       struct rcpt_kafka_header *header)
{
    const void *value = NULL;
    if (message->headers == NULL ||
        rd_kafka_header_get_all(message->headers, number, &header->name, &value, &header->size) !=
            RD_KAFKA_RESP_ERR_NO_ERROR)
        return false;
    header->value = value != NULL ? value : "";
    return true;
}

/* Other headers are read only where the owner asks for them. */
static void find_headers(const rd_kafka_message_t *from, struct rcpt_kafka_message *to)
{
    rd_kafka_headers_t *headers;
    if (rd_kafka_message_headers(from, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    to->headers = headers;
    find_header(headers, "traceparent", &to->traceparent, &to->traceparent_size);
    if (to->traceparent != NULL)
        find_header(headers, "tracestate", &to->tracestate, &to->tracestate_size);
}

/* A message shows that the partition is well again. */
static void deliver(struct rcpt_kafka *kafka, struct partition *partition,
                    const rd_kafka_message_t *from)
{
    struct rcpt_kafka_message to = {
        .topic = partition->topic,
        .partition = partition->partition,
        .offset = from->offset,
        .timestamp_ms = rd_kafka_message_timestamp(from, NULL),
        .key = from->key,
        .key_size = from->key_len,
        .value = from->payload,
        .value_size = from->len,
    };
    find_headers(from, &to);
    partition->next = from->offset + 1;
    partition->time_ms = to.timestamp_ms;
    partition->retries = 0;
    rcpt_kafka_partition_fine(kafka, partition);
    kafka->callbacks.on_message(kafka->callbacks.context, partition->tag, &to);
}

/* The partition stands still until the owner has decided where to go on. */
static void on_out_of_range(struct rcpt_kafka *kafka, struct partition *partition, int64_t offset)
{
    rcpt_kafka_set_partition(partition, PARTITION_OUT_OF_RANGE);
    rcpt_kafka_query_range(kafka, partition, offset >= 0 ? offset : partition->next);
}

/* After a batch that it cannot read, librdkafka may go on with the next one; it does so if the
 * format is unknown. Then the receipts in between would be lost without a trace. So the partition
 * is put back to its position and fetched again, with growing waits. */
static void back_off(struct rcpt_kafka *kafka, struct partition *partition)
{
    int64_t wait = RETRY_MIN_MS;
    for (unsigned i = 0; i < partition->retries && wait < RETRY_MAX_MS; i++)
        wait *= 2;
    partition->retries++;
    rcpt_kafka_set_partition(partition, PARTITION_BACKING_OFF);
    partition->retry_at_ms = rcpt_kafka_now_ms(kafka) + (wait < RETRY_MAX_MS ? wait : RETRY_MAX_MS);
}

/* Errors behind which librdkafka goes on with the next batch. */
static bool skips_records(rd_kafka_resp_err_t code)
{
    switch (code) {
    case RD_KAFKA_RESP_ERR__BAD_MSG:
    case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
    case RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED:
    case RD_KAFKA_RESP_ERR__INCONSISTENT:
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
        return true;
    default:
        return false;
    }
}

/* Reads the size in librdkafka's text: "… of 1234 bytes failed: …". */
static bool find_size(const char *text, size_t *size)
{
    const char *words = text != NULL ? strstr(text, " of ") : NULL;
    while (words != NULL) {
        const char *number = words + strlen(" of ");
        char *end;
        *size = strtoul(number, &end, 10);
        if (end > number && strncmp(end, " bytes failed", 13) == 0)
            return true;
        words = strstr(number, " of ");
    }
    return false;
}

/* librdkafka gives the batch's offset and, only in its text, the size by which our refusal is
 * found. If the text is not understood, the batch counts as unreadable. */
static bool is_refused(struct rcpt_kafka *kafka, struct partition *partition, int64_t base,
                       const char *text)
{
    size_t size;
    enum rcpt_inflate_verdict verdict =
        find_size(text, &size) && base >= 0 ? rcpt_inflate_verdict(size) : RCPT_INFLATE_NOT_REFUSED;
    if (verdict == RCPT_INFLATE_TOO_LARGE)
        rcpt_kafka_refused(kafka, partition, base, size);
    else if (verdict == RCPT_INFLATE_NO_CAPACITY && partition->oversized.searching)
        rcpt_kafka_probe_again(kafka, partition);
    else if (verdict == RCPT_INFLATE_NO_CAPACITY)
        rcpt_kafka_seek_now(kafka, partition, partition->next);
    return verdict != RCPT_INFLATE_NOT_REFUSED;
}

/* The search for a batch's end fetches elsewhere: the end that it reaches is not the partition's
 * end. */
static void on_end(struct partition *partition, int64_t offset)
{
    if (!partition->oversized.searching && offset >= partition->next)
        partition->end = offset;
}

/* Out of range and refused batches have ways of their own; the rest is damage, fetched again, or
 * trouble that librdkafka mends. */
static void on_partition_error(struct rcpt_kafka *kafka, struct partition *partition,
                               rd_kafka_event_t *event)
{
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    rd_kafka_topic_partition_t *place = rd_kafka_event_topic_partition(event);
    int64_t offset = place != NULL ? place->offset : -1;
    if (place != NULL)
        rd_kafka_topic_partition_destroy(place);
    if (code == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        on_end(partition, offset);
        return;
    }
    if (code == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET && partition->oversized.searching) {
        if (rcpt_kafka_is_behind(kafka, partition))
            rcpt_kafka_seek_now(kafka, partition, partition->next);
        return;
    }
    if (code == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET) {
        on_out_of_range(kafka, partition, offset);
        return;
    }
    struct rcpt_error error;
    char subject[320];
    snprintf(subject, sizeof(subject), "%s [%d]", partition->topic, partition->partition);
    rcpt_kafka_describe(&error, code, subject, rd_kafka_event_error_string(event));
    if (code == RD_KAFKA_RESP_ERR__BAD_COMPRESSION &&
        is_refused(kafka, partition, offset, rd_kafka_event_error_string(event)))
        return;
    if (skips_records(code))
        back_off(kafka, partition);
    rcpt_kafka_partition_trouble(kafka, partition, &error);
}

void rcpt_kafka_retry_partitions(struct rcpt_kafka *kafka)
{
    int64_t now = rcpt_kafka_now_ms(kafka);
    for (size_t i = 0; i < kafka->partition_count; i++) {
        struct partition *partition = kafka->partitions[i];
        if (partition->state == PARTITION_BACKING_OFF && partition->retry_at_ms <= now)
            rcpt_kafka_seek_now(kafka, partition, partition->next);
        rcpt_kafka_tick_search(kafka, partition);
    }
}

/* Returns the bytes of the records delivered. */
static size_t dispatch(struct rcpt_kafka *kafka, struct partition *partition,
                       rd_kafka_event_t *event)
{
    const rd_kafka_message_t *message;
    size_t bytes = 0;
    switch (rd_kafka_event_type(event)) {
    case RD_KAFKA_EVENT_FETCH:
        while ((message = rd_kafka_event_message_next(event)) != NULL) {
            if (partition->oversized.searching && !rcpt_kafka_is_behind(kafka, partition))
                break; /* the partition goes on elsewhere, so the rest of the queue is void */
            deliver(kafka, partition, message);
            bytes += message->len;
        }
        break;
    case RD_KAFKA_EVENT_ERROR:
        on_partition_error(kafka, partition, event);
        break;
    default:
        break;
    }
    return bytes;
}

/* The owner may refuse a partition at any time: that is the back-pressure. */
static bool is_wanted(struct rcpt_kafka *kafka, const struct partition *partition)
{
    return partition->state == PARTITION_ACTIVE &&
           kafka->callbacks.wants(kafka->callbacks.context, partition->topic, partition->partition,
                                  partition->tag);
}

/* Behind each large record the clock is read, since it may take milliseconds to decode; reading it
 * behind each small record would cost as much as checking the record. */
static bool is_over(const struct rcpt_kafka *kafka, struct round *round)
{
    if (!kafka->polling || round->messages >= kafka->round_messages)
        return true;
    if (round->unclocked_bytes < CLOCK_BYTES)
        return false;
    round->unclocked_bytes = 0;
    return uv_hrtime() >= round->deadline_ns;
}

/* `kafka->taken` outlives the round, so that a turn which was cut goes on where it stopped. */
static enum turn_end take_turn(struct rcpt_kafka *kafka, struct partition *partition,
                               struct round *round)
{
    while (kafka->taken.messages < TURN_MESSAGES && kafka->taken.bytes < TURN_BYTES) {
        if (is_over(kafka, round))
            return TURN_STOP;
        if (!is_wanted(kafka, partition))
            return TURN_UNWANTED;
        rd_kafka_event_t *event = rd_kafka_queue_poll(partition->queue, 0);
        if (event == NULL)
            return TURN_EMPTY;
        round->messages++;
        kafka->taken.messages++;
        size_t bytes = dispatch(kafka, partition, event);
        kafka->taken.bytes += bytes;
        round->unclocked_bytes += bytes + CLOCK_MESSAGE;
        rd_kafka_event_destroy(event);
    }
    return TURN_MORE;
}

/* Skips partitions that are done in this round; the caller knows that one is left. */
static struct partition *next_in_turn(struct rcpt_kafka *kafka)
{
    do
        kafka->turn = (kafka->turn + 1) % kafka->partition_count;
    while (kafka->partitions[kafka->turn]->done_in == kafka->rounds);
    return kafka->partitions[kafka->turn];
}

/* The partition whose last record has the lowest timestamp; new ones (0) come first. */
static struct partition *oldest(struct rcpt_kafka *kafka)
{
    struct partition *found = NULL;
    for (size_t i = 0; i < kafka->partition_count; i++) {
        struct partition *partition = kafka->partitions[i];
        if (partition->done_in != kafka->rounds &&
            (found == NULL || partition->time_ms < found->time_ms))
            found = partition;
    }
    return found;
}

static struct partition *in_turn(struct rcpt_kafka *kafka)
{
    if (kafka->favour)
        return oldest(kafka);
    bool is_cut = kafka->taken.messages > 0 && kafka->turn < kafka->partition_count;
    return is_cut ? kafka->partitions[kafka->turn] : next_in_turn(kafka);
}

/* While there is more than a turn takes, every other turn goes to the partition that is furthest
 * behind by the records' timestamps. So partitions advance together, and receipts of one message in
 * several partitions meet in a batch. The other turns go round, so that fresh records do not wait
 * for a backlog. A turn that a round cuts short goes on in the next one. On a slow machine a round
 * is no longer than a turn, and otherwise the last partition in it would get nothing. */
bool rcpt_kafka_round(struct rcpt_kafka *kafka)
{
    struct round round = {.deadline_ns = uv_hrtime() + ROUND_NS};
    size_t done = 0; /* partitions that have nothing more to give in this round */
    kafka->rounds++;
    while (done < kafka->partition_count && !is_over(kafka, &round)) {
        struct partition *partition = in_turn(kafka);
        enum turn_end end = take_turn(kafka, partition, &round);
        if (end == TURN_STOP)
            break;
        kafka->favour = end == TURN_MORE && !kafka->favour;
        kafka->taken.messages = 0;
        kafka->taken.bytes = 0;
        if (end == TURN_MORE)
            continue;
        partition->done_in = kafka->rounds;
        done++;
    }
    if (round.messages > 0)
        kafka->callbacks.on_round(kafka->callbacks.context);
    return done < kafka->partition_count && kafka->polling;
}
