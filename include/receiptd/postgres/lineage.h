/* The servers on which the data has been: system identifier and timeline of each. An old primary,
 * and a foreign database, hold positions of their own; receiptd must write to neither.
 *
 * One for all connections of a process. Kafka's group offsets carry the present server as a note,
 * so that the next process remembers it too.
 */
#ifndef RECEIPTD_POSTGRES_LINEAGE_H
#define RECEIPTD_POSTGRES_LINEAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RCPT_PG_MOST_SERVERS 16u
#define RCPT_PG_NOTE_BYTES   64u

struct rcpt_pg_server {
    uint64_t system_identifier; /* 0: not known */
    int32_t timeline;
};

struct rcpt_pg_lineage { /* all zero: nothing is known */
    struct rcpt_pg_server servers[RCPT_PG_MOST_SERVERS];
    size_t count;
    struct rcpt_pg_server current; /* that a connection of this process was accepted by last */
    unsigned changes;              /* another number after each change */
};

/* Adds the server; the newest timeline of each system stays. */
void rcpt_pg_lineage_add(struct rcpt_pg_lineage *lineage, struct rcpt_pg_server server);
/* Whether data that was on `before` may go on at `now`: the same system, on this timeline or a
 * newer one, as after a fail-over. */
bool rcpt_pg_server_follows(struct rcpt_pg_server now, struct rcpt_pg_server before);
/* The server that `now` does not follow, unless the database has accepted it; NULL: none. */
const struct rcpt_pg_server *rcpt_pg_lineage_contradiction(const struct rcpt_pg_lineage *lineage,
                                                           struct rcpt_pg_server now,
                                                           const struct rcpt_pg_lineage *accepted);

/* As a note beside Kafka's group offsets. False: it is no such note. */
void rcpt_pg_server_write(struct rcpt_pg_server server, char note[RCPT_PG_NOTE_BYTES]);
bool rcpt_pg_server_read(const char *note, struct rcpt_pg_server *server);
/* Whether the offset beside the note is valid for this server; without a note (NULL) it is. */
bool rcpt_pg_server_wrote(struct rcpt_pg_server server, const char *note);

#endif
