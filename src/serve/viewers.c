/* Viewers of streams of changes, their audiences, and the number that each caller has. Called by
 * serve.c and stream.c. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "stream.h"

#define LIFE_MS      300000
#define MOST_VIEWERS 1500u

/* ---- shares ---- */

/* Made with the first stream of a caller. */
static struct holder *holder_of(struct serve_stream *stream, uint64_t caller)
{
    for (struct holder *each = stream->holders; each != NULL; each = each->next)
        if (each->caller == caller)
            return each;
    struct holder *made = rcpt_calloc(1, sizeof(*made));
    *made = (struct holder){.next = stream->holders, .caller = caller};
    return stream->holders = made;
}

/* The caller's entry is freed with its last stream. */
static void let_go(struct serve_stream *stream, struct holder *holder)
{
    struct holder **link = &stream->holders;
    if (--holder->count > 0)
        return;
    while (*link != holder)
        link = &(*link)->next;
    *link = holder->next;
    free(holder);
}

void viewer_end(struct serve_stream *stream, struct viewer *viewer)
{
    stream->serve->stats.viewers_cut += viewer->gone && viewer->missed;
    rcpt_http_answer_end(viewer->http);
    let_go(stream, viewer->holder);
    stream->count--;
    free(viewer);
}

void audience_free(struct audience *audience)
{
    free(audience->sight.organisation);
    free(audience->sight.campaign);
    free(audience);
}

/* ---- opening and ending ---- */

static void on_gone(void *context)
{
    struct viewer *viewer = context;
    viewer->gone = true; /* it may be writing: the tick frees */
}

/* The first viewer comes between two polls, or before any. Data that it fetched earlier may be old
 * by then, so it fetches again when the stream is open. */
static void begin_stream(struct serve_request *request, struct viewer *viewer,
                         const struct serve_stream *stream)
{
    char headers[1024], first[256], health[160];
    serve_put_health(health, serve_pool_is_up(stream->serve->pool), stream->behind_s);
    snprintf(headers, sizeof(headers), "%sCache-Control: no-store\r\nX-Accel-Buffering: no\r\n",
             serve_headers);
    int size = snprintf(first, sizeof(first), "retry: 2000\n\n%s", health);
    const struct rcpt_http_answer answer = {.status = 200,
                                            .content_type = "text/event-stream",
                                            .headers = headers,
                                            .body = first,
                                            .body_size = (size_t)size};
    request->status = answer.status;
    rcpt_http_answer_begin(viewer->http, &answer, 2 * STREAM_MOST_TEXT, on_gone, viewer);
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

/* The audience with this organisation and campaign; makes it if there is none. */
static struct audience *audience_of(struct serve_stream *stream, const char *organisation,
                                    const char *campaign)
{
    uint64_t hash = campaign != NULL ? rcpt_text_hash(rcpt_text_of(campaign)) : 0;
    for (struct audience *each = stream->audiences; each != NULL; each = each->next)
        if (each->sight.campaign_hash == hash && same(each->sight.campaign, campaign) &&
            same(each->sight.organisation, organisation))
            return each;
    struct audience *made = rcpt_calloc(1, sizeof(*made));
    *made = (struct audience){.next = stream->audiences,
                              .sight = {.organisation = copy(organisation),
                                        .campaign = copy(campaign),
                                        .campaign_hash = hash}};
    stream->audiences = made;
    return made;
}

/* The caller with the most streams gives up the one that would end first, for a caller that has
 * fewer. So no caller has all of them, and one alone may have as many as are free. False: this
 * caller has its share. The tick frees an audience without viewers. */
static bool make_room(struct serve_stream *stream, uint64_t caller)
{
    struct holder *most = NULL;
    struct viewer **oldest = NULL;
    unsigned own = 0;
    for (struct holder *each = stream->holders; each != NULL; each = each->next) {
        most = most == NULL || each->count > most->count ? each : most;
        own = each->caller == caller ? each->count : own;
    }
    if (most == NULL || most->count <= own + 1)
        return false;
    for (struct audience *each = stream->audiences; each != NULL; each = each->next)
        for (struct viewer **link = &each->viewers; *link != NULL; link = &(*link)->next)
            if ((*link)->holder == most &&
                (oldest == NULL || (*link)->ends_ms < (*oldest)->ends_ms))
                oldest = link;
    RCPT_ASSERT(oldest != NULL);
    struct viewer *viewer = *oldest;
    *oldest = viewer->next;
    viewer_end(stream, viewer);
    return true;
}

void serve_stream_add(struct serve_request *request)
{
    struct serve_stream *stream = request->serve->stream;
    int64_t now = (int64_t)uv_now(request->serve->settings.loop);
    if (stream->count >= MOST_VIEWERS && !make_room(stream, request->caller)) {
        serve_answer_problem(request, 503, "too_many", "as many streams as may be are open");
        serve_request_free(request);
        return;
    }
    struct audience *audience =
        audience_of(stream, request->organisation, serve_value(request, "campaign"));
    struct viewer *viewer = rcpt_calloc(1, sizeof(*viewer));
    *viewer = (struct viewer){.next = audience->viewers,
                              .holder = holder_of(stream, request->caller),
                              .http = request->http,
                              .ends_ms = end_of(request, now)};
    audience->viewers = viewer;
    viewer->holder->count++;
    stream->count++;
    begin_stream(request, viewer, stream);
    serve_request_free(request);
    /* Changes before the first snapshot cannot be named: the viewer fetches everything again. */
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
            viewer_end(stream, viewer);
        }
        stream->audiences = audience->next;
        audience_free(audience);
    }
}

void serve_stream_free(struct serve_stream *stream)
{
    serve_stream_end(stream);
    free(stream->snapshot);
    free(stream);
}
