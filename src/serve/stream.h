/* The stream of changes: its viewers, and its texts of server-sent events. Used by stream.c,
 * viewers.c and stream_text.c alone. */
#ifndef RECEIPTD_SERVE_STREAM_H
#define RECEIPTD_SERVE_STREAM_H

#include "internal.h"
#include "receiptd/base/pace.h"

#define STREAM_MOST_TEXT (128u * 1024) /* of one tick */

/* The part that some viewers see. */
struct serve_sight {
    char *organisation, *campaign; /* NULL: all */
    uint64_t campaign_hash;
};

struct holder { /* a caller that has streams */
    struct holder *next;
    uint64_t caller;
    unsigned count;
};

struct viewer {
    struct viewer *next;
    struct holder *holder;
    struct rcpt_http_request *http;
    int64_t ends_ms;
    bool gone, missed; /* missed: some text, since it had not taken the one before */
};

struct audience {
    struct audience *next;
    struct serve_sight sight;
    struct viewer *viewers;
    bool changed;    /* its campaign has, and its viewers do not know yet */
    size_t asked_as; /* in the question for funnels, from 1 on; 0: it is not in it */
};

struct serve_stream {
    struct rcpt_serve *serve;
    struct audience *audiences; /* each has viewers, but for a moment */
    struct holder *holders;
    unsigned count;
    char *snapshot; /* of the last poll; NULL: the next one is the first */
    bool asked, behind;
    size_t asked_count;  /* audiences in the question for funnels */
    char behind_s[24];   /* of the last poll, as JSON; "": not known */
    char changed_at[32]; /* likewise */
    int64_t poll_ms, asked_ms, beat_ms;
    struct rcpt_pace pace; /* of polls */
};

/* ---- viewers.c ---- */
/* The answer is ended, so the client knows that nothing follows, and opens the stream again. */
void viewer_end(struct serve_stream *stream, struct viewer *viewer);
void audience_free(struct audience *audience);

/* ---- stream_text.c ---- */
/* Columns of sql/serve/changes. */
enum {
    CHANGES_SNAPSHOT,
    CHANGES_CAMPAIGN_ID,
    CHANGES_ORG_ID,
    CHANGES_CHANGED_AT,
    CHANGES_BEHIND_S
};

/* The changes to be sent. */
struct serve_changes {
    char health[160];                /* "": as before */
    const char *changed_at;          /* of what follows */
    bool is_all;                     /* each has to fetch what it shows */
    const struct rcpt_pg_rows *rows; /* NULL, or campaigns that changed, from the second row on */
    uint64_t *hashes;                /* of their names */
};

/* The health event: whether the database answers, and how far its counters trail Kafka (`behind_s`
 * as JSON; "": not known). A client cannot see either by itself. */
void serve_put_health(char text[160], bool up, const char *behind_s);
/* Whether a part of this sight may have changed. */
bool serve_has_changed(const struct serve_sight *sight, const struct serve_changes *changes);
/* Health and campaigns as one text, so each viewer is woken once. */
void serve_put_changes(FILE *out, const struct serve_sight *sight,
                       const struct serve_changes *changes);
/* A campaign with its funnel, which the database has made as JSON. A client should not ask for
 * other parts of the campaign more often than every `pause_s`. */
void serve_put_funnel(FILE *out, const char *campaign, const char *changed_at, unsigned pause_s,
                      const char *funnel);

#endif
