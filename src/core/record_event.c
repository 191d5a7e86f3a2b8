/* From the fields of one JSON object to an event (message id, status or flags, time, lane), or to
 * the reason why it becomes a dead letter. Called by record_scan.c and record_parse.c.
 */
#include <stdio.h>
#include <string.h>

#include "receiptd/base/text.h"
#include "receiptd/core/hash.h"
#include "receiptd/core/timestamp.h"
#include "record_internal.h"

#define DAY_US    (INT64_C(86400) * 1000000)
#define DELIVERED "DELIVERED"

/* The flaw of an event in the making; the check that fails fills it. */
struct draft {
    enum rcpt_reject_reason reason;
    char detail[sizeof(((struct rcpt_reject *)NULL)->detail)];
};

/* Returns false, so that a check can end with it. */
static bool refuse(struct draft *draft, enum rcpt_reject_reason reason, const char *detail)
{
    draft->reason = reason;
    snprintf(draft->detail, sizeof(draft->detail), "%s", detail);
    return false;
}

/* The record as a whole was checked once; only if it has a flaw, each event is checked by
 * itself. */
static bool check_text(struct rcpt_decoder *decoder, size_t payload, size_t payload_size,
                       struct draft *draft)
{
    const char *value = decoder->input.value;
    if (!decoder->has_flaw || rcpt_utf8_is_valid(value + payload, payload_size))
        return true;
    decoder->flaw_placed = true;
    return refuse(draft, RCPT_REJECT_INVALID_UTF8, "the event is not UTF-8");
}

/* The id is compared byte by byte with what the platform stored, so an id that PostgreSQL cannot
 * hold, or that would become another text, is refused here. */
static bool check_id(const struct rcpt_token *id, struct draft *draft)
{
    switch (id->kind) {
    case RCPT_TOKEN_ABSENT:
        return refuse(draft, RCPT_REJECT_MISSING_ID, "message_id is missing");
    case RCPT_TOKEN_NULL:
        return refuse(draft, RCPT_REJECT_MISSING_ID, "message_id is null");
    case RCPT_TOKEN_NUMBER:
        return refuse(draft, RCPT_REJECT_INVALID_ID,
                      "message_id is not a string: write the number in quotes");
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
    if (id->has_half_surrogate)
        return refuse(draft, RCPT_REJECT_INVALID_ID, "message_id holds half a surrogate pair");
    return true;
}

/* An integer as JSON writes it. False for fractions, exponents and numbers outside the range of
 * codes. */
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
    if (*entry >= 0)
        return true;
    draft->reason = RCPT_REJECT_UNKNOWN_STATUS;
    rcpt_record_advise_status(ladder, status, draft->detail, sizeof(draft->detail));
    return false;
}

/* Leaves the record's time in place when the event names none. Zero counts as none: programs write
 * it where they have no time. */
static bool read_time(const struct rcpt_token *at, int64_t *at_us, struct draft *draft)
{
    int64_t named_us = 0;
    bool valid = false;
    switch (at->kind) {
    case RCPT_TOKEN_ABSENT:
    case RCPT_TOKEN_NULL:
        return true;
    case RCPT_TOKEN_STRING:
        valid = rcpt_timestamp_parse(at->text, at->size, &named_us) ||
                rcpt_timestamp_parse_epoch(at->text, at->size, &named_us);
        break;
    case RCPT_TOKEN_NUMBER:
        valid = rcpt_timestamp_parse_epoch(at->text, at->size, &named_us);
        break;
    case RCPT_TOKEN_OTHER:
        break;
    }
    if (named_us > 0)
        *at_us = named_us;
    if (valid)
        return true;
    draft->reason = RCPT_REJECT_INVALID_TIME;
    rcpt_record_advise_time(at, draft->detail, sizeof(draft->detail));
    return false;
}

