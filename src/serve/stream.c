/* Server-sent events with the changes since the last poll. One question a second serves all
 * viewers. A second question gets the funnels of the campaigns that they look at.
 *
 * Viewers with the same organisation and campaign are one audience. Each tick makes one text for an
 * audience, which its viewers share: nothing is made or copied for a single one. A viewer that has
 * not taken all of the last text gets nothing until it has. Then, as after an outage of the
 * database, it gets the event to fetch everything again (a `campaign` event without an id). One
 * that takes nothing for the server's write_timeout_ms is cut off. Each stream ends after some
 * minutes: the client opens it again, and its token is checked again. */
#include <stdio.h>
#include <stdlib.h>

#include "receiptd/base/json.h"
#include "stream.h"

#define POLL_MS       1000
#define POLL_SHARE    20 /* a poll that takes long takes at most one of so many parts of the time */
#define HEARTBEAT_MS  15000
#define MOST_CHANGED  1000u /* as in sql/serve/changes.sql */
#define ASKS_A_SECOND 2u    /* for the other parts of a page, by all viewers together */

static int64_t now_of(const struct serve_stream *stream)
{
    return (int64_t)uv_now(stream->serve->settings.loop);
}

/* ---- writing ---- */

/* Writes to the viewers that are ready. */
static void write_to(const struct audience *audience, const char *text, size_t size)
{
    struct rcpt_http_piece *piece = rcpt_http_piece_new(text, size);
    for (struct viewer *viewer = audience->viewers; viewer != NULL; viewer = viewer->next) {
        if (viewer->gone)
            continue;
        if (viewer->missed || rcpt_http_answer_queued(viewer->http) > 0) {
            viewer->missed = true;
            continue;
        }
        rcpt_http_answer_share(viewer->http, piece);
    }
    rcpt_http_piece_release(piece);
}

/* ---- telling ---- */

static void put_health(const struct serve_stream *stream, char text[160])
{
    serve_put_health(text, serve_pool_is_up(stream->serve->pool), stream->behind_s);
}

/* Names that are too long to be told are fetched instead. */
static void tell(const struct audience *audience, const struct serve_changes *changes)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    serve_put_changes(out, &audience->sight, changes);
    RCPT_ASSERT(fclose(out) == 0);
    if (size > STREAM_MOST_TEXT) {
        struct serve_changes all = *changes;
        all.is_all = true;
        tell(audience, &all);
    } else if (size > 0) {
        write_to(audience, text, size);
    }
    free(text);
}

/* Viewers of one campaign get its funnel with the news, a moment later. */
static void note(struct audience *audience, const struct serve_changes *changes)
{
    audience->changed |= serve_has_changed(&audience->sight, changes);
    if (changes->health[0] != '\0')
        write_to(audience, changes->health, strlen(changes->health));
}

static void tell_all(struct serve_stream *stream, const struct serve_changes *changes)
{
    for (struct audience *audience = stream->audiences; audience != NULL; audience = audience->next)
        if (audience->sight.campaign != NULL)
            note(audience, changes);
        else
            tell(audience, changes);
}

/* Viewers are also behind after an outage between two polls, because the old snapshot may be of
 * another server. */
void serve_stream_health(struct serve_stream *stream)
{
    struct serve_changes changes = {.rows = NULL};
    stream->behind |= !serve_pool_is_up(stream->serve->pool);
    put_health(stream, changes.health);
    tell_all(stream, &changes);
}

/* Sent only when the number of seconds has changed. */
static void note_behind(struct serve_stream *stream, const char *behind_s,
                        struct serve_changes *changes)
{
    const char *now = behind_s != NULL ? behind_s : "";
    if (strcmp(now, stream->behind_s) == 0)
        return;
    snprintf(stream->behind_s, sizeof(stream->behind_s), "%s", now);
    put_health(stream, changes->health);
}

/* One text for all viewers of the audience, as in tell(): it is from a moment after the poll, so
 * later changes are in the next one. */
