/* Publications by webhook, at least once, with the publication's id. Claiming a call moves its due
 * time on by a lease, and its result is stored; a call without a stored result becomes due again.
 * Each shard's owner claims its calls. Called by shard.c and folds.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_CALLS   32
#define POLL_MS      200
#define NO_RULE_MS   5000 /* between claims while no rule has a webhook */
#define NO_RULE      "its rule is no longer configured" /* as in sql/fold/rules.sql */
#define ANSWER_BYTES 1024

/* A webhook as one version of the configuration wrote it; a reload adds another in front. */
struct folds_endpoint {
    struct folds_endpoint *next;
    char *rule;
    struct rcpt_webhooks *webhooks; /* the client for its kind of addresses */
    struct rcpt_webhook_endpoint *endpoint;
    int64_t retry_min_ms, retry_max_ms, max_age_ms;
    unsigned in_flight;
};

/* One attempt. on_answer() frees it: the client answers every call that it has accepted, at its end
 * as cancelled. */
struct call {
    struct folds_calls *calls;
    struct folds_endpoint *endpoint;
    char *id;
    int64_t wait_ms, age_ms;
};

/* The newest endpoint of a rule comes first, so calls go to its present URL. */
static struct folds_endpoint *find(const struct folds_calls *calls, const char *rule)
{
    struct folds_endpoint *endpoint = calls->endpoints;
    while (endpoint != NULL && strcmp(endpoint->rule, rule) != 0)
        endpoint = endpoint->next;
    return endpoint;
}

/* ---- results ---- */

/* An error without a code means that the connection is gone; on_down() logs that. */
static void on_stored(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    (void)context;
    (void)rows;
    (void)row_count;
    if (error != NULL && error->code[0] != '\0')
        rcpt_log_warn("folds",
                      "folds: the answer of a webhook cannot be stored: %s (%s); it will be called "
                      "again",
                      error->text, error->code);
}

/* Several results may be in flight; one that is lost makes the call come again. */
static void store_result(struct folds_calls *calls, const char *id, const char *what,
                         int64_t wait_ms, const char *text)
{
    struct app_folds *folds = calls->folds;
    struct rcpt_pg_query query = {.statement = "answered"};
    if (!folds->asker.up || !rcpt_pg_is_ready(folds->asker.pg))
        return; /* the lease ends, and the call is made again */
    rcpt_pg_encoder_reset(folds->asker.encoder);
    rcpt_pg_add_text(folds->asker.encoder, id);
    rcpt_pg_add_text(folds->asker.encoder, what);
    rcpt_pg_add_int8(folds->asker.encoder, wait_ms);
    rcpt_pg_add_text(folds->asker.encoder, text);
    rcpt_pg_encoder_params(folds->asker.encoder, &query.params);
    rcpt_pg_submit(folds->asker.pg, &query, 1, on_stored, calls);
}

/* For the log and the row: no part of the answer's body, which may be personal. */
static void describe(const struct rcpt_webhook_answer *answer, char text[160])
{
    if (answer->class == RCPT_WEBHOOK_FORBIDDEN)
        snprintf(
            text, 160,
            "forbidden: its address is not public, and publish.webhook.allow_private is not set");
    else if (answer->status != 0)
        snprintf(text, 160, "%s, status %d", rcpt_webhook_class_name(answer->class),
                 answer->status);
    else
        snprintf(text, 160, "%s", rcpt_webhook_class_name(answer->class));
}

/* Delivered, given up, or due again after a back-off. */
static void settle(struct call *call, const struct rcpt_webhook_answer *answer)
{
    struct folds_endpoint *endpoint = call->endpoint;
    struct rcpt_backoff backoff;
    char text[160];
    describe(answer, text);
    if (answer->class == RCPT_WEBHOOK_DELIVERED) {
        store_result(call->calls, call->id, "delivered", 0, NULL);
        return;
    }
    if (!rcpt_webhook_may_retry(answer->class) || call->age_ms > endpoint->max_age_ms) {
        rcpt_log_error("folds",
                       "folds: rule %s: publication %s is given up: %s; HINT: mend the "
                       "cause, then receiptd folds retry",
                       endpoint->rule, call->id, text);
        store_result(call->calls, call->id, "dead", 0, text);
        return;
    }
    rcpt_backoff_init(&backoff, endpoint->retry_min_ms, endpoint->retry_max_ms, uv_hrtime());
    backoff.last_ms = call->wait_ms;
    store_result(call->calls, call->id, "again",
                 rcpt_webhook_wait_ms(&backoff, answer->retry_after_ms), text);
}

