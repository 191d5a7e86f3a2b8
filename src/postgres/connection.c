/* The state machine of one asynchronous connection. machine.h lists the states, with what each
 * awaits and what bounds it. It has one setter that checks the order of states and arms the timer,
 * a table of handlers by state and event, and one funnel for failures. Reads answers, and gives
 * them to their owners in the order of sending. Called by the owners of connections (connection.h),
 * by connect.c and setup.c.
 */
#include "receiptd/postgres/connection.h"
#include "receiptd/base/states.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "machine.h"
#include "receiptd/base/log.h"

/* A READY connection checks for a silent peer and for plans of empty tables this often. */
#define TICK_MS 1000u

typedef void (*handler)(struct rcpt_pg *pg, const struct rcpt_error *error);

static const char *const state_names[RCPT_PG_STATE__COUNT] = {
    [RCPT_PG_IDLE] = "idle",
    [RCPT_PG_RESOLVING] = "resolving",
    [RCPT_PG_CONNECTING] = "connecting",
    [RCPT_PG_SETTING_UP] = "setting-up",
    [RCPT_PG_READY] = "ready",
    [RCPT_PG_LOSING] = "losing",
    [RCPT_PG_WAITING] = "waiting",
    [RCPT_PG_CLOSING] = "closing",
};

#define GIVING_UP (RCPT_TO(RCPT_PG_LOSING) | RCPT_TO(RCPT_PG_CLOSING))

/* The legal successors of each state. */
static const unsigned successors[RCPT_PG_STATE__COUNT] = {
    [RCPT_PG_IDLE] = RCPT_TO(RCPT_PG_RESOLVING) | RCPT_TO(RCPT_PG_CLOSING),
    [RCPT_PG_RESOLVING] = RCPT_TO(RCPT_PG_CONNECTING) | GIVING_UP,
    [RCPT_PG_CONNECTING] = RCPT_TO(RCPT_PG_SETTING_UP) | GIVING_UP,
    [RCPT_PG_SETTING_UP] = RCPT_TO(RCPT_PG_READY) | GIVING_UP,
    [RCPT_PG_READY] = GIVING_UP,
    [RCPT_PG_LOSING] = RCPT_TO(RCPT_PG_WAITING) | RCPT_TO(RCPT_PG_CLOSING),
    [RCPT_PG_WAITING] = RCPT_TO(RCPT_PG_RESOLVING) | RCPT_TO(RCPT_PG_CLOSING),
    [RCPT_PG_CLOSING] = 0,
};

/* ---- states and their timer ---- */

static uint64_t now_ms(const struct rcpt_pg *pg)
{
    return uv_now(pg->settings.loop);
}

static void on_timer(uv_timer_t *timer)
{
    rcpt_pg_raise(timer->data, RCPT_PG_EVENT_TIMER, NULL);
}

static void arm(struct rcpt_pg *pg, uint64_t wait_ms, uint64_t repeat_ms)
{
    RCPT_ASSERT(uv_timer_start(&pg->timer, on_timer, wait_ms, repeat_ms) == 0);
}

static void arm_for_state(struct rcpt_pg *pg)
{
    switch (pg->state) {
    case RCPT_PG_RESOLVING:
    case RCPT_PG_CONNECTING:
    case RCPT_PG_SETTING_UP:
        arm(pg, pg->deadline_at_ms > now_ms(pg) ? pg->deadline_at_ms - now_ms(pg) : 0, 0);
        break;
    case RCPT_PG_READY:
        arm(pg, TICK_MS, TICK_MS);
        break;
    case RCPT_PG_WAITING:
        arm(pg, (uint64_t)rcpt_backoff_next_ms(&pg->backoff), 0);
        break;
    default: /* LOSING, CLOSING: with the loop's next turn */
        arm(pg, 0, 0);
        break;
    }
}

void rcpt_pg_enter(struct rcpt_pg *pg, enum rcpt_pg_state state, const char *reason)
{
    RCPT_ASSERT_FOLLOWS(successors, pg->state, state);
    rcpt_log_debug("postgres", "connection %s: %s -> %s: %s", pg->settings.name,
                   state_names[pg->state], state_names[state], reason);
    pg->state = state;
    arm_for_state(pg);
}

