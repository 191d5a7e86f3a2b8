/* What the files of the record decoder share: the way is check → parse → (per event) take → finish.
 *
 * Until a record is finished everything points into the caller's value or into the scratch memory;
 * finishing copies it into one allocation that is the record.
 */
#ifndef RECEIPTD_CORE_RECORD_INTERNAL_H
#define RECEIPTD_CORE_RECORD_INTERNAL_H

#include "base/arena.h"
#include "record.h"

#define RCPT_RECORD_MAX_LANES 256

enum rcpt_field {
    RCPT_FIELD_ID,
    RCPT_FIELD_STATUS,
    RCPT_FIELD_AT,
    RCPT_FIELD_CHANNEL,
    RCPT_FIELD_GATEWAY,
    RCPT_FIELD_ORG,
    RCPT_FIELD_FLAGS, /* its token is never read: see struct rcpt_record_fields */
    RCPT_FIELD__COUNT,
    RCPT_FIELD_OTHER = RCPT_FIELD__COUNT, /* of no interest here */
    RCPT_FIELD_EVENTS,                    /* makes the object a wrapper */
};

enum rcpt_token_kind {
    RCPT_TOKEN_ABSENT,
    RCPT_TOKEN_NULL,
    RCPT_TOKEN_STRING, /* text without quotes, unescaped */
    RCPT_TOKEN_NUMBER, /* text as it was written */
    RCPT_TOKEN_OTHER,  /* true, false, object, array */
};

struct rcpt_token {
    const char *text;
    size_t size;
    size_t end; /* of a string in the value, behind its closing quote */
    enum rcpt_token_kind kind;
};

struct rcpt_record_fields {
    struct rcpt_token tokens[RCPT_FIELD__COUNT];
    uint32_t flags; /* bits of those that the list "flags" names */
};

/* What the reader of JSON lets pass although it is no text. The decoder looks for it once per
 * record, so that events pay only where there is some. */
struct rcpt_text_flaws {
    bool utf8;           /* bytes that are not UTF-8 */
    bool half_surrogate; /* an escaped surrogate without its other half; it is read as '?' */
};

struct rcpt_record_gateway {
    char name[RCPT_RECORD_MAX_GATEWAY_BYTES + 1];
    uint8_t size;
    uint64_t events;
};

struct rcpt_decoder {
    const struct rcpt_ladder *ladder;
    uint32_t lanes;
    struct rcpt_record_gateway
        gateways[RCPT_RECORD_MAX_GATEWAYS]; /* the first: none, the last: other */
    uint32_t gateway_count, last_gateway;   /* in use, but for the last */

    /* Of the record that is being decoded. */
    struct rcpt_record_input input;
    int64_t default_at_us;
    struct rcpt_arena strings; /* unescaped strings */
    struct rcpt_event *events; /* in record order */
    uint32_t event_count, event_capacity;
    struct rcpt_reject *rejects;
    uint32_t reject_count, reject_capacity;
    struct rcpt_text_flaws flaws;
    bool flaw_placed; /* an event has been refused for its invalid UTF-8 */
};

/* Backslashes are taken for escapes wherever they stand; outside of strings they are no JSON. */
struct rcpt_text_flaws rcpt_record_find_flaws(const char *text, size_t size);

/* Takes the value apart: fills the decoder's events and rejects. The common form is scanned at a
 * third of the parser's price; what the scan does not take goes through the parser. Where the scan
 * takes a record, both give the same. */
void rcpt_record_parse(struct rcpt_decoder *decoder);
bool rcpt_record_scan(struct rcpt_decoder *decoder); /* false: nothing is filled */
void rcpt_record_parse_any(struct rcpt_decoder *decoder);

/* What a key means, in an event or in the outermost object. */
enum rcpt_field rcpt_record_field_of(const char *key, size_t size);

/* Makes an event, or a reject with the first thing that is wrong, of one object's fields. */
void rcpt_record_take_event(struct rcpt_decoder *decoder, const struct rcpt_record_fields *fields,
                            uint32_t index, size_t payload, size_t payload_size);

/* Bit of the flag that an element of "flags" names; 0 where the ladder has no such flag: a
 * gateway's list may say more than is counted here. */
uint32_t rcpt_record_flag_of(const struct rcpt_decoder *decoder, const char *name, size_t size);

/* Number of the gateway that the field names. */
uint8_t rcpt_record_gateway_of(struct rcpt_decoder *decoder, const struct rcpt_token *name);

/* Adds a reject; the caller fills its detail. */
struct rcpt_reject *rcpt_record_add_reject(struct rcpt_decoder *decoder,
                                           enum rcpt_reject_reason reason, int32_t index,
                                           size_t payload, size_t payload_size);

/* Forgets what was found so far. */
void rcpt_record_forget(struct rcpt_decoder *decoder);

/* Makes the whole record one reject; the caller fills its detail. */
struct rcpt_reject *rcpt_record_refuse(struct rcpt_decoder *decoder,
                                       enum rcpt_reject_reason reason);

#endif
