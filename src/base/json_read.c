/* Reads JSON with yajl and closes its holes: vertical tabs and form feeds between tokens, and a
 * string behind the value whose closing quote is missing. Called by document.c, and by the readers
 * of records in src/core.
 */
#include "json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <yajl/yajl_parse.h>
#include <yajl/yajl_version.h>

#include "error.h"

struct reading {
    struct rcpt_text input;
    yajl_handle yajl;
    rcpt_json_callback on_token;
    void *context;
    size_t value_end; /* of the outermost value; SIZE_MAX until it has ended */
    unsigned depth;
    bool too_deep, completing;
};

/* A number at the very end is reported only when yajl completes, from a text of yajl's own: yajl's
 * count of bytes no longer means the input then. */
static size_t place(const struct reading *reading)
{
    size_t bytes =
        reading->completing ? reading->input.size : yajl_get_bytes_consumed(reading->yajl);
    return bytes < reading->input.size ? bytes : reading->input.size;
}

static int report(struct reading *reading, enum rcpt_json_kind kind, const void *bytes, size_t size)
{
    struct rcpt_json_token token = {.kind = kind,
                                    .text = {size > 0 ? bytes : "", size},
                                    .end = place(reading),
                                    .depth = reading->depth};
    bool is_value_end = kind < RCPT_JSON_ARRAY || kind == RCPT_JSON_END;
    if (reading->depth == 0 && is_value_end)
        reading->value_end = token.end;
    return reading->on_token(reading->context, &token);
}

static int on_null(void *context)
{
    return report(context, RCPT_JSON_NULL, NULL, 0);
}

static int on_boolean(void *context, int value)
{
    return report(context, RCPT_JSON_BOOLEAN, value ? "true" : "false", value ? 4 : 5);
}

static int on_number(void *context, const char *text, size_t size)
{
    return report(context, RCPT_JSON_NUMBER, text, size);
}

static int on_string(void *context, const unsigned char *text, size_t size)
{
    return report(context, RCPT_JSON_STRING, text, size);
}

static int on_key(void *context, const unsigned char *text, size_t size)
{
    return report(context, RCPT_JSON_KEY, text, size);
}

static int begin(struct reading *reading, enum rcpt_json_kind kind)
{
    reading->too_deep = reading->depth == RCPT_JSON_READ_MAX_DEPTH;
    if (reading->too_deep || !report(reading, kind, NULL, 0))
        return 0;
    reading->depth++;
    return 1;
}

static int on_begin_object(void *context)
{
    return begin(context, RCPT_JSON_OBJECT);
}

static int on_begin_array(void *context)
{
    return begin(context, RCPT_JSON_ARRAY);
}

static int on_end(void *context)
{
    struct reading *reading = context;
    reading->depth--;
    return report(reading, RCPT_JSON_END, NULL, 0);
}

static void *json_malloc(void *context, size_t size)
{
    (void)context;
    return rcpt_malloc(size);
}

static void *json_realloc(void *context, void *pointer, size_t size)
{
    (void)context;
    return rcpt_realloc(pointer, size);
}

static void json_free(void *context, void *pointer)
{
    (void)context;
    free(pointer);
}

static void blame(struct rcpt_json_fault *fault, size_t byte, const char *text)
{
    if (fault == NULL)
        return;
    fault->byte = byte;
    snprintf(fault->text, sizeof(fault->text), "%.*s", (int)strcspn(text, "\n"), text);
}

/* yajl takes both for blanks between tokens; inside of strings JSON forbids them as well. */
static bool has_false_blanks(struct rcpt_text input, struct rcpt_json_fault *fault)
{
    static const char *const names[] = {"\vvertical tab", "\fform feed"};
    for (size_t index = 0; index < sizeof(names) / sizeof(names[0]); index++) {
        const char *found = memchr(input.at, names[index][0], input.size);
        if (found == NULL)
            continue;
        blame(fault, (size_t)(found - input.at), names[index] + 1);
        return true;
    }
    return false;
}

/* yajl overlooks a string behind the value if its closing quote is missing. */
static bool has_trailing_bytes(const struct reading *reading, struct rcpt_json_fault *fault)
{
    if (reading->value_end > reading->input.size)
        return false;
    struct rcpt_text rest = rcpt_text_part(reading->input, reading->value_end, SIZE_MAX);
    struct rcpt_text trailing = rcpt_text_trim(rest);
    if (trailing.size == 0)
        return false;
    blame(fault, (size_t)(trailing.at - reading->input.at), "trailing bytes");
    return true;
}

static enum rcpt_json_result judge(struct reading *reading, yajl_status status,
                                   struct rcpt_json_fault *fault)
{
    if (status == yajl_status_ok)
        return RCPT_JSON_OK;
    if (reading->too_deep) {
        blame(fault, place(reading), "nested too deep");
        return RCPT_JSON_TOO_DEEP;
    }
    unsigned char *reason = yajl_get_error(reading->yajl, 0, NULL, 0);
    blame(fault, place(reading), (const char *)reason);
    yajl_free_error(reading->yajl, reason);
    return status == yajl_status_client_canceled ? RCPT_JSON_STOPPED : RCPT_JSON_INVALID;
}

static enum rcpt_json_result run(struct reading *reading, struct rcpt_json_fault *fault)
{
    const unsigned char *bytes = (const unsigned char *)reading->input.at;
    yajl_status status = yajl_parse(reading->yajl, bytes, reading->input.size);
    if (status == yajl_status_ok && has_trailing_bytes(reading, fault))
        return RCPT_JSON_INVALID;
    if (status == yajl_status_ok) {
        reading->completing = true;
        status = yajl_complete_parse(reading->yajl);
    }
    return judge(reading, status, fault);
}

enum rcpt_json_result rcpt_json_read(struct rcpt_text input, rcpt_json_callback on_token,
                                     void *context, struct rcpt_json_fault *fault)
{
    static const yajl_callbacks callbacks = {
        .yajl_null = on_null,
        .yajl_boolean = on_boolean,
        .yajl_number = on_number,
        .yajl_string = on_string,
        .yajl_start_map = on_begin_object,
        .yajl_map_key = on_key,
        .yajl_end_map = on_end,
        .yajl_start_array = on_begin_array,
        .yajl_end_array = on_end,
    };
    struct reading reading = {
        .input = input, .on_token = on_token, .context = context, .value_end = SIZE_MAX};
    if (input.size == 0) {
        blame(fault, 0, "no text");
        return RCPT_JSON_INVALID;
    }
    if (has_false_blanks(input, fault))
        return RCPT_JSON_INVALID;
    yajl_alloc_funcs memory = {json_malloc, json_realloc, json_free, NULL};
    reading.yajl = yajl_alloc(&callbacks, &memory, &reading);
    RCPT_ASSERT(reading.yajl != NULL);
    /* yajl's own check of UTF-8 is weaker than utf8.c. */
    yajl_config(reading.yajl, yajl_dont_validate_strings, 1);
    enum rcpt_json_result result = run(&reading, fault);
    yajl_free(reading.yajl);
    return result;
}

struct rcpt_text rcpt_json_keep(struct rcpt_text input, struct rcpt_text text,
                                struct rcpt_arena *arena)
{
    if (text.size == 0)
        return RCPT_TEXT("");
    return (uintptr_t)text.at - (uintptr_t)input.at < input.size ? text
                                                                 : rcpt_text_copy(arena, text);
}

const char *rcpt_json_library(char version[16])
{
    int number = yajl_version();
    snprintf(version, 16, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
    return version;
}
