/* Folds parked receipts into a batch (batch_woken.h): the highest status, the smallest time among
 * equals, all flags. Each message has a signature of its own, since few are woken at once.
 */
#include "receiptd/core/batch_woken.h"

#include <string.h>

#include "receiptd/core/hash.h"

static void *allocate(struct rcpt_batch *batch, size_t count, size_t size)
{
    return rcpt_arena_alloc(&batch->arena, count * size);
}

static const struct rcpt_ladder_entry *entry_of(const struct rcpt_ladder *ladder, int16_t code,
                                                int *index)
{
    *index = rcpt_ladder_find_code(ladder, code, NULL, 0);
    RCPT_ASSERT(*index >= 0); /* a ladder only grows */
    return rcpt_ladder_entry(ladder, (size_t)*index);
}

static void set_beside(const struct rcpt_ladder *ladder, struct rcpt_event *event)
{
    struct rcpt_machine_marks marks;
    if (event->machines == 0)
        return;
    rcpt_machine_find_marks(ladder, &marks);
    for (int kind = 0; kind < RCPT_MACHINE_KIND__COUNT; kind++)
        if ((event->machines >> kind & 1) != 0)
            event->beside[kind] = rcpt_ladder_entry(ladder, (size_t)marks.statuses[kind])->code;
}

/* A record of one event, with its key behind it as decoded ones have it. */
struct single {
    struct rcpt_event event;
    uint64_t key;
};

static const struct rcpt_event *add_event(struct rcpt_batch *batch,
                                          const struct rcpt_ladder *ladder,
                                          const struct rcpt_woken *woken)
{
    int entry;
    struct single *single = allocate(batch, 1, sizeof(*single));
    struct rcpt_record *record = allocate(batch, 1, sizeof(*record));
    struct rcpt_batch_event *out = &batch->events[batch->event_count];
    entry_of(ladder, woken->code, &entry);
    *single =
        (struct single){.event = {.id = woken->id.at,
                                  .id_size = (uint8_t)woken->id.size,
                                  .hash = rcpt_hash_text_extended(woken->id.at, woken->id.size, 0),
                                  .at_us = woken->at_us,
                                  .payload_size = (uint32_t)woken->payload.size,
                                  .flags = woken->flags,
                                  .machines = woken->machines,
                                  .entry = (uint8_t)entry,
                                  .gateway = woken->gateway,
                                  .reason = woken->reason,
                                  .delivers_part = woken->delivers_part},
                        .key = woken->key};
    set_beside(ladder, &single->event);
    *record = (struct rcpt_record){.value = woken->payload.at,
                                   .traceparent = woken->traceparent,
                                   .events = &single->event,
                                   .event_count = 1,
                                   .has_keys = woken->key != 0};
    *out = (struct rcpt_batch_event){.record = record,
                                     .event = &single->event,
                                     .record_index = batch->event_count,
                                     .code = woken->code};
    batch->records[batch->event_count++] = record;
    batch->record_count = batch->event_count;
    batch->has_flags |= woken->flags != 0;
    batch->has_traceparents |= woken->traceparent[0] != '\0';
    return &single->event;
}

/* The winner's time is the smallest among the receipts of the highest status. */
static void raise(struct rcpt_batch_message *message, int16_t top, int64_t at_us)
{
    if (top < message->top || (top == message->top && at_us >= message->at_us))
        return;
    message->top = top;
    message->at_us = at_us;
}

/* A delivered part proves only the parent of DELIVERED for the whole message. */
static void raise_by(struct rcpt_batch_message *message, const struct rcpt_ladder *ladder,
                     const struct rcpt_woken *woken, const int16_t *beside, uint32_t count)
{
    int index;
    const struct rcpt_ladder_entry *entry = entry_of(ladder, woken->code, &index);
    raise(message, woken->delivers_part ? entry->parent : entry->top, woken->at_us);
    message->mask |= entry->mask | woken->flags;
    for (uint32_t at = 0; at < count; at++)
        raise(message, entry_of(ladder, beside[at], &index)->top, woken->at_us);
    if (woken->delivers_part && woken->whole_us != INT64_MIN) {
        message->whole_us = woken->whole_us;
        raise(message, entry->code, woken->whole_us);
    }
}

