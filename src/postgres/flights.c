/* A batch in two flights (flights.h). Each flight is a submission with a Sync of its own inside one
 * transaction block. A client that stops in between leaves a session that is idle in its
 * transaction, which the server's time-out ends. One transaction at a time on a connection.
 *
 *   BEGIN, fence, decide, keys → decide again, while something is stale → count → the rows, COMMIT
 *
 * A probe has no fence and ends with ROLLBACK. A wake takes its receipts first, in a flight of its
 * own: BEGIN, fence, wake → the same from decide on. So does an expiry, which moves no position:
 * BEGIN, candidates → the same. Called by statements.c and receipts/expirer.c.
 */
#include "flights.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "effects.h"
#include "encode_batch.h"
#include "encode_counts.h"
#include "flights_internal.h"

#include "receiptd/base/clock.h"
#include "receiptd/base/error.h"

/* Answers of the first flight; a probe has no fence. */
enum { FIRST_BEGIN, FIRST_FENCE };
/* Columns of sql/lane/fence. */
enum { FENCE_FENCE, FENCE_NOW };

/* ---- the end ---- */

/* The owner may send its next batch from the callback, so nothing here is used afterwards. */
static void finish(struct flights *flights_taken, const struct rcpt_error *error)
{
    struct flights flights = *flights_taken;
    free(flights_taken);
    rcpt_decided_end(&flights.decided);
    rcpt_woken_batch_free(flights.woken);
    rcpt_overdue_batch_free(flights.overdue);
    if (error != NULL)
        flights.result.outcome = rcpt_lane_outcome(error);
    if (flights.result.outcome == RCPT_ENGINE_DATA)
        rcpt_lane_describe(flights.result.detail, sizeof(flights.result.detail), error);
    flights.on_result(flights.context, flights.lane, &flights.result, error);
}

static void on_rolled_back(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                           const struct rcpt_error *error)
{
    (void)context;
    (void)rows;
    (void)row_count;
    (void)error; /* a lost connection has no transaction */
}

/* The block stays open after an error, and whatever comes next on the connection would fail in it.
 */
static void fail(struct flights *flights, const struct rcpt_error *error)
{
    const struct rcpt_pg_query query = {.statement = "rollback"};
    if (rcpt_pg_is_ready(flights->pg))
        rcpt_pg_submit(flights->pg, &query, 1, on_rolled_back, NULL);
    finish(flights, error);
}

/* ---- the second flight ---- */

/* COMMIT also rolls back, without an error, a block that has failed before: then another statement
 * came between the flights. */
static bool is_committed(const struct flights *flights, const struct rcpt_pg_rows *last,
                         struct rcpt_error *error)
{
    const char *command = rcpt_pg_rows_command(last);
    return flights->kind == RCPT_BATCH_PROBE || strcmp(command, "COMMIT") == 0 ||
           rcpt_error_set(error, RCPT_DECISION_RETRY, "25P02",
                          "the transaction had failed before its end: %s", command);
}

/* Only the Sync's result means committed. An error may also come from COMMIT itself, which checks
 * deferred constraints. */
static void on_written(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                       const struct rcpt_error *error)
{
    struct flights *flights = context;
    if (row_count > 0)
        flights->result.answered_ns = rcpt_pg_rows_arrived_ns(rows[row_count - 1]);
    struct rcpt_error failed;
    if (error != NULL) {
        fail(flights, error);
        return;
    }
    if (!is_committed(flights, rows[row_count - 1], &failed)) {
        finish(flights, &failed);
        return;
    }
    if (flights->kind == RCPT_BATCH_PROBE)
        flights->result.outcome = RCPT_ENGINE_PROBED;
    else
        flights_report(flights);
    finish(flights, NULL);
}

static void write_rows(struct flights *flights)
{
    struct rcpt_submission submission = {.count = 0};
    if (flights->batch->message_count > 0)
        flights_add_rows(flights, &submission);
    rcpt_submission_add(&submission, flights->kind == RCPT_BATCH_PROBE ? "rollback" : "commit",
                        NULL);
    submission.queries[submission.count - 1].answer_at_once = flights->traced;
    rcpt_pg_submit(flights->pg, submission.queries, submission.count, on_written, flights);
}

/* ---- between the flights ---- */

