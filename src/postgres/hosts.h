/* The hosts of a dsn and their addresses, resolved on libuv's threads. Private to src/postgres. */
#ifndef SRC_POSTGRES_HOSTS_H
#define SRC_POSTGRES_HOSTS_H

#include <stddef.h>
#include <uv.h>

#include "receiptd/base/error.h"

struct rcpt_host {
    char *name;    /* host name, socket directory, or "" */
    char *address; /* numeric, "" for a socket directory or when not resolved */
    char *port;    /* "" for libpq's default */
};

struct rcpt_hosts {
    struct rcpt_host *items;
    size_t count;
};

/* Splits libpq's comma-separated lists; each may be NULL. An unset host is one entry with an empty
 * name. */
bool rcpt_hosts_parse(const char *names, const char *addresses, const char *ports,
                      struct rcpt_hosts *hosts, struct rcpt_error *error) RCPT_MUST_CHECK;
void rcpt_hosts_fini(struct rcpt_hosts *hosts);

/* Resolves all hosts at once. A name with several addresses becomes several candidates. */
struct rcpt_resolver;

/* Starts the lookups; takes the hosts over. on_done is called from the loop when all have come
 * back, but not if there was nothing to look up (see is_done). */
struct rcpt_resolver *rcpt_resolver_start(uv_loop_t *loop, struct rcpt_hosts *hosts_take,
                                          void (*on_done)(void *context), void *context);
bool rcpt_resolver_is_done(const struct rcpt_resolver *resolver);

/* The addresses known so far, in the order of the dsn, beginning `rotation` places further on.
 * False: none at all. */
bool rcpt_resolver_candidates(const struct rcpt_resolver *resolver, size_t rotation,
                              struct rcpt_hosts *candidates,
                              struct rcpt_error *error) RCPT_MUST_CHECK;

/* Lookups that still run are abandoned: they free themselves when they end. */
void rcpt_resolver_free(struct rcpt_resolver *resolver);

#endif
