/* From the fields of one JSON object to an event (message id, status or flags, time, lane), or to
 * the reason why it becomes a dead letter. Called by record_scan.c and record_parse.c.
 */
#include <stdio.h>
#include <string.h>

#include "hash.h"
#include "record_internal.h"
#include "timestamp.h"

#define SHOWN_STATUS_BYTES 40

/* What is wrong with an event in the making; filled by the check that fails. */
struct draft {
    enum rcpt_reject_reason reason;
    char detail[sizeof(((struct rcpt_reject *)NULL)->detail)];
};

/* False, so that a check can end with it. */
static bool refuse(struct draft *draft, enum rcpt_reject_reason reason, const char *detail)
{
    draft->reason = reason;
    snprintf(draft->detail, sizeof(draft->detail), "%s", detail);
    return false;
}

/* The string as it was written, without its quotes: back from the closing quote to the one that is
 * not escaped. */
static bool has_half_surrogate(const struct rcpt_decoder *decoder, const struct rcpt_token *string)
{
    const char *value = decoder->input.value;
    size_t end = string->end - 1, start = end, escapes;
    do {
        start--;
        for (escapes = 0; value[start] == '"' && value[start - escapes - 1] == '\\'; escapes++)
            continue;
    } while (value[start] != '"' || escapes % 2 == 1);
    return rcpt_record_find_flaws(value + start + 1, end - start - 1).half_surrogate;
}

/* The record as a whole was checked once; only if it has a flaw, each event is checked by
 * itself. */
static bool check_text(struct rcpt_decoder *decoder, size_t payload, size_t payload_size,
                       struct draft *draft)
{
    const char *value = decoder->input.value;
    if (!decoder->flaws.utf8 || !rcpt_record_find_flaws(value + payload, payload_size).utf8)
        return true;
    decoder->flaw_placed = true;
    return refuse(draft, RCPT_REJECT_INVALID_UTF8, "the event is not UTF-8");
}

/* The id is compared byte by byte with what the platform stored, so what PostgreSQL cannot hold, or
 * what would become another text, is refused here. */
static bool check_id(const struct rcpt_decoder *decoder, const struct rcpt_token *id,
                     struct draft *draft)
{
    switch (id->kind) {
    case RCPT_TOKEN_ABSENT:
        return refuse(draft, RCPT_REJECT_MISSING_ID, "message_id is missing");
    case RCPT_TOKEN_NULL:
        return refuse(draft, RCPT_REJECT_MISSING_ID, "message_id is null");
    case RCPT_TOKEN_NUMBER:
    case RCPT_TOKEN_OTHER:
        return refuse(draft, RCPT_REJECT_INVALID_ID, "message_id is not a string");
    case RCPT_TOKEN_STRING:
        break;
    }
    if (id->size == 0)
        return refuse(draft, RCPT_REJECT_MISSING_ID, "message_id is empty");
    if (id->size > RCPT_RECORD_MAX_ID_BYTES) {
        draft->reason = RCPT_REJECT_ID_TOO_LONG;
        snprintf(draft->detail, sizeof(draft->detail),
                 "message_id has %zu bytes, at most %d are allowed", id->size,
                 RCPT_RECORD_MAX_ID_BYTES);
        return false;
    }
    if (memchr(id->text, '\0', id->size) != NULL)
        return refuse(draft, RCPT_REJECT_INVALID_ID, "message_id holds a NUL");
    if (decoder->flaws.half_surrogate && has_half_surrogate(decoder, id))
        return refuse(draft, RCPT_REJECT_INVALID_ID, "message_id holds half a surrogate pair");
    return true;
}

/* An integer as JSON writes it. False for fractions, exponents, and what no code can be. */
static bool read_code(const struct rcpt_token *number, int64_t *code)
{
    int64_t value = 0;
    bool negative = number->text[0] == '-';
    for (size_t i = negative; i < number->size; i++) {
        char digit = number->text[i];
        if (digit < '0' || digit > '9')
            return false;
        if (value < INT32_MAX)
            value = value * 10 + (digit - '0');
    }
    *code = negative ? -value : value;
    return true;
}

/* Shows the word, which an operator needs to extend the ladder or to find the sender. */
static void refuse_status(const struct rcpt_token *status, struct draft *draft)
{
    char shown[SHOWN_STATUS_BYTES + 1];
    size_t size = status->size < SHOWN_STATUS_BYTES ? status->size : SHOWN_STATUS_BYTES;
    for (size_t i = 0; i < size; i++) {
        char byte = status->text[i];
        shown[i] = byte >= ' ' && byte <= '~' ? byte : '?';
    }
    shown[size] = '\0';
    const char *quote = status->kind == RCPT_TOKEN_STRING ? "\"" : "";
    draft->reason = RCPT_REJECT_UNKNOWN_STATUS;
    snprintf(draft->detail, sizeof(draft->detail), "status %s%s%s is not in the ladder", quote,
             shown, quote);
}

/* By name or by code, overrides of the channel applied. A name that the ladder lacks is refused and
 * shown. */
