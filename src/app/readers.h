/* The interface for readers beside the daemon's other modules: started where serve.enabled says so.
 */
#ifndef RECEIPTD_APP_READERS_H
#define RECEIPTD_APP_READERS_H

#include "receiptd/host/context.h"
#include "receiptd/operate/operate.h"
#include "receiptd/serve/serve.h"

struct readers {
    struct host_context *context;
    struct rcpt_serve *serve; /* NULL: not enabled, or closed */
    struct measure_source source;
};

RCPT_MUST_CHECK bool readers_start(struct readers *readers, struct host_context *context,
                                   struct measure *measure, struct rcpt_error *error);
/* Begins the drain; host_check_drain() tells its end. */
void readers_drain(struct readers *readers);
void readers_apply_config(struct readers *readers);

#endif
