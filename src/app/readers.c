/* The interface for readers in the process of `receiptd run`. Readiness does not depend on it,
 * because it says nothing about the receipts. Called by run.c. */
#include "readers.h"

#include "receiptd/operate/operate.h"

static void on_closed(void *context)
{
    struct readers *readers = context;
    readers->serve = NULL;
    host_check_drain(readers->context);
}

/* Called for each page of metrics. */
static void collect(void *context, struct rcpt_metrics *metrics)
{
    const struct readers *readers = context;
    if (readers->serve != NULL)
        measure_serve(metrics, readers->serve);
}

bool readers_start(struct readers *readers, struct host_context *context, struct measure *measure,
                   struct rcpt_error *error)
{
    const struct rcpt_serve_settings settings = {.loop = context->loop,
                                                 .config = context->config,
                                                 .instance = context->instance,
                                                 .context = readers,
                                                 .on_closed = on_closed};
    readers->context = context;
    if (!context->config->serve.enabled)
        return true;
    readers->source = (struct measure_source){.collect = collect, .context = readers};
    measure_add_source(measure, &readers->source);
    readers->serve = rcpt_serve_start(&settings, error);
    return readers->serve != NULL;
}

void readers_drain(struct readers *readers)
{
    if (readers->serve != NULL)
        rcpt_serve_drain(readers->serve);
}

void readers_apply_config(struct readers *readers)
{
    if (readers->serve == NULL)
        return;
    rcpt_serve_apply_config(readers->serve);
    rcpt_serve_reload_tls(readers->serve);
}
