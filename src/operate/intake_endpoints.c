/* The pages of `receiptd intake` beside those of pages_server.c; the pages of `receiptd run` are in
 * endpoints.c. Called by the command intake. */
#include "receiptd/operate/endpoints.h"

#include "receiptd/operate/operate.h"

static void collect(void *context, struct rcpt_metrics *metrics)
{
    const struct intake_endpoints *endpoints = context;
    if (endpoints->tracer != NULL)
        measure_tracing(metrics, rcpt_tracer_get_stats(endpoints->tracer));
    if (endpoints->intake != NULL)
        measure_intake(metrics, endpoints->intake);
}

/* The counters that show an operator whether an adapter understands its gateway's requests. */
static void put_account(struct rcpt_json *json, const struct rcpt_gateway_stats *stats)
{
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "account", stats->account);
    rcpt_json_put_text(json, "gateway", stats->gateway);
    rcpt_json_put_int(json, "requests", (int64_t)stats->requests);
    rcpt_json_put_int(json, "events", (int64_t)stats->events);
    rcpt_json_put_int(json, "unmapped", (int64_t)stats->drops[RCPT_GATEWAY_UNMAPPED]);
    rcpt_json_put_text(json, "last_unmapped_status", stats->unmapped_sample);
    rcpt_json_put_int(json, "unknown_forms", (int64_t)stats->drops[RCPT_GATEWAY_UNKNOWN_FORM]);
    rcpt_json_put_int(json, "refused_signatures",
                      (int64_t)(stats->verdicts[RCPT_GATEWAY_MISSING] +
                                stats->verdicts[RCPT_GATEWAY_BAD] +
                                stats->verdicts[RCPT_GATEWAY_STALE]));
    rcpt_json_end_object(json);
}

/* Accounts in the order of the configuration. */
static void put_status(void *context, struct rcpt_json *json)
{
    const struct intake_endpoints *endpoints = context;
    rcpt_json_key(json, "accounts");
    rcpt_json_begin_array(json);
    for (size_t index = 0;
         endpoints->intake != NULL && index < rcpt_intake_account_count(endpoints->intake); index++)
        put_account(json, rcpt_intake_account_stats(endpoints->intake, index));
    rcpt_json_end_array(json);
}

/* The intake itself is started afterwards. */
void intake_endpoints_start(struct intake_endpoints *endpoints, uv_loop_t *loop,
                            const struct rcpt_config *config)
{
    const struct pages_server_settings settings = {
        .loop = loop,
        .config = config,
        .listen = config->intake.metrics_listen,
        .hide = {RCPT_METRICS_OF_WORKER, RCPT_METRICS_OF_SERVE},
        .context = endpoints,
        .collect = collect,
        .put_status = put_status};
    endpoints->intake = NULL;
    endpoints->tracer = NULL;
    pages_server_start(&endpoints->server, &settings);
}
