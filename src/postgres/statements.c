/* The statements of a lane: a batch becomes one submission of prepared statements with parameters,
 * and their answers the result of the batch.
 * Called by receipts/lanes.c; encode_batch.c writes the parameters.
 */
#include "statements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "effects.h"
#include "encode_batch.h"
#include "flights.h"
#include "sql.h"

/* Fence, batch, timeline, bare rows, ranges, letters. */
#define MAX_QUERIES 6

/* Which answer of an EXPIRE; bare rows come next, if any are made. */
#define ADDRESSED 1

/* After an unknown message, so many batches are sent with their raw events. */
#define RAW_BATCHES 32u

/* ---- sending ---- */

/* What is kept until the answer comes. */
struct flight {
    struct rcpt_lane_sender *sender;
    rcpt_lane_on_result on_result;
    void *context;
    uint32_t lane;
    enum rcpt_batch_kind kind;
    size_t query_count;
    int work; /* which answer is that of the batch itself; -1: none, only positions move */
};

struct submission {
    struct rcpt_pg_query queries[MAX_QUERIES];
    size_t count;
};

/* `insert` parks like `park`, and adds one statement that makes the rows. */
struct rcpt_lane_sender *rcpt_lane_sender_new(const char *unknown_policy, int64_t parked_max_age_ms)
{
    struct rcpt_lane_sender *sender = rcpt_calloc(1, sizeof(*sender));
    sender->inserts_unknown = strcmp(unknown_policy, "insert") == 0;
    sender->unknown_policy = strcmp(unknown_policy, "dead-letter") == 0 ? "dead-letter" : "park";
    sender->parked_max_age_ms = parked_max_age_ms;
    sender->alias_wait_ms = -1;
    sender->fence = rcpt_pg_encoder_new();
    sender->address = rcpt_pg_encoder_new();
    sender->work = rcpt_pg_encoder_new();
    sender->insert = rcpt_pg_encoder_new();
    sender->ranges = rcpt_pg_encoder_new();
    sender->letters = rcpt_pg_encoder_new();
    sender->timeline = rcpt_pg_encoder_new();
    return sender;
}

void rcpt_lane_sender_free(struct rcpt_lane_sender *sender)
{
    if (sender == NULL)
        return;
    rcpt_pg_encoder_free(sender->fence);
    rcpt_pg_encoder_free(sender->address);
    rcpt_pg_encoder_free(sender->work);
    rcpt_pg_encoder_free(sender->insert);
    rcpt_pg_encoder_free(sender->ranges);
    rcpt_pg_encoder_free(sender->letters);
    rcpt_pg_encoder_free(sender->timeline);
    rcpt_count_free(sender->count);
    free(sender->subscription);
    free(sender);
}

/* At most one observer; it is called for each committed batch. */
void rcpt_lane_sender_observe(struct rcpt_lane_sender *sender, rcpt_lane_on_effects on_effects,
                              void *context)
{
    sender->on_effects = on_effects;
    sender->effects_context = context;
}

void rcpt_lane_sender_set_flights(struct rcpt_lane_sender *sender)
{
    sender->count = rcpt_count_new();
}

void rcpt_lane_sender_set_names(struct rcpt_lane_sender *sender,
                                const struct rcpt_lane_names *names)
{
    sender->names = *names;
}

void rcpt_lane_sender_set_rules(struct rcpt_lane_sender *sender,
                                const struct rcpt_lane_rules *rules,
                                const struct rcpt_ladder *ladder)
{
    sender->rules = *rules;
    sender->ladder = ladder;
}

void rcpt_lane_sender_set_timeline(struct rcpt_lane_sender *sender, bool on)
{
    sender->writes_timeline = on;
}

void rcpt_lane_sender_set_max_age(struct rcpt_lane_sender *sender, int64_t parked_max_age_ms)
{
    sender->parked_max_age_ms = parked_max_age_ms;
}

void rcpt_lane_sender_set_alias_wait(struct rcpt_lane_sender *sender, int64_t alias_wait_ms)
{
    sender->alias_wait_ms = alias_wait_ms;
}

void rcpt_lane_sender_set_range_wait(struct rcpt_lane_sender *sender, int64_t range_wait_ms)
{
    sender->range_wait_ms = range_wait_ms;
}

/* A copy, so that the caller may change its own. NULL: every batch carries the subscribers'
 * blocks. */