/* All or nothing: a status without a flag that came with it would be half of the receipt. */
static bool check_flags(const struct rcpt_ladder *ladder, const struct rcpt_record_fields *fields,
                        struct draft *draft)
{
    if (fields->tokens[RCPT_FIELD_FLAGS].kind <= RCPT_TOKEN_NULL &&
        fields->wrong_flag.kind == RCPT_TOKEN_ABSENT)
        return true;
    draft->reason = RCPT_REJECT_INVALID_FLAGS;
    rcpt_record_advise_flags(ladder, fields, draft->detail, sizeof(draft->detail));
    return false;
}

/* A whole number, also as the text of its digits; 0: the event names none. */
static bool read_count(const struct rcpt_token *token, const char *name, int64_t *count,
                       struct draft *draft)
{
    *count = 0;
    if (token->kind <= RCPT_TOKEN_NULL)
        return true;
    bool written = token->kind == RCPT_TOKEN_NUMBER || token->kind == RCPT_TOKEN_STRING;
    if (written && token->size > 0 && token->text[0] != '-' && read_code(token, count) &&
        *count >= 1 && *count <= RCPT_RECORD_MAX_PARTS)
        return true;
    draft->reason = RCPT_REJECT_INVALID_PART;
    rcpt_record_advise_count(name, token, draft->detail, sizeof(draft->detail));
    return false;
}

/* parts 0: the event names no total. A message in one part has none. */
static bool read_part(const struct rcpt_token *tokens, uint8_t *part, uint8_t *parts,
                      struct draft *draft)
{
    int64_t number, count;
    *part = *parts = 0;
    if (!read_count(&tokens[RCPT_FIELD_PART], "part", &number, draft) ||
        !read_count(&tokens[RCPT_FIELD_PARTS], "parts", &count, draft))
        return false;
    if (count > 0 && number > count) {
        draft->reason = RCPT_REJECT_INVALID_PART;
        snprintf(draft->detail, sizeof(draft->detail),
                 "part %lld of a message in %lld parts: parts count from 1", (long long)number,
                 (long long)count);
        return false;
    }
    if (number > 0 && count != 1) {
        *part = (uint8_t)number;
        *parts = (uint8_t)count;
    }
    return true;
}

/* Checks the person, as the gateway names him, and the account, without which that name means
 * nothing. */
static bool check_recipient(const struct rcpt_token *recipient, const struct rcpt_token *account,
                            struct draft *draft)
{
    bool named = recipient->kind == RCPT_TOKEN_STRING || recipient->kind == RCPT_TOKEN_NUMBER;
    if (!named || recipient->size == 0 || recipient->size > RCPT_RECORD_MAX_ID_BYTES ||
        memchr(recipient->text, '\0', recipient->size) != NULL || recipient->has_half_surrogate)
        return refuse(draft, RCPT_REJECT_INVALID_RANGE,
                      "recipient is no text of 1 to 255 bytes without a NUL");
    if (account->kind != RCPT_TOKEN_STRING || account->size == 0 ||
        memchr(account->text, '\0', account->size) != NULL || account->has_half_surrogate)
        return refuse(draft, RCPT_REJECT_INVALID_RANGE,
                      "a range needs gateway: the account by which the messages were sent");
    return true;
}

/* Flags belong to a message, and a range names no message. */
static bool check_range(const struct rcpt_decoder *decoder, const struct rcpt_record_fields *fields,
                        int entry, struct draft *draft)
{
    const struct rcpt_token *tokens = fields->tokens;
    if (fields->flags != 0 || rcpt_ladder_entry(decoder->ladder, (size_t)entry)->mask != 0)
        return refuse(draft, RCPT_REJECT_INVALID_RANGE, "a range names a status and no flag");
    return check_recipient(&tokens[RCPT_FIELD_RECIPIENT], &tokens[RCPT_FIELD_GATEWAY], draft);
}

/* Makes the same checks as for an event, in the same order. A range is set aside among the rejects.
 */
