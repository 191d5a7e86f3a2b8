/* Reads organisation and campaign from an event's JSON with yajl, and nothing else of it. Called by
 * src/postgres/encode_batch.c, for batches that may create rows (`unknown: insert`).
 */
#include "origin.h"

#include <string.h>
#include <yajl/yajl_parse.h>

#include "base/error.h"

struct reading {
    struct rcpt_origin origin;
    struct rcpt_arena *arena;
    const char **text; /* of the field that the next value belongs to; NULL: of no interest */
    size_t *size;
    unsigned depth;
};

static int set_value(struct reading *reading, const char *text, size_t size)
{
    if (reading->depth != 1 || reading->text == NULL)
        return 1;
    bool usable = text != NULL && memchr(text, '\0', size) == NULL;
    char *copy = NULL;
    if (usable) {
        copy = rcpt_arena_alloc(reading->arena, size);
        memcpy(copy, text, size);
    }
    *reading->text = copy;
    *reading->size = usable ? size : 0;
    return 1;
}

static int on_null(void *context)
{
    return set_value(context, NULL, 0);
}

static int on_boolean(void *context, int value)
{
    (void)value;
    return set_value(context, NULL, 0);
}

static int on_number(void *context, const char *text, size_t size)
{
    return set_value(context, text, size);
}

static int on_string(void *context, const unsigned char *text, size_t size)
{
    return set_value(context, (const char *)text, size);
}

static int on_open(void *context)
{
    struct reading *reading = context;
    reading->depth++;
    return 1;
}

static int on_close(void *context)
{
    struct reading *reading = context;
    reading->depth--;
    return set_value(reading, NULL, 0);
}

static int on_key(void *context, const unsigned char *key, size_t size)
{
    struct reading *reading = context;
    if (reading->depth != 1)
        return 1;
    reading->text = NULL;
    if (size == strlen("org_id") && memcmp(key, "org_id", size) == 0) {
        reading->text = &reading->origin.org_id;
        reading->size = &reading->origin.org_id_size;
    } else if (size == strlen("campaign_id") && memcmp(key, "campaign_id", size) == 0) {
        reading->text = &reading->origin.campaign_id;
        reading->size = &reading->origin.campaign_id_size;
    }
    return 1;
}

struct rcpt_origin rcpt_origin_read(const char *json, size_t size, struct rcpt_arena *arena)
{
    static const yajl_callbacks callbacks = {
        .yajl_null = on_null,
        .yajl_boolean = on_boolean,
        .yajl_number = on_number,
        .yajl_string = on_string,
        .yajl_start_map = on_open,
        .yajl_map_key = on_key,
        .yajl_end_map = on_close,
        .yajl_start_array = on_open,
        .yajl_end_array = on_close,
    };
    struct reading reading = {.arena = arena};
    yajl_handle handle = yajl_alloc(&callbacks, NULL, &reading);
    RCPT_ASSERT(handle != NULL);
    yajl_config(handle, yajl_dont_validate_strings, 1);
    yajl_parse(handle, (const unsigned char *)json, size);
    yajl_free(handle);
    return reading.origin;
}
