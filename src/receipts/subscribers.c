/* Who subscribes to transitions of messages (receipts.h): their blocks for the statements of lanes,
 * and what they are told. Called by lanes.c and positions.c; no other file goes through the list.
 */
#include <string.h>

#include "internal.h"

void receipts_subscribe(struct receipts *receipts, struct transition_subscriber *subscriber)
{
    struct transition_subscriber **end = &receipts->subscribers;
    while (*end != NULL)
        end = &(*end)->next;
    *end = subscriber;
}

bool subscribers_are_prepared(const struct receipts *receipts)
{
    const struct transition_subscriber *subscriber = receipts->subscribers;
    while (subscriber != NULL &&
           (subscriber->is_prepared == NULL || subscriber->is_prepared(subscriber->context)))
        subscriber = subscriber->next;
    return subscriber == NULL;
}

struct subscribers_blocks subscribers_read_blocks(const struct receipts *receipts)
{
    struct subscribers_blocks blocks = {.count = 0};
    const struct transition_subscriber *subscriber = receipts->subscribers;
    for (; subscriber != NULL; subscriber = subscriber->next) {
        const char *block = subscriber->block(subscriber->context);
        if (block == NULL)
            continue;
        RCPT_ASSERT(blocks.count < SUBSCRIBERS_MOST_BLOCKS && !blocks.selective);
        blocks.all[blocks.count++] = block;
        blocks.selective = subscriber->selective;
    }
    return blocks;
}

bool subscribers_blocks_are_same(const struct subscribers_blocks *left,
                                 const struct subscribers_blocks *right)
{
    return left->count == right->count &&
           memcmp(left->all, right->all, left->count * sizeof(left->all[0])) == 0;
}

void subscribers_tell_committed(const struct receipts *receipts, const struct lane_flight *flight,
                                uint32_t messages_changed)
{
    const struct transition_subscriber *subscriber = receipts->subscribers;
    for (; subscriber != NULL; subscriber = subscriber->next)
        if (subscriber->on_committed != NULL && !(subscriber->selective && flight->unsubscribed))
            subscriber->on_committed(subscriber->context, messages_changed);
}

void subscribers_tell_outdated(const struct receipts *receipts)
{
    const struct transition_subscriber *subscriber = receipts->subscribers;
    for (; subscriber != NULL; subscriber = subscriber->next)
        if (subscriber->on_outdated != NULL)
            subscriber->on_outdated(subscriber->context);
}
