/* The interface for readers in the process of `receiptd run`. Whether readers get answers says nothing
 * about the receipts, so readiness does not depend on it. Called by run.c. */
#include "readers.h"

static void on_closed(void *context)
{
    struct readers *readers = context;
    readers->serve = NULL;
    app_check_drain(readers->context);
}

bool readers_start(struct readers *readers, struct app_context *context, struct rcpt_error *error)
{
    const struct rcpt_serve_settings settings = {.loop = context->loop,
                                                 .config = context->config,
                                                 .instance = context->instance,
                                                 .context = readers,
                                                 .on_closed = on_closed};
    readers->context = context;
    if (!context->config->serve.enabled)
        return true;
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
    if (readers->serve != NULL)
        rcpt_serve_apply_config(readers->serve);
}
