/* The servers on which the data has been (lineage.h). Pure; called by setup.c, by the receipts,
 * which remember them in Kafka, and by the command positions. */
#include "receiptd/postgres/lineage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTE "receiptd postgres %" PRIu64 "/%" PRId32

static struct rcpt_pg_server *find(struct rcpt_pg_lineage *lineage, uint64_t system_identifier)
{
    for (size_t index = 0; index < lineage->count; index++)
        if (lineage->servers[index].system_identifier == system_identifier)
            return &lineage->servers[index];
    return NULL;
}

/* Beyond the limit the oldest one goes: an operator has accepted as many other systems. */
void rcpt_pg_lineage_add(struct rcpt_pg_lineage *lineage, struct rcpt_pg_server server)
{
    struct rcpt_pg_server *known = find(lineage, server.system_identifier);
    if (server.system_identifier == 0 || (known != NULL && known->timeline >= server.timeline))
        return;
    if (known == NULL && lineage->count == RCPT_PG_MOST_SERVERS)
        memmove(lineage->servers, lineage->servers + 1, --lineage->count * sizeof(server));
    if (known == NULL)
        known = &lineage->servers[lineage->count++];
    *known = server;
    lineage->changes++;
}

bool rcpt_pg_server_follows(struct rcpt_pg_server now, struct rcpt_pg_server before)
{
    return now.system_identifier == before.system_identifier && now.timeline >= before.timeline;
}

const struct rcpt_pg_server *rcpt_pg_lineage_contradiction(const struct rcpt_pg_lineage *lineage,
                                                           struct rcpt_pg_server now,
                                                           const struct rcpt_pg_lineage *accepted)
{
    for (size_t index = 0; index < lineage->count; index++) {
        struct rcpt_pg_server before = lineage->servers[index];
        bool good = rcpt_pg_server_follows(now, before);
        for (size_t other = 0; !good && other < accepted->count; other++)
            good = rcpt_pg_server_follows(accepted->servers[other], before);
        if (!good)
            return &lineage->servers[index];
    }
    return NULL;
}

void rcpt_pg_server_write(struct rcpt_pg_server server, char note[RCPT_PG_NOTE_BYTES])
{
    snprintf(note, RCPT_PG_NOTE_BYTES, NOTE, server.system_identifier, server.timeline);
}

/* The parsed server is written back and compared, so any other text is no note of ours. */
bool rcpt_pg_server_read(const char *note, struct rcpt_pg_server *server)
{
    char written[RCPT_PG_NOTE_BYTES], *end;
    const char *number = note + strcspn(note, "0123456789");
    struct rcpt_pg_server found = {.system_identifier = strtoull(number, &end, 10)};
    found.timeline = *end == '/' ? (int32_t)strtol(end + 1, NULL, 10) : 0;
    rcpt_pg_server_write(found, written);
    if (strcmp(written, note) != 0)
        return false;
    *server = found;
    return true;
}

/* The same server to the letter: after a fail-over the new timeline may lack what the old one had.
 */
bool rcpt_pg_server_wrote(struct rcpt_pg_server server, const char *note)
{
    struct rcpt_pg_server before;
    return note == NULL || (rcpt_pg_server_read(note, &before) &&
                            before.system_identifier == server.system_identifier &&
                            before.timeline == server.timeline);
}
