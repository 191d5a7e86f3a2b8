/* Server-sent events: what changed since the last poll, for all viewers by one question a second. A
 * viewer that does not read is cut off; one that came back, or whose database was away, has to
 * fetch everything again (a `campaign` event without an id). Each stream ends after some minutes:
 * the client opens it again, and its token is checked again. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json.h"
#include "internal.h"

#define POLL_MS      1000
#define POLL_SHARE   20 /* a poll that takes long takes at most one of so many parts of the time */
#define HEARTBEAT_MS 15000
#define LIFE_MS      300000
#define MOST_VIEWERS 1500u
#define MOST_QUEUED  (64u * 1024)
#define MOST_CHANGED 1000u /* as in sql/serve/changes.sql */

struct viewer {
    struct viewer *next;
    struct rcpt_http_request *http;
    bool gone;
    int64_t ends_ms;
    char *organisation, *campaign; /* NULL: all */
};

struct serve_stream {
    struct rcpt_serve *serve;
    struct viewer *viewers;
    unsigned count;
    char *snapshot; /* of the last poll; NULL: the next one is the first */
    bool asked, behind;
    char behind_s[24]; /* of the last poll, as JSON; "": not known */
    int64_t poll_ms, asked_ms, beat_ms;
};

static int64_t now_of(const struct serve_stream *stream)
{
    return (int64_t)uv_now(stream->serve->settings.loop);
}

/* ---- viewers ---- */

static void on_gone(void *context)
{
    struct viewer *viewer = context;
    viewer->gone = true; /* it may be writing: the tick frees */
}

/* The answer is ended, so the client knows that nothing follows, and opens the stream again. */
static void end_viewer(struct serve_stream *stream, struct viewer *viewer)
{
    rcpt_http_answer_end(viewer->http);
    stream->count--;
    free(viewer->organisation);
    free(viewer->campaign);
    free(viewer);
}

/* A viewer whose queue is full is cut off by the server, which calls on_gone() from inside. */
static void write_to(struct serve_stream *stream, struct viewer *viewer, const char *text,
                     size_t size)
{
    if (viewer->gone)
        return;
    rcpt_http_answer_write(viewer->http, text, size);
    stream->serve->stats.viewers_cut += viewer->gone;
}

/* One text for all viewers: it is made once, however many there are. */
static void write_to_all(struct serve_stream *stream, const char *text)
{
    for (struct viewer *viewer = stream->viewers; viewer != NULL; viewer = viewer->next)
        write_to(stream, viewer, text, strlen(text));
}

/* ---- events ---- */

/* What the client cannot see by itself: whether the database answers, and how far its counters trail
 * Kafka. */
static void health_text(const struct serve_stream *stream, char text[160])
{
    bool up = serve_pool_is_up(stream->serve->pool);
    snprintf(text, 160, "event: health\ndata: {\"ok\":%s,\"behind_s\":%s,\"database\":\"%s\"}\n\n",
             up ? "true" : "false", up && stream->behind_s[0] != '\0' ? stream->behind_s : "null",
             up ? "up" : "down");
}

/* The caller frees it. campaign NULL: any may have changed. */
static char *campaign_text(const char *campaign, const char *changed_at, size_t *size)
{
    char *text = NULL;
    struct rcpt_json json;
    FILE *out = rcpt_open_memory(&text, size);
    fputs("event: campaign\ndata: ", out);
    rcpt_json_init(&json, out);
    rcpt_json_begin_object(&json);
    rcpt_json_put_text(&json, "campaign_id", campaign);
    rcpt_json_put_text(&json, "changed_at", changed_at);
    rcpt_json_end_object(&json);
    fputs("\n\n", out);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

/* Columns of sql/serve/changes. */
enum {
    CHANGES_SNAPSHOT,
    CHANGES_CAMPAIGN_ID,
    CHANGES_ORG_ID,
    CHANGES_CHANGED_AT,
    CHANGES_BEHIND_S
};

static bool concerns(const struct viewer *viewer, const char *campaign, const char *organisation)
{
    if (viewer->campaign != NULL && strcmp(viewer->campaign, campaign) != 0)
        return false;
    return viewer->organisation == NULL ||
           (organisation != NULL && strcmp(viewer->organisation, organisation) == 0);
}

/* Events of the campaigns that concern a viewer, as one text: a write for each of a hundred campaigns
 * would cost each of a thousand viewers a hundred writes. */
static void tell(struct serve_stream *stream, struct viewer *viewer,
                 const struct rcpt_pg_rows *rows, char *const *texts)
{
    char *all = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&all, &size);
    for (size_t row = 1; row < rcpt_pg_rows_count(rows); row++)
        if (concerns(viewer, rcpt_pg_rows_text(rows, row, CHANGES_CAMPAIGN_ID),
                     rcpt_pg_rows_text(rows, row, CHANGES_ORG_ID))) {
            fputs(texts[row], out);
            stream->serve->stats.events++;
        }
    RCPT_ASSERT(fclose(out) == 0);
    if (size > 0)
        write_to(stream, viewer, all, size);
    free(all);
}