/* ---- handlers ---- */

static void ignore(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    (void)pg;
    (void)error;
}

static void begin_attempt(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    (void)error;
    pg->deadline_at_ms = now_ms(pg) + (uint64_t)pg->settings.connect_timeout_ms;
    rcpt_pg_enter(pg, RCPT_PG_RESOLVING, "next attempt");
    rcpt_connect_resolve(pg);
}

static void open_session(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    (void)error;
    rcpt_connect_open(pg);
}

/* Some names may have been resolved: connect to those, with the whole time again. */
static void on_resolve_overdue(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    (void)error;
    pg->deadline_at_ms = now_ms(pg) + (uint64_t)pg->settings.connect_timeout_ms;
    rcpt_connect_open(pg);
}

static void step_session(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    (void)error;
    rcpt_connect_step(pg);
}

static void on_connect_overdue(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    (void)error;
    struct rcpt_error overdue;
    const char *host = PQhost(pg->conn);
    rcpt_error_set(&overdue, RCPT_DECISION_RECONNECT, "RDTIMEOUT",
                   "server at host \"%s\" was not ready within %d ms (%s)",
                   host != NULL ? host : "", pg->settings.connect_timeout_ms,
                   state_names[pg->state]);
    rcpt_error_hint(&overdue,
                    "the host or a firewall swallows packets, or the server is overloaded");
    rcpt_pg_fail(pg, &overdue);
}

/* In these states libpq may have answers for us. */
static bool is_live(const struct rcpt_pg *pg)
{
    return pg->state == RCPT_PG_SETTING_UP || pg->state == RCPT_PG_READY;
}

/* After every send and every read: watches the socket for what libpq needs next. */
void rcpt_pg_settle(struct rcpt_pg *pg)
{
    int flushed = PQflush(pg->conn);
    if (flushed < 0)
        rcpt_pg_fail_by_libpq(pg);
    else
        rcpt_connect_watch(pg, flushed == 1 ? UV_READABLE | UV_WRITABLE : UV_READABLE);
}

/* This program listens to no channel, but libpq would keep notifications all the same. */
static void drain_notifications(struct rcpt_pg *pg)
{
    for (PGnotify *note = PQnotifies(pg->conn); note != NULL; note = PQnotifies(pg->conn))
        PQfreemem(note);
}

/* Owners may submit, reconnect or close from their answer, so the state is checked again after
 * each. */
static void answer_done(struct rcpt_pg *pg)
{
    while (is_live(pg)) {
        struct rcpt_pending *done = rcpt_submissions_take_done(&pg->submissions, pg->conn);
        if (done == NULL)
            break;
        pg->heard_at_ms = now_ms(pg);
        if (rcpt_pending_breach(done) != NULL)
            rcpt_pg_fail(pg, rcpt_pending_breach(done));
        rcpt_pending_answer(done, NULL);
    }
}

/* Answers that were read before the connection broke still count: a Sync's result among them means
 * committed. */
static void pump(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    (void)error;
    bool alive = PQconsumeInput(pg->conn) == 1;
    answer_done(pg);
    if (!is_live(pg))
        return;
    drain_notifications(pg);
    if (alive && PQstatus(pg->conn) == CONNECTION_OK)
        rcpt_pg_settle(pg);
    else
        rcpt_pg_fail_by_libpq(pg);
}

static void become_ready(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    (void)error;
    pg->ready_at_ms = now_ms(pg);
    rcpt_pg_enter(pg, RCPT_PG_READY, "set up");
    rcpt_connect_note_up(pg);
    pg->settings.on_ready(pg->settings.context, pg);
}

/* The server bounds each statement, so longer silence means a dead peer that TCP does not notice.
 */
static bool is_overdue(const struct rcpt_pg *pg)
{
    uint64_t statements = rcpt_submissions_commands(&pg->submissions);
    uint64_t bound = statements * (uint64_t)pg->settings.statement_timeout_ms +
                     (uint64_t)pg->settings.connect_timeout_ms;
    return pg->settings.statement_timeout_ms > 0 && !rcpt_submissions_is_empty(&pg->submissions) &&
           now_ms(pg) - pg->heard_at_ms > bound;
}

