/* The events of the stream as text: health, campaigns that changed, a campaign with its funnel.
 * Called by stream.c. */
#include <stdio.h>
#include <string.h>

#include "receiptd/base/json.h"
#include "stream.h"

void serve_put_health(char text[160], bool up, const char *behind_s)
{
    snprintf(text, 160, "event: health\ndata: {\"ok\":%s,\"behind_s\":%s,\"database\":\"%s\"}\n\n",
             up ? "true" : "false", up && behind_s[0] != '\0' ? behind_s : "null",
             up ? "up" : "down");
}

/* A client reads the fields by their names: others may follow. The caller ends the object. */
static void begin_campaign(FILE *out, struct rcpt_json *json, const char *campaign,
                           const char *changed_at)
{
    fputs("event: campaign\ndata: ", out);
    rcpt_json_init(json, out);
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "campaign_id", campaign);
    rcpt_json_put_text(json, "changed_at", changed_at);
}

static void end_campaign(FILE *out, struct rcpt_json *json)
{
    rcpt_json_end_object(json);
    fputs("\n\n", out);
}

/* campaign NULL: any may have changed. */
static void put_campaign(FILE *out, const char *campaign, const char *changed_at)
{
    struct rcpt_json json;
    begin_campaign(out, &json, campaign, changed_at);
    end_campaign(out, &json);
}

void serve_put_funnel(FILE *out, const char *campaign, const char *changed_at, unsigned pause_s,
                      const char *funnel)
{
    struct rcpt_json json;
    begin_campaign(out, &json, campaign, changed_at);
    rcpt_json_put_int(&json, "pause_s", pause_s);
    rcpt_json_key(&json, "funnel");
    rcpt_json_raw(&json, funnel);
    end_campaign(out, &json);
}

/* Called for each campaign and audience: the hash spares comparing most names. */
static bool concerns(const struct serve_sight *sight, const struct serve_changes *changes,
                     size_t row)
{
    const char *organisation = rcpt_pg_rows_text(changes->rows, row, CHANGES_ORG_ID);
    if (sight->campaign != NULL &&
        (sight->campaign_hash != changes->hashes[row] ||
         strcmp(sight->campaign, rcpt_pg_rows_text(changes->rows, row, CHANGES_CAMPAIGN_ID)) != 0))
        return false;
    return sight->organisation == NULL ||
           (organisation != NULL && strcmp(sight->organisation, organisation) == 0);
}

/* A database that was away may have changed anything (is_all). */
bool serve_has_changed(const struct serve_sight *sight, const struct serve_changes *changes)
{
    size_t count = changes->rows != NULL ? rcpt_pg_rows_count(changes->rows) : 0;
    bool changed = changes->is_all;
    for (size_t row = 1; row < count && !changed; row++)
        changed = concerns(sight, changes, row);
    return changed;
}

void serve_put_changes(FILE *out, const struct serve_sight *sight,
                       const struct serve_changes *changes)
{
    fputs(changes->health, out);
    if (changes->is_all) {
        put_campaign(out, sight->campaign, changes->changed_at);
        return;
    }
    size_t count = changes->rows != NULL ? rcpt_pg_rows_count(changes->rows) : 0;
    for (size_t row = 1; row < count; row++)
        if (concerns(sight, changes, row))
            put_campaign(out, rcpt_pg_rows_text(changes->rows, row, CHANGES_CAMPAIGN_ID),
                         changes->changed_at);
}
