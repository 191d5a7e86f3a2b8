/* The subscribers to transitions of messages (receipts.h): their wants, and their callbacks. Called
 * by lanes.c and positions.c; no other file goes through the list.
 */
#include "internal.h"

/* In the order of registration. */
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

struct transition_wants subscribers_want(const struct receipts *receipts)
{
    struct transition_wants wants = {.folds = false};
    const struct transition_subscriber *subscriber = receipts->subscribers;
    for (; subscriber != NULL; subscriber = subscriber->next)
        subscriber->want(subscriber->context, &wants);
    return wants;
}

bool subscribers_want_same(const struct transition_wants *left,
                           const struct transition_wants *right)
{
    return left->folds == right->folds && left->fold_columns == right->fold_columns &&
           left->actions == right->actions && left->stream == right->stream &&
           left->stream_form == right->stream_form;
}

/* subscribed: the batch reached what the selective subscriber subscribes to. */
void subscribers_on_committed(const struct receipts *receipts, bool subscribed,
                              uint32_t messages_changed)
{
    const struct transition_subscriber *subscriber = receipts->subscribers;
    for (; subscriber != NULL; subscriber = subscriber->next)
        if (subscriber->on_committed != NULL && (subscribed || !subscriber->selective))
            subscriber->on_committed(subscriber->context, messages_changed);
}

void subscribers_on_outdated(const struct receipts *receipts)
{
    const struct transition_subscriber *subscriber = receipts->subscribers;
    for (; subscriber != NULL; subscriber = subscriber->next)
        if (subscriber->on_outdated != NULL)
            subscriber->on_outdated(subscriber->context);
}