void rcpt_lane_sender_set_subscription(struct rcpt_lane_sender *sender,
                                       const struct rcpt_lane_subscription *subscription)
{
    free(sender->subscription);
    sender->subscription = NULL;
    if (subscription == NULL)
        return;
    sender->subscription = rcpt_malloc(sizeof(*subscription));
    *sender->subscription = *subscription;
}

/* Whether no message of the batch can reach a status or flag to which pipelines subscribe. */
static bool is_unsubscribed(const struct rcpt_lane_sender *sender, const struct rcpt_batch *batch)
{
    const struct rcpt_lane_subscription *subscription = sender->subscription;
    if (subscription == NULL ||
        (batch->kind != RCPT_BATCH_APPLY && batch->kind != RCPT_BATCH_PROBE))
        return false;
    for (uint32_t index = 0; index < batch->message_count; index++) {
        const struct rcpt_batch_message *message = &batch->messages[index];
        RCPT_ASSERT(message->top >= 0 && message->top < RCPT_LANE_STATUSES);
        if (subscription->tops[message->top] || (message->mask & subscription->flags) != 0)
            return false;
    }
    return true;
}

/* Only unknown messages need the raw events; where they are rare, they stay here. */
static bool sends_raw(const struct rcpt_lane_sender *sender, const struct rcpt_batch *batch)
{
    return sender->inserts_unknown || sender->raw_batches > 0 || batch->has_held ||
           batch->kind == RCPT_BATCH_PROBE;
}

/* An unknown message is seldom alone: rows that come late concern the next batches as well. */
static void expect_unknown(struct rcpt_lane_sender *sender, bool was_unknown)
{
    if (was_unknown)
        sender->raw_batches = RAW_BATCHES;
    else if (sender->raw_batches > 0)
        sender->raw_batches--;
}

/* Parameters are borrowed from the encoder until the submission is sent. */
static void add_query(struct submission *submission, const char *statement,
                      struct rcpt_pg_encoder *encoder)
{
    RCPT_ASSERT(submission->count < MAX_QUERIES);
    struct rcpt_pg_query *query = &submission->queries[submission->count++];
    *query = (struct rcpt_pg_query){.statement = statement};
    if (encoder != NULL)
        rcpt_pg_encoder_params(encoder, &query->params);
}

static void add_fence(struct submission *submission, const struct rcpt_lane_sender *sender,
                      const struct rcpt_batch *batch)
{
    rcpt_encode_fence(sender->fence, batch);
    add_query(submission, "fence", sender->fence);
}

/* For delays: the time by this machine's clock, since receipts are counted before PostgreSQL has
 * them. */
static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* The messages of an APPLY or a PROBE. A batch without any only moves positions. */
static void add_messages(struct submission *submission, const struct rcpt_lane_sender *sender,
                         const struct rcpt_batch *batch, bool unsubscribed)
{
    if (batch->message_count == 0)
        return;
    const struct rcpt_encode_form form = {.unknown_policy = sender->unknown_policy,
                                          .names = &sender->names,
                                          .raw = sends_raw(sender, batch),
                                          .unsubscribed = unsubscribed,
                                          .rules = sender->rules,
                                          .ladder = sender->ladder,
                                          .now_us = now_us()};
    rcpt_encode_apply(sender->work, batch, &form);
    add_query(submission, unsubscribed ? "apply_unsubscribed" : "apply", sender->work);
    if (sender->writes_timeline && batch->kind == RCPT_BATCH_APPLY) {
        rcpt_encode_timeline(sender->timeline, batch);
        add_query(submission, "timeline", sender->timeline);
    }
    if (!sender->inserts_unknown)
        return;
    rcpt_encode_insert(sender->insert, batch, sender->alias_wait_ms >= 0);
    add_query(submission, "insert", sender->insert);
}

/* Most batches have no range and no dead letter, and go without the statements. */
static void add_rejects(struct submission *submission, const struct rcpt_lane_sender *sender,
                        const struct rcpt_batch *batch)
{
    if (batch->range_count > 0) {
        rcpt_encode_ranges(sender->ranges, batch, &sender->names);
        add_query(submission, "range_store", sender->ranges);
    }
    if (batch->letter_count == 0)
        return;
    rcpt_encode_letters(sender->letters, batch);
    add_query(submission, "letters", sender->letters);
}