/* READY only: a peer that stays silent, and plans that were made for an empty table. */
static void tick(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    (void)error;
    struct rcpt_error overdue;
    if (is_overdue(pg)) {
        rcpt_error_set(&overdue, RCPT_DECISION_RECONNECT, "RDTIMEOUT",
                       "server has not answered for %" PRIu64 " ms", now_ms(pg) - pg->heard_at_ms);
        rcpt_error_hint(&overdue, "the server or the way to it hangs");
        rcpt_pg_fail(pg, &overdue);
    } else if (pg->plans_are_small) {
        if (rcpt_submissions_is_empty(&pg->submissions))
            pg->heard_at_ms = now_ms(pg);
        pg->plans_are_small = false; /* the answer sets it again */
        rcpt_setup_recheck_plans(pg);
    }
}

/* A connection that did not hold for long keeps its back-off: one that fails right after it is
 * ready must not spin. */
static void give_up(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    pg->failure = *error;
    if (pg->failure.decision != RCPT_DECISION_FATAL)
        pg->failure.decision = RCPT_DECISION_RECONNECT;
    /* libpq asks the next host where a port is closed or a server is read-only. Where a peer
     * accepts and hangs up (a balancer without a server behind it), or is the wrong server, the
     * choice is ours. */
    if (pg->state != RCPT_PG_READY)
        pg->rotation++;
    else if (now_ms(pg) - pg->ready_at_ms > (uint64_t)pg->settings.retry_max_ms)
        rcpt_backoff_reset(&pg->backoff);
    rcpt_connect_unwatch(pg);
    rcpt_pg_enter(pg, RCPT_PG_LOSING, pg->failure.text);
}

/* Owners may do anything in their answer, so each entry leaves the queue before it is answered. */
static void answer_lost(struct rcpt_submissions *submissions, const char *reason)
{
    struct rcpt_error lost;
    rcpt_error_set(&lost, RCPT_DECISION_RECONNECT, NULL, "connection lost, outcome unknown: %s",
                   reason);
    for (struct rcpt_pending *pending = rcpt_submissions_take(submissions); pending != NULL;
         pending = rcpt_submissions_take(submissions))
        rcpt_pending_answer(pending, &lost);
}

/* LOSING waits for the loop's next turn, so that no owner is answered from inside its own submit.
 * The queue is taken over first, since owners may submit again. */
static void lose(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    (void)error;
    struct rcpt_submissions owed = pg->submissions;
    struct rcpt_error failure = pg->failure;
    pg->submissions = (struct rcpt_submissions){0};
    rcpt_connect_drop(pg);
    rcpt_pg_enter(pg, RCPT_PG_WAITING, "back-off");
    rcpt_connect_note_down(pg, &failure);
    answer_lost(&owed, failure.text);
    if (pg->state == RCPT_PG_WAITING)
        pg->settings.on_down(pg->settings.context, pg, &failure);
}

static void begin_close(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    (void)error;
    rcpt_connect_unwatch(pg);
    rcpt_pg_enter(pg, RCPT_PG_CLOSING, "closed by its owner");
}

static void free_self(struct rcpt_pg *pg)
{
    rcpt_peers_leave(pg);
    free(pg->parameter_counts);
    free((void *)(uintptr_t)pg->settings.name);
    free((void *)(uintptr_t)pg->settings.instance);
    free((void *)(uintptr_t)pg->settings.dsn);
    free((void *)(uintptr_t)pg->settings.schema);
    free(pg);
}

/* The owner's callback comes last. */
static void on_timer_closed(uv_handle_t *handle)
{
    struct rcpt_pg *pg = handle->data;
    void (*on_closed)(void *context) = pg->on_closed;
    void *context = pg->on_closed_context;
    free_self(pg);
    if (on_closed != NULL)
        on_closed(context);
}

/* Frees the connection in the timer's close callback, the last that the loop calls. */
static void finish_close(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    (void)error;
    struct rcpt_submissions owed = pg->submissions;
    pg->submissions = (struct rcpt_submissions){0};
    rcpt_connect_drop(pg);
    rcpt_outage_leave(rcpt_connect_outage(pg), &pg->is_down);
    answer_lost(&owed, "closed");
    uv_close((uv_handle_t *)&pg->timer, on_timer_closed);
}

