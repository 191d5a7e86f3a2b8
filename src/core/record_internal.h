/* Shared by the files of the record decoder. The way of a record is check → parse → (per event)
 * take → finish.
 *
 * Until a record is finished everything points into the caller's value or into the scratch memory;
 * finishing copies it into one allocation that is the record.
 */
#ifndef RECEIPTD_CORE_RECORD_INTERNAL_H
#define RECEIPTD_CORE_RECORD_INTERNAL_H

#include "receiptd/base/arena.h"
#include "receiptd/core/machine.h"
#include "receiptd/core/record.h"

#define RCPT_RECORD_MAX_LANES 256

enum rcpt_field {
    RCPT_FIELD_ID,
    RCPT_FIELD_STATUS,
    RCPT_FIELD_AT,
    RCPT_FIELD_CHANNEL,
    RCPT_FIELD_GATEWAY,
    RCPT_FIELD_ORG,
    RCPT_FIELD_EVENT_ID,
    RCPT_FIELD_REASON,
    RCPT_FIELD_CAMPAIGN,
    RCPT_FIELD_PART,
    RCPT_FIELD_PARTS,
    RCPT_FIELD_RECIPIENT,
    RCPT_FIELD_UNTIL,
    RCPT_FIELD_FLAGS, /* absent for a list: see struct rcpt_record_fields */
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
    enum rcpt_token_kind kind;
    bool has_half_surrogate; /* of a string, which has '?' in its place */
};

struct rcpt_record_fields {
    struct rcpt_token tokens[RCPT_FIELD__COUNT];
    uint32_t flags;               /* bits of those that the list "flags" names */
    struct rcpt_token wrong_flag; /* the list's first element that names none */
};

struct rcpt_record_name {
    char text[RCPT_RECORD_MAX_GATEWAY_BYTES + 1];
    uint8_t size;
    uint64_t events;
};

/* Names of one facet: the first is none, the last "other". */
struct rcpt_record_names {
    struct rcpt_record_name names[RCPT_RECORD_MAX_GATEWAYS];
    uint32_t count, last; /* in use, but for "other"; found last */
};

/* A channel that may be misspelt. */
struct rcpt_record_channel {
    char name[RCPT_RECORD_MAX_GATEWAY_BYTES + 1];
    const char *near; /* of the ladder */
};

/* Memory of small records of one lane, one behind the other; freed with the last of them. */
struct rcpt_record_chunk {
    uint32_t users; /* its records, and the decoder while it fills the chunk */
    uint32_t used;
    _Alignas(16) char bytes[];
};

struct rcpt_decoder {
    const struct rcpt_ladder *ladder;
    uint32_t lanes;
    bool for_rules, keys; /* rcpt_decoder_set_rules */
    bool takes_ranges;    /* rcpt_decoder_take_ranges */
    struct rcpt_record_names facets[RCPT_FACET__COUNT];
    struct rcpt_record_delays delays[RCPT_RECORD_MAX_GATEWAYS];
    const struct rcpt_machine_rules *machine_rules; /* NULL: flags alone */
    struct rcpt_machine_marks machine_marks;
    uint64_t machine_events[RCPT_MACHINE_KIND__COUNT][RCPT_MACHINE_POLICY__COUNT];
    struct rcpt_record_channel odd_channels[RCPT_RECORD_MAX_ODD_CHANNELS];
    uint32_t odd_channel_count;

    struct rcpt_record_chunk **chunks; /* by lane: the one that is being filled; NULL: none yet */

    /* Input of the record that is being decoded. */
    struct rcpt_record_input input;
    int64_t default_at_us;
    uint32_t raw_crc;          /* of an input with a form; its value is replaced */
    struct rcpt_arena strings; /* unescaped strings */
    struct rcpt_event *events; /* in record order */
    uint64_t *event_keys;      /* likewise, where `keys` are wanted */
    uint32_t event_count, event_capacity;
    uint32_t ignored_count;
    uint32_t machines[RCPT_MACHINE_KIND__COUNT][RCPT_MACHINE_POLICY__COUNT]; /* among them */
    struct rcpt_reject *rejects;
    uint32_t reject_count, reject_capacity;
    char *rest; /* texts and indexes of rejects that share a letter; go behind the record's value */
    size_t rest_size, rest_capacity;
    bool has_flaw;    /* bytes that are not UTF-8: events are looked at only where there are some */
    bool flaw_placed; /* an event has been refused for it */
};

