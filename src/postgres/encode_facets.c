/* Gateway and reason of a batch's receipts, numbered together for the rules of
 * sql/lane/rules: few receipts of a batch differ in them. Called by encode_batch.c. */
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
