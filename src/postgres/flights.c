/* A batch in two flights (flights.h). Each flight is a submission with a Sync of its own inside one
 * transaction block, so that a client which stops in between leaves a session that is idle in its
 * transaction, and the server's time-out for these ends it. One transaction at a time on a
 * connection. Called by statements.c.
 */
#include "flights.h"

#include <stdlib.h>
#include <string.h>

#include "effects.h"
#include "encode_batch.h"

/* Columns of sql/heart/decide. */
enum { DECIDE_N, DECIDE_STATUS, DECIDE_FLAGS, DECIDE_CAMPAIGN, DECIDE_FATE };

/* Answers of the first flight. */
enum { FIRST_BEGIN, FIRST_FENCE, FIRST_DECIDE, FIRST__COUNT };
enum { SECOND_CELLS, SECOND_COMMIT, SECOND__COUNT };

struct flights {
    struct rcpt_lane_sender *sender;
    struct rcpt_pg *pg;
    const struct rcpt_batch *batch; /* the engine's, until its result */
    bool traced;
    rcpt_lane_on_result on_result;
    void *context;
    struct rcpt_engine_result result;
};

/* ---- the end ---- */

/* The owner may send its next batch from the callback, so nothing here is used afterwards. */
static void finish(struct flights *flights_taken, const struct rcpt_error *error)
{
    struct flights flights = *flights_taken;
    free(flights_taken);
    flights.result.outcome =
        flights.result.outcome == RCPT_ENGINE_AGAIN ? RCPT_ENGINE_AGAIN : rcpt_lane_outcome(error);
    if (flights.result.outcome == RCPT_ENGINE_DATA)
        rcpt_lane_describe(flights.result.detail, sizeof(flights.result.detail), error);
    flights.on_result(flights.context, flights.batch->lane, &flights.result, error);
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
static void roll_back(struct rcpt_pg *pg)
{
    const struct rcpt_pg_query query = {.statement = "rollback"};
    if (rcpt_pg_is_ready(pg))
        rcpt_pg_submit(pg, &query, 1, on_rolled_back, NULL);
}

/* ---- the second flight ---- */

/* The batch's signatures are what the figures know kinds by. */
static void report(const struct flights *flights)
{
    struct rcpt_lane_effect effects[RCPT_LANE_MOST_EFFECTS];
    uint32_t size;
    const struct rcpt_count_kind *kinds = rcpt_count_kinds(flights->sender->count, &size);
    struct rcpt_lane_effects report = {.rows = effects,
                                       .events_counted = rcpt_count_events(flights->sender->count)};
    for (; report.count < size && report.count < RCPT_LANE_MOST_EFFECTS; report.count++)
        effects[report.count] =
            (struct rcpt_lane_effect){.old = kinds[report.count].old,
                                      .new = kinds[report.count].new,
                                      .gained = kinds[report.count].gained,
                                      .signature = kinds[report.count].signature,
                                      .messages = kinds[report.count].messages};
    if (flights->sender->on_effects != NULL)
        flights->sender->on_effects(flights->sender->effects_context, flights->batch->lane,
                                    &report);
}

/* Only the Sync's result means committed. An error may also come from COMMIT itself, which checks
 * deferred constraints. */
static void on_written(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                       const struct rcpt_error *error)
{
    struct flights *flights = context;
    if (row_count > 0)
        flights->result.answered_ns = rcpt_pg_rows_arrived_ns(rows[row_count - 1]);
    if (error != NULL) {
        roll_back(flights->pg);
        finish(flights, error);
        return;
    }
    RCPT_ASSERT(row_count == SECOND__COUNT);
    report(flights);
    finish(flights, NULL);
}

/* The parameters of sql/heart/cells. */
static void encode_cells(struct rcpt_pg_encoder *encoder, const struct rcpt_count *count)
{
    uint32_t size;
    const struct rcpt_cell *cells = rcpt_count_cells(count, &size);
    rcpt_pg_encoder_reset(encoder);
    rcpt_pg_begin_text_array(encoder, size);
    for (uint32_t index = 0; index < size; index++) {
        struct rcpt_text campaign = rcpt_count_campaign(count, cells[index].campaign);
        rcpt_pg_put_bytes(encoder, campaign.at, campaign.size);
    }
    rcpt_pg_begin_int2_array(encoder, size);
    for (uint32_t index = 0; index < size; index++)
        rcpt_pg_put_int2(encoder, cells[index].code);
    rcpt_pg_begin_int8_array(encoder, size);
    for (uint32_t index = 0; index < size; index++)
        rcpt_pg_put_int8(encoder, cells[index].messages);
    rcpt_pg_begin_int8_array(encoder, size);
    for (uint32_t index = 0; index < size; index++)
        rcpt_pg_put_int8(encoder, cells[index].events);
}

static void write_counts(struct flights *flights)
{
    struct rcpt_lane_sender *sender = flights->sender;
    struct rcpt_pg_query queries[SECOND__COUNT] = {
        [SECOND_CELLS] = {.statement = "cells"}, [SECOND_COMMIT] = {.statement = "commit"}};
    encode_cells(sender->work, sender->count);
    rcpt_pg_encoder_params(sender->work, &queries[SECOND_CELLS].params);
    queries[SECOND_COMMIT].answer_at_once = flights->traced;
    rcpt_pg_submit(flights->pg, queries, SECOND__COUNT, on_written, flights);
}

/* ---- the count ---- */

/* False: the batch has a message that only the other form can handle. */
static bool count_rows(struct flights *flights, const struct rcpt_pg_rows *rows)
{
    struct rcpt_count *count = flights->sender->count;
    size_t known = rcpt_pg_rows_count(rows);
    if (known != flights->batch->message_count)
        return false;
    rcpt_count_begin(count, flights->batch, flights->sender->ladder);
    for (size_t row = 0; row < known; row++) {
        char fate = rcpt_pg_rows_text(rows, row, DECIDE_FATE)[0];
        if (fate != 'c' && fate != 's')
            return false;
        rcpt_count_add(
            count, &(struct rcpt_count_row){
                       .message = (uint32_t)rcpt_pg_rows_int(rows, row, DECIDE_N) - 1,
                       .was = (int16_t)rcpt_pg_rows_int(rows, row, DECIDE_STATUS),
                       .had = (uint32_t)rcpt_pg_rows_int(rows, row, DECIDE_FLAGS),
                       .changed = fate == 'c',
                       .campaign = rcpt_text_of(rcpt_pg_rows_text(rows, row, DECIDE_CAMPAIGN))});
    }
    rcpt_count_finish(count);
    flights->result.messages_known = rcpt_count_known(count);
    flights->result.messages_changed = rcpt_count_changed(count);
    return true;
}

/* Another lane may not begin on this connection before the block has ended, so what is not written
 * is rolled back at once. AGAIN makes the lane send the batch in the other form. */
static void on_decided(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                       const struct rcpt_error *error)
{
    struct flights *flights = context;
    if (error == NULL && count_rows(flights, rows[FIRST_DECIDE])) {
        write_counts(flights);
        return;
    }
    (void)row_count;
    if (error == NULL)
        flights->result.outcome = RCPT_ENGINE_AGAIN;
    if (error == NULL)
        flights->sender->raw_batches = 32;
    roll_back(flights->pg);
    finish(flights, error);
}

/* ---- the first flight ---- */

/* The fence comes first: its locks on positions are taken before those on messages, as in the other
 * form. The batch stays the engine's until its result, which comes after the second flight. */
void rcpt_flights_send(struct rcpt_lane_sender *sender, struct rcpt_pg *pg,
                       const struct rcpt_batch *batch, bool traced, rcpt_lane_on_result on_result,
                       void *context)
{
    struct rcpt_pg_query queries[FIRST__COUNT] = {[FIRST_BEGIN] = {.statement = "begin"},
                                                  [FIRST_FENCE] = {.statement = "fence"},
                                                  [FIRST_DECIDE] = {.statement = "decide"}};
    struct flights *flights = rcpt_malloc(sizeof(*flights));
    *flights = (struct flights){.sender = sender,
                                .pg = pg,
                                .batch = batch,
                                .traced = traced,
                                .on_result = on_result,
                                .context = context,
                                .result = {.outcome = RCPT_ENGINE_COMMITTED}};
    rcpt_encode_fence(sender->fence, batch);
    rcpt_pg_encoder_params(sender->fence, &queries[FIRST_FENCE].params);
    rcpt_encode_decide(sender->work, batch);
    rcpt_pg_encoder_params(sender->work, &queries[FIRST_DECIDE].params);
    rcpt_pg_submit(pg, queries, FIRST__COUNT, on_decided, flights);
}