static void take_range(struct rcpt_decoder *decoder, const struct rcpt_record_fields *fields,
                       uint32_t index, size_t payload, size_t payload_size)
{
    const struct rcpt_token *tokens = fields->tokens;
    struct draft draft = {.reason = RCPT_REJECT_RANGE_OFF,
                          .detail = "inbox.columns.recipient is not set"};
    struct rcpt_range range = {.at_us = decoder->default_at_us};
    int entry = -1;
    bool good = check_text(decoder, payload, payload_size, &draft) &&
                find_status(decoder->ladder, &tokens[RCPT_FIELD_STATUS],
                            &tokens[RCPT_FIELD_CHANNEL], &entry, &draft) &&
                read_time(&tokens[RCPT_FIELD_AT], &range.at_us, &draft) &&
                read_time(&tokens[RCPT_FIELD_UNTIL], &range.until_us, &draft) &&
                check_flags(decoder->ladder, fields, &draft) &&
                check_range(decoder, fields, entry, &draft);
    struct rcpt_reject *reject =
        rcpt_record_add_reject(decoder, draft.reason, (int32_t)index, payload, payload_size);
    memcpy(reject->detail, draft.detail, sizeof(reject->detail));
    if (!good)
        return;
    reject->range = range;
    reject->range.is_taken = decoder->takes_ranges;
    reject->range.recipient = tokens[RCPT_FIELD_RECIPIENT].text;
    reject->range.recipient_size = (uint8_t)tokens[RCPT_FIELD_RECIPIENT].size;
    reject->range.entry = (uint8_t)entry;
    reject->range.gateway =
        rcpt_record_facet_of(decoder, RCPT_FACET_GATEWAY, &tokens[RCPT_FIELD_GATEWAY]);
}

/* Scratch memory of the decoder: finish() in record.c copies the events, sorted by lane. */
static struct rcpt_event *add_event(struct rcpt_decoder *decoder)
{
    if (decoder->event_count == decoder->event_capacity) {
        RCPT_GROW(decoder->events, decoder->event_capacity, 64);
        if (decoder->keys)
            decoder->event_keys = rcpt_realloc(
                decoder->event_keys, decoder->event_capacity * sizeof(*decoder->event_keys));
    }
    return &decoder->events[decoder->event_count++];
}

/* A short text without escapes is remembered by its place in the payload. Any other text, which is
 * rare, is found by reading the event again. */
static void set_org(const struct rcpt_decoder *decoder, const struct rcpt_token *org,
                    struct rcpt_event *event)
{
    if ((org->kind != RCPT_TOKEN_STRING && org->kind != RCPT_TOKEN_NUMBER) || org->size == 0)
        return;
    uintptr_t place = (uintptr_t)org->text - (uintptr_t)decoder->input.value - event->payload;
    bool is_near = place < event->payload_size && place < RCPT_RECORD_ORG_ELSEWHERE &&
                   org->size <= UINT8_MAX; /* an unescaped copy is not in the value */
    event->org = is_near ? (uint16_t)place : RCPT_RECORD_ORG_ELSEWHERE;
    event->org_size = is_near ? (uint8_t)org->size : UINT8_MAX;
}

/* The key that copies of an event share: over its id, else its time. The day of its time is part of
 * both, since PostgreSQL forgets by days (sql/lane/keys.sql). The status and flags that it names
 * are part of the key, since some gateways give one id to all events of a request. They are taken
 * as they came, before a policy for machines changes them. */
static uint64_t key_of(const struct rcpt_token *id, int16_t code, uint32_t flags,
                       const struct rcpt_event *event)
{
    struct {
        int64_t time;
        uint32_t flags;
        int32_t code;
    } named = {.flags = flags, .code = code};
    bool has_id = (id->kind == RCPT_TOKEN_STRING || id->kind == RCPT_TOKEN_NUMBER) && id->size > 0;
    named.time = has_id ? event->at_us / DAY_US : event->at_us;
    uint64_t key = rcpt_hash_text_extended(&named, sizeof(named), 1);
    if (has_id)
        key = rcpt_hash_text_extended(id->text, id->size, key);
    key ^= (uint64_t)event->part << 56; /* sql/lane/address.sql changes it later in the same way */
    return key != 0 ? key : 1;
}