/* What cannot be applied as it stands: an alias leads it elsewhere, a bare row is made for it, or
 * it is too old. */
static void add_expire(struct submission *submission, const struct rcpt_lane_sender *sender,
                       const struct rcpt_batch *batch)
{
    rcpt_encode_parked(sender->address, batch, -1);
    add_query(submission, "address", sender->address);
    if (sender->inserts_unknown && !sender->cannot_insert) {
        rcpt_encode_parked(sender->insert, batch,
                           sender->alias_wait_ms >= 0 ? sender->alias_wait_ms : 0);
        add_query(submission, "insert_parked", sender->insert);
    }
    rcpt_encode_parked(sender->work, batch, sender->parked_max_age_ms);
    add_query(submission, "expire", sender->work);
}

/* The lock is a statement of its own: the snapshot of the next one is younger than it, and shows
 * what another instance has parked. */
static void add_resolve(struct submission *submission, const struct rcpt_lane_sender *sender,
                        const struct rcpt_batch *batch)
{
    rcpt_pg_encoder_reset(sender->work);
    rcpt_pg_add_int4(sender->work, (int32_t)batch->lane);
    add_query(submission, "range_lock", sender->work);
    rcpt_encode_resolve(sender->ranges, batch, sender->range_wait_ms, sender->writes_timeline);
    add_query(submission, "range_resolve", sender->ranges);
}

/* The order of the statements is the order of the locks: positions, messages, then inserts. */
static void build(struct submission *submission, const struct rcpt_lane_sender *sender,
                  const struct rcpt_batch *batch, bool unsubscribed)
{
    switch (batch->kind) {
    case RCPT_BATCH_APPLY:
        add_fence(submission, sender, batch);
        add_messages(submission, sender, batch, unsubscribed);
        add_rejects(submission, sender, batch);
        return;
    case RCPT_BATCH_PROBE:
        add_messages(submission, sender, batch, unsubscribed);
        add_query(submission, "probe_abort", NULL);
        return;
    case RCPT_BATCH_WAKE:
    case RCPT_BATCH_DISCARD:
        add_fence(submission, sender, batch);
        rcpt_encode_parked(sender->work, batch, -1);
        add_query(submission, batch->kind == RCPT_BATCH_WAKE ? "wake" : "discard", sender->work);
        return;
    case RCPT_BATCH_EXPIRE:
        add_fence(submission, sender, batch);
        add_expire(submission, sender, batch);
        return;
    case RCPT_BATCH_RANGES:
        add_fence(submission, sender, batch);
        add_resolve(submission, sender, batch);
        return;
    case RCPT_BATCH_KIND__COUNT:
        break;
    }
    rcpt_assert_failed("a known kind of batch", __FILE__, __LINE__, __func__);
}

/* ---- the answer ---- */

/* Columns of sql/lane/range_resolve. */
enum { RESOLVE_RANGES, RESOLVE_AGAIN, RESOLVE_MESSAGES, RESOLVE_IDLE };

/* The receipts that were parked belong to other lanes: `woken` only counts them. */
static void read_resolved(struct rcpt_engine_result *result, const struct rcpt_pg_rows *rows)
{
    result->more_ranges = rcpt_pg_rows_bool(rows, 0, RESOLVE_AGAIN);
    result->woken = (uint32_t)rcpt_pg_rows_int(rows, 0, RESOLVE_MESSAGES);
    result->ranges_idle = (uint32_t)rcpt_pg_rows_int(rows, 0, RESOLVE_IDLE);
}