/* Takes the value apart: fills the decoder's events and rejects. The common form is scanned at a
 * third of the parser's price; any other record goes through the parser. For a record that the scan
 * takes, both give the same result. */
void rcpt_record_parse(struct rcpt_decoder *decoder);
void rcpt_record_parse_form(struct rcpt_decoder *decoder, const struct rcpt_record_form *form);
bool rcpt_record_scan(struct rcpt_decoder *decoder); /* false: nothing is filled */
void rcpt_record_parse_any(struct rcpt_decoder *decoder);

/* If there are more than RCPT_RECORD_OWN_LETTERS + 1 rejects for one reason, all behind the first
 * RCPT_RECORD_OWN_LETTERS become one (record_rest.c). */
void rcpt_record_gather_rests(struct rcpt_decoder *decoder);

/* The field that a key names, in an event or in the outermost object. */
enum rcpt_field rcpt_record_field_of(const char *key, size_t size);

/* Makes an event, or a reject with the first thing that is wrong, of one object's fields. */
void rcpt_record_take_event(struct rcpt_decoder *decoder, const struct rcpt_record_fields *fields,
                            uint32_t index, size_t payload, size_t payload_size);

/* An element of "flags": a bit of the ladder, or the wrong flag for which the event is refused. The
 * token's text outlives the record's decoding. */
void rcpt_record_take_flag(const struct rcpt_decoder *decoder, struct rcpt_record_fields *fields,
                           const struct rcpt_token *name);
void rcpt_record_open_flags(struct rcpt_record_fields *fields); /* forgets an earlier list */

/* Adds to the detail the fault of a refused field, and its right form (record_advice.c). */
void rcpt_record_advise_status(const struct rcpt_ladder *ladder, const struct rcpt_token *status,
                               char *detail, size_t size);
void rcpt_record_advise_flags(const struct rcpt_ladder *ladder,
                              const struct rcpt_record_fields *fields, char *detail, size_t size);
/* Adds to the detail which key of the object looks like the one that is missing. */
void rcpt_record_advise_name(struct rcpt_text object, const char *name, char *detail, size_t size);
void rcpt_record_advise_time(const struct rcpt_token *at, char *detail, size_t size);
void rcpt_record_advise_count(const char *name, const struct rcpt_token *count, char *detail,
                              size_t size);

/* Remembers the channel of an event, whose entry has overrides, if it may be misspelt. */
void rcpt_record_note_channel(struct rcpt_decoder *decoder, int entry,
                              const struct rcpt_token *channel);

/* Number of the gateway or reason that the field names. */
uint8_t rcpt_record_facet_of(struct rcpt_decoder *decoder, enum rcpt_facet facet,
                             const struct rcpt_token *name);

/* Counts an event of a record that is decoded for its gateway. */
void rcpt_record_count_gateway(struct rcpt_decoder *decoder, const struct rcpt_event *event);

/* Adds a reject; the caller fills its detail. */
struct rcpt_reject *rcpt_record_add_reject(struct rcpt_decoder *decoder,
                                           enum rcpt_reject_reason reason, int32_t index,
                                           size_t payload, size_t payload_size);

/* Memory for a record that one lane alone gets; sets *chunk, to NULL for a large one. */
void *rcpt_record_allocate(struct rcpt_decoder *decoder, uint32_t lane, size_t bytes,
                           struct rcpt_record_chunk **chunk);
/* Gives up the decoder's own reference to a chunk, which may be NULL; records in it may stay. */
void rcpt_record_free_chunk(struct rcpt_record_chunk *filling);

/* Forgets all events and rejects found so far. */
void rcpt_record_forget(struct rcpt_decoder *decoder);

/* Makes the whole record one reject; the caller fills its detail. */
struct rcpt_reject *rcpt_record_refuse(struct rcpt_decoder *decoder,
                                       enum rcpt_reject_reason reason);

#endif
