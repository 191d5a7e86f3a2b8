/* First times of messages (counters.times), as parameters of apply: the least event times of a
 * batch's receipts that name one of four statuses. The statement keeps the least of all in the
 * message's row (sql/lane/apply/11_set_times.sql). Called by encode_batch.c.
 */
#include <string.h>

#include "encode_batch.h"

#define TIMES 4u
#define NONE  INT64_MAX

/* A status that the ladder does not have gets a code that no receipt names. */
static void read_codes(const struct rcpt_ladder *ladder, int16_t codes[static TIMES])
{
    static const char *const names[TIMES] = {"SENT", "DELIVERED", "OPENED", "CLICKED"};
    for (size_t index = 0; index < TIMES; index++) {
        int entry = rcpt_ladder_find_name(ladder, names[index], strlen(names[index]), NULL, 0);
        codes[index] = RCPT_LADDER_NO_STATUS;
        if (entry >= 0)
            codes[index] = rcpt_ladder_entry(ladder, (size_t)entry)->code;
    }
}

/* TIMES: none of them. */
static size_t time_of(const int16_t codes[static TIMES], int16_t code)
{
    size_t index = 0;
    while (index < TIMES && codes[index] != code)
        index++;
    return index;
}

static void find_times(const struct rcpt_batch *batch, uint32_t message,
                       const int16_t codes[static TIMES], int64_t times[static TIMES])
{
    for (size_t index = 0; index < TIMES; index++)
        times[index] = NONE;
    for (uint32_t at = batch->messages[message].first_event; at < rcpt_batch_end(batch, message);
         at++) {
        size_t index = time_of(codes, batch->events[at].code);
        int64_t at_us = batch->events[at].event->at_us;
        if (index < TIMES && at_us < times[index])
            times[index] = at_us;
    }
}

void rcpt_encode_first_times(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                             const struct rcpt_encode_form *form)
{
    uint32_t count = form->rules.times ? batch->message_count : 0;
    uint8_t *place = rcpt_pg_add_timestamp_array(encoder, (size_t)count * TIMES);
    int16_t codes[TIMES];
    int64_t times[TIMES];
    if (count > 0)
        read_codes(form->ladder, codes);
    for (uint32_t message = 0; message < count; message++) {
        find_times(batch, message, codes, times);
        for (size_t index = 0; index < TIMES; index++)
            place = times[index] == NONE ? rcpt_pg_write_infinity(place)
                                         : rcpt_pg_write_timestamp(place, times[index]);
    }
    rcpt_pg_end_array(encoder, place);
}

/* As COLLATE "C" compares. NULL or empty: none. */
static bool is_before(const char *name, const char *other)
{
    return name != NULL && name[0] != '\0' && (other == NULL || strcmp(name, other) < 0);
}

static int32_t find_gateway(const struct rcpt_batch *batch, uint32_t message,
                            const int16_t codes[static TIMES], const struct rcpt_lane_names *names,
                            const struct rcpt_encode_facets *facets)
{
    const char *least = NULL;
    int32_t found = 0;
    for (uint32_t at = batch->messages[message].first_event; at < rcpt_batch_end(batch, message);
         at++) {
        if (time_of(codes, batch->events[at].code) == TIMES)
            continue;
        const char *name =
            rcpt_lane_name(names, RCPT_FACET_GATEWAY, batch->events[at].event->gateway);
        if (is_before(name, least)) {
            least = name;
            found = facets->of_events[at];
        }
    }
    return found;
}

void rcpt_encode_first_gateways(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                                const struct rcpt_encode_form *form,
                                const struct rcpt_encode_facets *facets)
{
    uint32_t count = form->rules.times ? batch->message_count : 0;
    uint8_t *place = rcpt_pg_add_int4_array(encoder, count);
    int16_t codes[TIMES];
    if (count > 0)
        read_codes(form->ladder, codes);
    for (uint32_t message = 0; message < count; message++)
        place = rcpt_pg_write_int4(place, find_gateway(batch, message, codes, form->names, facets));
    rcpt_pg_end_array(encoder, place);
}
