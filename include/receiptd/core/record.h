/* One Kafka record, decoded completely before any part of it is routed.
 *
 * Decoding is a pure function of the bytes, the ladder and the number of lanes. An event that
 * cannot be understood becomes a reject; the other events of the record land. A decoded record owns
 * a copy of the value; events and rejects point into it. Formats: docs/semantics.md, "The record".
 */
#ifndef RECEIPTD_CORE_RECORD_H
#define RECEIPTD_CORE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "receiptd/core/ladder.h"
#include "receiptd/core/machine.h"

#define RCPT_RECORD_MAX_EVENTS        10000
#define RCPT_RECORD_MAX_BYTES         (8u * 1024 * 1024)
#define RCPT_RECORD_MAX_LETTER_BYTES  (64u * 1024) /* of a dead letter; the topic has the rest */
#define RCPT_RECORD_OWN_LETTERS       99 /* of a record and reason; one more has the rest */
#define RCPT_RECORD_MAX_ID_BYTES      255
#define RCPT_RECORD_MAX_PARTS         255 /* of a message: 3GPP TS 23.040 counts them in a byte */
#define RCPT_RECORD_TRACEPARENT_BYTES 55  /* W3C Trace Context, version 00 */
#define RCPT_RECORD_RANGE_INDEX                                                                    \
    200000 /* from here on: receipts that ranges come to, not of records (range_resolve.sql) */

/* Texts of events by which figures distinguish receipts, numbered in order of appearance. Reasons
 * are numbered only for rules (rcpt_decoder_set_rules). */
enum rcpt_facet {
    RCPT_FACET_GATEWAY,
    RCPT_FACET_REASON, /* its class */
    RCPT_FACET__COUNT,
};

#define RCPT_RECORD_MAX_GATEWAYS      16
#define RCPT_RECORD_MAX_GATEWAY_BYTES 40
#define RCPT_RECORD_NO_GATEWAY        0                              /* the event names none */
#define RCPT_RECORD_OTHER_GATEWAY     (RCPT_RECORD_MAX_GATEWAYS - 1) /* too many, too long, mixed */

/* Reasons for dead letters. `dead_letter.reason` holds the names (rcpt_reject_name). */
enum rcpt_reject_reason {
    RCPT_REJECT_EMPTY_RECORD, /* tombstone or zero bytes */
    RCPT_REJECT_INVALID_JSON, /* also trailing bytes, nesting too deep, invalid UTF-8 outside of
                                 events */
    RCPT_REJECT_INVALID_UTF8, /* inside one event: its neighbours land */
    RCPT_REJECT_NOT_AN_EVENT, /* JSON, but no object, array or {"events": […]} where one must be */
    RCPT_REJECT_TOO_MANY_EVENTS,  /* more than 10 000 in one record */
    RCPT_REJECT_RECORD_TOO_LARGE, /* value above 8 MiB, or in a batch that is not inflated */
    RCPT_REJECT_MISSING_ID,       /* no message_id, null or "" */
    RCPT_REJECT_INVALID_ID,       /* not a string, or with a NUL or half a surrogate pair */
    RCPT_REJECT_ID_TOO_LONG,      /* above 255 bytes */
    RCPT_REJECT_MISSING_STATUS,
    RCPT_REJECT_UNKNOWN_STATUS, /* not in the ladder */
    RCPT_REJECT_INVALID_FLAGS,  /* no list of names, or a name that is no flag of the ladder */
    RCPT_REJECT_INVALID_TIME,   /* `at` present but not RFC 3339 nor epoch, or out of 1970…9999 */
    RCPT_REJECT_INVALID_PART,   /* of `part` and `parts` one is no count, or they do not fit */
    /* a range (all messages to a person) without the fields that it needs */
    RCPT_REJECT_INVALID_RANGE,
    RCPT_REJECT_RANGE_OFF,       /* a range, but no column of the inbox says to whom messages go */
    RCPT_REJECT_UNKNOWN_MESSAGE, /* `unknown: dead-letter`: no row with this id (set by SQL) */
    RCPT_REJECT_OTHER_ORGANISATION, /* it names another one than its message has (set by SQL) */
    RCPT_REJECT_RETIRED_MESSAGE,    /* its message was deleted (set by SQL) */
    RCPT_REJECT_AGED_OUT,           /* parked longer than parked.max_age (set by SQL) */
    RCPT_REJECT_DATABASE,      /* PostgreSQL refuses the row: detail has the SQLSTATE and text */
    RCPT_REJECT_NO_GROUP_KEY,  /* of a folded topic: a rule that it matches finds no group in it */
    RCPT_REJECT_NOT_A_MESSAGE, /* of a topic of messages: no JSON object with an id */
    RCPT_REJECT_ANNOUNCED_DIFFERENTLY, /* it announces a message again, with other values */
    RCPT_REJECT_REASON__COUNT,
};