static bool find_status(const struct rcpt_ladder *ladder, const struct rcpt_token *status,
                        const struct rcpt_token *channel, int *entry, struct draft *draft)
{
    size_t channel_size = channel->kind == RCPT_TOKEN_STRING ? channel->size : 0;
    int64_t code;
    switch (status->kind) {
    case RCPT_TOKEN_ABSENT:
        return refuse(draft, RCPT_REJECT_MISSING_STATUS, "status is missing");
    case RCPT_TOKEN_NULL:
        return refuse(draft, RCPT_REJECT_MISSING_STATUS, "status is null");
    case RCPT_TOKEN_OTHER:
        return refuse(draft, RCPT_REJECT_UNKNOWN_STATUS, "status is neither a name nor a code");
    case RCPT_TOKEN_STRING:
        *entry =
            rcpt_ladder_find_name(ladder, status->text, status->size, channel->text, channel_size);
        break;
    case RCPT_TOKEN_NUMBER:
        *entry = !read_code(status, &code)
                     ? -1
                     : rcpt_ladder_find_code(ladder, code, channel->text, channel_size);
        break;
    }
    if (*entry < 0)
        refuse_status(status, draft);
    return *entry >= 0;
}

/* Leaves the time as it is, the record's, when the event names none. */
static bool read_time(const struct rcpt_token *at, int64_t *at_us, struct draft *draft)
{
    bool valid = false;
    switch (at->kind) {
    case RCPT_TOKEN_ABSENT:
    case RCPT_TOKEN_NULL:
        return true;
    case RCPT_TOKEN_STRING:
        valid = rcpt_timestamp_parse(at->text, at->size, at_us) ||
                rcpt_timestamp_parse_epoch(at->text, at->size, at_us);
        break;
    case RCPT_TOKEN_NUMBER:
        valid = rcpt_timestamp_parse_epoch(at->text, at->size, at_us);
        break;
    case RCPT_TOKEN_OTHER:
        break;
    }
    return valid || refuse(draft, RCPT_REJECT_INVALID_TIME, "at is not a time");
}

/* Scratch memory of the decoder: finish() in record.c copies the events, sorted by lane. */
static struct rcpt_event *add_event(struct rcpt_decoder *decoder)
{
    if (decoder->event_count == decoder->event_capacity) {
        decoder->event_capacity = decoder->event_capacity > 0 ? decoder->event_capacity * 2 : 64;
        decoder->events =
            rcpt_realloc(decoder->events, decoder->event_capacity * sizeof(*decoder->events));
    }
    return &decoder->events[decoder->event_count++];
}

/* A short text that stands as it is in the payload is found by its place; anything else, which is
 * rare, by reading the event again. */
static void set_org(const struct rcpt_decoder *decoder, const struct rcpt_token *org,
                    struct rcpt_event *event)
{
    if ((org->kind != RCPT_TOKEN_STRING && org->kind != RCPT_TOKEN_NUMBER) || org->size == 0)
        return;
    uintptr_t place = (uintptr_t)org->text - (uintptr_t)decoder->input.value - event->payload;
    bool is_near = place < event->payload_size && place < RCPT_RECORD_ORG_ELSEWHERE &&
                   org->size <= UINT8_MAX; /* one that had escapes is not in the value */
    event->org = is_near ? (uint16_t)place : RCPT_RECORD_ORG_ELSEWHERE;
    event->org_size = is_near ? (uint8_t)org->size : UINT8_MAX;
}

uint32_t rcpt_record_flag_of(const struct rcpt_decoder *decoder, const char *name, size_t size)
{
    int entry = rcpt_ladder_find_name(decoder->ladder, name, size, NULL, 0);
    return entry >= 0 ? rcpt_ladder_entry(decoder->ladder, (size_t)entry)->mask : 0;
}

/* An event with several flaws becomes a dead letter for the first of them in this order. */
void rcpt_record_take_event(struct rcpt_decoder *decoder, const struct rcpt_record_fields *fields,
                            uint32_t index, size_t payload, size_t payload_size)
{
    const struct rcpt_token *tokens = fields->tokens, *id = &tokens[RCPT_FIELD_ID];
    struct draft draft;
    int entry = -1;
    int64_t at_us = decoder->default_at_us;

    if (!check_text(decoder, payload, payload_size, &draft) || !check_id(decoder, id, &draft) ||
        !find_status(decoder->ladder, &tokens[RCPT_FIELD_STATUS], &tokens[RCPT_FIELD_CHANNEL],
                     &entry, &draft) ||
        !read_time(&tokens[RCPT_FIELD_AT], &at_us, &draft)) {
        struct rcpt_reject *reject =
            rcpt_record_add_reject(decoder, draft.reason, (int32_t)index, payload, payload_size);
        memcpy(reject->detail, draft.detail, sizeof(reject->detail));
        return;
    }
    struct rcpt_event *event = add_event(decoder);
    *event = (struct rcpt_event){
        .id = id->text,
        .hash = rcpt_hash_text_extended(id->text, id->size, 0),
        .at_us = at_us,
        .payload = (uint32_t)payload,
        .payload_size = (uint32_t)payload_size,
        .index = index,
        .flags = fields->flags & ~rcpt_ladder_entry(decoder->ladder, (size_t)entry)->mask,
        .id_size = (uint8_t)id->size,
        .entry = (uint8_t)entry,
        .gateway = rcpt_record_gateway_of(decoder, &tokens[RCPT_FIELD_GATEWAY]),
    };
    set_org(decoder, &tokens[RCPT_FIELD_ORG], event);
}
