/* Writes JSON (RFC 8259), compact, to a stream.
 *
 * Keeps commas and nesting right, escapes strings, never writes invalid UTF-8. Does not parse. For
 * text in memory give it a stream of rcpt_open_memory(). Misuse (a value where a key must be, an
 * end without begin) is a bug and asserts.
 */
#ifndef RECEIPTD_BASE_JSON_H
#define RECEIPTD_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define RCPT_JSON_MAX_DEPTH 32u

struct rcpt_json { /* embedded; private */
    FILE *out;
    unsigned depth;
    bool in_object[RCPT_JSON_MAX_DEPTH];
    bool has_member[RCPT_JSON_MAX_DEPTH];
    bool after_key;
};

/* The stream is borrowed; its errors are the caller's to check (ferror). */
void rcpt_json_init(struct rcpt_json *json, FILE *out);

void rcpt_json_begin_object(struct rcpt_json *json);
void rcpt_json_end_object(struct rcpt_json *json);
void rcpt_json_begin_array(struct rcpt_json *json);
void rcpt_json_end_array(struct rcpt_json *json);
void rcpt_json_key(struct rcpt_json *json, const char *name);

void rcpt_json_text(struct rcpt_json *json, const char *text); /* NULL: null */
/* Bytes that are not UTF-8 become U+FFFD, one for each. */
void rcpt_json_bytes(struct rcpt_json *json, const void *bytes, size_t size);
void rcpt_json_int(struct rcpt_json *json, int64_t value);
void rcpt_json_double(struct rcpt_json *json,
                      double value); /* shortest text that reads back the same; not finite: null */
void rcpt_json_bool(struct rcpt_json *json, bool value);
void rcpt_json_null(struct rcpt_json *json);
/* A value that is JSON already, on one line: a line feed becomes a blank. */
void rcpt_json_raw(struct rcpt_json *json, const char *text);

/* A key and its value. */
void rcpt_json_put_text(struct rcpt_json *json, const char *name, const char *text);
void rcpt_json_put_int(struct rcpt_json *json, const char *name, int64_t value);
void rcpt_json_put_bool(struct rcpt_json *json, const char *name, bool value);
/* Below 0: not known, null. */
void rcpt_json_put_known(struct rcpt_json *json, const char *name, int64_t value);

#endif
