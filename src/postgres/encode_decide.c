/* The parameters of sql/lane/decide: messages with the sum of their receipts, and for first times
 * (counters.times) the least event times of receipts that name one of four statuses. Called by
 * flights.c.
 */
#include "encode_batch.h"

#include "encode_parameters.h"
#include "receiptd/core/ladder.h"

#define TIMES 4u
#define NONE  INT64_MAX

/* ---- first times ---- */

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

/* Whether the receipt's time counts as a time of this status. A delivered part does not prove the
 * message's delivery. */
static bool tells(const struct rcpt_batch_event *raw, int16_t code)
{
    const struct rcpt_event *event = raw->event;
    bool is_own = raw->code == code && !event->delivers_part;
    for (uint32_t kinds = event->machines; kinds != 0; kinds &= kinds - 1)
        is_own |= event->beside[__builtin_ctz(kinds)] == code;
    return is_own;
}

static bool tells_any(const struct rcpt_batch_event *raw, const int16_t codes[static TIMES])
{
    bool found = raw->event->delivers_part;
    for (size_t index = 0; index < TIMES; index++)
        found |= tells(raw, codes[index]);
    return found;
}

static void find_times(const struct rcpt_batch *batch, uint32_t message,
                       const int16_t codes[static TIMES], int64_t times[static TIMES])
{
    for (size_t index = 0; index < TIMES; index++)
        times[index] = NONE;
    if (batch->messages[message].whole_us != 0)
        times[1] = batch->messages[message].whole_us;
    for (uint32_t at = batch->messages[message].first_event; at < rcpt_batch_end(batch, message);
         at++) {
        int64_t at_us = batch->events[at].event->at_us;
        for (size_t index = 0; index < TIMES; index++)
            if (at_us < times[index] && tells(&batch->events[at], codes[index]))
                times[index] = at_us;
    }
}

/* As COLLATE "C" compares. NULL or empty: none. */
static bool is_before(const char *name, const char *other)
{
    return name != NULL && name[0] != '\0' && (other == NULL || strcmp(name, other) < 0);
}

/* The number of the gateway with the lowest name; 0: none. */
static uint8_t find_gateway(const struct rcpt_batch *batch, uint32_t message,
                            const int16_t codes[static TIMES], const struct rcpt_lane_names *names)
{
    const char *least = NULL;
    uint8_t found = 0;
    for (uint32_t at = batch->messages[message].first_event; at < rcpt_batch_end(batch, message);
         at++) {
        const struct rcpt_batch_event *event = &batch->events[at];
        bool counts = tells_any(event, codes);
        const char *name = rcpt_lane_name(names, RCPT_FACET_GATEWAY, event->event->gateway);
        if (counts && is_before(name, least)) {
            least = name;
            found = event->event->gateway;
        }
    }
    return found;
}

/* $8 has a place for each number that receipts of the batch have. */
static void add_gateway_names(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                              const struct rcpt_lane_names *names)
{
    uint32_t count = 0;
    for (uint32_t at = 0; at < batch->event_count; at++)
        if (batch->events[at].event->gateway > count)
            count = batch->events[at].event->gateway;
    COLUMN(text, put_text_or_null(
                     encoder, rcpt_text_of(rcpt_lane_name(names, RCPT_FACET_GATEWAY, index + 1))));
}

#define MESSAGE (messages != NULL ? messages[index] : index)

static void add_times(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                      const struct rcpt_decide_form *form, const uint32_t *messages, uint32_t count)
{
    int16_t codes[TIMES];
    int64_t times[TIMES];
    read_codes(form->ladder, codes);
    uint8_t *place = rcpt_pg_add_timestamp_array(encoder, (size_t)count * TIMES);
    for (uint32_t index = 0; index < count; index++) {
        find_times(batch, MESSAGE, codes, times);
        for (size_t at = 0; at < TIMES; at++)
            place = times[at] == NONE ? rcpt_pg_write_infinity(place)
                                      : rcpt_pg_write_timestamp(place, times[at]);
    }
    rcpt_pg_end_array(encoder, place);
    NUMBERS(int4, find_gateway(batch, MESSAGE, codes, form->names));
    add_gateway_names(encoder, batch, form->names);
}

/* ---- messages ---- */

/* NULL: the message's receipts name none; empty: they differ, and parking decides one by one. */
static void put_org(struct rcpt_pg_encoder *encoder, struct rcpt_text org)
{
    if (org.at == NULL)
        rcpt_pg_put_null(encoder);
    else
        rcpt_pg_put_bytes(encoder, org.at, org.size);
}

void rcpt_encode_decide(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        const struct rcpt_decide_form *form, const uint32_t *messages,
                        uint32_t count)
{
    const struct rcpt_batch_message *all = batch->messages;
    uint32_t asked = count;
    rcpt_pg_encoder_reset(encoder);
    COLUMN(text, rcpt_pg_put_bytes(encoder, all[MESSAGE].id, all[MESSAGE].id_size));
    NUMBERS(int2, all[MESSAGE].top);
    NUMBERS(int4, (int32_t)all[MESSAGE].mask);
    NUMBERS(timestamp, all[MESSAGE].at_us);
    count = batch->has_orgs ? asked : 0;
    COLUMN(text, put_org(encoder, all[MESSAGE].org));
    if (form->ladder != NULL)
        add_times(encoder, batch, form, messages, asked);
}
