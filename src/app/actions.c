#include "actions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define TIDY_MS        5000
#define COUNT_MS       2000
#define TIDY_ROWS      5000
#define STORE_AGAIN_MS 30000
#define AGAIN_MS       200 /* after a failure that may come at once */

static int64_t now_of(const struct app_actions *actions)
{
    return app_now(actions->app);
}

bool actions_can_ask(const struct app_actions *actions)
{
    return actions->up && !actions->closing && rcpt_pg_is_ready(actions->pg);
}

bool actions_failed(struct app_actions *actions, const char *what, const struct rcpt_error *error)
{
    if (error == NULL)
        return false;
    if (error->code[0] == '\0' || actions->closing)
        return true; /* the connection is gone: on_down says it */
    rcpt_log_warn("outbox", "%s failed, will be tried again: %s (%s)%s%s", what, error->text,
                  error->code, error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
    if (error->decision == RCPT_DECISION_RECONNECT)
        rcpt_pg_reconnect(actions->pg, error);
    return true;
}

void actions_submit(struct app_actions *actions, const char *statement, rcpt_pg_on_result on_result)
{
    struct rcpt_pg_query query = {.statement = statement};
    rcpt_pg_encoder_params(actions->encoder, &query.params);
    rcpt_pg_submit(actions->pg, &query, 1, on_result, actions);
}

/* ---- results ---- */

static void free_item(struct actions_item *item)
{
    free(item->target);
    free(item->key);
    free(item->body);
    free(item->answer);
    free(item);
}

void actions_settle(struct actions_item *item, enum actions_result result, const char *class)
{
    struct app_actions *actions = item->actions;
    item->result = result;
    snprintf(item->class, sizeof(item->class), "%s", class);
    item->next = NULL;
    *actions->results_end = item;
    actions->results_end = &item->next;
    actions->in_flight--;
    if (result == ACTIONS_DEAD)
        rcpt_metrics_add(actions->app->figures.metrics, RCPT_METRIC_ACTIONS_DEAD_TOTAL,
                         RCPT_NO_LABELS, 1);
}

/* What was not heard of goes back to the front of the queue: a second time it changes nothing. */
static void requeue(struct app_actions *actions, bool without_answers)
{
    struct actions_item **end = &actions->flying;
    for (; *end != NULL; end = &(*end)->next) {
        if (without_answers) {
            free((*end)->answer);
            (*end)->answer = NULL;
        }
    }
    *end = actions->results;
    if (actions->results == NULL)
        actions->results_end = end;
    if (actions->flying != NULL)
        actions->results = actions->flying;
    if (actions->results_end == &actions->flying)
        actions->results_end = &actions->results;
    actions->flying = NULL;
}

static void on_finished(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                        const struct rcpt_error *error)
{
    struct app_actions *actions = context;
    actions->finish_flying = false;
    if (actions_failed(actions, "writing results of actions", error)) {
        requeue(actions, error->decision == RCPT_DECISION_REJECT);
        actions->finish_at_ms = now_of(actions) + AGAIN_MS;
        actions_step(actions);
        return;
    }
    RCPT_ASSERT(row_count == 1);
    int64_t overlapped = rcpt_pg_rows_int(rows[0], 0, 1);
    if (overlapped > 0)
        rcpt_log_warn("outbox",
                      "%" PRId64 " results came too late: their actions had been claimed again",
                      overlapped);
    while (actions->flying != NULL) {
        struct actions_item *item = actions->flying;
        actions->flying = item->next;
        free_item(item);
    }
    actions_claim_soon(actions); /* the next step may be due at once */
    actions_step(actions);
}

static void put_text(struct rcpt_pg_encoder *encoder, const char *text)
{
    if (text == NULL)
        rcpt_pg_put_null(encoder);
    else
        rcpt_pg_put_bytes(encoder, text, strlen(text));
}

static size_t take_results(struct app_actions *actions)
{
    size_t count = 0;
    struct actions_item **last = &actions->results;
    while (*last != NULL && count < ACTIONS_PER_FINISH) {
        last = &(*last)->next;
        count++;
    }
    struct actions_item *rest = *last;
    actions->flying = actions->results;
    *last = NULL;
    actions->results = rest;
    if (rest == NULL)
        actions->results_end = &actions->results;
    return count;
}

static void finish_some(struct app_actions *actions)
{
    static const char *const names[] = {"done", "retry", "dead", "back"};
    if (actions->results == NULL || actions->finish_flying ||
        now_of(actions) < actions->finish_at_ms || !actions_can_ask(actions))
        return;
    size_t count = take_results(actions);
    struct rcpt_pg_encoder *encoder = actions->encoder;
    rcpt_pg_encoder_reset(encoder);
    rcpt_pg_add_text(encoder, actions->me);
    rcpt_pg_begin_int8_array(encoder, count);
    for (const struct actions_item *item = actions->flying; item != NULL; item = item->next)
        rcpt_pg_put_int8(encoder, item->id);
    rcpt_pg_begin_int8_array(encoder, count);
    for (const struct actions_item *item = actions->flying; item != NULL; item = item->next)
        rcpt_pg_put_int8(encoder, item->token);
    rcpt_pg_begin_text_array(encoder, count);
    for (const struct actions_item *item = actions->flying; item != NULL; item = item->next)
        put_text(encoder, names[item->result]);
    rcpt_pg_begin_int8_array(encoder, count);
    for (const struct actions_item *item = actions->flying; item != NULL; item = item->next)
        rcpt_pg_put_int8(encoder, item->retry_ms);
    rcpt_pg_begin_text_array(encoder, count);
    for (const struct actions_item *item = actions->flying; item != NULL; item = item->next)
        put_text(encoder, item->class);
    rcpt_pg_begin_int4_array(encoder, count);
    for (const struct actions_item *item = actions->flying; item != NULL; item = item->next)
        rcpt_pg_put_int4(encoder, item->status);
    rcpt_pg_begin_text_array(encoder, count);
    for (const struct actions_item *item = actions->flying; item != NULL; item = item->next)
        put_text(encoder, item->answer);
    actions->finish_flying = true;
    actions_submit(actions, "finish", on_finished);
}

/* ---- lanes, pipelines, housekeeping ---- */

static void on_owned(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                     const struct rcpt_error *error)
{
    struct app_actions *actions = context;
    actions->own_flying = false;
    if (actions_failed(actions, "sharing out lanes of actions", error))
        return;
    RCPT_ASSERT(row_count == 1);
    actions->owned_until_ms = actions->own_sent_ms + actions->app->config->actions.lane_lease_ms;
    for (size_t lane = 0; lane < ACTIONS_LANES; lane++)
        actions->owned[lane] = false;
    for (size_t row = 0; row < rcpt_pg_rows_count(rows[0]); row++) {
        uint64_t lane = (uint64_t)rcpt_pg_rows_int(rows[0], row, 0);
        if (lane < ACTIONS_LANES)
            actions->owned[lane] = true;
    }
    rcpt_metrics_set(actions->app->figures.metrics, RCPT_METRIC_ACTION_LANES, RCPT_NO_LABELS,
                     (double)rcpt_pg_rows_count(rows[0]));
    actions_step(actions);
}

static void own_lanes(struct app_actions *actions)
{
    int64_t lease = actions->app->config->actions.lane_lease_ms;
    if (actions->own_flying || actions->stopping || now_of(actions) < actions->own_at_ms ||
        !actions_can_ask(actions))
        return;
    actions->own_flying = true;
    actions->own_sent_ms = now_of(actions);
    actions->own_at_ms = actions->own_sent_ms + (lease / 5 < 2000 ? lease / 5 : 2000);
    rcpt_pg_encoder_reset(actions->encoder);
    rcpt_pg_add_text(actions->encoder, actions->me);
    rcpt_pg_add_int8(actions->encoder, lease);
    actions_submit(actions, "own", on_owned);
}

/* A column that is not there would be empty in every run: once_per would let one run begin, ever.
 * At a start that ends the process; a reload leaves what was in effect as it was, and actions wait.
 */
static void refuse_columns(struct app_actions *actions, const char *unknown)
{
    struct rcpt_error error;
    rcpt_error_fatal(&error, EX_CONFIG, "pipelines: the inbox has no such column: %s", unknown);
    rcpt_error_hint(&error, "org, subject and once_per name columns of message_inbox");
    actions->store_at_ms = now_of(actions) + STORE_AGAIN_MS;
    if (actions->known)
        rcpt_log_error("outbox", "%s; no action begins until that is mended; HINT: %s, then reload",
                       error.text, error.hint);
    else
        app_fail(actions->app, &error);
}

static void on_stored(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    struct app_actions *actions = context;
    actions->store_flying = false;
    if (actions_failed(actions, "storing the pipelines", error)) {
        actions->store_at_ms = now_of(actions) + 1000;
        return;
    }
    RCPT_ASSERT(row_count == 1);
    const char *unknown = rcpt_pg_rows_text(rows[0], 0, 0);
    if (unknown != NULL) {
        refuse_columns(actions, unknown);
        return;
    }
    actions->stored = actions->known = true;
    positions_tick(actions->app); /* may have waited for it */
    rcpt_log_info("outbox", "%zu pipelines are in effect", actions->pipelines->count);
    actions_step(actions);
}

static void store_pipelines(struct app_actions *actions)
{
    if (actions->stored || actions->store_flying || actions->stopping ||
        now_of(actions) < actions->store_at_ms || !actions_can_ask(actions))
        return;
    actions->store_flying = true;
    rcpt_pg_encoder_reset(actions->encoder);
    rcpt_pg_add_text(actions->encoder, actions->pipelines->definitions);
    actions_submit(actions, "store", on_stored);
}

static void on_wanted(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    struct app_actions *actions = context;
    actions->wanted_flying = false;
    if (actions_failed(actions, "asking what pipelines want to hear of", error))
        return; /* the next connection asks again */
    RCPT_ASSERT(row_count == 1);
    struct rcpt_lane_wanted *wanted = rcpt_calloc(1, sizeof(*wanted));
    for (size_t row = 0; row < rcpt_pg_rows_count(rows[0]); row++) {
        int64_t code = rcpt_pg_rows_int(rows[0], row, 0);
        if (code >= RCPT_LADDER_FIRST_FLAG_CODE)
            wanted->flags |= UINT32_C(1) << (code - RCPT_LADDER_FIRST_FLAG_CODE);
        else
            wanted->tops[code] = true;
    }
    if (!actions->stopping)
        lanes_set_wanted(actions->app, wanted);
    free(wanted);
}

/* Batches of which no pipeline hears are spared what is for pipelines. What we do not know of other
 * instances is found by PostgreSQL. */
static void ask_wanted(struct app_actions *actions)
{
    if (actions->wanted || actions->wanted_flying || !actions->stored || actions->stopping ||
        !actions_can_ask(actions))
        return;
    actions->wanted = actions->wanted_flying = true;
    rcpt_pg_encoder_reset(actions->encoder);
    actions_submit(actions, "wanted", on_wanted);
}

void actions_ask_wanted(struct app *app)
{
    if (app->actions != NULL)
        app->actions->wanted = false; /* the next tick asks */
}

static void on_tidied(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    struct app_actions *actions = context;
    actions->tidy_flying = false;
    if (actions_failed(actions, "tidying up of actions", error))
        return;
    RCPT_ASSERT(row_count == 1);
    if (rcpt_pg_rows_int(rows[0], 0, 0) >= TIDY_ROWS)
        actions->tidy_at_ms = 0;
}

static void tidy(struct app_actions *actions)
{
    int64_t now = now_of(actions);
    if (actions->tidy_flying || actions->stopping || now < actions->tidy_at_ms ||
        !actions->owned[0] || !actions_can_ask(actions))
        return; /* the owner of the first lane does it for all */
    actions->tidy_flying = true;
    actions->tidy_at_ms = now + TIDY_MS;
    rcpt_pg_encoder_reset(actions->encoder);
    rcpt_pg_add_int8(actions->encoder, actions->app->config->actions.retention_ms);
    rcpt_pg_add_int4(actions->encoder, TIDY_ROWS);
    rcpt_pg_add_int8(actions->encoder, actions->app->config->actions.once_retention_ms);
    actions_submit(actions, "tidy", on_tidied);
}

static void note_count(struct app_actions *actions, const struct rcpt_pg_rows *rows, size_t row)
{
    struct rcpt_metrics *metrics = actions->app->figures.metrics;
    const char *kind = rcpt_pg_rows_text(rows, row, 0), *name = rcpt_pg_rows_text(rows, row, 1);
    double n = (double)rcpt_pg_rows_int(rows, row, 2);
    if (strcmp(kind, "action") == 0) {
        rcpt_metrics_set(metrics, RCPT_METRIC_ACTIONS, RCPT_LABELS(name), n);
    } else if (strcmp(kind, "pipeline") == 0) {
        rcpt_metrics_set(metrics, RCPT_METRIC_PIPELINE_RUNS, RCPT_LABELS(name), n);
        rcpt_metrics_set(metrics, RCPT_METRIC_PIPELINE_REPEATED, RCPT_LABELS(name),
                         (double)rcpt_pg_rows_int(rows, row, 3));
    } else {
        rcpt_metrics_set(metrics, RCPT_METRIC_ACTION_OVERLAPS, RCPT_NO_LABELS, n);
    }
}

static void on_counted(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                       const struct rcpt_error *error)
{
    struct app_actions *actions = context;
    actions->count_flying = false;
    if (actions_failed(actions, "counting actions", error))
        return;
    RCPT_ASSERT(row_count == 1);
    rcpt_metrics_begin(actions->app->figures.metrics, RCPT_METRIC_ACTIONS);
    for (size_t row = 0; row < rcpt_pg_rows_count(rows[0]); row++)
        note_count(actions, rows[0], row);
    rcpt_metrics_end(actions->app->figures.metrics, RCPT_METRIC_ACTIONS);
}

static void count(struct app_actions *actions)
{
    rcpt_metrics_set(actions->app->figures.metrics, RCPT_METRIC_ACTIONS_IN_FLIGHT, RCPT_NO_LABELS,
                     (double)actions->in_flight);
    rcpt_metrics_set(actions->app->figures.metrics, RCPT_METRIC_ENDPOINTS_DISABLED, RCPT_NO_LABELS,
                     (double)actions_call_disabled(actions));
    if (actions->count_flying || actions->stopping || now_of(actions) < actions->count_at_ms ||
        !actions_can_ask(actions))
        return;
    actions->count_flying = true;
    actions->count_at_ms = now_of(actions) + COUNT_MS;
    rcpt_pg_encoder_reset(actions->encoder);
    actions_submit(actions, "counts", on_counted);
}

/* ---- the end ---- */

static void on_part_closed(void *context)
{
    struct app_actions *actions = context;
    struct app *app = actions->app;
    if (--actions->open > 0)
        return;
    actions_call_fini(actions);
    requeue(actions, false);
    while (actions->results != NULL) { /* their leases end: somebody claims them again */
        struct actions_item *item = actions->results;
        actions->results = item->next;
        free_item(item);
    }
    rcpt_pg_encoder_free(actions->encoder);
    pipelines_free(actions->pipelines);
    free(actions);
    app->actions_open--;
    app_check_drain(app);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

static void close_all(struct app_actions *actions)
{
    actions->closing = true;
    actions->open++; /* until this returns: everything may close at once */
    uv_close((uv_handle_t *)&actions->timer, on_timer_closed);
    if (actions->pg != NULL)
        rcpt_pg_close(actions->pg, on_part_closed, actions);
    actions_call_close(actions, on_part_closed);
    if (actions->topic != NULL)
        actions_topic_stop(actions->topic, on_part_closed);
    actions->topic = NULL;
    on_part_closed(actions);
}

static void on_left(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                    const struct rcpt_error *error)
{
    struct app_actions *actions = context;
    (void)rows, (void)row_count;
    actions->leave_flying = false;
    actions->left = !actions_failed(actions, "giving lanes of actions away", error);
    actions->leave_at_ms = now_of(actions) + AGAIN_MS;
    actions_step(actions);
}

/* Lanes go first, so that others take over while our last calls are under way. */
static void wind_up(struct app_actions *actions)
{
    bool busy = actions->claim_flying || actions->own_flying || actions->store_flying ||
                actions->tidy_flying || actions->count_flying || actions->leave_flying ||
                actions->wanted_flying || actions->begin.flying || actions->api_flying > 0;
    if (!busy && !actions->left && actions_can_ask(actions)) {
        if (now_of(actions) < actions->leave_at_ms)
            return;
        actions->leave_flying = true;
        rcpt_pg_encoder_reset(actions->encoder);
        rcpt_pg_add_text(actions->encoder, actions->me);
        actions_submit(actions, "leave", on_left);
        return;
    }
    bool settled = actions->in_flight == 0 && actions->results == NULL && actions->flying == NULL;
    if (!busy && !actions->finish_flying && ((settled && actions->left) || !actions->up))
        close_all(actions);
}

void actions_step(struct app_actions *actions)
{
    if (actions->closing)
        return;
    finish_some(actions);
    store_pipelines(actions);
    ask_wanted(actions);
    own_lanes(actions);
    actions_begin_some(actions);
    actions_claim_some(actions);
    if (actions->stopping)
        wind_up(actions);
}

static void on_tick(uv_timer_t *timer)
{
    struct app_actions *actions = timer->data;
    if (actions->closing)
        return;
    tidy(actions);
    count(actions);
    actions_topic_tick(actions->topic);
    actions_step(actions);
}

/* ---- start ---- */

static void on_ready(void *context, struct rcpt_pg *pg)
{
    struct app_actions *actions = context;
    (void)pg;
    actions->up = true;
    actions->own_at_ms = 0;
    actions->wanted = false;
    actions_step(actions);
}

static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct app_actions *actions = context;
    (void)pg;
    actions->up = false;
    rcpt_metrics_add(actions->app->figures.metrics, RCPT_METRIC_CONNECTION_FAILURES,
                     RCPT_LABELS("actions"), 1);
    if (!actions->closing)
        rcpt_log_warn("postgres", "actions is not connected: %s%s%s", error->text,
                      error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
    actions_step(actions);
}

static void connect_database(struct app_actions *actions)
{
    struct rcpt_pg_settings settings = app_pg_settings(actions->app, "actions");
    settings.synchronous_commit = true; /* a claim precedes an effect outside the database */
    settings.context = actions;
    settings.on_ready = on_ready;
    settings.on_down = on_down;
    settings.statements = rcpt_action_statements(&settings.statement_count);
    actions->pg = rcpt_pg_new(&settings);
    actions->open++;
    rcpt_pg_start(actions->pg);
}

bool actions_are_configured(const struct rcpt_config *config)
{
    return strcmp(config->pipelines, "[]") != 0;
}

bool actions_are_known(const struct app *app)
{
    return app->actions == NULL || app->actions->known;
}

bool actions_start(struct app *app, struct rcpt_error *error)
{
    struct pipelines *pipelines = pipelines_of(app->config);
    if (pipelines->count == 0) {
        pipelines_free(pipelines);
        return true;
    }
    struct app_actions *actions = rcpt_calloc(1, sizeof(*actions));
    actions->app = app;
    actions->pipelines = pipelines;
    actions->results_end = &actions->results;
    actions->look = ACTIONS_LOOK_MIN;
    actions->begin.rows = ACTIONS_BEGIN_MIN;
    actions->random = uv_hrtime() ^ ((uint64_t)getpid() << 32);
    snprintf(actions->me, sizeof(actions->me), "%s-%08" PRIx64, app->instance,
             rcpt_random_next(&actions->random) >> 32);
    actions->encoder = rcpt_pg_encoder_new();
    uv_timer_init(&app->loop, &actions->timer);
    actions->timer.data = actions;
    actions->open = 1;
    app->actions_open++;
    app->actions = actions;
    lanes_set_wanted(app, NULL);
    if (!actions_call_start(actions, error)) {
        actions_stop(app);
        return false;
    }
    connect_database(actions);
    actions->topic = actions_topic_start(actions);
    actions->open += actions->topic != NULL;
    uv_timer_start(&actions->timer, on_tick, ACTIONS_TICK_MS, ACTIONS_TICK_MS);
    return true;
}

void actions_stop(struct app *app)
{
    struct app_actions *actions = app->actions;
    app->actions = NULL;
    if (actions == NULL)
        return;
    actions->stopping = true;
    if (actions->pg == NULL)
        close_all(actions);
    else
        actions_step(actions);
}

bool actions_reload(struct app *app, struct rcpt_error *error)
{
    bool known = actions_are_known(app);
    actions_stop(app);
    if (!actions_start(app, error))
        return false;
    if (app->actions != NULL)
        app->actions->known = known; /* what was in effect stays so until the new ones are stored */
    return true;
}

void actions_enable(struct app *app)
{
    if (app->actions != NULL)
        actions_call_enable(app->actions);
}
