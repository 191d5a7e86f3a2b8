/* Receipts that wait for their message ("parked"). Every parked.poll_interval a probe asks the
 * database for lanes with receipts whose message has come, or that are too old; the engine wakes
 * these. The same answer counts all of them: at parked.max_rows nothing more is taken in until some
 * are gone. It also names the lanes with due ranges, which the engine resolves.
 *
 * Started by receipts.c; lanes.c counts what its batches park.
 */
#include <stdlib.h>

#include "internal.h"
#include "receiptd/base/pace.h"

#define PROBE_SHARE       20    /* probes take at most 1/20 of the server's time … */
#define PROBE_WAIT_MAX_MS 30000 /* … but on a slow server receipts wait no longer than this */

struct parking {
    struct receipts *receipts;
    struct rcpt_ask probe;
    uv_timer_t timer; /* of the next probe */
    struct rcpt_pace pace;
    int64_t paced_until_ms; /* no probe before, whoever asks for one */
    int64_t rows, for_alias, oldest_ms;
    bool full, hurried; /* the next probe waits for the pace alone */
};

/* Columns of sql/control/parked_probe. */
enum {
    PROBE_LANE,
    PROBE_APPLICABLE,
    PROBE_EXPIRED,
    PROBE_ROWS,
    PROBE_OLDEST_MS,
    PROBE_FOR_ALIAS,
    PROBE_RANGES,
    PROBE_TOOK_MS
};

/* The limit holds as soon as it is reached, also between two probes. */
static void set_rows(struct parking *parking, int64_t rows)
{
    const struct rcpt_config *config = parking->receipts->context->config;
    parking->rows = rows;
    bool full = rows >= (int64_t)config->parked.max_rows;
    if (full != parking->full)
        rcpt_log_warn("receipts",
                      full ? "%lld receipts wait for their message: parked.max_rows is reached, "
                             "nothing more is "
                             "taken in until some are gone"
                           : "%lld receipts wait for their message: taking in again",
                      (long long)rows);
    parking->full = full;
    rcpt_engine_set_parking_full(parking->receipts->engine, full);
}

void parking_count(struct parking *parking, uint32_t rows)
{
    if (rows > 0)
        set_rows(parking, parking->rows + rows);
}

static void on_timer(uv_timer_t *timer);

/* The cost of a probe grows with the backlog; the next one waits so long that all probes together
 * stay a small share. `took_ms` is the server's time, without that of statements before it on the
 * connection. It is 0 for a probe that failed, whose cost is unknown. */
static void schedule(struct parking *parking, int64_t took_ms)
{
    const struct host_context *context = parking->receipts->context;
    int64_t wait = rcpt_pace_wait_ms(&parking->pace, took_ms, PROBE_SHARE);
    if (wait > PROBE_WAIT_MAX_MS)
        wait = PROBE_WAIT_MAX_MS;
    parking->paced_until_ms = host_now(context) + wait;
    if (wait < context->config->parked.poll_interval_ms && !parking->hurried)
        wait = context->config->parked.poll_interval_ms;
    if (context->phase < HOST_CLOSING)
        uv_timer_start(&parking->timer, on_timer, (uint64_t)wait, 0);
}

/* A probe that is under way may have missed what has come: the one after it hurries, too. */
void receipts_probe_soon(struct receipts *receipts)
{
    struct parking *parking = receipts->parking;
    int64_t wait = parking->paced_until_ms - host_now(receipts->context);
    parking->hurried = parking->rows > 0;
    if (parking->hurried && uv_is_active((uv_handle_t *)&parking->timer))
        uv_timer_start(&parking->timer, on_timer, wait > 1 ? (uint64_t)wait : 1, 0);
}

