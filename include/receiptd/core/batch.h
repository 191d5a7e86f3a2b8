/* The content of one transaction of one lane: raw events folded per message, positions to move,
 * dead letters.
 *
 * The engine builds it from raw events each time it is sent (a folded batch is never sent twice);
 * src/postgres/encode_batch.c encodes it. Pure data, valid until the batch is reset. Invariant: for
 * every position it moves, a batch holds exactly the lane's events with expected <= offset < next,
 * each once.
 */
#ifndef RECEIPTD_CORE_BATCH_H
#define RECEIPTD_CORE_BATCH_H

#include "receiptd/base/arena.h"
#include "receiptd/base/text.h"
#include "receiptd/core/record.h"

enum rcpt_batch_kind {
    RCPT_BATCH_APPLY, /* fence, apply, park, letters */
    RCPT_BATCH_PROBE, /* the same without letters and moves, always rolled back: finds a row
                         that PostgreSQL refuses */
    RCPT_BATCH_WAKE,  /* fence with next = expected; parked rows whose message exists are applied */
    RCPT_BATCH_DISCARD, /* as WAKE for one row that PostgreSQL refuses: to dead_letter instead */
    RCPT_BATCH_EXPIRE,  /* fence as WAKE; parked rows whose alias has landed get its message id and
                           lane, those older than parked.max_age go to dead_letter */
    RCPT_BATCH_RANGES,  /* fence as WAKE; receipts are parked for the next messages of ranges */
    RCPT_BATCH_KIND__COUNT,
};

/* Messages are sorted by id (memcmp, shorter first), one entry per id: the order in which rows are
 * locked. */
struct rcpt_batch_message {
    const char *id;
    int64_t at_us; /* event time of the receipt that gives `top`, the smallest among equals */
    uint32_t id_size;
    uint32_t mask; /* flags */
    /* index into signatures: which statuses its receipts named, how often each */
    int32_t signature;
    /* The organisation that its receipts name. `at` is NULL: none names one. Size 0: they name
     * different ones, or a part is delivered. Then the statement parks them, and the wake decides
     * one by one. */
    struct rcpt_text org;
    uint32_t first_event; /* its raw events are [first_event, next message's first_event) */
    int16_t top;          /* highest status carried */
    int64_t whole_us;     /* woken: with its receipts all parts are delivered, the last one then; 0:
                             not all are */
};

/* A multiset of (status or flag code, count), shared by all messages with the same receipts; codes
 * ascending. */
struct rcpt_batch_signature {
    uint32_t first; /* into codes / counts */
    uint32_t size;
    uint8_t gateway; /* that all its receipts name; RCPT_RECORD_OTHER_GATEWAY where they differ */
};

/* A raw event, grouped by message: what a parked row or a dead letter needs. */
struct rcpt_batch_event {
    const struct rcpt_record *record;
    const struct rcpt_event *event;
    uint32_t record_index; /* into records */
    int16_t code;          /* status or flag code that it names */
};

struct rcpt_batch_move {
    const char *topic;
    int32_t partition;
    uint32_t slot, epoch;
    int64_t generation;
    int64_t expected, next;
    int64_t anchor_offset; /* last delivered record below next; -1: none known, leave as it is */
    int64_t anchor_timestamp_ms;
    uint32_t anchor_crc;
};

struct rcpt_batch_letter {
    const struct rcpt_record *record;
    const char *topic;
    int32_t partition;
    int32_t index; /* -1: the whole record */
    enum rcpt_reject_reason reason;
    const char *detail; /* NULL: none */
    const char *payload;
    int64_t at_us;         /* event time; of a reject, that of its record */
    bool erased;           /* nothing of it is kept */
    uint32_t receipts;     /* that it stands for */
    const char *indexes;   /* of these, as an array of PostgreSQL; NULL: it is one */
    uint32_t payload_size; /* of one: written up to RCPT_RECORD_MAX_LETTER_BYTES */
    uint32_t full_size;    /* larger: the payload was cut already */
};

/* A receipt of all messages to a person up to a time: stored by the batch, resolved by RANGES. */
struct rcpt_batch_range_receipt {
    const struct rcpt_record *record;
    const struct rcpt_reject *reject;
    const char *topic;
    int32_t partition;
    int16_t code;
};

struct rcpt_batch {
    enum rcpt_batch_kind kind;
    uint32_t lane;
    uint64_t number;     /* of this process, for logs and traces */
    uint32_t wake_limit; /* WAKE, DISCARD, EXPIRE, RANGES: most rows */

    struct rcpt_batch_message *messages;
    uint32_t message_count;
    struct rcpt_batch_signature *signatures;
    uint32_t signature_count;
    int16_t *signature_codes; /* flat */
    int32_t *signature_counts;
    uint32_t signature_code_count;
    struct rcpt_batch_event *events;
    uint32_t event_count;
    bool has_flags; /* an event names flags beside its status */
    bool has_orgs;  /* a message's receipts name an organisation */
    bool has_held;  /* a message's receipts are parked, since one delivers a part */
    const struct rcpt_record **records;
    const char **record_topics; /* topic and partition of records[i] */
    int32_t *record_partitions;
    uint32_t record_count;
    bool has_traceparents;         /* a record has one */
    struct rcpt_batch_move *moves; /* sorted by (topic, partition) */
    uint32_t move_count;
    struct rcpt_batch_letter *letters;
    uint32_t letter_count;
    struct rcpt_batch_range_receipt *ranges;
    uint32_t range_count;

    struct rcpt_arena arena; /* owns all of the above */
};

/* Behind the message's last raw event. */
static inline uint32_t rcpt_batch_end(const struct rcpt_batch *batch, uint32_t message)
{
    return message + 1 < batch->message_count ? batch->messages[message + 1].first_event
                                              : batch->event_count;
}

#endif
