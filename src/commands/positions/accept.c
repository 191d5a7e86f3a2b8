/* `receiptd positions accept-database`: accepts the database of postgres.dsn as successor of the
 * servers that the notes beside Kafka's group offsets name. The daemon refuses it before as an old
 * primary or as another database. The acceptance is written into that database, so it holds for it
 * alone. Called by positions.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "positions.h"
#include "receiptd/postgres/sql.h"

/* Prints the address of the server: with several hosts in the dsn, it is the first that can be
 * written to. */
static bool find_server(struct positions *positions, struct rcpt_pg_server *now)
{
    struct rcpt_session_rows *rows = positions_query(positions, "command/server_identity");
    if (rows == NULL)
        return false;
    *now = positions_server_in(rows, 0);
    printf("connected: server at %s port %s, system %" PRIu64 ", timeline %" PRId32 "\n",
           rcpt_session_rows_text(rows, 0, "address"), rcpt_session_rows_text(rows, 0, "port"),
           now->system_identifier, now->timeline);
    rcpt_session_rows_free(rows);
    return true;
}

static bool find_accepted(struct positions *positions, struct rcpt_pg_lineage *accepted)
{
    struct rcpt_session_rows *rows = positions_query(positions, "command/database_accepted");
    if (rows == NULL)
        return false;
    for (size_t row = 0; row < rcpt_session_rows_count(rows); row++)
        rcpt_pg_lineage_add(accepted, positions_server_in(rows, row));
    rcpt_session_rows_free(rows);
    return true;
}

static bool find_remembered(struct positions *positions, struct rcpt_pg_lineage *remembered)
{
    const struct rcpt_config *config = positions->context.config;
    struct rcpt_pg_server server;
    if (!positions_survey(positions, (const char *const *)config->kafka.topics,
                          config->kafka.topics_count, -1))
        return false;
    for (size_t index = 0; index < positions->survey.count; index++)
        if (positions->survey.places[index].note != NULL &&
            rcpt_pg_server_read(positions->survey.places[index].note, &server))
            rcpt_pg_lineage_add(remembered, server);
    if (positions->survey.notes_are_known)
        return true;
    return rcpt_error_fatal(&positions->context.error, EX_UNAVAILABLE,
                            "the group's offsets cannot be read: %.300s",
                            positions->survey.error.text);
}

static bool accept_one(struct positions *positions, struct rcpt_pg_server before)
{
    char system[24], timeline[16];
    const char *const values[] = {system, timeline};
    bool dry_run = command_option(positions->call, "dry-run") != NULL;
    snprintf(system, sizeof(system), "%" PRIu64, before.system_identifier);
    snprintf(timeline, sizeof(timeline), "%" PRId32, before.timeline);
    if (!dry_run) {
        struct rcpt_session_rows *rows =
            rcpt_session_query(positions->context.session, rcpt_sql("command/database_accept"), 2,
                               values, &positions->context.error);
        if (rows == NULL)
            return false;
        rcpt_session_rows_free(rows);
    }
    printf("%s: it may follow system %s, timeline %s\n", dry_run ? "would accept" : "accepted",
           system, timeline);
    return true;
}

/* Only contradicting servers get a row: the others are accepted anyway. */
int positions_accept(struct positions *positions)
{
    struct rcpt_pg_lineage remembered = {0}, accepted = {0};
    struct rcpt_pg_server now;
    const struct rcpt_pg_server *before;
    bool any = false;
    bool good = find_server(positions, &now) && find_accepted(positions, &accepted) &&
                find_remembered(positions, &remembered);
    while (good && (before = rcpt_pg_lineage_contradiction(&remembered, now, &accepted)) != NULL) {
        good = accept_one(positions, *before);
        rcpt_pg_lineage_add(&accepted, *before);
        any = true;
    }
    if (good && !any)
        printf("nothing to accept: the database follows the servers that Kafka remembers\n");
    rcpt_kafka_survey_free(&positions->survey);
    return good ? command_printed(EX_OK) : command_fail(&positions->context.error);
}
