/* One letter for many refusals. A record of ten thousand empty objects would be ten thousand dead
 * letters, each with its row and key. So the first refusals of each reason have letters of their
 * own, and one letter has the rest. It holds their texts as one JSON array, and their indexes, so
 * nothing is lost and a redrive finds each. Called by record.c when the whole record is decoded.
 */
#include <stdio.h>
#include <string.h>

#include "record_internal.h"

/* A range that is taken lies among the rejects, but is no refusal. */
static bool is_refusal(const struct rcpt_reject *reject, enum rcpt_reject_reason reason)
{
    return reject->reason == reason && !reject->range.is_taken;
}

/* The offset behind the value, where the rest will lie in the record. */
static uint32_t rest_end(const struct rcpt_decoder *decoder)
{
    return (uint32_t)(decoder->input.value_size + decoder->rest_size);
}

static void append(struct rcpt_decoder *decoder, const char *bytes, size_t size)
{
    if (decoder->rest_size + size > decoder->rest_capacity) {
        decoder->rest_capacity = 2 * (decoder->rest_size + size);
        decoder->rest = rcpt_realloc(decoder->rest, decoder->rest_capacity);
    }
    memcpy(decoder->rest + decoder->rest_size, bytes, size);
    decoder->rest_size += size;
}

/* The reject's place among those of its reason, from 1. A reject for another reason has none. */
static uint32_t number(const struct rcpt_reject *reject, enum rcpt_reject_reason reason,
                       uint32_t *seen)
{
    return is_refusal(reject, reason) ? ++*seen : 0;
}

/* Returns the first of the rest: its letter. */
static struct rcpt_reject *append_texts(struct rcpt_decoder *decoder,
                                        enum rcpt_reject_reason reason)
{
    struct rcpt_reject *first = NULL;
    uint32_t seen = 0;
    for (uint32_t at = 0; at < decoder->reject_count; at++) {
        struct rcpt_reject *reject = &decoder->rejects[at];
        if (number(reject, reason, &seen) <= RCPT_RECORD_OWN_LETTERS)
            continue;
        append(decoder, first == NULL ? "[" : ",", 1);
        append(decoder, (const char *)decoder->input.value + reject->payload, reject->payload_size);
        first = first == NULL ? reject : first;
    }
    append(decoder, "]", 1);
    return first;
}

/* As an array of PostgreSQL, with the NUL at its end. */
static void append_indexes(struct rcpt_decoder *decoder, enum rcpt_reject_reason reason)
{
    uint32_t seen = 0;
    char text[16];
    for (uint32_t at = 0; at < decoder->reject_count; at++) {
        const struct rcpt_reject *reject = &decoder->rejects[at];
        uint32_t of_reason = number(reject, reason, &seen);
        if (of_reason <= RCPT_RECORD_OWN_LETTERS)
            continue;
        int size =
            snprintf(text, sizeof(text), "%c%d",
                     of_reason == RCPT_RECORD_OWN_LETTERS + 1 ? '{' : ',', (int)reject->index);
        append(decoder, text, (size_t)size);
    }
    append(decoder, "}", 2);
}

/* The first of the rest becomes its letter, and the others go. */
static void gather(struct rcpt_decoder *decoder, enum rcpt_reject_reason reason, uint32_t count)
{
    uint32_t begin = rest_end(decoder), kept = 0, seen = 0;
    struct rcpt_reject *rest = append_texts(decoder, reason);
    char detail[sizeof(((struct rcpt_reject *)NULL)->detail)];
    RCPT_ASSERT(rest != NULL);
    snprintf(detail, sizeof(detail), "%u receipts in one letter; of the first: %.70s",
             count - RCPT_RECORD_OWN_LETTERS,
             rest->long_detail > 0 ? (const char *)decoder->input.value + rest->long_detail
                                   : rest->detail);
    rest->long_detail = 0;
    rest->indexes = rest_end(decoder);
    append_indexes(decoder, reason);
    rest->payload = begin;
    rest->payload_size = rest->full_size = rest->indexes - begin;
    rest->receipts = count - RCPT_RECORD_OWN_LETTERS;
    rest->range = (struct rcpt_range){0};
    memcpy(rest->detail, detail, sizeof(detail));
    for (uint32_t at = 0; at < decoder->reject_count; at++)
        if (number(&decoder->rejects[at], reason, &seen) <= RCPT_RECORD_OWN_LETTERS + 1)
            decoder->rejects[kept++] = decoder->rejects[at];
    decoder->reject_count = kept;
}

/* Most records have no reject at all. One letter above the limit is kept, since gathering it would
 * save none. */
void rcpt_record_gather_rests(struct rcpt_decoder *decoder)
{
    uint32_t counts[RCPT_REJECT_REASON__COUNT] = {0};
    if (decoder->reject_count <= RCPT_RECORD_OWN_LETTERS + 1)
        return;
    for (uint32_t at = 0; at < decoder->reject_count; at++)
        counts[decoder->rejects[at].reason] += !decoder->rejects[at].range.is_taken;
    for (int reason = 0; reason < RCPT_REJECT_REASON__COUNT; reason++)
        if (counts[reason] > RCPT_RECORD_OWN_LETTERS + 1)
            gather(decoder, (enum rcpt_reject_reason)reason, counts[reason]);
}
