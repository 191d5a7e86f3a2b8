/* Server-sent events: what changed since the last poll, for all viewers by one question a second.
 *
 * Viewers with the same organisation and campaign are one audience. Each tick makes one text for an
 * audience, which its viewers share: nothing is made or copied for a single one. A viewer that has
 * not taken all of the last text gets nothing until it has; then, like one whose database was away,
 * it is told to fetch everything again (a `campaign` event without an id). One that takes nothing
 * for the server's write_timeout_ms is cut off. Each stream ends after some minutes: the client
 * opens it again, and its token is checked again. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json.h"
#include "base/pace.h"
#include "internal.h"

#define POLL_MS      1000
#define POLL_SHARE   20 /* a poll that takes long takes at most one of so many parts of the time */
#define HEARTBEAT_MS 15000
#define LIFE_MS      300000
#define MOST_VIEWERS 1500u
#define MOST_TEXT    (128u * 1024) /* of one tick */
#define MOST_QUEUED  (2 * MOST_TEXT)
#define MOST_CHANGED 1000u /* as in sql/serve/changes.sql */

struct viewer {
    struct viewer *next;
    struct rcpt_http_request *http;
    int64_t ends_ms;
    bool gone, missed; /* missed: some text, since it had not taken the one before */
};

struct audience {
    struct audience *next;
    char *organisation, *campaign; /* NULL: all */
    uint64_t campaign_hash;
    struct viewer *viewers;
};

struct serve_stream {
    struct rcpt_serve *serve;
    struct audience *audiences; /* each has viewers, but for a moment */
    unsigned count;
    char *snapshot; /* of the last poll; NULL: the next one is the first */
    bool asked, behind;
    char behind_s[24];   /* of the last poll, as JSON; "": not known */
    char changed_at[32]; /* likewise */
    int64_t poll_ms, asked_ms, beat_ms;
    struct rcpt_pace pace; /* of polls */
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
    stream->serve->stats.viewers_cut += viewer->gone && viewer->missed;
    rcpt_http_answer_end(viewer->http);
    stream->count--;
    free(viewer);
}

static void free_audience(struct audience *audience)
{
    free(audience->organisation);
    free(audience->campaign);
    free(audience);
}

/* To those that are ready for it. `events` are counted. */
static void write_to(struct serve_stream *stream, const struct audience *audience, const char *text,
                     size_t size, unsigned events)
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
        stream->serve->stats.events += events;
    }
    rcpt_http_piece_release(piece);
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

/* campaign NULL: any may have changed. */
static void put_campaign(FILE *out, const char *campaign, const char *changed_at)
{
    struct rcpt_json json;
    fputs("event: campaign\ndata: ", out);
    rcpt_json_init(&json, out);
    rcpt_json_begin_object(&json);
    rcpt_json_put_text(&json, "campaign_id", campaign);
    rcpt_json_put_text(&json, "changed_at", changed_at);
    rcpt_json_end_object(&json);
    fputs("\n\n", out);
}

/* Columns of sql/serve/changes. */
enum {
    CHANGES_SNAPSHOT,
    CHANGES_CAMPAIGN_ID,
    CHANGES_ORG_ID,
    CHANGES_CHANGED_AT,
    CHANGES_BEHIND_S
};

/* What is to be told. */
struct changes {
    char health[160];                /* "": as before */
    const char *changed_at;          /* of what follows */
    bool is_all;                     /* each has to fetch what it shows */
    const struct rcpt_pg_rows *rows; /* NULL, or campaigns that changed, from the second row on */
    uint64_t *hashes;                /* of their names */
};

static bool concerns(const struct audience *audience, const struct changes *changes, size_t row)
{
    const char *organisation = rcpt_pg_rows_text(changes->rows, row, CHANGES_ORG_ID);
    if (audience->campaign != NULL &&
        (audience->campaign_hash != changes->hashes[row] ||
         strcmp(audience->campaign, rcpt_pg_rows_text(changes->rows, row, CHANGES_CAMPAIGN_ID)) !=
             0))
        return false;
    return audience->organisation == NULL ||
           (organisation != NULL && strcmp(audience->organisation, organisation) == 0);
}

/* Health and campaigns as one text, so each viewer is woken once. Returns the number of events. */
static unsigned put_changes(FILE *out, const struct audience *audience,
                            const struct changes *changes)
{
    unsigned events = changes->health[0] != '\0';
    fputs(changes->health, out);
    if (changes->is_all) {
        put_campaign(out, audience->campaign, changes->changed_at);
        return events + 1;
    }
    size_t count = changes->rows != NULL ? rcpt_pg_rows_count(changes->rows) : 0;
    for (size_t row = 1; row < count; row++)
        if (concerns(audience, changes, row)) {
            put_campaign(out, rcpt_pg_rows_text(changes->rows, row, CHANGES_CAMPAIGN_ID),
                         changes->changed_at);
            events++;
        }
    return events;
}

/* Names that are too long to be told are fetched instead. */
static void tell(struct serve_stream *stream, const struct audience *audience,
                 const struct changes *changes)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    unsigned events = put_changes(out, audience, changes);
    RCPT_ASSERT(fclose(out) == 0);
    if (size > MOST_TEXT) {
        struct changes all = *changes;
        all.is_all = true;
        tell(stream, audience, &all);
    } else if (size > 0) {
        write_to(stream, audience, text, size, events);
    }
    free(text);
}