static void count_rows(struct flights *flights)
{
    struct rcpt_lane_sender *sender = flights->sender;
    const struct rcpt_decided_counters counters = {sender->count, sender->rules, sender->keys};
    rcpt_decided_count(&flights->decided, &counters, sender->settings.rules.ladder, flights->now_us,
                       &flights->names);
    if (flights->woken == NULL)
        rcpt_uncounted_list(&flights->uncounted, &flights->decided, sender->parks_unknown);
    flights->result.messages_known = rcpt_count_known(sender->count);
    flights->result.messages_changed = rcpt_count_changed(sender->count);
    flights->result.events_parked = flights->uncounted.parked_count;
}

static void on_decided(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                       const struct rcpt_error *error);

static void ask_again(struct flights *flights)
{
    struct rcpt_pg_encoder *encoder = flights->sender->encoders[RCPT_ENCODE_DECIDE];
    struct rcpt_pg_query query = {.statement = "decide"};
    const struct rcpt_decide_form form = {.ladder = flights->sender->settings.rules.times
                                                        ? flights->sender->settings.rules.ladder
                                                        : NULL,
                                          .names = &flights->names};
    rcpt_encode_decide(encoder, flights->batch, &form, flights->decided.stale,
                       flights->decided.stale_count);
    rcpt_pg_encoder_params(encoder, &query.params);
    flights->decide_at = 0;
    rcpt_pg_submit(flights->pg, &query, 1, on_decided, flights);
}

/* Columns of sql/lane/keys. */
enum { KEYS_N, KEYS_THERE };

/* A row for each key that was not stored. */
static void read_keys(struct flights *flights, const struct rcpt_pg_rows *rows)
{
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++)
        rcpt_keys_tell(flights->sender->keys, (uint32_t)rcpt_pg_rows_int(rows, row, KEYS_N) - 1,
                       rcpt_pg_rows_bool(rows, row, KEYS_THERE) ? RCPT_KEY_THERE
                                                                : RCPT_KEY_OUTSIDE);
}

/* The receipts of a wake go back where they were if one of its messages has gone meanwhile. */
static bool is_overtaken(const struct flights *flights)
{
    if (flights->woken == NULL)
        return false;
    for (uint32_t number = 0; number < flights->batch->message_count; number++)
        if (flights->decided.messages[number].fate != RCPT_FATE_KNOWN)
            return true;
    return false;
}

static void on_decided(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                       const struct rcpt_error *error)
{
    struct flights *flights = context;
    if (error != NULL) {
        fail(flights, error);
        return;
    }
    if (flights->decide_at == FIRST_FENCE + 1)
        flights->now_us = rcpt_pg_rows_int(rows[FIRST_FENCE], 0, FENCE_NOW);
    if (row_count > flights->decide_at + 1)
        read_keys(flights, rows[flights->decide_at + 1]);
    rcpt_decided_take(&flights->decided, rows[flights->decide_at]);
    if (flights->decided.stale_count > 0) {
        ask_again(flights);
        return;
    }
    count_rows(flights);
    if (is_overtaken(flights)) {
        struct rcpt_error gone;
        rcpt_error_set(&gone, RCPT_DECISION_RETRY, "40001",
                       "a message of the wake was deleted meanwhile");
        fail(flights, &gone);
        return;
    }
    write_rows(flights);
}

/* ---- the first flight ---- */

static void add_decide(struct rcpt_submission *submission, struct flights *flights)
{
    struct rcpt_lane_sender *sender = flights->sender;
    const struct rcpt_lane_sender_settings *settings = &sender->settings;
    const struct rcpt_decide_form form = {
        .ladder = settings->rules.times ? settings->rules.ladder : NULL, .names = &flights->names};
    rcpt_decided_begin(&flights->decided, flights->batch, sender->rules);
    rcpt_encode_decide(sender->encoders[RCPT_ENCODE_DECIDE], flights->batch, &form, NULL,
                       flights->batch->message_count);
    flights->decide_at = submission->count;
    rcpt_submission_add(submission, "decide", sender->encoders[RCPT_ENCODE_DECIDE]);
    if (sender->keys == NULL)
        return;
    rcpt_keys_begin(sender->keys, flights->batch);
    if (rcpt_encode_new_keys(sender->encoders[RCPT_ENCODE_KEYS], sender->keys, settings->window))
        rcpt_submission_add(submission, "keys", sender->encoders[RCPT_ENCODE_KEYS]);
}