static void tell_funnel(struct serve_stream *stream, const struct audience *audience,
                        const char *funnel)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    serve_put_funnel(out, audience->sight.campaign, stream->changed_at,
                     stream->count / ASKS_A_SECOND, funnel);
    RCPT_ASSERT(fclose(out) == 0);
    write_to(audience, text, size);
    free(text);
}

static void tell_rows(struct serve_stream *stream, const struct rcpt_pg_rows *rows)
{
    size_t count = rcpt_pg_rows_count(rows);
    snprintf(stream->changed_at, sizeof(stream->changed_at), "%s",
             rcpt_pg_rows_text(rows, 0, CHANGES_CHANGED_AT));
    struct serve_changes changes = {.changed_at = stream->changed_at,
                                    .is_all = stream->behind || count > MOST_CHANGED,
                                    .rows = rows,
                                    .hashes = rcpt_calloc(count, sizeof(*changes.hashes))};
    for (size_t row = 1; row < count; row++)
        changes.hashes[row] =
            rcpt_text_hash(rcpt_text_of(rcpt_pg_rows_text(rows, row, CHANGES_CAMPAIGN_ID)));
    note_behind(stream, rcpt_pg_rows_text(rows, 0, CHANGES_BEHIND_S), &changes);
    tell_all(stream, &changes);
    free(changes.hashes);
}

/* With both questions the poll has its share of the time. */
static void end_poll(struct serve_stream *stream)
{
    int64_t took_ms = now_of(stream) - stream->asked_ms;
    int64_t wait_ms = rcpt_pace_wait_ms(&stream->pace, took_ms, POLL_SHARE);
    stream->asked = false;
    stream->poll_ms = stream->asked_ms + (wait_ms > POLL_MS ? wait_ms : POLL_MS);
}

/* ---- funnels ---- */

/* Columns of sql/serve/funnel. */
enum { FUNNELS_BODY, FUNNELS_N };

/* A campaign without a row has no receipt yet, or is another organisation's: its viewers get the
 * event to fetch it, as after a failure (`rows` NULL). */
static void on_funnels(void *context, const struct rcpt_pg_rows *rows,
                       const struct rcpt_error *error)
{
    struct serve_stream *stream = context;
    size_t count = rows != NULL ? rcpt_pg_rows_count(rows) : 0;
    const char **funnels = rcpt_calloc(stream->asked_count + 1, sizeof(*funnels));
    (void)error;
    for (size_t row = 0; row < count; row++)
        funnels[rcpt_pg_rows_int(rows, row, FUNNELS_N)] =
            rcpt_pg_rows_text(rows, row, FUNNELS_BODY);
    for (struct audience *each = stream->audiences; each != NULL; each = each->next) {
        const char *funnel = each->asked_as > 0 ? funnels[each->asked_as] : NULL;
        const struct serve_changes all = {.changed_at = stream->changed_at, .is_all = true};
        if (funnel != NULL)
            tell_funnel(stream, each, funnel);
        else if (each->asked_as > 0)
            tell(each, &all);
        each->asked_as = 0;
    }
    free(funnels);
    end_poll(stream);
}

/* The changed campaigns with viewers, as JSON in the form that sql/serve/funnel.sql explains. NULL:
 * there is none. */
static char *list_changed(struct serve_stream *stream)
{
    char *text = NULL;
    size_t size = 0, count = 0;
    struct rcpt_json json;
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    rcpt_json_begin_array(&json);
    for (struct audience *each = stream->audiences; each != NULL; each = each->next) {
        each->asked_as = each->changed ? ++count : 0;
        if (!each->changed)
            continue;
        rcpt_json_begin_object(&json);
        rcpt_json_put_int(&json, "n", (int64_t)each->asked_as);
        rcpt_json_put_text(&json, "campaign_id", each->sight.campaign);
        rcpt_json_put_text(&json, "organisation", each->sight.organisation);
        const struct serve_name *name =
            serve_names_find(stream->serve->names, each->sight.campaign, each->sight.organisation);
        rcpt_json_put_text(&json, "name", name->name);
        rcpt_json_put_text(&json, "day", name->day);
        rcpt_json_end_object(&json);
        each->changed = false;
    }
    rcpt_json_end_array(&json);
    RCPT_ASSERT(fclose(out) == 0);
    stream->asked_count = count;
    if (count > 0)
        return text;
    free(text);
    return NULL;
}