/* Ranges that were stored before they were switched off stay until they are trimmed. */
static void wake_lane(const struct receipts *receipts, uint32_t lane,
                      const struct rcpt_pg_rows *rows, size_t row)
{
    int64_t now = host_now(receipts->context);
    rcpt_engine_wake(receipts->engine, lane, rcpt_pg_rows_bool(rows, row, PROBE_APPLICABLE),
                     rcpt_pg_rows_bool(rows, row, PROBE_EXPIRED), now);
    if (receipts->context->config->inbox.recipient != NULL &&
        rcpt_pg_rows_bool(rows, row, PROBE_RANGES))
        rcpt_engine_resolve_ranges(receipts->engine, lane, now);
}

/* One row for each lane that has parked rows of ours, or ranges. */
static void on_probed(void *context, const struct rcpt_pg_rows *rows)
{
    struct parking *parking = context;
    struct receipts *receipts = parking->receipts;
    int64_t parked = 0, for_alias = 0, oldest_ms = 0, took_ms = 0;
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++) {
        uint32_t lane = (uint32_t)rcpt_pg_rows_int(rows, row, PROBE_LANE);
        int64_t oldest = rcpt_pg_rows_int(rows, row, PROBE_OLDEST_MS);
        parked += rcpt_pg_rows_int(rows, row, PROBE_ROWS);
        for_alias += rcpt_pg_rows_int(rows, row, PROBE_FOR_ALIAS);
        oldest_ms = oldest > oldest_ms ? oldest : oldest_ms;
        took_ms = rcpt_pg_rows_int(rows, row, PROBE_TOOK_MS);
        if (lane < receipts->context->config->lanes)
            wake_lane(receipts, lane, rows, row);
    }
    schedule(parking, took_ms);
    set_rows(parking, parked);
    parking->for_alias = for_alias;
    parking->oldest_ms = oldest_ms;
    if (!parking->full)
        consume_continue(receipts);
}

static void on_failed(void *context, const struct rcpt_error *error)
{
    (void)error;
    schedule(context, 0);
}

/* The age at which a parked receipt without a message expires: it becomes a dead letter, or its
 * message is inserted if the configuration says so. */
static int64_t expiry_ms(const struct rcpt_config *config)
{
    if (config->unknown != RCPT_UNKNOWN_INSERT)
        return config->parked.max_age_ms;
    return config->intake.alias != RCPT_ALIAS_OFF ? config->parked.alias_wait_ms : 0;
}

static void on_timer(uv_timer_t *timer)
{
    struct parking *parking = timer->data;
    const struct receipts *receipts = parking->receipts;
    parking->hurried = false; /* also if it cannot be sent: a timer of 0 ms would stop the loop */
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&parking->probe);
    if (encoder == NULL) {
        schedule(parking, 0);
        return;
    }
    assigned_put(receipts->engine, encoder);
    rcpt_pg_add_int8(encoder, expiry_ms(receipts->context->config));
    rcpt_ask_send(&parking->probe);
}

struct parking *parking_new(struct receipts *receipts)
{
    struct parking *parking = rcpt_calloc(1, sizeof(*parking));
    parking->receipts = receipts;
    parking->probe = (struct rcpt_ask){.asker = &receipts->control,
                                       .statement = "parked_probe",
                                       .what = "probe of parked rows",
                                       .context = parking,
                                       .on_answer = on_probed,
                                       .on_failed = on_failed};
    uv_timer_init(receipts->context->loop, &parking->timer);
    parking->timer.data = parking;
    return parking;
}

void parking_start(struct parking *parking)
{
    schedule(parking, 0);
}

void parking_close(struct parking *parking)
{
    host_close_handle(parking->receipts->context, (uv_handle_t *)&parking->timer);
}

void parking_free(struct parking *parking)
{
    free(parking);
}

void parking_view(const struct parking *parking, struct receipts_view *view)
{
    view->parked_rows = parking->rows;
    view->parked_for_alias = parking->for_alias;
    view->parked_oldest_ms = parking->oldest_ms;
    view->parking_is_full = parking->full;
}