/* Each event is made once, however many viewers there are. */
static void tell_all(struct serve_stream *stream, const struct rcpt_pg_rows *rows,
                     const char *changed_at)
{
    size_t count = rcpt_pg_rows_count(rows), size;
    char **texts = rcpt_calloc(count, sizeof(*texts));
    for (size_t row = 1; row < count; row++)
        texts[row] =
            campaign_text(rcpt_pg_rows_text(rows, row, CHANGES_CAMPAIGN_ID), changed_at, &size);
    for (struct viewer *viewer = stream->viewers; viewer != NULL; viewer = viewer->next)
        tell(stream, viewer, rows, texts);
    for (size_t row = 1; row < count; row++)
        free(texts[row]);
    free(texts);
}

/* To each its own campaign, to those that see all: none by name. */
static void tell_to_fetch(struct serve_stream *stream, const char *changed_at)
{
    for (struct viewer *viewer = stream->viewers; viewer != NULL; viewer = viewer->next) {
        size_t size;
        char *text = campaign_text(viewer->campaign, changed_at, &size);
        write_to(stream, viewer, text, size);
        stream->serve->stats.events++;
        free(text);
    }
}

/* Behind also after an outage between two polls: a snapshot of before may be of another server. */
void serve_stream_health(struct serve_stream *stream)
{
    char text[160];
    stream->behind |= !serve_pool_is_up(stream->serve->pool);
    health_text(stream, text);
    write_to_all(stream, text);
    stream->serve->stats.events += stream->count;
}

/* Told only when it has become another number of seconds. */
static void tell_behind(struct serve_stream *stream, const char *behind_s)
{
    const char *now = behind_s != NULL ? behind_s : "";
    if (strcmp(now, stream->behind_s) == 0)
        return;
    snprintf(stream->behind_s, sizeof(stream->behind_s), "%s", now);
    serve_stream_health(stream);
}

static void on_changes(void *context, const struct rcpt_pg_rows *rows,
                       const struct rcpt_error *error)
{
    struct serve_stream *stream = context;
    int64_t took_ms = now_of(stream) - stream->asked_ms;
    (void)error;
    stream->asked = false;
    stream->poll_ms =
        stream->asked_ms + (took_ms * POLL_SHARE > POLL_MS ? took_ms * POLL_SHARE : POLL_MS);
    if (rows == NULL) {
        stream->behind = true;
        return;
    }
    size_t count = rcpt_pg_rows_count(rows);
    const char *changed_at = rcpt_pg_rows_text(rows, 0, CHANGES_CHANGED_AT);
    if (stream->behind || count > MOST_CHANGED)
        tell_to_fetch(stream, changed_at);
    else if (count > 1)
        tell_all(stream, rows, changed_at);
    stream->behind = false;
    tell_behind(stream, rcpt_pg_rows_text(rows, 0, CHANGES_BEHIND_S));
    free(stream->snapshot);
    stream->snapshot = rcpt_strdup(rcpt_pg_rows_text(rows, 0, CHANGES_SNAPSHOT));
}

