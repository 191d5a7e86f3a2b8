/* Keys of a batch's receipts (keys.h). Called by postgres/flights.c. */
#include "receiptd/core/keys.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/core/hash.h"

#define DAY_US INT64_C(86400000000)
#define NONE   UINT32_MAX

struct keyed { /* a receipt that has a key */
    struct rcpt_key key;
    uint32_t message; /* of the batch */
};

struct rcpt_keys {
    const struct rcpt_batch *batch;
    struct rcpt_arena arena; /* of one batch: all that follows */
    struct keyed *receipts;  /* sorted by key, the earliest of each first */
    uint32_t receipt_count;
    struct rcpt_key *list;
    uint32_t count;
    uint32_t *place_of; /* by event: of its key; NONE: it has none */
    uint32_t *owners;   /* by place: the message */
    uint8_t *fates;     /* by place: enum rcpt_key_fate */
    bool *missed;       /* by message */
    bool has_missed;
};

struct rcpt_keys *rcpt_keys_new(void)
{
    struct rcpt_keys *keys = rcpt_calloc(1, sizeof(*keys));
    rcpt_arena_init(&keys->arena, 256 * 1024);
    return keys;
}

void rcpt_keys_free(struct rcpt_keys *keys)
{
    if (keys == NULL)
        return;
    rcpt_arena_fini(&keys->arena);
    free(keys);
}

/* ---- the list ---- */

/* In UTC, rounded down. */
static int32_t day_of(int64_t at_us)
{
    return (int32_t)(at_us / DAY_US - (at_us % DAY_US < 0));
}

static int order(int64_t left, int64_t right)
{
    return (left > right) - (left < right);
}

static int by_key(const struct rcpt_key *left, const struct rcpt_key *right)
{
    int sign = order(left->day, right->day);
    sign = sign != 0 ? sign : order(left->message, right->message);
    return sign != 0 ? sign : order(left->event, right->event);
}

/* Sorts by key; receipts of one key by time, then in order of arrival. */
static int by_receipt(const void *left, const void *right)
{
    const struct rcpt_key *a = &((const struct keyed *)left)->key;
    const struct rcpt_key *b = &((const struct keyed *)right)->key;
    int sign = by_key(a, b);
    sign = sign != 0 ? sign : order(a->at_us, b->at_us);
    return sign != 0 ? sign : order(a->first, b->first);
}

/* The hash is hashtextextended() of SQL. Events of a wake come without it. */
static uint64_t hash_of(const struct rcpt_event *event)
{
    return event->hash != 0 ? event->hash : rcpt_hash_text_extended(event->id, event->id_size, 0);
}

/* A receipt without a key is no copy of any other. The day is that of the receipt's time, by which
 * PostgreSQL forgets. */
static void read_message(struct rcpt_keys *keys, uint32_t message)
{
    const struct rcpt_batch *batch = keys->batch;
    for (uint32_t at = batch->messages[message].first_event; at < rcpt_batch_end(batch, message);
         at++) {
        const struct rcpt_batch_event *raw = &batch->events[at];
        uint64_t event = rcpt_record_event_key(raw->record, raw->event);
        keys->place_of[at] = NONE;
        if (event != 0)
            keys->receipts[keys->receipt_count++] =
                (struct keyed){{day_of(raw->event->at_us), (int64_t)hash_of(raw->event),
                                (int64_t)event, raw->event->at_us, at},
                               message};
    }
}

/* Two ids of one hash share a key only if their events are the same, too; then their receipts would
 * count as copies of each other. */
static void make_list(struct rcpt_keys *keys)
{
    for (uint32_t at = 0; at < keys->receipt_count; at++) {
        const struct keyed *receipt = &keys->receipts[at];
        if (at == 0 || by_key(&receipt[-1].key, &receipt->key) != 0) {
            keys->owners[keys->count] = receipt->message;
            keys->fates[keys->count] = RCPT_KEY_STORED;
            keys->list[keys->count++] = receipt->key;
        }
        keys->place_of[receipt->key.first] = keys->count - 1;
    }
}

/* Allocates one more than needed, so that a count of 0 is no special case. */
void rcpt_keys_begin(struct rcpt_keys *keys, const struct rcpt_batch *batch)
{
    size_t events = (size_t)batch->event_count + 1;
    rcpt_arena_reset(&keys->arena, SIZE_MAX);
    keys->batch = batch;
    keys->receipt_count = keys->count = 0;
    keys->has_missed = false;
    keys->receipts = rcpt_arena_alloc(&keys->arena, events * sizeof(*keys->receipts));
    keys->list = rcpt_arena_alloc(&keys->arena, events * sizeof(*keys->list));
    keys->place_of = rcpt_arena_alloc(&keys->arena, events * sizeof(*keys->place_of));
    keys->owners = rcpt_arena_alloc(&keys->arena, events * sizeof(*keys->owners));
    keys->fates = rcpt_arena_alloc(&keys->arena, events);
    keys->missed = rcpt_arena_alloc(&keys->arena, (size_t)batch->message_count + 1);
    memset(keys->missed, 0, batch->message_count);
    for (uint32_t message = 0; message < batch->message_count; message++)
        read_message(keys, message);
    qsort(keys->receipts, keys->receipt_count, sizeof(*keys->receipts), by_receipt);
    make_list(keys);
}

const struct rcpt_key *rcpt_keys_list(const struct rcpt_keys *keys, uint32_t *count)
{
    *count = keys->count;
    return keys->list;
}

/* ---- what PostgreSQL says ---- */

void rcpt_keys_tell(struct rcpt_keys *keys, uint32_t place, enum rcpt_key_fate fate)
{
    RCPT_ASSERT(place < keys->count);
    keys->fates[place] = (uint8_t)fate;
}

/* Inside of the window one receipt of a key counts: the earliest of the batch, unless an earlier
 * transaction has stored it. */
bool rcpt_keys_is_echo(const struct rcpt_keys *keys, uint32_t event)
{
    uint32_t place = keys->place_of[event];
    if (place == NONE || keys->fates[place] == RCPT_KEY_OUTSIDE)
        return false;
    return keys->fates[place] == RCPT_KEY_THERE || keys->list[place].first != event;
}

void rcpt_keys_missed(struct rcpt_keys *keys, uint32_t message)
{
    RCPT_ASSERT(message < keys->batch->message_count);
    keys->missed[message] = keys->has_missed = true;
}

/* Keys that were there before belong to another transaction and stay. */
const struct rcpt_key *rcpt_keys_undone(struct rcpt_keys *keys, uint32_t *count)
{
    struct rcpt_key *undone = NULL;
    *count = 0;
    if (keys->has_missed)
        undone = rcpt_arena_alloc(&keys->arena, ((size_t)keys->count + 1) * sizeof(*undone));
    for (uint32_t place = 0; keys->has_missed && place < keys->count; place++)
        if (keys->missed[keys->owners[place]] && keys->fates[place] == RCPT_KEY_STORED)
            undone[(*count)++] = keys->list[place];
    return undone;
}