/* The answers about parked rows begin with the number of rows that were handled. */
static void read_counts(struct rcpt_engine_result *result, const struct flight *flight,
                        struct rcpt_pg_rows *const *answers)
{
    const struct rcpt_pg_rows *rows = answers[flight->work];
    RCPT_ASSERT(rcpt_pg_rows_count(rows) == 1);
    if (flight->kind == RCPT_BATCH_APPLY) {
        result->messages_known = (uint32_t)rcpt_pg_rows_int(rows, 0, APPLY_MESSAGES_KNOWN);
        result->messages_changed = (uint32_t)rcpt_pg_rows_int(rows, 0, APPLY_MESSAGES_CHANGED);
        result->events_parked = (uint32_t)rcpt_pg_rows_int(rows, 0, APPLY_EVENTS_PARKED);
        expect_unknown(flight->sender, result->events_parked > 0 ||
                                           rcpt_pg_rows_int(rows, 0, APPLY_EVENTS_DEAD) > 0 ||
                                           rcpt_pg_rows_int(rows, 0, APPLY_EVENTS_REFUSED) > 0 ||
                                           rcpt_pg_rows_int(rows, 0, APPLY_EVENTS_RETIRED) > 0);
    } else if (flight->kind == RCPT_BATCH_RANGES) {
        read_resolved(result, rows);
    } else {
        if (flight->kind == RCPT_BATCH_EXPIRE)
            result->moved = (uint32_t)rcpt_pg_rows_int(answers[ADDRESSED], 0, 0);
        if (flight->kind == RCPT_BATCH_EXPIRE && flight->work > ADDRESSED + 1)
            result->made = (uint32_t)rcpt_pg_rows_int(answers[ADDRESSED + 1], 0, 0);
        result->woken = (uint32_t)rcpt_pg_rows_int(rows, 0, WAKE_ROWS);
        if (flight->kind == RCPT_BATCH_WAKE)
            result->messages_changed = (uint32_t)rcpt_pg_rows_int(rows, 0, WAKE_MESSAGES_CHANGED);
    }
}

/* Effects before the result: the observer needs the batch, which the engine frees. */
static void on_answer(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    struct flight flight = *(struct flight *)context;
    struct rcpt_engine_result result = {.outcome = rcpt_lane_outcome(error)};
    free(context);
    if (row_count > 0)
        result.answered_ns = rcpt_pg_rows_arrived_ns(rows[row_count - 1]);
    if (result.outcome == RCPT_ENGINE_COMMITTED) {
        RCPT_ASSERT(row_count == flight.query_count && flight.kind != RCPT_BATCH_PROBE);
        if (flight.work >= 0) {
            read_counts(&result, &flight, rows);
            rcpt_effects_report(flight.sender->on_effects, flight.sender->effects_context,
                                flight.lane, flight.kind, rows[flight.work]);
        }
    } else if (result.outcome == RCPT_ENGINE_AGAIN) {
        expect_unknown(flight.sender, true);
    } else if (result.outcome == RCPT_ENGINE_DATA) {
        rcpt_lane_describe(result.detail, sizeof(result.detail), error);
        flight.sender->cannot_insert |= flight.kind == RCPT_BATCH_EXPIRE;
    } else if (result.outcome == RCPT_ENGINE_PROBED) {
        error = NULL;
    }
    flight.on_result(flight.context, flight.lane, &result, error);
}

/* The second flight writes no raw events yet. */
static bool goes_in_flights(const struct rcpt_lane_sender *sender, const struct rcpt_batch *batch)
{
    return sender->count != NULL && batch->kind == RCPT_BATCH_APPLY && batch->message_count > 0 &&
           batch->range_count == 0 && batch->letter_count == 0 && !sends_raw(sender, batch);
}

/* The flight outlives the call and is freed by on_answer, which is called exactly once. */
bool rcpt_lane_send(struct rcpt_lane_sender *sender, struct rcpt_pg *pg,
                    const struct rcpt_batch *batch, bool traced, rcpt_lane_on_result on_result,
                    void *context)
{
    struct submission submission = {.count = 0};
    bool unsubscribed = is_unsubscribed(sender, batch);
    if (goes_in_flights(sender, batch)) {
        rcpt_flights_send(sender, pg, batch, traced, on_result, context);
        return false;
    }
    build(&submission, sender, batch, unsubscribed);
    submission.queries[submission.count - 1].answer_at_once = traced;
    bool has_work = batch->kind != RCPT_BATCH_APPLY || batch->message_count > 0;
    struct flight *flight = rcpt_malloc(sizeof(*flight));
    *flight = (struct flight){
        .sender = sender,
        .on_result = on_result,
        .context = context,
        .lane = batch->lane,
        .kind = batch->kind,
        .query_count = submission.count,
        .work = !has_work ? -1
                : batch->kind == RCPT_BATCH_EXPIRE || batch->kind == RCPT_BATCH_RANGES
                    ? (int)submission.count - 1
                    : 1,
    };
    rcpt_pg_submit(pg, submission.queries, submission.count, on_answer, flight);
    return unsubscribed;
}