const char *rcpt_reject_name(
    enum rcpt_reject_reason reason); /* "empty_record", "invalid_json", … */
bool rcpt_reject_is_name(const char *name);

struct rcpt_event {
    const char *id;        /* message id, not terminated; inside the record's memory */
    uint64_t hash;         /* rcpt_hash_text_extended(id, 0) */
    int64_t at_us;         /* event time, microseconds since 1970 UTC */
    uint32_t payload;      /* offset of the event's own JSON text in the record's value … */
    uint32_t payload_size; /* … and its size in bytes */
    uint32_t index;        /* position in the record, from 0 */
    uint32_t flags;        /* bits of the ladder's flags that it names beside its status */
    uint8_t id_size;       /* 1…255 */
    uint8_t entry;         /* ladder entry that it names, overrides applied */
    uint8_t gateway;       /* the decoder's number of the gateway that it names */
    bool refused; /* set by the engine: PostgreSQL refuses this event, it leaves as a dead letter */
    uint8_t org_size;    /* of the organisation that it names; 0: none */
    uint8_t reason;      /* number of its class, like the gateway's; 0: not wanted */
    uint16_t org;        /* its place in the payload; RCPT_RECORD_ORG_ELSEWHERE: rcpt_origin_read */
    uint8_t part, parts; /* of several: which (from 1) of how many; 0: not named */
    /* it says that one part is delivered: that proves less of the message, and only the wake of
     * parked receipts knows the other parts */
    bool delivers_part;
    uint8_t machines; /* kinds whose open or click counts beside its status: bits 1 << kind */
    int16_t beside[RCPT_MACHINE_KIND__COUNT]; /* codes of OPENED and CLICKED, where that is so */
};

/* Most codes that an event counts as beside its status: opens and clicks of machines, and flags. */
#define RCPT_RECORD_MOST_BESIDE (RCPT_MACHINE_KIND__COUNT + RCPT_LADDER_MAX_FLAGS)
/* no open or click of a machine, and no flag */
static inline bool rcpt_event_is_plain(const struct rcpt_event *event)
{
    return (event->flags | event->machines) == 0;
}
static inline uint32_t rcpt_event_beside(const struct rcpt_event *event,
                                         int16_t codes[static RCPT_RECORD_MOST_BESIDE])
{
    uint32_t count = 0;
    for (uint32_t kinds = event->machines; kinds != 0; kinds &= kinds - 1)
        codes[count++] = event->beside[__builtin_ctz(kinds)];
    for (uint32_t flags = event->flags; flags != 0; flags &= flags - 1)
        codes[count++] = (int16_t)(RCPT_LADDER_FIRST_FLAG_CODE + __builtin_ctz(flags));
    return count;
}

#define RCPT_RECORD_ORG_ELSEWHERE UINT16_MAX /* escaped, long, or far behind */

/* A receipt of all messages to a person up to a time. It names no message, so it is not among the
 * events. All ranges of one person go to one lane, taken or not, because another instance may be
 * configured otherwise. */
struct rcpt_range {
    const char *recipient; /* not terminated, as event ids */
    int64_t until_us, at_us;
    uint8_t recipient_size; /* 1…255; 0: it is no range */
    uint8_t entry;          /* ladder entry that it names, of a status */
    uint8_t gateway;        /* as of events */
    bool is_taken;          /* else it is a reject: RANGE_OFF */
};