/* Decides a batch that its transaction has found itself. */
static void decide_found(struct flights *flights)
{
    struct rcpt_submission submission = {.count = 0};
    if (flights->batch->message_count == 0) {
        write_rows(flights);
        return;
    }
    add_decide(&submission, flights);
    rcpt_pg_submit(flights->pg, submission.queries, submission.count, on_decided, flights);
}

/* The receipts that the wake has taken become a batch of their own. */
static void on_woken(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                     const struct rcpt_error *error)
{
    struct flights *flights = context;
    if (error != NULL) {
        fail(flights, error);
        return;
    }
    flights->now_us = rcpt_pg_rows_int(rows[FIRST_FENCE], 0, FENCE_NOW);
    flights->woken = rcpt_woken_batch_new(flights->lane, flights->sender->settings.rules.ladder,
                                          rows[row_count - 1]);
    flights->batch = &flights->woken->batch;
    flights->names = rcpt_woken_names(flights->woken);
    flights->result.woken = flights->woken->applied.events + flights->woken->refused.events;
    decide_found(flights);
}

/* The messages are locked, so none of them is stale or gone when decide comes. */
static void on_overdue(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                       const struct rcpt_error *error)
{
    struct flights *flights = context;
    if (error != NULL) {
        fail(flights, error);
        return;
    }
    flights->batch = flights->overdue = rcpt_overdue_batch_new(rows[row_count - 1]);
    if (flights->batch->message_count > 0)
        flights->now_us = flights->batch->messages[0].at_us;
    decide_found(flights);
}

/* The clock for a probe, which is rolled back. */
static int64_t own_clock_us(void)
{
    return rcpt_wall_ns() / RCPT_NS_PER_US;
}

/* The fence comes first: its locks on positions are taken before those on messages. The batch stays
 * the engine's until its result, which comes after the second flight. */
void rcpt_flights_send(struct rcpt_lane_sender *sender, struct rcpt_pg *pg,
                       const struct rcpt_batch *batch, bool traced, rcpt_lane_on_result on_result,
                       void *context)
{
    struct rcpt_submission submission = {.count = 0};
    struct flights *flights = rcpt_malloc(sizeof(*flights));
    *flights = (struct flights){.sender = sender,
                                .pg = pg,
                                .batch = batch,
                                .lane = batch->lane,
                                .kind = batch->kind,
                                .traced = traced,
                                .on_result = on_result,
                                .context = context,
                                .names = sender->settings.names,
                                .now_us = own_clock_us(),
                                .result = {.outcome = RCPT_ENGINE_COMMITTED}};
    rcpt_submission_add(&submission, "begin", NULL);
    if (batch->kind != RCPT_BATCH_PROBE) {
        rcpt_encode_fence(sender->encoders[RCPT_ENCODE_FENCE], batch);
        rcpt_submission_add(&submission, "fence", sender->encoders[RCPT_ENCODE_FENCE]);
    }
    if (batch->kind != RCPT_BATCH_WAKE) {
        add_decide(&submission, flights);
        rcpt_pg_submit(pg, submission.queries, submission.count, on_decided, flights);
        return;
    }
    rcpt_encode_parked(sender->encoders[RCPT_ENCODE_DECIDE], batch, -1);
    rcpt_submission_add(&submission, "wake", sender->encoders[RCPT_ENCODE_DECIDE]);
    rcpt_pg_submit(pg, submission.queries, submission.count, on_woken, flights);
}

void rcpt_lane_expire(struct rcpt_lane_sender *sender, struct rcpt_pg *pg,
                      const struct rcpt_pg_params *range, rcpt_lane_on_result on_result,
                      void *context)
{
    const struct rcpt_pg_query queries[] = {{.statement = "begin"},
                                            {.statement = "candidates", .params = *range}};
    struct flights *flights = rcpt_malloc(sizeof(*flights));
    *flights = (struct flights){.sender = sender,
                                .pg = pg,
                                .kind = RCPT_BATCH_APPLY,
                                .on_result = on_result,
                                .context = context,
                                .names = sender->settings.names,
                                .result = {.outcome = RCPT_ENGINE_COMMITTED}};
    rcpt_pg_submit(pg, queries, RCPT_COUNT_OF(queries), on_overdue, flights);
}
