/* The rows that the second flight of a batch writes: counts, rows for subscribers, parked receipts,
 * and dead letters. Called by flights.c.
 */
#include <string.h>

#include "encode_counts.h"
#include "encode_parameters.h"
#include "flights_internal.h"
#include "receiptd/core/trace_context.h"

static void add(struct rcpt_submission *submission, const struct rcpt_lane_sender *sender,
                const char *statement, enum rcpt_lane_encoder encoder)
{
    rcpt_submission_add(submission, statement, sender->encoders[encoder]);
}

/* ---- counters ---- */

static void add_counters(struct rcpt_submission *submission, const struct rcpt_lane_sender *sender)
{
    const struct rcpt_rules *rules = sender->rules;
    struct rcpt_pg_encoder *const *encoders = sender->encoders;
    if (rcpt_encode_counters(encoders[RCPT_ENCODE_COUNTERS], sender->count, rules))
        add(submission, sender, "counters", RCPT_ENCODE_COUNTERS);
    if (!rcpt_rules_are_on(rules))
        return;
    if (rcpt_encode_members(encoders[RCPT_ENCODE_GROUPS], rules))
        add(submission, sender, "groups", RCPT_ENCODE_GROUPS);
    if (rcpt_encode_folds(encoders[RCPT_ENCODE_FOLDS], rules))
        add(submission, sender, "folds", RCPT_ENCODE_FOLDS);
    if (rcpt_encode_stream(encoders[RCPT_ENCODE_STREAM], rules))
        add(submission, sender, "stream", RCPT_ENCODE_STREAM);
    if (rcpt_encode_suppressions(encoders[RCPT_ENCODE_SUPPRESSIONS], rules))
        add(submission, sender, "suppression", RCPT_ENCODE_SUPPRESSIONS);
    if (sender->keys != NULL && rcpt_encode_undone_keys(encoders[RCPT_ENCODE_KEYS], sender->keys))
        add(submission, sender, "keys_undo", RCPT_ENCODE_KEYS);
}

/* ---- pipelines ---- */

struct transition {
    const struct rcpt_count_row *row;
    int16_t now;
    uint32_t gained;
    struct rcpt_text trace; /* a sampled traceparent; size 0: none */
};

/* With first times a row may have changed only in these times; that is no transition. */
static struct transition transition_of(const struct flights *flights,
                                       const struct rcpt_count_row *row)
{
    const struct rcpt_batch_message *message = &flights->batch->messages[row->message];
    struct transition transition = {.row = row, .now = row->was};
    if (!row->changed)
        return transition;
    transition.now = message->top > row->was ? message->top : row->was;
    transition.gained = message->mask & ~row->had;
    return transition;
}

static bool is_subscribed(const struct rcpt_lane_subscription *subscription,
                          const struct transition *transition)
{
    return subscription == NULL || subscription->tops[transition->now] ||
           (transition->gained & subscription->flags) != 0;
}

/* The sampled traceparent of a receipt of the message, if possible of one that names its status. */
static struct rcpt_text trace_of(const struct rcpt_batch *batch,
                                 const struct transition *transition)
{
    struct rcpt_text found = {NULL, 0};
    uint32_t message = transition->row->message;
    for (uint32_t at = batch->messages[message].first_event; at < rcpt_batch_end(batch, message);
         at++) {
        struct rcpt_text text = rcpt_text_of(batch->events[at].record->traceparent);
        bool is_better = found.size == 0 || batch->events[at].code == transition->now;
        if (is_better && rcpt_trace_is_sampled(text.at, text.size))
            found = text;
    }
    return found;
}

struct intents {
    struct transition *list;
    uint32_t count;
    bool is_traced;                           /* one of the list is */
    int16_t others[RCPT_LADDER_MAX_STATUSES]; /* statuses that other messages have reached */
    uint32_t other_count, other_flags;
};

static void add_other(struct intents *intents, const struct transition *transition)
{
    uint32_t at = 0;
    intents->other_flags |= transition->gained;
    while (at < intents->other_count && intents->others[at] != transition->now)
        at++;
    if (at < intents->other_count)
        return;
    RCPT_ASSERT(at < RCPT_LADDER_MAX_STATUSES);
    intents->others[intents->other_count++] = transition->now;
}

