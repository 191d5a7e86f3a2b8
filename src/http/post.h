/* One POST, in a thread of libuv's pool; the body is made there as well.
 *
 * No redirect is followed, and of the answer only the status is looked at. Call from the loop's
 * thread only.
 */
#ifndef RECEIPTD_HTTP_POST_H
#define RECEIPTD_HTTP_POST_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct rcpt_http_post;

struct rcpt_http_posted {
    int status;        /* 0: nobody answered, see error */
    const char *error; /* "" if there was an answer */
};

struct rcpt_http_post_settings { /* texts and context are borrowed until on_posted */
    uv_loop_t *loop;
    const char *url; /* http or https; a server's certificate must be valid for its name */
    const char *content_type;
    const char *token; /* bearer token; NULL: none */
    int64_t timeout_ms;
    void *context;
    /* In the thread: the body, from malloc. */
    char *(*make_body)(void *context, size_t *size);
    /* Once, on the loop; the post is freed afterwards. */
    void (*on_posted)(void *context, const struct rcpt_http_posted *posted);
};

struct rcpt_http_post *rcpt_http_post(const struct rcpt_http_post_settings *settings);
/* It ends within about this time, answered or not. */
void rcpt_http_post_hurry(struct rcpt_http_post *post, int64_t within_ms);

#endif