/* `named` and `flags` are the status and flags that the event names. */
static void set_for_rules(struct rcpt_decoder *decoder, const struct rcpt_token *tokens,
                          const struct rcpt_ladder_entry *named, uint32_t flags,
                          struct rcpt_event *event)
{
    event->reason = rcpt_record_facet_of(decoder, RCPT_FACET_REASON, &tokens[RCPT_FIELD_REASON]);
    if (decoder->keys)
        decoder->event_keys[event - decoder->events] =
            key_of(&tokens[RCPT_FIELD_EVENT_ID], named->code, flags & ~named->mask, event);
}

/* If the key occurs twice, the last one counts. */
void rcpt_record_open_flags(struct rcpt_record_fields *fields)
{
    fields->flags = 0;
    fields->tokens[RCPT_FIELD_FLAGS].kind = RCPT_TOKEN_ABSENT;
    fields->wrong_flag.kind = RCPT_TOKEN_ABSENT;
}

void rcpt_record_take_flag(const struct rcpt_decoder *decoder, struct rcpt_record_fields *fields,
                           const struct rcpt_token *name)
{
    int entry = name->kind == RCPT_TOKEN_STRING
                    ? rcpt_ladder_find_name(decoder->ladder, name->text, name->size, NULL, 0)
                    : -1;
    uint32_t mask = entry >= 0 ? rcpt_ladder_entry(decoder->ladder, (size_t)entry)->mask : 0;
    fields->flags |= mask;
    if (mask == 0 && fields->wrong_flag.kind == RCPT_TOKEN_ABSENT)
        fields->wrong_flag = *name;
}

static struct rcpt_text text_of(const struct rcpt_token *token)
{
    bool named = token->kind == RCPT_TOKEN_STRING || token->kind == RCPT_TOKEN_NUMBER;
    return named ? (struct rcpt_text){token->text, token->size} : (struct rcpt_text){NULL, 0};
}

/* Applies the policies to receipts of machines. */
static void apply_machines(struct rcpt_decoder *decoder, const struct rcpt_token *tokens,
                           struct rcpt_machine_event *event)
{
    const struct rcpt_machine_marks *marks = &decoder->machine_marks;
    const struct rcpt_machine_origin origin = {.account = text_of(&tokens[RCPT_FIELD_GATEWAY]),
                                               .org_id = text_of(&tokens[RCPT_FIELD_ORG]),
                                               .campaign = text_of(&tokens[RCPT_FIELD_CAMPAIGN])};
    enum rcpt_machine_policy policies[RCPT_MACHINE_KIND__COUNT];
    for (int kind = 0; kind < RCPT_MACHINE_KIND__COUNT; kind++) {
        policies[kind] =
            rcpt_machine_policy_of(decoder->machine_rules, (enum rcpt_machine_kind)kind, &origin);
        decoder->machines[kind][policies[kind]] += (event->flags & marks->masks[kind]) != 0;
    }
    rcpt_machine_apply(decoder->ladder, marks, policies, event);
}

static void set_beside(const struct rcpt_decoder *decoder, struct rcpt_event *event)
{
    const struct rcpt_machine_marks *marks = &decoder->machine_marks;
    for (int kind = 0; kind < RCPT_MACHINE_KIND__COUNT; kind++)
        if ((event->machines >> kind & 1) != 0)
            event->beside[kind] =
                rcpt_ladder_entry(decoder->ladder, (size_t)marks->statuses[kind])->code;
}

/* A missing field may be there under a misspelt name: adds that name to the detail. */
static void advise_name(const struct rcpt_decoder *decoder, const struct rcpt_token *tokens,
                        size_t payload, size_t payload_size, struct draft *draft)
{
    const char *value = decoder->input.value;
    const struct rcpt_text object = {value + payload, payload_size};
    if (draft->reason == RCPT_REJECT_MISSING_ID && tokens[RCPT_FIELD_ID].kind == RCPT_TOKEN_ABSENT)
        rcpt_record_advise_name(object, "message_id", draft->detail, sizeof(draft->detail));
    if (draft->reason == RCPT_REJECT_MISSING_STATUS &&
        tokens[RCPT_FIELD_STATUS].kind == RCPT_TOKEN_ABSENT)
        rcpt_record_advise_name(object, "status", draft->detail, sizeof(draft->detail));
}