/* After an outage the snapshot may be of another server's history, so a new one is taken. */
static void poll(struct serve_stream *stream)
{
    const char *const values[] = {stream->behind ? NULL : stream->snapshot};
    stream->asked_ms = now_of(stream);
    stream->poll_ms = stream->asked_ms + POLL_MS;
    stream->asked = serve_ask(stream->serve, "changes", values, 1, on_changes, stream);
    if (!stream->asked)
        stream->behind = true;
}

void serve_stream_tick(struct serve_stream *stream)
{
    int64_t now = now_of(stream);
    struct viewer **link = &stream->viewers;
    while (*link != NULL) {
        struct viewer *viewer = *link;
        if (viewer->gone || viewer->ends_ms <= now) {
            *link = viewer->next;
            end_viewer(stream, viewer);
        } else {
            link = &viewer->next;
        }
    }
    if (stream->viewers == NULL) {
        free(stream->snapshot); /* without viewers nobody polls */
        stream->snapshot = NULL;
        return;
    }
    if (now >= stream->beat_ms) {
        stream->beat_ms = now + HEARTBEAT_MS;
        write_to_all(stream, ": still here\n\n");
    }
    if (!stream->asked && now >= stream->poll_ms)
        poll(stream);
}

/* ---- opening and ending ---- */

/* The first viewer comes between two polls or before any: what it fetched before may be old by then,
 * so it fetches when the stream is open. */
static void begin_stream(struct serve_request *request, struct viewer *viewer,
                         const struct serve_stream *stream)
{
    char headers[1024], first[256], health[160];
    health_text(stream, health);
    snprintf(headers, sizeof(headers), "%sCache-Control: no-store\r\nX-Accel-Buffering: no\r\n",
             serve_headers);
    int size = snprintf(first, sizeof(first), "retry: 2000\n\n%s", health);
    const struct rcpt_http_answer answer = {.status = 200,
                                            .content_type = "text/event-stream",
                                            .headers = headers,
                                            .body = first,
                                            .body_size = (size_t)size};
    request->status = answer.status;
    rcpt_http_answer_begin(viewer->http, &answer, MOST_QUEUED, on_gone, viewer);
}

/* A link's stream does not outlive the link. */
static int64_t end_of(const struct serve_request *request, int64_t now)
{
    int64_t left_ms = (request->link_ends_s - (int64_t)time(NULL)) * 1000;
    return now + (request->campaign != NULL && left_ms < LIFE_MS ? left_ms : LIFE_MS);
}

static char *copy(const char *text)
{
    return text != NULL ? rcpt_strdup(text) : NULL;
}

void serve_stream_add(struct serve_request *request)
{
    struct serve_stream *stream = request->serve->stream;
    if (stream->count >= MOST_VIEWERS) {
        serve_answer_problem(request, 503, "as many streams as may be are open");
        serve_request_free(request);
        return;
    }
    struct viewer *viewer = rcpt_calloc(1, sizeof(*viewer));
    *viewer = (struct viewer){.next = stream->viewers,
                              .http = request->http,
                              .ends_ms = end_of(request, now_of(stream)),
                              .organisation = copy(request->organisation),
                              .campaign = copy(serve_value(request, "campaign"))};
    stream->viewers = viewer;
    stream->count++;
    begin_stream(request, viewer, stream);
    serve_request_free(request);
    /* Of what changes before there is a snapshot, nobody gets the name. */
    if (stream->snapshot == NULL)
        stream->behind = true;
    stream->poll_ms = stream->snapshot == NULL ? 0 : stream->poll_ms;
}

size_t serve_stream_count(const struct serve_stream *stream)
{
    return stream->count;
}

struct serve_stream *serve_stream_new(struct rcpt_serve *serve)
{
    struct serve_stream *stream = rcpt_calloc(1, sizeof(*stream));
    stream->serve = serve;
    return stream;
}

void serve_stream_end(struct serve_stream *stream)
{
    while (stream->viewers != NULL) {
        struct viewer *viewer = stream->viewers;
        stream->viewers = viewer->next;
        end_viewer(stream, viewer);
    }
}

void serve_stream_free(struct serve_stream *stream)
{
    serve_stream_end(stream);
    free(stream->snapshot);
    free(stream);
}
