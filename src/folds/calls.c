/* Publications by webhook: at least once, with the publication's id. A call is claimed by moving
 * its time on, and what became of it is written down; if that fails, the time comes again. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_CALLS      32
#define MARGIN_MS       5000 /* of the lease beyond the longest attempt */
#define MOST_TIMEOUT_MS 60000
#define POLL_MS         200
#define NO_RULE_MS      5000 /* between looks for calls that no rule is there for any more */
#define NO_RULE         "its rule is no longer configured" /* as in sql/fold/rules.sql */
#define ANSWER_BYTES    1024

struct folds_endpoint {
    struct folds_endpoint *next;
    char *rule;
    struct rcpt_webhooks *webhooks; /* the client for its kind of addresses */
    struct rcpt_webhook_endpoint *endpoint;
    int64_t retry_min_ms, retry_max_ms, max_age_ms;
    unsigned in_flight;
};

struct call {
    struct folds_calls *calls;
    struct folds_endpoint *endpoint;
    char *id;
    int64_t wait_ms, age_ms;
};

static struct folds_endpoint *find(const struct folds_calls *calls, const char *rule)
{
    struct folds_endpoint *endpoint = calls->endpoints;
    while (endpoint != NULL && strcmp(endpoint->rule, rule) != 0)
        endpoint = endpoint->next;
    return endpoint; /* the newest first */
}

/* ---- what became of it ---- */

static void on_written(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                       const struct rcpt_error *error)
{
    (void)context;
    (void)rows;
    (void)row_count;
    if (error != NULL && error->code[0] != '\0')
        rcpt_log_warn("folds",
                      "folds: the answer of a webhook cannot be written down: %s (%s); it will be "
                      "called again",
                      error->text, error->code);
}

static void write_down(struct folds_calls *calls, const char *id, const char *what, int64_t wait_ms,
                       const char *text)
{
    struct app_folds *folds = calls->folds;
    struct rcpt_pg_query query = {.statement = "answered"};
    if (!folds->asker.up || !rcpt_pg_is_ready(folds->asker.pg))
        return; /* the lease ends by itself */
    rcpt_pg_encoder_reset(folds->asker.encoder);
    rcpt_pg_add_text(folds->asker.encoder, id);
    rcpt_pg_add_text(folds->asker.encoder, what);
    rcpt_pg_add_int8(folds->asker.encoder, wait_ms);
    rcpt_pg_add_text(folds->asker.encoder, text);
    rcpt_pg_encoder_params(folds->asker.encoder, &query.params);
    rcpt_pg_submit(folds->asker.pg, &query, 1, on_written, calls);
}

static void describe(const struct rcpt_webhook_answer *answer, char text[160])
{
    if (answer->status != 0)
        snprintf(text, 160, "%s, status %d", rcpt_webhook_class_name(answer->class),
                 answer->status);
    else
        snprintf(text, 160, "%s", rcpt_webhook_class_name(answer->class));
}

static void settle(struct call *call, const struct rcpt_webhook_answer *answer)
{
    struct folds_endpoint *endpoint = call->endpoint;
    struct rcpt_backoff backoff;
    char text[160];
    describe(answer, text);
    if (answer->class == RCPT_WEBHOOK_DELIVERED) {
        write_down(call->calls, call->id, "delivered", 0, NULL);
        return;
    }
    if (!rcpt_webhook_may_retry(answer->class) || call->age_ms > endpoint->max_age_ms) {
        rcpt_log_error("folds", "folds: rule %s: publication %s is given up: %s", endpoint->rule,
                       call->id, text);
        write_down(call->calls, call->id, "dead", 0, text);
        return;
    }
    rcpt_backoff_init(&backoff, endpoint->retry_min_ms, endpoint->retry_max_ms, uv_hrtime());
    backoff.last_ms = call->wait_ms;
    write_down(call->calls, call->id, "again",
               rcpt_webhook_wait_ms(&backoff, answer->retry_after_ms), text);
}

static void on_answer(void *context, const struct rcpt_webhook_answer *answer)
{
    struct call *call = context;
    struct rcpt_metrics *metrics = call->calls->folds->context->metrics;
    rcpt_metrics_add(metrics, RCPT_METRIC_FOLD_CALLS,
                     RCPT_LABELS(call->endpoint->rule, rcpt_webhook_class_name(answer->class)), 1);
    call->endpoint->in_flight--;
    if (answer->class != RCPT_WEBHOOK_CANCELLED)
        settle(call, answer);
    free(call->id);
    free(call);
}

/* ---- calling ---- */

enum { CALL_ID, CALL_RULE, CALL_PAYLOAD, CALL_WAIT, CALL_AGE };

static void send_call(struct folds_calls *calls, const struct rcpt_pg_rows *rows, size_t row)
{
    const char *id = rcpt_pg_rows_text(rows, row, CALL_ID);
    const char *payload = rcpt_pg_rows_text(rows, row, CALL_PAYLOAD);
    struct folds_endpoint *endpoint = find(calls, rcpt_pg_rows_text(rows, row, CALL_RULE));
    if (endpoint == NULL) {
        rcpt_log_warn(
            "folds",
            "folds: publication %s is not sent: its rule has no webhook here; HINT: it is "
            "kept in fold_call, and goes out when the rule is back",
            id);
        write_down(calls, id, "dead", 0, NO_RULE);
        return;
    }
    struct call *call = rcpt_calloc(1, sizeof(*call));
    *call = (struct call){.calls = calls,
                          .endpoint = endpoint,
                          .id = rcpt_strdup(id),
                          .wait_ms = rcpt_pg_rows_int(rows, row, CALL_WAIT),
                          .age_ms = rcpt_pg_rows_int(rows, row, CALL_AGE)};
    struct rcpt_webhook_call sent = {.id = id, .body = payload, .size = strlen(payload)};
    if (rcpt_webhook_send(endpoint->endpoint, &sent, on_answer, call)) {
        endpoint->in_flight++;
        return;
    }
    write_down(calls, id, "again", POLL_MS, "no room"); /* as soon as others are through */
    free(call->id);
    free(call);
}

