/* Reads organisation and campaign from an event's JSON, and nothing else of it. Called by
 * src/postgres/encode_batch.c, for batches that may create rows (`unknown: insert`).
 */
#include "origin.h"

#include <string.h>

#include "base/json_read.h"

struct reading {
    struct rcpt_origin origin;
    struct rcpt_arena *arena;
    const char **text; /* of the field that the next value belongs to; NULL: of no interest */
    size_t *size;
};

static void choose_field(struct reading *reading, struct rcpt_text key)
{
    reading->text = NULL;
    if (rcpt_text_is(key, "org_id")) {
        reading->text = &reading->origin.org_id;
        reading->size = &reading->origin.org_id_size;
    } else if (rcpt_text_is(key, "campaign_id")) {
        reading->text = &reading->origin.campaign_id;
        reading->size = &reading->origin.campaign_id_size;
    }
}

/* Of a key that occurs twice the last value counts, also where it is of no use. PostgreSQL's text
 * cannot hold a NUL. */
static void set_field(struct reading *reading, const struct rcpt_json_token *token)
{
    bool usable = (token->kind == RCPT_JSON_STRING || token->kind == RCPT_JSON_NUMBER) &&
                  memchr(token->text.at, '\0', token->text.size) == NULL;
    *reading->text = usable ? rcpt_text_copy(reading->arena, token->text).at : NULL;
    *reading->size = usable ? token->text.size : 0;
}

static bool on_token(void *context, const struct rcpt_json_token *token)
{
    struct reading *reading = context;
    if (token->depth != 1)
        return true;
    if (token->kind == RCPT_JSON_KEY)
        choose_field(reading, token->text);
    else if (reading->text != NULL)
        set_field(reading, token);
    return true;
}

struct rcpt_origin rcpt_origin_read(const char *json, size_t size, struct rcpt_arena *arena)
{
    struct reading reading = {.arena = arena};
    rcpt_json_read((struct rcpt_text){json, size}, on_token, &reading, NULL);
    return reading.origin;
}
