/* Writes JSON to a stdio stream: commas and nesting, escapes, valid UTF-8 from any bytes. A
 * misuse (a value without a key in an object, a bracket that does not match) is a bug and aborts.
 * Called by the log, by pages and commands, and for spans.
 */
#include "receiptd/base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/base/utf8.h"

void rcpt_json_init(struct rcpt_json *json, FILE *out)
{
    memset(json, 0, sizeof(*json));
    json->out = out;
}

/* Writes the comma before a member and checks that a member may stand here. */
static void begin_value(struct rcpt_json *json)
{
    if (json->depth > 0) {
        unsigned level = json->depth - 1;
        RCPT_ASSERT(json->in_object[level] == json->after_key);
        if (!json->after_key && json->has_member[level])
            fputc(',', json->out);
        json->has_member[level] = true;
    }
    json->after_key = false;
}

/* in_object and has_member have one place for each open container: they replace a stack of
 * states. */
static void begin_nested(struct rcpt_json *json, bool is_object)
{
    begin_value(json);
    RCPT_ASSERT(json->depth < RCPT_JSON_MAX_DEPTH);
    json->in_object[json->depth] = is_object;
    json->has_member[json->depth] = false;
    json->depth++;
    fputc(is_object ? '{' : '[', json->out);
}

static void end_nested(struct rcpt_json *json, bool is_object)
{
    RCPT_ASSERT(json->depth > 0 && !json->after_key);
    json->depth--;
    RCPT_ASSERT(json->in_object[json->depth] == is_object);
    fputc(is_object ? '}' : ']', json->out);
}

void rcpt_json_begin_object(struct rcpt_json *json)
{
    begin_nested(json, true);
}

void rcpt_json_end_object(struct rcpt_json *json)
{
    end_nested(json, true);
}

void rcpt_json_begin_array(struct rcpt_json *json)
{
    begin_nested(json, false);
}

void rcpt_json_end_array(struct rcpt_json *json)
{
    end_nested(json, false);
}

/* Pairs of a byte and the letter of its escape; other control characters as \u00XX. */
static void write_ascii(FILE *out, unsigned char byte)
{
    static const char escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (size_t index = 0; index + 1 < sizeof(escapes); index += 2) {
        if (byte == (unsigned char)escapes[index]) {
            fputc('\\', out);
            fputc(escapes[index + 1], out);
            return;
        }
    }
    /* DEL is legal in JSON but not on a terminal. */
    if (byte < 0x20 || byte == 0x7f)
        fprintf(out, "\\u%04x", byte);
    else
        fputc(byte, out);
}

/* Each byte that is not UTF-8 becomes U+FFFD: a log line or page must stay readable for every
 * parser. */
static void write_string(FILE *out, const char *bytes, size_t size)
{
    fputc('"', out);
    while (size > 0) {
        size_t length = rcpt_utf8_sequence(bytes, size);
        if (length == 1)
            write_ascii(out, (unsigned char)*bytes);
        else if (length > 1)
            fwrite(bytes, 1, length, out);
        else
            fputs("\xef\xbf\xbd", out);
        length = length > 0 ? length : 1;
        bytes += length;
        size -= length;
    }
    fputc('"', out);
}

/* The comma stands before the key: begin_value() writes none for the value behind it. */
void rcpt_json_key(struct rcpt_json *json, const char *name)
{
    RCPT_ASSERT(json->depth > 0 && json->in_object[json->depth - 1] && !json->after_key);
    if (json->has_member[json->depth - 1])
        fputc(',', json->out);
    write_string(json->out, name, strlen(name));
    fputc(':', json->out);
    json->after_key = true;
}

void rcpt_json_bytes(struct rcpt_json *json, const void *bytes, size_t size)
{
    begin_value(json);
    write_string(json->out, bytes, size);
}

void rcpt_json_text(struct rcpt_json *json, const char *text)
{
    if (text == NULL)
        rcpt_json_null(json);
    else
        rcpt_json_bytes(json, text, strlen(text));
}

void rcpt_json_int(struct rcpt_json *json, int64_t value)
{
    begin_value(json);
    fprintf(json->out, "%" PRId64, value);
}

/* The shortest text that reads back as the same value. JSON has no infinity and no NaN: both become
 * null. */
void rcpt_json_double(struct rcpt_json *json, double value)
{
    if (!isfinite(value)) {
        rcpt_json_null(json);
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (!(back < value) && !(back > value))
            break;
    }
    begin_value(json);
    fputs(text, json->out);
}

void rcpt_json_bool(struct rcpt_json *json, bool value)
{
    begin_value(json);
    fputs(value ? "true" : "false", json->out);
}

void rcpt_json_raw(struct rcpt_json *json, const char *text)
{
    begin_value(json);
    for (const char *at = text; *at != '\0'; at++)
        fputc(*at == '\n' ? ' ' : *at, json->out);
}

void rcpt_json_null(struct rcpt_json *json)
{
    begin_value(json);
    fputs("null", json->out);
}

void rcpt_json_put_text(struct rcpt_json *json, const char *name, const char *text)
{
    rcpt_json_key(json, name);
    rcpt_json_text(json, text);
}

void rcpt_json_put_int(struct rcpt_json *json, const char *name, int64_t value)
{
    rcpt_json_key(json, name);
    rcpt_json_int(json, value);
}

void rcpt_json_put_bool(struct rcpt_json *json, const char *name, bool value)
{
    rcpt_json_key(json, name);
    rcpt_json_bool(json, value);
}

void rcpt_json_put_known(struct rcpt_json *json, const char *name, int64_t value)
{
    rcpt_json_key(json, name);
    if (value >= 0)
        rcpt_json_int(json, value);
    else
        rcpt_json_null(json);
}
