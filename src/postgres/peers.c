/* The connections of a process to one server, in a list: those that wait, and the sessions for
 * which they wait. Called by connection.c for each connection, and by receipts/blockers.c. */
#include <stdio.h>

#include "machine.h"

void rcpt_peers_join(struct rcpt_pg *pg)
{
    struct rcpt_pg_peers *peers = pg->settings.peers;
    if (peers == NULL)
        return;
    pg->next_peer = peers->first;
    peers->first = pg;
}

void rcpt_peers_leave(struct rcpt_pg *pg)
{
    struct rcpt_pg **link = pg->settings.peers != NULL ? &pg->settings.peers->first : NULL;
    while (link != NULL && *link != pg)
        link = &(*link)->next_peer;
    if (link != NULL)
        *link = pg->next_peer;
}

struct rcpt_pg *rcpt_pg_next(const struct rcpt_pg_peers *peers, const struct rcpt_pg *before)
{
    return before != NULL ? before->next_peer : peers->first;
}

const char *rcpt_pg_name(const struct rcpt_pg *pg)
{
    return pg->settings.name;
}

int64_t rcpt_pg_waiting_ms(const struct rcpt_pg *pg)
{
    bool is_live = pg->state == RCPT_PG_READY || pg->state == RCPT_PG_SETTING_UP;
    if (!is_live || rcpt_submissions_is_empty(&pg->submissions))
        return 0;
    return (int64_t)(uv_now(pg->settings.loop) - pg->heard_at_ms);
}

void rcpt_pg_set_holder(struct rcpt_pg *pg, const char *holder)
{
    snprintf(pg->submissions.holder, sizeof(pg->submissions.holder), "%s", holder);
}
