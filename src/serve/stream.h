/* What the stream of changes says, as texts of server-sent events. Used by stream.c alone. */
#ifndef RECEIPTD_SERVE_STREAM_H
#define RECEIPTD_SERVE_STREAM_H

#include "postgres/connection.h"

/* What some viewers see. */
struct serve_sight {
    char *organisation, *campaign; /* NULL: all */
    uint64_t campaign_hash;
};

/* Columns of sql/serve/changes. */
enum {
    CHANGES_SNAPSHOT,
    CHANGES_CAMPAIGN_ID,
    CHANGES_ORG_ID,
    CHANGES_CHANGED_AT,
    CHANGES_BEHIND_S
};

/* What is to be told. */
struct serve_changes {
    char health[160];                /* "": as before */
    const char *changed_at;          /* of what follows */
    bool is_all;                     /* each has to fetch what it shows */
    const struct rcpt_pg_rows *rows; /* NULL, or campaigns that changed, from the second row on */
    uint64_t *hashes;                /* of their names */
};

/* What the client cannot see by itself: whether the database answers, and how far its counters trail
 * Kafka (`behind_s` as JSON; "": not known). */
void serve_put_health(char text[160], bool up, const char *behind_s);
/* Some of it may have changed. */
bool serve_has_changed(const struct serve_sight *sight, const struct serve_changes *changes);
/* Health and campaigns as one text, so each viewer is woken once. Returns the number of events. */
unsigned serve_put_changes(FILE *out, const struct serve_sight *sight,
                           const struct serve_changes *changes);
/* A campaign with its funnel, which the database has made as JSON. A client should not ask for other
 * parts of the campaign more often than every `pause_s`. */
void serve_put_funnel(FILE *out, const char *campaign, const char *changed_at, unsigned pause_s,
                      const char *funnel);

#endif
