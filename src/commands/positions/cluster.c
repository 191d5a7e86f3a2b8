/* `receiptd positions accept-cluster`: accepts the cluster of kafka.brokers for topics that were
 * consumed from another one, at which the daemon ends. Positions stay as they are: the cluster must
 * have the same records at the same offsets, which the daemon checks at its start. Called by
 * positions.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "positions.h"
#include "receiptd/postgres/sql.h"

static void print_topic(const struct positions *positions, const char *topic, const char *former)
{
    bool dry_run = command_option(positions->call, "dry-run") != NULL;
    printf("%s: topic %s goes on in cluster %s, was in %s\n", dry_run ? "would accept" : "accepted",
           topic, positions->survey.cluster_id, former);
}

static void print_partition(const struct standing *standing)
{
    const struct rcpt_kafka_place *place = standing->place;
    printf("  partition %" PRId32 ": at %" PRId64, standing->partition, standing->position);
    if (place != NULL)
        printf(", the log there holds %" PRId64 " up to %" PRId64, place->low, place->high);
    printf("\n");
}

static bool accept_topic(struct positions *positions, const char *topic)
{
    const char *const values[] = {topic, positions->survey.cluster_id};
    if (command_option(positions->call, "dry-run") != NULL)
        return true;
    struct rcpt_session_rows *rows =
        rcpt_session_query(positions->context.session, rcpt_sql("command/cluster_accept"), 2,
                           values, &positions->context.error);
    rcpt_session_rows_free(rows);
    return rows != NULL;
}

/* The rows come topic by topic; topics that the configuration does not name are left alone. */
static bool accept_all(struct positions *positions, const struct rcpt_session_rows *rows, bool *any)
{
    const char *last = "";
    for (size_t row = 0; row < rcpt_session_rows_count(rows); row++) {
        const char *topic = rcpt_session_rows_text(rows, row, "topic");
        struct standing standing = positions_standing(positions, rows, row);
        if (standing.fit != LOG_CLUSTER || standing.place == NULL)
            continue;
        if (strcmp(last, topic) != 0 && !accept_topic(positions, topic))
            return false;
        if (strcmp(last, topic) != 0)
            print_topic(positions, topic, standing.cluster_id);
        print_partition(&standing);
        last = topic;
        *any = true;
    }
    return true;
}

/* All topics or none, committed synchronously. */
static bool accept_in_transaction(struct positions *positions, bool *any)
{
    struct rcpt_session *session = positions->context.session;
    struct rcpt_error *error = &positions->context.error;
    if (!rcpt_session_begin(session, "", error))
        return false;
    struct rcpt_session_rows *rows = NULL;
    bool good = rcpt_session_execute(session, rcpt_sql("control/synchronous"), error) &&
                (rows = positions_read(positions, NULL)) != NULL &&
                accept_all(positions, rows, any) && rcpt_session_commit(session, error);
    if (!good)
        rcpt_session_rollback(session);
    rcpt_session_rows_free(rows);
    return good;
}

int positions_accept_cluster(struct positions *positions)
{
    const struct rcpt_config *config = positions->context.config;
    bool any = false;
    positions->reader = "receipts";
    bool good = positions_survey(positions, (const char *const *)config->kafka.topics,
                                 config->kafka.topics_count, -1);
    if (good && positions->survey.cluster_id == NULL)
        good = rcpt_error_fatal(&positions->context.error, EX_UNAVAILABLE,
                                "the id of the cluster at %.200s cannot be read",
                                config->kafka.brokers);
    good = good && accept_in_transaction(positions, &any);
    if (good && !any)
        printf("nothing to accept: the topics are consumed from cluster %s\n",
               positions->survey.cluster_id);
    rcpt_kafka_survey_free(&positions->survey);
    return good ? command_printed(EX_OK) : command_fail(&positions->context.error);
}
