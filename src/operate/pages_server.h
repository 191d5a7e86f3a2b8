/* The pages for operators on an address of their own, for processes without the daemon: `receiptd
 * intake`, `receiptd serve`. An address that is taken stops nothing: it is tried again.
 *
 * Health is the same for all: alive while the loop turns, ready as the owner says, started once it
 * was ready.
 */
#ifndef RECEIPTD_OPERATE_PAGES_SERVER_H
#define RECEIPTD_OPERATE_PAGES_SERVER_H

#include "pages.h"

struct pages_server_settings {
    uv_loop_t *loop;
    const struct rcpt_config *config; /* borrowed for life */
    const char *listen;               /* "": none; borrowed for life */
    unsigned hide[2];                 /* parts of the metrics that stay at 0 in this process */
    void *context;
    /* Series of the owner's own, when a page is asked for. */
    void (*collect)(void *context, struct rcpt_metrics *metrics);
    /* Members of /statusz beside version, configuration and readiness. */
    void (*put_status)(void *context, struct rcpt_json *json);
};

struct pages_server { /* embedded */
    struct pages_server_settings settings;
    struct pages pages;
    struct rcpt_http_server *http; /* NULL: does not listen */
    uv_timer_t retry;
    struct rcpt_metrics *metrics;
    int64_t started_ms;
    char config_hash[20];
    char reason[160]; /* why it is not ready; "": it is */
    bool ready, was_ready;
};

/* Listens; a failure is logged. Not ready: "starting". */
void pages_server_start(struct pages_server *server, const struct pages_server_settings *settings);
/* The reason is copied, and counts only where it is not ready. */
void pages_server_set_ready(struct pages_server *server, bool ready, const char *reason);
/* Reads the certificate again. */
void pages_server_reload(struct pages_server *server);
/* The memory is free once the loop has run, but for pages_server_fini(). */
void pages_server_close(struct pages_server *server);
/* Once the loop has run. */
void pages_server_fini(struct pages_server *server);

#endif