/* A cancelled call, at the end of the process, is left to its lease. */
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

/* Columns of sql/fold/calls. */
enum { CALL_ID, CALL_RULE, CALL_PAYLOAD, CALL_WAIT_MS, CALL_AGE_MS, CALL_GIVEN_UP };

/* A claimed call that cannot be sent is stored at once, so that it does not wait for its lease. */
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
        store_result(calls, id, "dead", 0, NO_RULE);
        return;
    }
    const char *given_up = rcpt_pg_rows_text(rows, row, CALL_GIVEN_UP);
    if (given_up != NULL)
        rcpt_log_info("folds",
                      "folds: rule %s: publication %s is called again; it had been given up: %s",
                      endpoint->rule, id, given_up);
    struct call *call = rcpt_calloc(1, sizeof(*call));
    *call = (struct call){.calls = calls,
                          .endpoint = endpoint,
                          .id = rcpt_strdup(id),
                          .wait_ms = rcpt_pg_rows_int(rows, row, CALL_WAIT_MS),
                          .age_ms = rcpt_pg_rows_int(rows, row, CALL_AGE_MS)};
    struct rcpt_webhook_call sent = {.id = id, .body = payload, .size = strlen(payload)};
    if (rcpt_webhook_send(endpoint->endpoint, &sent, on_answer, call)) {
        endpoint->in_flight++;
        return;
    }
    store_result(calls, id, "again", POLL_MS, "no capacity");
    free(call->id);
    free(call);
}

/* The lease of each call has begun with the claim's commit. */
static void on_calls(void *context, const struct rcpt_pg_rows *rows)
{
    struct folds_calls *calls = context;
    if (calls->folds->asker.closed)
        return; /* the calls come again when their leases end */
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++)
        send_call(calls, rows, row);
}

/* Without endpoints only calls of removed rules are left; giving them up needs no capacity. */
static bool has_capacity(const struct folds_calls *calls)
{
    for (const struct folds_endpoint *at = calls->endpoints; at != NULL; at = at->next)
        if (rcpt_webhook_capacity(at->endpoint) > 0)
            return true;
    return calls->endpoints == NULL;
}

/* One claim at a time; the two shards of an instance take turns by their due times. */
void folds_calls_tick(struct folds_calls *calls, uint32_t shard)
{
    int64_t now = host_now(calls->folds->context);
    if (now < calls->due_ms[shard] || !has_capacity(calls))
        return;
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&calls->claim);
    if (encoder == NULL)
        return;
    calls->due_ms[shard] = now + (calls->endpoints != NULL ? POLL_MS : NO_RULE_MS);
    rcpt_pg_add_int4(encoder, (int32_t)shard);
    rcpt_pg_add_int4(encoder, MOST_CALLS);
    rcpt_pg_add_int8(encoder, FOLDS_CALL_LEASE_MS);
    rcpt_ask_send(&calls->claim);
}

/* ---- endpoints ---- */

/* Rules that allow private addresses share one client, the others another. */
static struct rcpt_webhooks *client(struct folds_calls *calls, bool allow_private)
{
    struct rcpt_webhooks **client = &calls->clients[allow_private];
    struct rcpt_webhooks_settings settings = {.loop = calls->folds->context->loop,
                                              .allow_private = allow_private};
    if (*client == NULL)
        *client = rcpt_webhooks_new(&settings);
    return *client;
}

/* A URL that is refused is logged; the calls of its rule wait in fold_call. */
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

/* Only when the clients are closed: calls in flight point to their endpoints. */
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

/* Webhook clients answer their open calls as cancelled, then close. */
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