/* Inserts into the message's own codes, which are the last ones and ascend. */
static void sign(struct rcpt_batch *batch, struct rcpt_batch_signature *signature, int16_t code)
{
    int16_t *codes = batch->signature_codes + signature->first;
    int32_t *counts = batch->signature_counts + signature->first;
    uint32_t at = signature->size;
    while (at > 0 && codes[at - 1] > code)
        at--;
    if (at > 0 && codes[at - 1] == code) {
        counts[at - 1]++;
        return;
    }
    memmove(codes + at + 1, codes + at, (signature->size - at) * sizeof(*codes));
    memmove(counts + at + 1, counts + at, (signature->size - at) * sizeof(*counts));
    codes[at] = code;
    counts[at] = 1;
    signature->size++;
    batch->signature_code_count++;
}

/* Adds the receipts of one id and organisation, whether or not they name it. */
static void add_message(struct rcpt_batch *batch, const struct rcpt_ladder *ladder,
                        const struct rcpt_woken *woken, uint32_t count, struct rcpt_text org)
{
    struct rcpt_batch_message *message = &batch->messages[batch->message_count];
    struct rcpt_batch_signature *signature = &batch->signatures[batch->message_count];
    *signature = (struct rcpt_batch_signature){.first = batch->signature_code_count};
    *message = (struct rcpt_batch_message){.id = woken->id.at,
                                           .id_size = (uint32_t)woken->id.size,
                                           .signature = (int32_t)batch->message_count++,
                                           .org = org,
                                           .first_event = batch->event_count,
                                           .top = -1};
    batch->signature_count = batch->message_count;
    batch->has_orgs |= org.at != NULL;
    for (uint32_t index = 0; index < count; index++) {
        int16_t beside[RCPT_RECORD_MOST_BESIDE];
        uint32_t size = rcpt_event_beside(add_event(batch, ladder, &woken[index]), beside);
        raise_by(message, ladder, &woken[index], beside, size);
        sign(batch, signature, woken[index].code);
        for (uint32_t at = 0; at < size; at++)
            sign(batch, signature, beside[at]);
    }
}

static uint32_t same_id(const struct rcpt_woken *woken, uint32_t count)
{
    uint32_t size = 1;
    while (size < count && rcpt_text_equal(woken[size].id, woken[0].id))
        size++;
    return size;
}

/* The index behind the receipts of the first organisation. A receipt whose message has none belongs
 * to the last. */
static uint32_t same_org(const struct rcpt_woken *woken, uint32_t count)
{
    uint32_t size = 1;
    while (size < count &&
           (woken[size].org.at == NULL || rcpt_text_equal(woken[size].org, woken[0].org)))
        size++;
    return size;
}

/* If no receipt names an organisation and all belong to one message, every row of the id takes
 * them. */
static void add_id(struct rcpt_batch *batch, const struct rcpt_ladder *ladder,
                   const struct rcpt_woken *woken, uint32_t count)
{
    bool named = false;
    for (uint32_t index = 0; index < count; index++)
        named |= woken[index].named;
    for (uint32_t at = 0, size; at < count; at += size) {
        size = same_org(woken + at, count - at);
        bool apart = named || size < count;
        add_message(batch, ladder, woken + at, size,
                    apart ? woken[at].org : (struct rcpt_text){NULL, 0});
    }
}

/* The rows come sorted by id and organisation. There are at most as many messages, signatures and
 * records as rows. */
void rcpt_batch_fold_woken(struct rcpt_batch *batch, const struct rcpt_ladder *ladder,
                           const struct rcpt_woken *woken, uint32_t count)
{
    size_t codes = 0;
    for (uint32_t index = 0; index < count; index++)
        codes += 1 + (size_t)__builtin_popcount(woken[index].flags) +
                 (size_t)__builtin_popcount(woken[index].machines);
    batch->messages = allocate(batch, count, sizeof(*batch->messages));
    batch->events = allocate(batch, count, sizeof(*batch->events));
    batch->signatures = allocate(batch, count, sizeof(*batch->signatures));
    batch->signature_codes = allocate(batch, codes, sizeof(*batch->signature_codes));
    batch->signature_counts = allocate(batch, codes, sizeof(*batch->signature_counts));
    batch->records = allocate(batch, count, sizeof(const struct rcpt_record *));
    for (uint32_t at = 0, size; at < count; at += size) {
        size = same_id(woken + at, count - at);
        add_id(batch, ladder, woken + at, size);
    }
}