static struct intents list_intents(const struct flights *flights, struct rcpt_arena *arena)
{
    const struct rcpt_decided *decided = &flights->decided;
    struct intents intents = {
        .list = rcpt_arena_alloc(arena, decided->row_count * sizeof(*intents.list))};
    for (uint32_t row = 0; row < decided->row_count; row++) {
        struct transition transition = transition_of(flights, &decided->rows[row]);
        if (transition.now == transition.row->was && transition.gained == 0)
            continue;
        if (!is_subscribed(flights->sender->subscription, &transition)) {
            add_other(&intents, &transition);
            continue;
        }
        if (flights->batch->has_traceparents)
            transition.trace = trace_of(flights->batch, &transition);
        intents.is_traced |= transition.trace.size > 0;
        intents.list[intents.count++] = transition;
    }
    return intents;
}

static void put_bytes_or_empty(struct rcpt_pg_encoder *encoder, struct rcpt_text text)
{
    text = rcpt_text_or_empty(text);
    rcpt_pg_put_bytes(encoder, text.at, text.size);
}

/* The parameters of sql/lane/intents. */
static void encode_intents(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                           const struct intents *intents)
{
#define ROW     (intents->list[index].row)
#define MESSAGE (&batch->messages[ROW->message])
    uint32_t count = intents->count;
    rcpt_pg_encoder_reset(encoder);
    COLUMN(text, rcpt_pg_put_bytes(encoder, MESSAGE->id, MESSAGE->id_size));
    COLUMN(text, put_bytes_or_empty(encoder, ROW->org));
    COLUMN(text, put_bytes_or_empty(encoder, ROW->campaign));
    COLUMN(int2, rcpt_pg_put_int2(encoder, ROW->was));
    COLUMN(int2, rcpt_pg_put_int2(encoder, intents->list[index].now));
    COLUMN(int4, rcpt_pg_put_int4(encoder, (int32_t)intents->list[index].gained));
    count = intents->other_count;
    COLUMN(int2, rcpt_pg_put_int2(encoder, intents->others[index]));
    rcpt_pg_add_int4(encoder, (int32_t)intents->other_flags);
    count = intents->is_traced ? intents->count : 0;
    COLUMN(text, put_text_or_null(encoder, intents->list[index].trace));
#undef ROW
#undef MESSAGE
}

/* Sent even if nothing seems to be subscribed, because PostgreSQL has the newest subscription. */
static void add_intents(struct rcpt_submission *submission, const struct flights *flights)
{
    struct rcpt_lane_sender *sender = flights->sender;
    if (!sender->settings.actions || flights->kind == RCPT_BATCH_PROBE)
        return;
    struct rcpt_arena arena;
    rcpt_arena_init(&arena, 64 * 1024);
    const struct intents intents = list_intents(flights, &arena);
    sender->subscribed = intents.count > 0;
    if (intents.count > 0 || intents.other_count > 0) {
        encode_intents(sender->encoders[RCPT_ENCODE_INTENTS], flights->batch, &intents);
        add(submission, sender, "intents", RCPT_ENCODE_INTENTS);
    }
    rcpt_arena_fini(&arena);
}

/* ---- receipts that are not counted ---- */

/* Bare rows come behind the receipts that wait for them. */
static void add_uncounted(struct rcpt_submission *submission, struct flights *flights)
{
    struct rcpt_lane_sender *sender = flights->sender;
    const struct rcpt_uncounted *uncounted = &flights->uncounted;
    if (uncounted->parked_count > 0) {
        rcpt_encode_parked_rows(sender->encoders[RCPT_ENCODE_PARKED], flights->batch, uncounted,
                                &flights->names);
        add(submission, sender, "parked", RCPT_ENCODE_PARKED);
    }
    if (uncounted->absent_count > 0 && sender->inserts_unknown) {
        rcpt_encode_insert(sender->encoders[RCPT_ENCODE_INSERT], flights->batch, uncounted->absent,
                           uncounted->absent_count, sender->alias_wait_ms >= 0);
        add(submission, sender, "insert", RCPT_ENCODE_INSERT);
    }
    rcpt_submission_add_rejects(submission, sender, flights->batch, uncounted->letters,
                                uncounted->letter_count);
}

void flights_add_rows(struct flights *flights, struct rcpt_submission *submission)
{
    struct rcpt_lane_sender *sender = flights->sender;
    add_counters(submission, sender);
    add_intents(submission, flights);
    add_uncounted(submission, flights);
    if (!sender->writes_timeline || flights->kind != RCPT_BATCH_APPLY)
        return;
    if (flights->overdue != NULL)
        rcpt_encode_expired(sender->encoders[RCPT_ENCODE_TIMELINE], &flights->decided);
    else
        rcpt_encode_timeline(sender->encoders[RCPT_ENCODE_TIMELINE], &flights->decided);
    add(submission, sender, "timeline", RCPT_ENCODE_TIMELINE);
}