/* An empty cell is a bug. */
static const handler handlers[RCPT_PG_STATE__COUNT][RCPT_PG_EVENT__COUNT] = {
    [RCPT_PG_IDLE] =
        {
            [RCPT_PG_EVENT_START] = begin_attempt,
            [RCPT_PG_EVENT_FAIL] = ignore, /* nothing to drop yet */
            [RCPT_PG_EVENT_CLOSE] = begin_close,
        },
    [RCPT_PG_RESOLVING] =
        {
            [RCPT_PG_EVENT_RESOLVED] = open_session,
            [RCPT_PG_EVENT_TIMER] = on_resolve_overdue,
            [RCPT_PG_EVENT_FAIL] = give_up,
            [RCPT_PG_EVENT_CLOSE] = begin_close,
        },
    [RCPT_PG_CONNECTING] =
        {
            [RCPT_PG_EVENT_RESOLVED] = ignore, /* a name that was overdue */
            [RCPT_PG_EVENT_SOCKET] = step_session,
            [RCPT_PG_EVENT_TIMER] = on_connect_overdue,
            [RCPT_PG_EVENT_FAIL] = give_up,
            [RCPT_PG_EVENT_CLOSE] = begin_close,
        },
    [RCPT_PG_SETTING_UP] =
        {
            [RCPT_PG_EVENT_RESOLVED] = ignore, /* as above */
            [RCPT_PG_EVENT_SOCKET] = pump,
            [RCPT_PG_EVENT_TIMER] = on_connect_overdue,
            [RCPT_PG_EVENT_SET_UP] = become_ready,
            [RCPT_PG_EVENT_FAIL] = give_up,
            [RCPT_PG_EVENT_CLOSE] = begin_close,
        },
    [RCPT_PG_READY] =
        {
            [RCPT_PG_EVENT_RESOLVED] = ignore, /* as above */
            [RCPT_PG_EVENT_SOCKET] = pump,
            [RCPT_PG_EVENT_TIMER] = tick,
            [RCPT_PG_EVENT_FAIL] = give_up,
            [RCPT_PG_EVENT_CLOSE] = begin_close,
        },
    [RCPT_PG_LOSING] =
        {
            [RCPT_PG_EVENT_RESOLVED] = ignore, /* as above */
            [RCPT_PG_EVENT_TIMER] = lose,
            [RCPT_PG_EVENT_FAIL] = ignore, /* the first reason counts */
            [RCPT_PG_EVENT_CLOSE] = begin_close,
        },
    [RCPT_PG_WAITING] =
        {
            [RCPT_PG_EVENT_TIMER] = begin_attempt,
            [RCPT_PG_EVENT_FAIL] = ignore, /* it is down already */
            [RCPT_PG_EVENT_CLOSE] = begin_close,
        },
    [RCPT_PG_CLOSING] =
        {
            [RCPT_PG_EVENT_RESOLVED] = ignore, /* lookups are abandoned with the loop's next turn */
            [RCPT_PG_EVENT_TIMER] = finish_close,
            [RCPT_PG_EVENT_FAIL] = ignore, /* it goes anyway */
        },
};

void rcpt_pg_raise(struct rcpt_pg *pg, enum rcpt_pg_event event, const struct rcpt_error *error)
{
    handler handle = handlers[pg->state][event];
    RCPT_ASSERT(handle != NULL);
    handle(pg, error);
}

void rcpt_pg_fail(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    rcpt_pg_raise(pg, RCPT_PG_EVENT_FAIL, error);
}

/* The server's own message is more precise than libpq's "closed the connection unexpectedly". */
void rcpt_pg_fail_by_libpq(struct rcpt_pg *pg)
{
    struct rcpt_error error;
    const struct rcpt_error *met = rcpt_submissions_error(&pg->submissions);
    if (pg->last_words.code[0] != '\0')
        error = pg->last_words;
    else if (met != NULL)
        error = *met;
    else
        rcpt_failure_of_connection(pg->conn, &error);
    rcpt_pg_fail(pg, &error);
}

/* ---- the owner's side ---- */

