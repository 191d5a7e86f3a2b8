/* The part of the process that each module is handed: time, the owner's callbacks, tickers, the
 * count of handles that have to close, settings of connections. A leaf: calls no module of the
 * daemon. The owner is app/run.c. */
#include "receiptd/host/context.h"
#include "receiptd/base/clock.h"
#include "receiptd/base/states.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Counts an outage once for each connection; counting every attempt would make it look like many
 * outages. */
void host_count_lost(const struct host_context *context, const char *connection, bool was_up)
{
    if (was_up)
        rcpt_metrics_add(context->metrics, RCPT_METRIC_CONNECTION_FAILURES, RCPT_LABELS(connection),
                         1);
}

int64_t host_now(const struct host_context *context)
{
    return (int64_t)uv_now(context->loop);
}

int64_t host_wall_ms(void)
{
    return rcpt_wall_ns() / RCPT_NS_PER_MS;
}

/* New tickers go to the end: they run in the order of registration. */
void host_add_ticker(struct host_context *context, struct host_ticker *ticker)
{
    struct host_ticker **end = &context->tickers;
    while (*end != NULL)
        end = &(*end)->next;
    *end = ticker;
}

/* ---- the process's life ---- */

static const char *const phase_names[HOST_PHASE__COUNT] = {"starting", "running", "stopping",
                                                           "closing", "closed"};

/* Phases only go forward. A module that cannot start stops a process that never ran. */
static const unsigned successors[HOST_PHASE__COUNT] = {
    [HOST_STARTING] = RCPT_TO(HOST_RUNNING) | RCPT_TO(HOST_STOPPING),
    [HOST_RUNNING] = RCPT_TO(HOST_STOPPING),
    [HOST_STOPPING] = RCPT_TO(HOST_CLOSING),
    [HOST_CLOSING] = RCPT_TO(HOST_CLOSED),
};

void host_enter(struct host_context *context, enum host_phase phase, const char *reason)
{
    RCPT_ASSERT_FOLLOWS(successors, context->phase, phase);
    rcpt_log_debug("app", "process: %s -> %s: %s", phase_names[context->phase], phase_names[phase],
                   reason);
    context->phase = phase;
}

/* ---- the owner ---- */

void host_fail(const struct host_context *context, const struct rcpt_error *error)
{
    context->host.fail(context->host.owner, error);
}

/* While halted, the process lives, and says why until an operator acts. */
void host_halt(struct host_context *context, const struct rcpt_error *error)
{
    context->halted++;
    host_set_reason(context->halt_reason, "stopped consuming", error);
    rcpt_log_error("app", "%s", context->halt_reason);
    host_update_readiness(context);
}

/* The reason of the last halt stays until all halts have ended. */
void host_go_on(struct host_context *context)
{
    context->halted -= context->halted > 0;
    host_update_readiness(context);
}

void host_update_readiness(const struct host_context *context)
{
    context->host.update_readiness(context->host.owner);
}

void host_check_drain(const struct host_context *context)
{
    context->host.check_drain(context->host.owner);
}

unsigned host_reasons(const struct host_context *context, const char *reasons[HOST_MOST_REASONS])
{
    return context->host.reasons(context->host.owner, reasons);
}

/* The hint goes along: a reason is read by the person on call. */
void host_set_reason(char reason[HOST_REASON_BYTES], const char *state,
                     const struct rcpt_error *error)
{
    snprintf(reason, HOST_REASON_BYTES, "%s: %s%s%s", state, error->text,
             error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
}

void host_name_state(char state[HOST_REASON_BYTES], const char *reason)
{
    const char *colon = strstr(reason, ": ");
    size_t length = colon != NULL ? (size_t)(colon - reason) : strlen(reason);
    snprintf(state, HOST_REASON_BYTES, "%.*s", (int)length, reason);
}

/* ---- open handles ---- */

void host_open(struct host_context *context)
{
    context->open++;
}

void host_closed(struct host_context *context)
{
    RCPT_ASSERT(context->open > 0);
    context->open--;
}

static void on_handle_closed(uv_handle_t *handle)
{
    host_closed(handle->data);
}

/* The count keeps the owner from freeing what libuv still uses. */
void host_close_handle(struct host_context *context, uv_handle_t *handle)
{
    handle->data = context;
    host_open(context);
    uv_close(handle, on_handle_closed);
}

/* ---- connections ---- */

/* Positions make asynchronous commit safe, so it is the default; modules that write without them
 * switch it off. */
struct rcpt_pg_settings host_pg_settings(struct host_context *context, const char *name)
{
    const struct rcpt_config *config = context->config;
    return (struct rcpt_pg_settings){
        .loop = context->loop,
        .name = name,
        .instance = context->instance,
        .dsn = config->postgres.dsn,
        .schema = config->postgres.schema,
        .outage = context->database,
        .peers = &context->peers,
        .synchronous_commit = false,
        .lineage = &context->lineage,
        .lock_timeout_ms = (int)config->postgres.lock_timeout_ms,
        .statement_timeout_ms = (int)config->postgres.statement_timeout_ms,
        .connect_timeout_ms = (int)config->postgres.connect_timeout_ms,
        .retry_min_ms = (int)config->postgres.retry_min_ms,
        .retry_max_ms = (int)config->postgres.retry_max_ms,
    };
}
