/* JSON as a stream of tokens, without a tree.
 *
 * Accepts JSON (RFC 8259) and nothing else, but does not check the encoding of strings: bytes that
 * are not UTF-8 pass (utf8.h), halves of surrogate pairs become '?' and are marked. Memory: the
 * longest string with escapes, however many values there are. Thread-safe.
 */
#ifndef RECEIPTD_BASE_JSON_READ_H
#define RECEIPTD_BASE_JSON_READ_H

#include "receiptd/base/text.h"

#define RCPT_JSON_READ_MAX_DEPTH 32

enum rcpt_json_kind {
    RCPT_JSON_NULL,
    RCPT_JSON_BOOLEAN,
    RCPT_JSON_NUMBER,
    RCPT_JSON_STRING,
    RCPT_JSON_ARRAY,  /* its opening bracket */
    RCPT_JSON_OBJECT, /* its opening brace */
    RCPT_JSON_KEY,
    RCPT_JSON_END, /* of the array or object that was opened last */
};

struct rcpt_json_token {
    enum rcpt_json_kind kind;
    /* The text of a key or string is unescaped and has no quotes. A number's text is as written, so
     * that large ones stay exact. A boolean's is "true" or "false", static. The text points into
     * the input, or lives until the callback returns (rcpt_json_keep). */
    struct rcpt_text text;
    size_t end;              /* offset in the input behind the token */
    unsigned depth;          /* containers around it; a container's own tokens do not count it */
    bool has_half_surrogate; /* a string: an escaped surrogate lacks its other half: read as '?' */
};

/* False: stop. */
typedef bool (*rcpt_json_callback)(void *context, const struct rcpt_json_token *token);

enum rcpt_json_result {
    RCPT_JSON_OK,
    RCPT_JSON_INVALID,
    RCPT_JSON_TOO_DEEP, /* more than RCPT_JSON_READ_MAX_DEPTH containers inside each other */
    RCPT_JSON_STOPPED,  /* by the callback */
};

/* Where and why the reading ended; the text contains no part of the input. */
struct rcpt_json_fault {
    size_t byte;
    const char *text; /* static */
};

/* `fault` may be NULL; it is set unless the result is OK. */
enum rcpt_json_result rcpt_json_read(struct rcpt_text input, rcpt_json_callback on_token,
                                     void *context, struct rcpt_json_fault *fault);

/* The token's text for as long as the input and the arena live. */
struct rcpt_text rcpt_json_keep(struct rcpt_text input, struct rcpt_text text,
                                struct rcpt_arena *arena);

#endif