/* Applies the policy for machines to the event; entry -1: it counts as nothing. */
static struct rcpt_machine_event judge_machines(struct rcpt_decoder *decoder,
                                                const struct rcpt_token *tokens, int entry,
                                                uint32_t flags)
{
    const uint32_t *machines = decoder->machine_marks.masks;
    struct rcpt_machine_event counts = {entry, 0, flags};
    if ((flags & (machines[RCPT_MACHINE_OPEN] | machines[RCPT_MACHINE_CLICK])) != 0)
        apply_machines(decoder, tokens, &counts);
    return counts;
}

/* An event with several flaws becomes a dead letter for the first of them in this order. An event
 * that the policies for machines ignore completely is dropped. */
void rcpt_record_take_event(struct rcpt_decoder *decoder, const struct rcpt_record_fields *fields,
                            uint32_t index, size_t payload, size_t payload_size)
{
    const struct rcpt_token *tokens = fields->tokens, *id = &tokens[RCPT_FIELD_ID];
    struct draft draft;
    int entry = -1;
    int64_t at_us = decoder->default_at_us;
    uint8_t part, parts;

    if (id->kind == RCPT_TOKEN_ABSENT && tokens[RCPT_FIELD_UNTIL].kind > RCPT_TOKEN_NULL) {
        take_range(decoder, fields, index, payload, payload_size);
        return;
    }
    if (!check_text(decoder, payload, payload_size, &draft) || !check_id(id, &draft) ||
        !find_status(decoder->ladder, &tokens[RCPT_FIELD_STATUS], &tokens[RCPT_FIELD_CHANNEL],
                     &entry, &draft) ||
        !read_time(&tokens[RCPT_FIELD_AT], &at_us, &draft) ||
        !check_flags(decoder->ladder, fields, &draft) ||
        !read_part(tokens, &part, &parts, &draft)) {
        advise_name(decoder, tokens, payload, payload_size, &draft);
        struct rcpt_reject *reject =
            rcpt_record_add_reject(decoder, draft.reason, (int32_t)index, payload, payload_size);
        memcpy(reject->detail, draft.detail, sizeof(reject->detail));
        return;
    }
    const struct rcpt_ladder_entry *found = rcpt_ladder_entry(decoder->ladder, (size_t)entry);
    if (found->is_overridden)
        rcpt_record_note_channel(decoder, entry, &tokens[RCPT_FIELD_CHANNEL]);
    const struct rcpt_machine_event counts =
        judge_machines(decoder, tokens, entry, fields->flags | found->mask);
    if (counts.entry < 0) {
        decoder->ignored_count++;
        return;
    }
    const struct rcpt_ladder_entry *own = rcpt_ladder_entry(decoder->ladder, (size_t)counts.entry);
    struct rcpt_event *event = add_event(decoder);
    *event = (struct rcpt_event){
        .id = id->text,
        .hash = rcpt_hash_text_extended(id->text, id->size, 0),
        .at_us = at_us,
        .payload = (uint32_t)payload,
        .payload_size = (uint32_t)payload_size,
        .index = index,
        .flags = counts.flags & ~own->mask,
        .id_size = (uint8_t)id->size,
        .entry = (uint8_t)counts.entry,
        .part = part,
        .parts = parts,
        .delivers_part = parts > 0 && strcmp(own->name, DELIVERED) == 0,
        .machines = (uint8_t)counts.kinds,
        .gateway = rcpt_record_facet_of(decoder, RCPT_FACET_GATEWAY, &tokens[RCPT_FIELD_GATEWAY]),
    };
    set_org(decoder, &tokens[RCPT_FIELD_ORG], event);
    set_beside(decoder, event);
    if (decoder->for_rules)
        set_for_rules(decoder, tokens, found, fields->flags, event);
}