static void on_calls(void *context, const struct rcpt_pg_rows *rows)
{
    struct folds_calls *calls = context;
    if (calls->folds->asker.closed)
        return; /* the calls come again when their leases end */
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++)
        send_call(calls, rows, row);
}

static bool has_capacity(const struct folds_calls *calls)
{
    for (const struct folds_endpoint *at = calls->endpoints; at != NULL; at = at->next)
        if (rcpt_webhook_capacity(at->endpoint) > 0)
            return true;
    return calls->endpoints == NULL;
}

void folds_calls_tick(struct folds_calls *calls, uint32_t shard)
{
    int64_t now = app_now(calls->folds->context);
    if (now < calls->due_ms[shard] || !has_capacity(calls))
        return;
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&calls->claim);
    if (encoder == NULL)
        return;
    calls->due_ms[shard] = now + (calls->endpoints != NULL ? POLL_MS : NO_RULE_MS);
    rcpt_pg_add_int4(encoder, (int32_t)shard);
    rcpt_pg_add_int4(encoder, MOST_CALLS);
    rcpt_pg_add_int8(encoder, MOST_TIMEOUT_MS + MARGIN_MS);
    rcpt_ask_send(&calls->claim);
}

/* ---- endpoints ---- */

static struct rcpt_webhooks *client(struct folds_calls *calls, bool allow_private)
{
    struct rcpt_webhooks **client = &calls->clients[allow_private];
    struct rcpt_webhooks_settings settings = {.loop = calls->folds->context->loop,
                                              .allow_private = allow_private};
    if (*client == NULL)
        *client = rcpt_webhooks_new(&settings);
    return *client;
}

static void add_endpoint(struct folds_calls *calls, const struct rcpt_fold_config *fold)
{
    struct rcpt_error error;
    struct rcpt_webhook_endpoint_settings settings = {
        .name = fold->name,
        .url = fold->publish.webhook.url,
        .secrets = (const char *const *)fold->publish.webhook.secrets,
        .secret_count = fold->publish.webhook.secrets_count,
        .connect_timeout_ms = fold->publish.webhook.timeout_ms,
        .timeout_ms = fold->publish.webhook.timeout_ms,
        .max_answer_bytes = ANSWER_BYTES,
        .concurrency = fold->publish.webhook.concurrency,
    };
    struct rcpt_webhooks *webhooks = client(calls, fold->publish.webhook.allow_private);
    struct rcpt_webhook_endpoint *made = rcpt_webhook_endpoint_new(webhooks, &settings, &error);
    if (made == NULL) {
        rcpt_log_error("folds", "folds: rule %s: %s", fold->name, error.text);
        return;
    }
    struct folds_endpoint *endpoint = rcpt_calloc(1, sizeof(*endpoint));
    *endpoint = (struct folds_endpoint){.next = calls->endpoints,
                                        .rule = rcpt_strdup(fold->name),
                                        .webhooks = webhooks,
                                        .endpoint = made,
                                        .retry_min_ms = fold->publish.webhook.retry_min_ms,
                                        .retry_max_ms = fold->publish.webhook.retry_max_ms,
                                        .max_age_ms = fold->publish.webhook.max_age_ms};
    calls->endpoints = endpoint;
}

void folds_calls_init(struct folds_calls *calls, struct app_folds *folds)
{
    calls->folds = folds;
    calls->claim = (struct rcpt_ask){.asker = &folds->asker,
                                     .statement = "calls",
                                     .what = "claiming calls of webhooks",
                                     .context = calls,
                                     .on_answer = on_calls};
    folds_calls_configure(calls);
}

/* Earlier endpoints stay until the end: calls to them may be in flight, or still to come. */
void folds_calls_configure(struct folds_calls *calls)
{
    const struct rcpt_config *config = calls->folds->context->config;
    for (size_t index = 0; index < config->folds_count; index++)
        if (config->folds[index].publish.webhook.url != NULL)
            add_endpoint(calls, &config->folds[index]);
}

static void free_endpoints(struct folds_calls *calls)
{
    while (calls->endpoints != NULL) {
        struct folds_endpoint *endpoint = calls->endpoints;
        calls->endpoints = endpoint->next;
        free(endpoint->rule);
        free(endpoint);
    }
}

static void on_client_closed(void *context)
{
    struct folds_calls *calls = context;
    if (--calls->closing > 0)
        return;
    free_endpoints(calls);
    calls->on_closed(calls->folds);
}

void folds_calls_close(struct folds_calls *calls, void (*on_closed)(void *context))
{
    calls->on_closed = on_closed;
    calls->closing = (calls->clients[0] != NULL ? 1u : 0u) + (calls->clients[1] != NULL ? 1u : 0u);
    unsigned closing = calls->closing;
    for (size_t index = 0; index < 2 && closing > 0; index++)
        if (calls->clients[index] != NULL)
            rcpt_webhooks_close(calls->clients[index], on_client_closed, calls);
    if (closing == 0)
        on_closed(calls->folds);
}
