/* The subscribers to transitions of messages (receipts.h): their files for the statements of lanes,
 * and their callbacks. Called by lanes.c and positions.c; no other file goes through the list.
 */
#include <string.h>

#include "internal.h"

/* In the order of registration, which is the order of their files in the statements. */
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

/* A subscriber without a file has nothing to do with transitions now. The selective one is last. */
struct subscribers_files subscribers_read_files(const struct receipts *receipts)
{
    struct subscribers_files files = {.count = 0};
    const struct transition_subscriber *subscriber = receipts->subscribers;
    for (; subscriber != NULL; subscriber = subscriber->next) {
        const char *file = subscriber->file(subscriber->context);
        if (file == NULL)
            continue;
        RCPT_ASSERT(files.count < SUBSCRIBERS_MOST_FILES && !files.selective);
        files.all[files.count++] = file;
        files.selective = subscriber->selective;
    }
    return files;
}

/* Pointers are compared: names of files are constants. */
bool subscribers_files_are_same(const struct subscribers_files *left,
                                const struct subscribers_files *right)
{
    return left->count == right->count &&
           memcmp(left->all, right->all, left->count * sizeof(left->all[0])) == 0;
}

/* The selective subscriber was not part of an unsubscribed batch. */
void subscribers_on_committed(const struct receipts *receipts, const struct lane_flight *flight,
                              uint32_t messages_changed)
{
    const struct transition_subscriber *subscriber = receipts->subscribers;
    for (; subscriber != NULL; subscriber = subscriber->next)
        if (subscriber->on_committed != NULL && !(subscriber->selective && flight->unsubscribed))
            subscriber->on_committed(subscriber->context, messages_changed);
}

void subscribers_on_outdated(const struct receipts *receipts)
{
    const struct transition_subscriber *subscriber = receipts->subscribers;
    for (; subscriber != NULL; subscriber = subscriber->next)
        if (subscriber->on_outdated != NULL)
            subscriber->on_outdated(subscriber->context);
}