/* Without an answer the viewers get events without funnels. */
static void ask_funnels(struct serve_stream *stream)
{
    char *list = list_changed(stream);
    const char *const values[] = {NULL, list, NULL, NULL, NULL, NULL};
    const struct serve_question question = {
        .statement = "funnels", .values = values, .count = 6, .caller = SERVE_CALLER_STREAM};
    if (list == NULL)
        end_poll(stream);
    else if (!serve_ask(stream->serve, &question, on_funnels, stream))
        on_funnels(stream, NULL, NULL);
    free(list);
}

static void on_changes(void *context, const struct rcpt_pg_rows *rows,
                       const struct rcpt_error *error)
{
    struct serve_stream *stream = context;
    (void)error;
    stream->behind |= rows == NULL;
    if (rows == NULL) {
        end_poll(stream);
        return;
    }
    tell_rows(stream, rows);
    stream->behind = false;
    free(stream->snapshot);
    stream->snapshot = rcpt_strdup(rcpt_pg_rows_text(rows, 0, CHANGES_SNAPSHOT));
    ask_funnels(stream);
}

/* After an outage the snapshot may be of another server's history, so a new one is taken. */
static void poll(struct serve_stream *stream)
{
    const char *const values[] = {stream->behind ? NULL : stream->snapshot};
    stream->asked_ms = now_of(stream);
    stream->poll_ms = stream->asked_ms + POLL_MS;
    const struct serve_question question = {
        .statement = "changes", .values = values, .count = 1, .caller = SERVE_CALLER_STREAM};
    stream->asked = serve_ask(stream->serve, &question, on_changes, stream);
    if (!stream->asked)
        stream->behind = true;
}

/* ---- time ---- */

/* The viewer has taken the text that it was behind with. It missed others, so it gets the event to
 * fetch everything again. */
static void catch_up(struct serve_stream *stream, const struct audience *audience,
                     struct viewer *viewer)
{
    struct viewer alone = {.http = viewer->http};
    struct audience one = {.sight = audience->sight, .viewers = &alone};
    struct serve_changes changes = {.changed_at = stream->changed_at, .is_all = true};
    put_health(stream, changes.health);
    tell(&one, &changes);
    viewer->missed = false;
}

/* Ends those that are gone or whose time is over. True: none is left. */
static bool tick_audience(struct serve_stream *stream, struct audience *audience, int64_t now)
{
    struct viewer **link = &audience->viewers;
    while (*link != NULL) {
        struct viewer *viewer = *link;
        if (viewer->gone || viewer->ends_ms <= now) {
            *link = viewer->next;
            viewer_end(stream, viewer);
            continue;
        }
        if (viewer->missed && rcpt_http_answer_queued(viewer->http) == 0)
            catch_up(stream, audience, viewer);
        link = &viewer->next;
    }
    return audience->viewers == NULL;
}

static void tick_viewers(struct serve_stream *stream)
{
    struct audience **link = &stream->audiences;
    while (*link != NULL) {
        struct audience *audience = *link;
        if (tick_audience(stream, audience, now_of(stream))) {
            *link = audience->next;
            audience_free(audience);
        } else {
            link = &audience->next;
        }
    }
}

static void beat(struct serve_stream *stream)
{
    static const char text[] = ": still here\n\n";
    stream->beat_ms = now_of(stream) + HEARTBEAT_MS;
    for (struct audience *each = stream->audiences; each != NULL; each = each->next)
        write_to(each, text, sizeof(text) - 1);
}

void serve_stream_tick(struct serve_stream *stream)
{
    tick_viewers(stream);
    if (stream->audiences == NULL) {
        free(stream->snapshot); /* without viewers the polls stop */
        stream->snapshot = NULL;
        return;
    }
    if (now_of(stream) >= stream->beat_ms)
        beat(stream);
    if (!stream->asked && now_of(stream) >= stream->poll_ms)
        poll(stream);
}
