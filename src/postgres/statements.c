/* The statements of a lane: a batch becomes one submission of prepared statements with parameters,
 * or two flights (flights.c), and their answers the result of the batch. Called by
 * receipts/lanes.c.
 */
#include "receiptd/postgres/statements.h"

#include <stdlib.h>
#include <string.h>

#include "effects.h"
#include "encode_batch.h"
#include "flights.h"

/* Index of the EXPIRE's answer about addressed rows; bare rows come next, if any are made. */
#define ADDRESSED 1

/* ---- the sender ---- */

/* `insert` parks like `park`, and adds one statement that makes the rows. */
struct rcpt_lane_sender *rcpt_lane_sender_new(const struct rcpt_lane_sender_settings *settings)
{
    struct rcpt_lane_sender *sender = rcpt_calloc(1, sizeof(*sender));
    sender->settings = *settings;
    sender->inserts_unknown = strcmp(settings->unknown_policy, "insert") == 0;
    sender->parks_unknown = strcmp(settings->unknown_policy, "dead-letter") != 0;
    sender->alias_wait_ms = -1;
    sender->count = rcpt_count_new();
    sender->rules = rcpt_rules_new(&settings->rules);
    sender->keys = settings->rules.dedup ? rcpt_keys_new() : NULL;
    for (size_t index = 0; index < RCPT_LANE_ENCODERS; index++)
        sender->encoders[index] = rcpt_pg_encoder_new();
    return sender;
}

