/* Statements that are sent one at a time, by a timer: whether one may be sent now, sending it, and
 * the handling of a failure. A failed statement is logged once, and sent again after its interval
 * or back-off. Used by the roll-up, parking, blockers, folds and actions.
 */
#include "receiptd/postgres/ask.h"

#include "receiptd/base/log.h"

/* `closed`: the owner is about to end and sends nothing more. */
bool rcpt_asker_is_ready(const struct rcpt_asker *asker)
{
    return asker->up && !asker->closed && rcpt_pg_is_ready(asker->pg);
}

/* True: there is no answer. Logs the failure, and reconnects where the decision says so. */
bool rcpt_asker_failed(struct rcpt_asker *asker, bool *is_refused, const char *what,
                       const struct rcpt_error *error)
{
    if (error == NULL)
        return false;
    if (error->code[0] == '\0' || asker->closed)
        return true; /* the connection is gone: on_down says it */
    if (is_refused == NULL ||
        rcpt_outage_note(&asker->outage, is_refused, (int64_t)uv_now(asker->loop), error))
        rcpt_log_failure(RCPT_LOG_WARN, asker->component, error, "%s%s failed, will be tried again",
                         asker->prefix, what);
    if (error->decision == RCPT_DECISION_RECONNECT)
        rcpt_pg_reconnect(asker->pg, error);
    return true;
}

static int64_t now_of(const struct rcpt_ask *ask)
{
    return (int64_t)uv_now(ask->asker->loop);
}

/* on_answer may send the next one at once: in_flight is false by now. */
static void take(struct rcpt_ask *ask, struct rcpt_pg_rows *const *rows, size_t row_count,
                 const struct rcpt_error *error)
{
    if (rcpt_asker_failed(ask->asker, &ask->is_refused, ask->what, error)) {
        if (ask->retry_ms > 0)
            ask->at_ms = now_of(ask) + ask->retry_ms;
        if (ask->on_failed != NULL)
            ask->on_failed(ask->context, error);
        return;
    }
    RCPT_ASSERT(row_count == 1);
    rcpt_outage_end(&ask->asker->outage, &ask->is_refused, now_of(ask), ask->asker->component,
                    "statements are answered again");
    if (ask->on_answer != NULL)
        ask->on_answer(ask->context, rows[0]);
}

static void on_result(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    struct rcpt_ask *ask = context;
    struct rcpt_asker *asker = ask->asker;
    ask->in_flight = false;
    asker->in_flight--;
    take(ask, rows, row_count, error);
    if (asker->on_settled != NULL)
        asker->on_settled(asker->owner);
}

/* NULL: the last one is not answered, its interval has not passed, or the connection is not ready.
 * The encoder belongs to the asker: parameters are added and sent before anything else is asked. */
struct rcpt_pg_encoder *rcpt_ask_begin(const struct rcpt_ask *ask)
{
    if (ask->in_flight || now_of(ask) < ask->at_ms || !rcpt_asker_is_ready(ask->asker))
        return NULL;
    rcpt_pg_encoder_reset(ask->asker->encoder);
    return ask->asker->encoder;
}

void rcpt_ask_send(struct rcpt_ask *ask)
{
    struct rcpt_pg_query query = {.statement = ask->statement};
    rcpt_pg_encoder_params(ask->asker->encoder, &query.params);
    ask->in_flight = true;
    ask->asker->in_flight++;
    ask->sent_ms = now_of(ask);
    if (ask->every_ms > 0)
        ask->at_ms = ask->sent_ms + ask->every_ms;
    rcpt_pg_submit(ask->asker->pg, &query, 1, on_result, ask);
}