struct rcpt_reject {
    enum rcpt_reject_reason reason;
    struct rcpt_range range;
    int32_t index;    /* position of the event in the record; -1: the whole record */
    uint32_t payload; /* as for events; the value's first bytes when index is -1 */
    uint32_t payload_size;
    uint32_t full_size; /* what it had before it was cut */
    /* `receipts` is the number of rejects that it stands for. Above 1 the payload is an array of
     * their texts. `indexes` is then the offset of their indexes in the record's value: "{99,100}"
     * with a NUL. */
    uint32_t receipts, indexes;
    uint64_t hash; /* of its message, where an adapter knows it: leads to the lane; 0: unknown */
    /* what exactly is wrong, without the id or any other value that may be personal … */
    char detail[120];
    uint32_t long_detail; /* … an adapter's text: its offset in the record's value; 0: `detail` */
};

struct rcpt_record {
    /* Position and epoch: filled by the caller of decode, opaque to it. */
    uint32_t slot;   /* the engine's number of (topic, partition) */
    uint32_t epoch;  /* assignment that delivered it */
    uint32_t refs;   /* lanes that hold it */
    bool unreadable; /* of the input */
    bool has_keys;   /* rcpt_record_event_key */
    bool is_formed;  /* of an input with a form: `crc` is that of the value as it came */
    uint32_t crc;
    int64_t offset;
    int64_t timestamp_ms;             /* Kafka's, bounded; 0: none; default of `at` */
    const char *traceparent;          /* "" if none or malformed */
    const char *tracestate;           /* of a traceparent that is not ""; NULL: none */
    uint64_t received_ns, decoded_ns; /* monotonic; filled by the caller of decode, 0: not traced */

    const char *value; /* the record's own copy; the first bytes only of one refused as a whole */
    uint32_t value_size;
    uint32_t full_size; /* what the value had */
    uint32_t key_size;
    const char *key;
    struct rcpt_record_chunk *chunk; /* that it shares with others; NULL: none */
    uint32_t memory_bytes;           /* all that this record holds in memory, for the budget */

    uint32_t event_count, reject_count;
    uint32_t ignored_count;    /* receipts of which policies for machines leave nothing */
    struct rcpt_event *events; /* grouped by lane, in record order within a lane */
    /* lanes + 1: events of lane l are [lane_events[l], lane_events[l + 1]) */
    const uint32_t *lane_events;
    /* grouped likewise; the lane of a reject comes from rcpt_hash_position(…), that of a range from
     * its person */
    struct rcpt_reject *rejects;
    const uint32_t *lane_rejects;
};

/* The form that an adapter gives to a value which is not ours (gateways/topics.h). `text` begins
 * with `json_size` bytes of JSON: an array of events as records hold them. Behind it lie payloads
 * and details of the refusals. */
struct rcpt_record_refusal {
    enum rcpt_reject_reason reason;
    int32_t index; /* in the record; -1: the whole record, and the only refusal */
    uint32_t payload, payload_size, full_size;
    uint64_t hash;   /* as of struct rcpt_reject */
    uint32_t detail; /* offset in the text, with a NUL at its end */
};
struct rcpt_record_form {
    const char *text;
    size_t text_size, json_size;
    const uint32_t *indexes; /* in the record, of the array's elements */
    const struct rcpt_record_refusal *refusals;
    size_t refusal_count;
};

struct rcpt_record_input {
    const char *topic;
    int32_t partition;
    int64_t offset;
    int64_t timestamp_ms; /* as Kafka has it; negative: none */
    const void *key;      /* may be NULL */
    size_t key_size;
    const void *value; /* NULL: tombstone */
    size_t value_size;
    const char *unreadable;  /* NULL; else there is no value, and this says why */
    const char *traceparent; /* NULL: none; checked for form */
    size_t traceparent_size;
    const char *tracestate; /* NULL: none, or of no interest; checked for form */
    size_t tracestate_size;
    const struct rcpt_record_form *form; /* NULL: the value is ours */
};

