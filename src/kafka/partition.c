/* The assigned partitions: their list, the queue and the state of each.
 *
 * A partition's queue is taken off the consumer queue when it is added, and given back when it is
 * removed. If it were only destroyed, librdkafka's partition would be mute at its next assignment.
 * Called by assignment.c, messages.c and cluster.c.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct partition *rcpt_kafka_find(const struct rcpt_kafka *kafka, const char *topic, int32_t number)
{
    for (size_t i = 0; i < kafka->partition_count; i++) {
        struct partition *partition = kafka->partitions[i];
        if (partition->partition == number && strcmp(partition->topic, topic) == 0)
            return partition;
    }
    return NULL;
}

/* Errors of a queue are not read while the partition moves, so nothing but another move or its end
 * can follow. */
void rcpt_kafka_set_partition(struct partition *partition, enum partition_state state)
{
    enum { ANY = RCPT_TO(PARTITION_STATE__COUNT) - 1 };
    static const unsigned successors[PARTITION_STATE__COUNT] = {
        [PARTITION_ACTIVE] = ANY,
        [PARTITION_BACKING_OFF] = ANY,
        [PARTITION_OUT_OF_RANGE] = ANY,
        [PARTITION_MOVING] = RCPT_TO(PARTITION_MOVING) | RCPT_TO(PARTITION_ACTIVE),
    };
    RCPT_ASSERT_FOLLOWS(successors, partition->state, state);
    partition->state = state;
}

/* Takes the partition's queue off the consumer queue. Also for one that is bound: the same queue,
 * or a new one if librdkafka has made the partition again. */
void rcpt_kafka_bind_queue(struct rcpt_kafka *kafka, struct partition *partition)
{
    rd_kafka_queue_t *queue =
        rd_kafka_queue_get_partition(kafka->handle, partition->topic, partition->partition);
    RCPT_ASSERT(queue != NULL);
    rd_kafka_queue_forward(queue, NULL);
    rcpt_kafka_wake_by(&kafka->wake, queue);
    if (partition->queue != NULL)
        rd_kafka_queue_destroy(partition->queue);
    partition->queue = queue;
}

/* The rest of the queue goes to the consumer queue, where it is dropped. */
static void unbind_queue(struct rcpt_kafka *kafka, struct partition *partition)
{
    rd_kafka_queue_io_event_enable(partition->queue, -1, NULL, 0);
    rd_kafka_queue_forward(partition->queue, kafka->control);
    rd_kafka_queue_destroy(partition->queue);
    partition->queue = NULL;
}

void rcpt_kafka_partition_add(struct rcpt_kafka *kafka, const struct rcpt_kafka_partition *given,
                              void *tag)
{
    struct partition *partition = rcpt_calloc(1, sizeof(*partition));
    partition->topic = rcpt_strdup(given->topic);
    partition->partition = given->partition;
    partition->next = given->offset;
    partition->tag = tag;
    partition->epoch = ++kafka->epochs;
    rcpt_kafka_bind_queue(kafka, partition);
    if (kafka->partition_count == kafka->partition_capacity) {
        RCPT_GROW(kafka->partitions, kafka->partition_capacity, 8);
    }
    kafka->partitions[kafka->partition_count++] = partition;
}

/* The last one takes its place: the order of partitions has no meaning. */
void rcpt_kafka_partition_remove(struct rcpt_kafka *kafka, size_t index)
{
    struct partition *partition = kafka->partitions[index];
    rcpt_kafka_partition_fine(kafka, partition);
    unbind_queue(kafka, partition);
    kafka->partitions[index] = kafka->partitions[--kafka->partition_count];
    free(partition->topic);
    free(partition);
}

void rcpt_kafka_forget_partitions(struct rcpt_kafka *kafka)
{
    while (kafka->partition_count > 0)
        rcpt_kafka_partition_remove(kafka, kafka->partition_count - 1);
}