/* The schema is quoted in search_path. Each back-off has its own seed: retries spread. */
struct rcpt_pg *rcpt_pg_new(const struct rcpt_pg_settings *settings)
{
    struct rcpt_pg *pg = rcpt_calloc(1, sizeof(*pg));
    RCPT_ASSERT(settings->retry_min_ms > 0 && settings->retry_max_ms >= settings->retry_min_ms);
    RCPT_ASSERT(settings->connect_timeout_ms > 0);
    RCPT_ASSERT(strchr(settings->schema, '"') == NULL && strchr(settings->schema, '\\') == NULL);
    pg->settings = *settings;
    pg->settings.name = rcpt_strdup(settings->name);
    pg->settings.instance = rcpt_strdup(settings->instance);
    pg->settings.dsn = rcpt_strdup(settings->dsn);
    pg->settings.schema = rcpt_strdup(settings->schema);
    pg->settings.lineage = settings->lineage != NULL ? settings->lineage : &pg->own_lineage;
    for (size_t index = 0; index < settings->statement_count; index++)
        pg->check_count += settings->statements[index].must_use_index_on != NULL;
    pg->parameter_counts = rcpt_calloc(pg->check_count + 1, sizeof(*pg->parameter_counts));
    rcpt_backoff_init(&pg->backoff, settings->retry_min_ms, settings->retry_max_ms,
                      uv_hrtime() ^ (uint64_t)(uintptr_t)pg);
    RCPT_ASSERT(uv_timer_init(settings->loop, &pg->timer) == 0);
    pg->timer.data = pg;
    rcpt_peers_join(pg);
    return pg;
}

/* The loop's clock may be old when the first connection starts; deadlines count from now. */
void rcpt_pg_start(struct rcpt_pg *pg)
{
    uv_update_time(pg->settings.loop);
    rcpt_pg_raise(pg, RCPT_PG_EVENT_START, NULL);
}

void rcpt_pg_close(struct rcpt_pg *pg, void (*on_closed)(void *context), void *context)
{
    pg->on_closed = on_closed;
    pg->on_closed_context = context;
    rcpt_pg_raise(pg, RCPT_PG_EVENT_CLOSE, NULL);
}

bool rcpt_pg_is_ready(const struct rcpt_pg *pg)
{
    return pg->state == RCPT_PG_READY;
}

int rcpt_pg_backend_pid(const struct rcpt_pg *pg)
{
    return pg->backend_pid;
}

/* libpq sends full blocks as it goes, so the server may begin before the Sync is written. No other
 * work comes in between, and the wide send buffer takes the whole batch without waiting. So the gap
 * is only the time of these few calls. */
static bool send_batch(struct rcpt_pg *pg, const struct rcpt_pg_query *queries, size_t query_count)
{
    for (size_t index = 0; index < query_count; index++) {
        const struct rcpt_pg_params *params = &queries[index].params;
        int sent =
            queries[index].prepare != NULL
                ? PQsendPrepare(pg->conn, queries[index].statement, queries[index].prepare, 0, NULL)
                : PQsendQueryPrepared(pg->conn, queries[index].statement, params->count,
                                      params->values, params->lengths, params->formats, 0);
        if (sent != 1)
            return false;
        if (queries[index].answer_at_once && PQsendFlushRequest(pg->conn) != 1)
            return false;
    }
    return PQpipelineSync(pg->conn) == 1;
}

/* LOSING is allowed: an owner that sends twice in a row need not ask in between. Both are answered
 * as lost. */
void rcpt_pg_submit(struct rcpt_pg *pg, const struct rcpt_pg_query *queries, size_t query_count,
                    rcpt_pg_on_result on_result, void *context)
{
    RCPT_ASSERT(pg->state == RCPT_PG_READY || pg->state == RCPT_PG_LOSING);
    if (rcpt_submissions_is_empty(&pg->submissions))
        pg->heard_at_ms = now_ms(pg);
    rcpt_submissions_push(&pg->submissions, query_count, on_result, context);
    if (pg->state != RCPT_PG_READY || !rcpt_setup_is_accepted(pg))
        return;
    if (send_batch(pg, queries, query_count))
        rcpt_pg_settle(pg);
    else
        rcpt_pg_fail_by_libpq(pg);
}

void rcpt_pg_reconnect(struct rcpt_pg *pg, const struct rcpt_error *reason)
{
    rcpt_pg_fail(pg, reason);
}