static void tell_all(struct serve_stream *stream, const struct changes *changes)
{
    for (struct audience *audience = stream->audiences; audience != NULL; audience = audience->next)
        tell(stream, audience, changes);
}

/* Behind also after an outage between two polls: a snapshot of before may be of another server. */
void serve_stream_health(struct serve_stream *stream)
{
    struct changes changes = {.rows = NULL};
    stream->behind |= !serve_pool_is_up(stream->serve->pool);
    health_text(stream, changes.health);
    tell_all(stream, &changes);
}

/* Told only when it has become another number of seconds. */
static void note_behind(struct serve_stream *stream, const char *behind_s, struct changes *changes)
{
    const char *now = behind_s != NULL ? behind_s : "";
    if (strcmp(now, stream->behind_s) == 0)
        return;
    snprintf(stream->behind_s, sizeof(stream->behind_s), "%s", now);
    health_text(stream, changes->health);
}

static void tell_rows(struct serve_stream *stream, const struct rcpt_pg_rows *rows)
{
    size_t count = rcpt_pg_rows_count(rows);
    snprintf(stream->changed_at, sizeof(stream->changed_at), "%s",
             rcpt_pg_rows_text(rows, 0, CHANGES_CHANGED_AT));
    struct changes changes = {.changed_at = stream->changed_at,
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

static void on_changes(void *context, const struct rcpt_pg_rows *rows,
                       const struct rcpt_error *error)
{
    struct serve_stream *stream = context;
    int64_t took_ms = now_of(stream) - stream->asked_ms;
    int64_t wait_ms = rcpt_pace_wait_ms(&stream->pace, took_ms, POLL_SHARE);
    (void)error;
    stream->asked = false;
    stream->poll_ms = stream->asked_ms + (wait_ms > POLL_MS ? wait_ms : POLL_MS);
    if (rows == NULL) {
        stream->behind = true;
        return;
    }
    tell_rows(stream, rows);
    stream->behind = false;
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

/* ---- time ---- */

/* It has taken what it was behind with, and is told what it missed: to fetch again. */
static void catch_up(struct serve_stream *stream, const struct audience *audience,
                     struct viewer *viewer)
{
    struct viewer alone = {.http = viewer->http};
    struct audience one = {.campaign = audience->campaign, .viewers = &alone};
    struct changes changes = {.changed_at = stream->changed_at, .is_all = true};
    health_text(stream, changes.health);
    tell(stream, &one, &changes);
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
            end_viewer(stream, viewer);
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
            free_audience(audience);
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
        write_to(stream, each, text, sizeof(text) - 1, 0);
}

void serve_stream_tick(struct serve_stream *stream)
{
    tick_viewers(stream);
    if (stream->audiences == NULL) {
        free(stream->snapshot); /* without viewers nobody polls */
        stream->snapshot = NULL;
        return;
    }
    if (now_of(stream) >= stream->beat_ms)
        beat(stream);
    if (!stream->asked && now_of(stream) >= stream->poll_ms)
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
    rcpt_http_answer_slim(viewer->http);
}

/* A link's stream does not outlive the link. */
static int64_t end_of(const struct serve_request *request, int64_t now)
{
    int64_t left_ms = (request->link_ends_s - (int64_t)time(NULL)) * 1000;
    return now + (request->campaign != NULL && left_ms < LIFE_MS ? left_ms : LIFE_MS);
}

static bool same(const char *one, const char *other)
{
    return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

static char *copy(const char *text)
{
    return text != NULL ? rcpt_strdup(text) : NULL;
}

/* The one with this organisation and campaign, made where there is none. */
static struct audience *audience_of(struct serve_stream *stream, const char *organisation,
                                    const char *campaign)
{
    uint64_t hash = campaign != NULL ? rcpt_text_hash(rcpt_text_of(campaign)) : 0;
    for (struct audience *each = stream->audiences; each != NULL; each = each->next)
        if (each->campaign_hash == hash && same(each->campaign, campaign) &&
            same(each->organisation, organisation))
            return each;
    struct audience *made = rcpt_calloc(1, sizeof(*made));
    *made = (struct audience){.next = stream->audiences,
                              .organisation = copy(organisation),
                              .campaign = copy(campaign),
                              .campaign_hash = hash};
    stream->audiences = made;
    return made;
}

void serve_stream_add(struct serve_request *request)
{
    struct serve_stream *stream = request->serve->stream;
    if (stream->count >= MOST_VIEWERS) {
        serve_answer_problem(request, 503, "as many streams as may be are open");
        serve_request_free(request);
        return;
    }
    struct audience *audience =
        audience_of(stream, request->organisation, serve_value(request, "campaign"));
    struct viewer *viewer = rcpt_calloc(1, sizeof(*viewer));
    *viewer = (struct viewer){.next = audience->viewers,
                              .http = request->http,
                              .ends_ms = end_of(request, now_of(stream))};
    audience->viewers = viewer;
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
    while (stream->audiences != NULL) {
        struct audience *audience = stream->audiences;
        while (audience->viewers != NULL) {
            struct viewer *viewer = audience->viewers;
            audience->viewers = viewer->next;
            end_viewer(stream, viewer);
        }
        stream->audiences = audience->next;
        free_audience(audience);
    }
}

void serve_stream_free(struct serve_stream *stream)
{
    serve_stream_end(stream);
    free(stream->snapshot);
    free(stream);
}
