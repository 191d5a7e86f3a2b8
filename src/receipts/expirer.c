/* An expiry on a loop of its own (expirer.h): runs it until the step that was asked for is
 * answered. A signal ends the process as usual; then PostgreSQL sees within seconds that the client
 * is gone (setup.c), and rolls back the open transaction. Called by commands/expire.c. */
#include "receiptd/receipts/expirer.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/base/log.h"
#include "receiptd/postgres/session.h"
#include "receiptd/receipts/rules.h"

struct expirer {
    struct expirer_settings settings;
    struct rules rules;
    uv_loop_t loop;
    struct rcpt_pg *pg; /* NULL: no step was asked for yet */
    struct rcpt_lane_sender *sender;
    struct rcpt_lane_statements *statements; /* for this part of the inbox: */
    char *candidates;
    bool is_ready, is_answered, is_closed, failed;
    int64_t expired;         /* of the step */
    struct rcpt_error error; /* where it failed */
};

/* ---- answers ---- */

static void on_ready(void *context, struct rcpt_pg *pg)
{
    (void)pg;
    ((struct expirer *)context)->is_ready = true;
}

/* Keeps the first error, which is the cause: a step in flight is answered before the connection
 * reports its end. */
static void fail(struct expirer *expirer, const struct rcpt_error *error)
{
    if (expirer->failed)
        return;
    expirer->failed = true;
    expirer->error = *error;
    expirer->error.decision = RCPT_DECISION_FATAL;
    if (error->exit_code == 0)
        expirer->error.exit_code = rcpt_session_exit_code(error->code);
}

static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    (void)pg;
    fail(context, error);
}

static void on_closed(void *context)
{
    ((struct expirer *)context)->is_closed = true;
}

static void on_result(void *context, uint32_t lane, const struct rcpt_engine_result *result,
                      const struct rcpt_error *error)
{
    struct expirer *expirer = context;
    (void)lane;
    expirer->is_answered = true;
    expirer->expired = result->messages_changed;
    if (error != NULL)
        fail(expirer, error);
}

static const char *no_name(const void *context, enum rcpt_facet facet, uint32_t number)
{
    (void)context;
    (void)facet;
    (void)number;
    return NULL;
}

/* ---- life ---- */

/* Rules about single receipts have nothing to count. The command reports trouble of the connection
 * once: it has no daemon's log. */
struct expirer *expirer_new(const struct expirer_settings *settings)
{
    struct expirer *expirer = rcpt_calloc(1, sizeof(*expirer));
    expirer->settings = *settings;
    rules_read(settings->config, settings->wants, &expirer->rules);
    expirer->rules.settings.dedup = expirer->rules.settings.gateways = false;
    expirer->sender = rcpt_lane_sender_new(
        &(struct rcpt_lane_sender_settings){.unknown_policy = "park",
                                            .rules = expirer->rules.settings,
                                            .names = {.name = no_name},
                                            .window = expirer->rules.window,
                                            .actions = settings->wants->actions});
    rcpt_lane_sender_set_timeline(expirer->sender, settings->config->timeline.retention_ms > 0);
    RCPT_ASSERT(uv_loop_init(&expirer->loop) == 0);
    RCPT_ASSERT(rcpt_log_set_component("postgres", RCPT_LOG_ERROR));
    return expirer;
}

void expirer_free(struct expirer *expirer)
{
    if (expirer->pg != NULL)
        rcpt_pg_close(expirer->pg, on_closed, expirer);
    while (expirer->pg != NULL && !expirer->is_closed)
        uv_run(&expirer->loop, UV_RUN_ONCE);
    RCPT_ASSERT(uv_loop_close(&expirer->loop) == 0);
    RCPT_ASSERT(rcpt_log_set_component("postgres", RCPT_LOG_LEVEL__COUNT));
    rcpt_lane_sender_free(expirer->sender);
    rcpt_lane_statements_free(expirer->statements);
    free(expirer->candidates);
    free(expirer);
}

/* ---- a step ---- */

/* No position covers the written rows, so commits are synchronous. A statement may take as long as
 * one of a command's session. */
static void connect_with(struct expirer *expirer, const struct rcpt_pg_statement *list,
                         size_t count)
{
    const struct rcpt_config *config = expirer->settings.config;
    expirer->pg = rcpt_pg_new(
        &(struct rcpt_pg_settings){.loop = &expirer->loop,
                                   .name = "messages",
                                   .instance = expirer->settings.command,
                                   .dsn = expirer->settings.dsn,
                                   .schema = config->postgres.schema,
                                   .synchronous_commit = true,
                                   .connect_timeout_ms = (int)config->postgres.connect_timeout_ms,
                                   .retry_min_ms = (int)config->postgres.retry_min_ms,
                                   .retry_max_ms = (int)config->postgres.retry_max_ms,
                                   .statements = list,
                                   .statement_count = count,
                                   .context = expirer,
                                   .on_ready = on_ready,
                                   .on_down = on_down});
    rcpt_pg_start(expirer->pg);
    while (!expirer->is_ready && !expirer->failed)
        uv_run(&expirer->loop, UV_RUN_ONCE);
}

/* Parts differ in one statement, which is prepared again with the next part. */
static void prepare(struct expirer *expirer, const char *candidates)
{
    size_t count;
    struct rcpt_lane_statements *old = expirer->statements;
    if (expirer->candidates != NULL && strcmp(expirer->candidates, candidates) == 0)
        return;
    free(expirer->candidates);
    expirer->candidates = rcpt_strdup(candidates);
    expirer->statements =
        rules_expiry_statements(&expirer->rules, expirer->settings.wants, candidates);
    const struct rcpt_pg_statement *list = rcpt_lane_statements_list(expirer->statements, &count);
    if (expirer->pg == NULL)
        connect_with(expirer, list, count);
    else
        rcpt_pg_set_statements(expirer->pg, list);
    rcpt_lane_statements_free(old);
}

int64_t expirer_step(struct expirer *expirer, const char *candidates, const char *first,
                     const char *end, struct rcpt_error *error)
{
    const char *const values[] = {first, end, expirer->settings.rules};
    const struct rcpt_pg_params range = {.count = 3, .values = values};
    prepare(expirer, candidates);
    expirer->is_answered = expirer->failed;
    if (!expirer->failed)
        rcpt_lane_expire(expirer->sender, expirer->pg, &range, on_result, expirer);
    while (!expirer->is_answered)
        uv_run(&expirer->loop, UV_RUN_ONCE);
    if (expirer->failed)
        *error = expirer->error;
    return expirer->failed ? -1 : expirer->expired;
}