void rcpt_lane_sender_free(struct rcpt_lane_sender *sender)
{
    if (sender == NULL)
        return;
    for (size_t index = 0; index < RCPT_LANE_ENCODERS; index++)
        rcpt_pg_encoder_free(sender->encoders[index]);
    rcpt_keys_free(sender->keys);
    rcpt_rules_free(sender->rules);
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

/* A copy, so that the caller may change its own. */
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

bool rcpt_lane_sender_is_subscribed(const struct rcpt_lane_sender *sender)
{
    return sender->subscribed;
}

/* ---- sending ---- */

/* The data that is kept until the answer comes. */
struct flight {
    struct rcpt_lane_sender *sender;
    rcpt_lane_on_result on_result;
    void *context;
    uint32_t lane;
    enum rcpt_batch_kind kind;
    size_t query_count;
    bool has_work; /* the last answer is that of the batch itself; else only positions move */
};

/* The encoders are alive until the submission is sent, so each statement has its own. */
void rcpt_submission_add(struct rcpt_submission *submission, const char *statement,
                         struct rcpt_pg_encoder *encoder)
{
    RCPT_ASSERT(submission->count < RCPT_LANE_MOST_QUERIES);
    struct rcpt_pg_query *query = &submission->queries[submission->count++];
    *query = (struct rcpt_pg_query){.statement = statement};
    if (encoder != NULL)
        rcpt_pg_encoder_params(encoder, &query->params);
}

/* Letters and ranges of a batch; most have none, and go without the statements. */
void rcpt_submission_add_rejects(struct rcpt_submission *submission,
                                 struct rcpt_lane_sender *sender, const struct rcpt_batch *batch,
                                 const struct rcpt_batch_letter *letters, uint32_t letter_count)
{
    if (batch->range_count > 0) {
        rcpt_encode_ranges(sender->encoders[RCPT_ENCODE_RANGES], batch, &sender->settings.names);
        rcpt_submission_add(submission, "range_store", sender->encoders[RCPT_ENCODE_RANGES]);
    }
    if (letter_count == 0)
        return;
    rcpt_encode_letters(sender->encoders[RCPT_ENCODE_LETTERS], batch->lane, letters, letter_count);
    rcpt_submission_add(submission, "letters", sender->encoders[RCPT_ENCODE_LETTERS]);
}

/* Adds the statement for parked rows that cannot be applied as they are. An alias leads a row
 * elsewhere, a bare row is made for it, or it is too old. */
static void add_expire(struct rcpt_submission *submission, struct rcpt_lane_sender *sender,
                       const struct rcpt_batch *batch)
{
    struct rcpt_pg_encoder *address = sender->encoders[RCPT_ENCODE_PARKED],
                           *insert = sender->encoders[RCPT_ENCODE_INSERT],
                           *expire = sender->encoders[RCPT_ENCODE_DECIDE];
    rcpt_encode_parked(address, batch, -1);
    rcpt_submission_add(submission, "address", address);
    if (sender->inserts_unknown && !sender->cannot_insert) {
        rcpt_encode_parked(insert, batch, sender->alias_wait_ms >= 0 ? sender->alias_wait_ms : 0);
        rcpt_submission_add(submission, "insert_parked", insert);
    }
    rcpt_encode_parked(expire, batch, sender->parked_max_age_ms);
    rcpt_submission_add(submission, "expire", expire);
}

/* The lock is a statement of its own: the snapshot of the next one is younger than it, and shows
 * what another instance has parked. */
static void add_resolve(struct rcpt_submission *submission, struct rcpt_lane_sender *sender,
                        const struct rcpt_batch *batch)
{
    struct rcpt_pg_encoder *lock = sender->encoders[RCPT_ENCODE_PARKED],
                           *resolve = sender->encoders[RCPT_ENCODE_RANGES];
    rcpt_pg_encoder_reset(lock);
    rcpt_pg_add_int4(lock, (int32_t)batch->lane);
    rcpt_submission_add(submission, "range_lock", lock);
    rcpt_encode_resolve(resolve, batch, sender->range_wait_ms, sender->writes_timeline);
    rcpt_submission_add(submission, "range_resolve", resolve);
}

/* The order of the statements is the order of the locks: positions, then inserted rows. */
static void build(struct rcpt_submission *submission, struct rcpt_lane_sender *sender,
                  const struct rcpt_batch *batch)
{
    rcpt_encode_fence(sender->encoders[RCPT_ENCODE_FENCE], batch);
    rcpt_submission_add(submission, "fence", sender->encoders[RCPT_ENCODE_FENCE]);
    switch (batch->kind) {
    case RCPT_BATCH_APPLY:
        rcpt_submission_add_rejects(submission, sender, batch, batch->letters, batch->letter_count);
        return;
    case RCPT_BATCH_DISCARD:
        rcpt_encode_parked(sender->encoders[RCPT_ENCODE_DECIDE], batch, -1);
        rcpt_submission_add(submission, "discard", sender->encoders[RCPT_ENCODE_DECIDE]);
        return;
    case RCPT_BATCH_EXPIRE:
        add_expire(submission, sender, batch);
        return;
    case RCPT_BATCH_RANGES:
        add_resolve(submission, sender, batch);
        return;
    default:
        rcpt_assert_failed("a kind of batch that goes in one flight", __FILE__, __LINE__, __func__);
    }
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
    const size_t work = flight->query_count - 1;
    const struct rcpt_pg_rows *rows = answers[work];
    RCPT_ASSERT(rcpt_pg_rows_count(rows) == 1);
    if (flight->kind == RCPT_BATCH_RANGES) {
        read_resolved(result, rows);
        return;
    }
    if (flight->kind == RCPT_BATCH_EXPIRE)
        result->moved = (uint32_t)rcpt_pg_rows_int(answers[ADDRESSED], 0, 0);
    if (flight->kind == RCPT_BATCH_EXPIRE && work > ADDRESSED + 1)
        result->made = (uint32_t)rcpt_pg_rows_int(answers[ADDRESSED + 1], 0, 0);
    result->woken = (uint32_t)rcpt_pg_rows_int(rows, 0, 0);
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
    if (result.outcome == RCPT_ENGINE_COMMITTED && flight.has_work) {
        RCPT_ASSERT(row_count == flight.query_count);
        read_counts(&result, &flight, rows);
        rcpt_effects_report(flight.sender->on_effects, flight.sender->effects_context, flight.lane,
                            flight.kind, rows[row_count - 1]);
    } else if (result.outcome == RCPT_ENGINE_DATA) {
        rcpt_lane_describe(result.detail, sizeof(result.detail), error);
        flight.sender->cannot_insert |= flight.kind == RCPT_BATCH_EXPIRE;
    }
    flight.on_result(flight.context, flight.lane, &result, error);
}

static bool goes_in_flights(const struct rcpt_batch *batch)
{
    bool applies = batch->kind == RCPT_BATCH_APPLY || batch->kind == RCPT_BATCH_PROBE;
    return batch->kind == RCPT_BATCH_WAKE || (applies && batch->message_count > 0);
}

/* The flight outlives the call and is freed by on_answer, which is called exactly once. */
void rcpt_lane_send(struct rcpt_lane_sender *sender, struct rcpt_pg *pg,
                    const struct rcpt_batch *batch, bool traced, rcpt_lane_on_result on_result,
                    void *context)
{
    struct rcpt_submission submission = {.count = 0};
    sender->subscribed = false;
    if (goes_in_flights(batch)) {
        rcpt_flights_send(sender, pg, batch, traced, on_result, context);
        return;
    }
    build(&submission, sender, batch);
    submission.queries[submission.count - 1].answer_at_once = traced;
    struct flight *flight = rcpt_malloc(sizeof(*flight));
    *flight = (struct flight){.sender = sender,
                              .on_result = on_result,
                              .context = context,
                              .lane = batch->lane,
                              .kind = batch->kind,
                              .query_count = submission.count,
                              .has_work = batch->kind != RCPT_BATCH_APPLY};
    rcpt_pg_submit(pg, submission.queries, submission.count, on_answer, flight);
}
