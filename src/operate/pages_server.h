/* The pages for operators on an address of their own, for processes without the daemon: `receiptd
 * intake`, `receiptd serve`. An address that is taken stops nothing: it is tried again. */
#ifndef RECEIPTD_OPERATE_PAGES_SERVER_H
#define RECEIPTD_OPERATE_PAGES_SERVER_H

#include "pages.h"

struct pages_server {
    uv_loop_t *loop;
    const struct rcpt_config *config;
    const char *listen; /* "": none */
    struct pages pages;
    struct rcpt_http_server *http; /* NULL: does not listen */
    uv_timer_t retry;
};

/* Listens; the fields above `http` are set. A failure is logged. */
void pages_server_start(struct pages_server *server);
/* Reads the certificate again. */
void pages_server_reload(struct pages_server *server);
/* The memory is free once the loop has run. */
void pages_server_close(struct pages_server *server);

#endif
