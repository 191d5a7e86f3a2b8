/* What the rules of sql/lane/rules read of a batch's receipts. Gateway and reason are numbered
 * together, since few receipts differ in them; delays are counted by them. Called by
 * encode_batch.c.
 */
#include <math.h>
#include <string.h>

#include "encode_batch.h"

#define NUMBERS ((size_t)RCPT_RECORD_MAX_GATEWAYS)
#define MOST    (NUMBERS * NUMBERS)
#define BUCKETS 80 /* of delays */

/* ---- facets ---- */

/* Each combination gets the number of its first appearance, found by a table of all there can be.
 */
struct rcpt_encode_facets *rcpt_encode_facets(const struct rcpt_batch *batch,
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
    facets->delays = NULL;
    facets->delayed = NULL;
    return facets;
}

/* ---- delays ---- */

/* As delay_bucket() in SQL: bucket b ends at 2^(b/2) ms. A time in the future has no delay. */
static int16_t bucket_of(int64_t delay_us)
{
    double ms = (double)delay_us / 1000;
    double bucket = ms > 1 ? ceil(log(ms) * (2 / log(2))) : 0;
    return (int16_t)(bucket < BUCKETS - 1 ? bucket : BUCKETS - 1);
}

/* Of the receipts of a facet, how many are in each bucket. */
void rcpt_encode_delays(struct rcpt_encode_facets *facets, const struct rcpt_batch *batch,
                        int64_t now_us, struct rcpt_arena *arena)
{
    facets->delays = rcpt_arena_alloc(arena, batch->event_count * sizeof(int16_t));
    facets->delayed = rcpt_arena_alloc(arena, (size_t)facets->count * BUCKETS * sizeof(int32_t));
    memset(facets->delayed, 0, (size_t)facets->count * BUCKETS * sizeof(int32_t));
    for (uint32_t index = 0; index < batch->event_count; index++) {
        int16_t bucket = bucket_of(now_us - batch->events[index].event->at_us);
        facets->delays[index] = bucket;
        facets->delayed[(facets->of_events[index] - 1) * BUCKETS + bucket]++;
    }
}

/* The one-dimensional array of those that are there: facet, bucket, how many. */
void rcpt_encode_delayed(struct rcpt_pg_encoder *encoder, const struct rcpt_encode_facets *facets)
{
    size_t cells = facets != NULL && facets->delayed != NULL ? facets->count * BUCKETS : 0,
           used = 0;
    for (size_t cell = 0; cell < cells; cell++)
        used += facets->delayed[cell] > 0;
    uint8_t *place = rcpt_pg_add_int4_array(encoder, used * 3);
    for (size_t cell = 0; cell < cells; cell++) {
        if (facets->delayed[cell] == 0)
            continue;
        place = rcpt_pg_write_int4(place, (int32_t)(cell / BUCKETS) + 1);
        place = rcpt_pg_write_int4(place, (int32_t)(cell % BUCKETS));
        place = rcpt_pg_write_int4(place, facets->delayed[cell]);
    }
    rcpt_pg_end_array(encoder, place);
}