/* Bounds Kafka's timestamp of a record to the years 1970 to 9999, which PostgreSQL and the figures
 * can hold; no broker before 4.0 checks it. 0: the record has none. Anchors are compared in this
 * form, whatever form an older version stored. */
int64_t rcpt_record_bound_ms(int64_t timestamp_ms);

struct rcpt_decoder; /* reusable scratch memory around one ladder; not for two threads at once */

struct rcpt_decoder *rcpt_decoder_new(const struct rcpt_ladder *ladder,
                                      uint32_t lanes /* power of two, 1…256 */);
void rcpt_decoder_free(struct rcpt_decoder *decoder);

/* From now on ranges are read. Without this call they are rejects. */
void rcpt_decoder_take_ranges(struct rcpt_decoder *decoder);

/* From now on events carry the values that rules read: the reason, and with `keys` a key. */
void rcpt_decoder_set_rules(struct rcpt_decoder *decoder, bool keys);

/* Sets the policies for receipts of machines from the next record on; borrowed. NULL, as without
 * this call: they count as their flags alone. Call again after the ladder has grown. */
void rcpt_decoder_set_machines(struct rcpt_decoder *decoder,
                               const struct rcpt_machine_rules *rules);
/* The number of events of this kind to which this policy was applied, since the start. */
uint64_t rcpt_decoder_machine_events(const struct rcpt_decoder *decoder,
                                     enum rcpt_machine_kind kind, enum rcpt_machine_policy policy);

/* Delays of receipts: from the time that a receipt names until its record came to Kafka. `buckets`
 * counts the receipts of each bucket, the last those above all bounds; `sum` is in seconds.
 * Receipts that name no time are left out. */
#define RCPT_RECORD_DELAYS 14
extern const double rcpt_record_delay_bounds[RCPT_RECORD_DELAYS]; /* seconds */
struct rcpt_record_delays {
    uint64_t buckets[RCPT_RECORD_DELAYS + 1];
    double sum;
};

/* rcpt_decoder_facet() returns the name of a number ("" for none, "other"), NULL for a number that
 * is not in use. The other two return how many events have named a gateway since the start, and
 * their delays. */
const char *rcpt_decoder_facet(const struct rcpt_decoder *decoder, enum rcpt_facet facet,
                               uint32_t number);
uint64_t rcpt_decoder_gateway_events(const struct rcpt_decoder *decoder, uint32_t gateway);
const struct rcpt_record_delays *rcpt_decoder_gateway_delays(const struct rcpt_decoder *decoder,
                                                             uint32_t gateway);

/* A channel that events have named and that may be misspelt: the status that they named has an
 * override not on it, but on the channel `near` of nearly the same name. Numbered from 0 in order
 * of appearance; NULL: there are fewer. Only the first RCPT_RECORD_MAX_ODD_CHANNELS are kept. */
#define RCPT_RECORD_MAX_ODD_CHANNELS 8
const char *rcpt_decoder_odd_channel(const struct rcpt_decoder *decoder, uint32_t number,
                                     const char **near);

/* Never fails: any input gives a record. The caller owns it and frees it with rcpt_record_free. */
struct rcpt_record *rcpt_record_decode(struct rcpt_decoder *decoder,
                                       const struct rcpt_record_input *input);
void rcpt_record_free(struct rcpt_record *record);
/* The detail of one of its rejects. */
static inline const char *rcpt_record_detail(const struct rcpt_record *record,
                                             const struct rcpt_reject *reject)
{
    return reject->long_detail > 0 ? record->value + reject->long_detail : reject->detail;
}
/* Hash of an event's id (without one: of its time) and of the status and flags that it names,
 * before any policy. Copies of one event of a message have the same key. 0: no rule needs it
 * (rcpt_decoder_set_rules). */
uint64_t rcpt_record_event_key(const struct rcpt_record *record, const struct rcpt_event *event);
/* rcpt_hash_record of its key and value. */
uint32_t rcpt_record_crc(const struct rcpt_record *record);

#endif
