/* The interface for readers: funnels and messages as JSON over HTTP, and a page that shows them.
 *
 * Its sessions refuse to write, but for those of serve.operate_dsn, which move dead letters. A
 * module on its caller's loop: `receiptd serve` gives it one of its own, `receiptd run` shares its.
 * Call from the loop's thread only.
 */
#ifndef RECEIPTD_SERVE_SERVE_H
#define RECEIPTD_SERVE_SERVE_H

#include <uv.h>

#include "receiptd/config/config.h"
#include "receiptd/http/http.h"
#include "receiptd/postgres/statements.h"

struct rcpt_serve;

struct rcpt_serve_settings {
    uv_loop_t *loop;
    const struct rcpt_config *config; /* borrowed for life */
    const char *instance;             /* for application_name; borrowed for life */
    void *context;
    /* Called when the database begins or ceases to answer; NULL: no callback. */
    void (*on_ready)(void *context, bool ready);
    void (*on_closed)(void *context); /* after a drain; the memory is freed */
};

/* Starts listening. NULL: the address or a key is unusable (FATAL); nothing is left on the loop
 * once it has run. */
RCPT_MUST_CHECK struct rcpt_serve *rcpt_serve_start(const struct rcpt_serve_settings *settings,
                                                    struct rcpt_error *error);
/* Ends streams, answers open requests, then closes everything: on_closed. */
void rcpt_serve_drain(struct rcpt_serve *serve);
/* After a reload has changed the configuration. */
void rcpt_serve_apply_config(struct rcpt_serve *serve);
/* Reads the certificate again; one with a fault changes nothing. */
void rcpt_serve_reload_tls(struct rcpt_serve *serve);
int rcpt_serve_port(const struct rcpt_serve *serve);

/* Columns of the inbox that answers show or search by, beside those that each inbox has. Names are
 * borrowed from the configuration, or static. */
struct rcpt_serve_columns rcpt_serve_columns_of(const struct rcpt_config *config);

/* ---- figures, since the start ---- */

#define RCPT_SERVE_BUCKETS 14u
extern const double rcpt_serve_second_bounds[RCPT_SERVE_BUCKETS];
struct rcpt_serve_histogram {
    uint64_t buckets[RCPT_SERVE_BUCKETS + 1];
    double sum;
};

#define RCPT_SERVE_CODES 16u
struct rcpt_serve_requests { /* of one route */
    const char *route;       /* as its row has it, "page", or "none" */
    struct {
        int status; /* 0: no more */
        uint64_t count;
    } codes[RCPT_SERVE_CODES];
    /* Seconds to the answer; of a stream to its beginning, of a list to its end. */
    struct rcpt_serve_histogram seconds;
};

struct rcpt_serve_stats {
    uint64_t viewers_cut;                                       /* did not read */
    struct rcpt_serve_histogram wait_seconds, question_seconds; /* for a connection; of an answer */
    size_t viewers, redrives, questions_waiting, lines, lines_up, lines_busy; /* now */
};

struct rcpt_serve_stats rcpt_serve_stats(const struct rcpt_serve *serve);
/* NULL: `index` is behind the last. A route without requests has no codes. */
const struct rcpt_serve_requests *rcpt_serve_requests(const struct rcpt_serve *serve, size_t index);

/* ---- links and tokens ---- */

/* The value of ?link= for one campaign until a time (seconds since 1970); the caller frees it. */
char *rcpt_serve_link(const char *secret, const char *campaign, int64_t expires_s);
/* The campaign, which the caller frees; NULL: not signed by this secret, or over. */
char *rcpt_serve_link_campaign(const char *secret, const char *link, int64_t now_s,
                               int64_t *expires_s);
#define RCPT_SERVE_HASH_TEXT 65
/* SHA-256 in hexadecimal digits: the form in which a token is stored. */
void rcpt_serve_hash(const char *bytes, size_t size, char text[RCPT_SERVE_HASH_TEXT]);

#endif
