/* What the rules of sql/lane/rules read of a batch. Gateway and reason of its receipts are numbered
 * together, since few receipts differ in them. And which messages' receipts are recognised by the row. Called by
 * encode_batch.c. */
#include <string.h>

#include "encode_batch.h"

#define NUMBERS ((size_t)RCPT_RECORD_MAX_GATEWAYS)
#define MOST    (NUMBERS * NUMBERS)

/* Each combination gets the number of its first appearance, found by a table of all there can be. */
const struct rcpt_encode_facets *rcpt_encode_facets(const struct rcpt_batch *batch,
                                                    struct rcpt_arena *arena)
{
    struct rcpt_encode_facets *facets = rcpt_arena_alloc(arena, sizeof(*facets));
    int32_t *numbers = rcpt_arena_alloc(arena, MOST * sizeof(*numbers));
    size_t most = batch->event_count < MOST ? batch->event_count : MOST;
    memset(numbers, 0, MOST * sizeof(*numbers));
    facets->of_events = rcpt_arena_alloc(arena, batch->event_count * sizeof(int32_t));
    facets->first = rcpt_arena_alloc(arena, most * sizeof(*facets->first));
    facets->count = 0;
    for (uint32_t index = 0; index < batch->event_count; index++) {
        const struct rcpt_event *event = batch->events[index].event;
        int32_t *number = &numbers[event->gateway * NUMBERS + event->reason];
        if (*number == 0) {
            facets->first[facets->count++] = event;
            *number = (int32_t)facets->count;
        }
        facets->of_events[index] = *number;
    }
    return facets;
}

/* The lowest status that the message's receipts name, if each of them names another one and no flag:
 * where the row's status is below it, none of them can have come before, and the row takes their
 * keys. Else -1: each is looked up. */
int16_t rcpt_encode_lowest_status(const struct rcpt_batch *batch, uint32_t message)
{
    uint32_t first = batch->messages[message].first_event;
    uint32_t end = message + 1 < batch->message_count ? batch->messages[message + 1].first_event
                                                      : batch->event_count;
    int16_t lowest = INT16_MAX;
    if (end - first > RCPT_LADDER_MAX_STATUSES)
        return -1;
    for (uint32_t at = first; at < end; at++) {
        int16_t code = batch->events[at].code;
        if (code >= RCPT_LADDER_FIRST_FLAG_CODE || batch->events[at].event->flags != 0)
            return -1;
        for (uint32_t before = first; before < at; before++)
            if (batch->events[before].code == code)
                return -1;
        lowest = code < lowest ? code : lowest;
    }
    return lowest;
}

/* As int8send() writes them. */
void rcpt_encode_keys(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch, bool wanted)
{
    uint32_t count = wanted ? batch->event_count : 0;
    uint8_t *place = rcpt_pg_add_bytea(encoder, (size_t)count * sizeof(uint64_t));
    for (uint32_t index = 0; index < count; index++) {
        const struct rcpt_batch_event *event = &batch->events[index];
        uint64_t key = __builtin_bswap64(rcpt_record_event_key(event->record, event->event));
        memcpy(place + index * sizeof(key), &key, sizeof(key));
    }
}
