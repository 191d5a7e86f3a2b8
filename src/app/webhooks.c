/* The intake in the process of `receiptd run`. The instance is ready only when the intake is ready,
 * although it may apply receipts meanwhile. Called by run.c. */
#include "webhooks.h"

static void on_ready(void *context, bool ready, const char *reason)
{
    struct webhooks *webhooks = context;
    (void)reason; /* logged by the intake */
    webhooks->ready = ready;
    host_update_readiness(webhooks->context);
}

static void on_closed(void *context)
{
    struct webhooks *webhooks = context;
    webhooks->intake = NULL;
    host_check_drain(webhooks->context);
}

/* A source of measure.c, which does not know the intake; called for each page. */
static void collect(void *context, struct rcpt_metrics *metrics)
{
    const struct webhooks *webhooks = context;
    if (webhooks->intake != NULL)
        measure_intake(metrics, webhooks->intake);
}

bool webhooks_start(struct webhooks *webhooks, struct host_context *context,
                    struct measure *measure, struct rcpt_error *error)
{
    struct rcpt_intake_settings settings = {.loop = context->loop,
                                            .config = context->config,
                                            .instance = context->instance,
                                            .tracer = context->tracer,
                                            .context = webhooks,
                                            .on_ready = on_ready,
                                            .on_closed = on_closed};
    webhooks->context = context;
    webhooks->source = (struct measure_source){.collect = collect, .context = webhooks};
    measure_add_source(measure, &webhooks->source);
    webhooks->enabled = context->config->intake.enabled;
    if (!webhooks->enabled)
        return true;
    webhooks->intake = rcpt_intake_start(&settings, error);
    return webhooks->intake != NULL;
}

const char *webhooks_reason(const struct webhooks *webhooks)
{
    return webhooks->enabled && !webhooks->ready ? "the intake is not ready" : NULL;
}

void webhooks_drain(struct webhooks *webhooks)
{
    if (webhooks->intake != NULL)
        rcpt_intake_drain(webhooks->intake);
}

void webhooks_apply_config(struct webhooks *webhooks)
{
    if (webhooks->intake != NULL)
        rcpt_intake_apply_config(webhooks->intake);
}

void webhooks_reload(struct webhooks *webhooks)
{
    if (webhooks->intake != NULL)
        rcpt_intake_reload(webhooks->intake);
}
