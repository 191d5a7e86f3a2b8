/* positions, reading: rows of the database, Kafka's log, and how they fit. Called by the other
 * files of this folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "positions.h"
#include "receiptd/postgres/sql.h"

const char *const positions_fit_texts[] = {
    [LOG_FITS] = "ok",
    [LOG_MISSING] = "rows are missing",
    [LOG_GAP] = "next records are gone",
    [LOG_ENDS] = "log ends below it",
    [LOG_OTHER] = "another log",
    [LOG_CLUSTER] = "another cluster",
    [LOG_UNREAD] = "ends fit, records not compared",
};

/* Readers other than receipts have a group of their own, with their name as suffix. */
bool positions_survey(struct positions *positions, const char *const *topics, size_t count,
                      int64_t at_ms)
{
    const struct rcpt_config *config = positions->context.config;
    char group[300];
    snprintf(group, sizeof(group), "%.250s%s%s", config->kafka.group,
             strcmp(positions->reader, "receipts") == 0 ? "" : "-",
             strcmp(positions->reader, "receipts") == 0 ? "" : positions->reader);
    const struct rcpt_kafka_settings settings = {.brokers = config->kafka.brokers,
                                                 .group = group,
                                                 .topics = topics,
                                                 .topic_count = count,
                                                 .properties = positions->properties,
                                                 .property_count = config->kafka.properties_count};
    struct rcpt_error *error = &positions->context.error;
    return rcpt_kafka_survey_now(&settings, &positions->survey, error) &&
           (at_ms < 0 || rcpt_kafka_survey_at(&settings, &positions->survey, at_ms, error));
}

struct rcpt_session_rows *positions_read(struct positions *positions, const char *partition)
{
    const char *const values[] = {positions->reader, positions->topic, partition};
    return rcpt_session_query(positions->context.session, rcpt_sql("command/positions_read"), 3,
                              values, &positions->context.error);
}

static const struct rcpt_kafka_place *place_of(const struct positions *positions, const char *topic,
                                               int32_t partition)
{
    for (size_t index = 0; index < positions->survey.count; index++)
        if (positions->survey.places[index].partition == partition &&
            strcmp(positions->survey.places[index].topic, topic) == 0)
            return &positions->survey.places[index];
    return NULL;
}

static enum log_fit fit_of(const struct standing *standing, const char *cluster_id)
{
    const struct rcpt_kafka_place *place = standing->place;
    if (standing->cluster_id != NULL && cluster_id != NULL &&
        strcmp(standing->cluster_id, cluster_id) != 0)
        return LOG_CLUSTER;
    if (standing->missing > 0 || standing->position < 0)
        return LOG_MISSING;
    if (place != NULL && place->high >= 0 && standing->position > place->high)
        return LOG_ENDS;
    if (place != NULL && place->low >= 0 && standing->position < place->low)
        return LOG_GAP;
    return LOG_FITS;
}

/* Texts of the result belong to the rows. */
struct standing positions_standing(const struct positions *positions,
                                   const struct rcpt_session_rows *rows, size_t row)
{
    bool anchored = rcpt_session_rows_text(rows, row, "anchor_offset") != NULL;
    struct standing standing = {
        .cluster_id = rcpt_session_rows_text(rows, row, "cluster_id"),
        .partition = (int32_t)rcpt_session_rows_int(rows, row, "partition"),
        .position = rcpt_session_rows_text(rows, row, "position") != NULL
                        ? rcpt_session_rows_int(rows, row, "position")
                        : -1,
        .missing = rcpt_session_rows_int(rows, row, "missing"),
        .anchor = {.offset = anchored ? rcpt_session_rows_int(rows, row, "anchor_offset") : -1,
                   .timestamp_ms = rcpt_session_rows_int(rows, row, "anchor_timestamp"),
                   .crc = rcpt_session_rows_int(rows, row, "anchor_crc")}};
    standing.place =
        place_of(positions, rcpt_session_rows_text(rows, row, "topic"), standing.partition);
    standing.fit = fit_of(&standing, positions->survey.cluster_id);
    return standing;
}

struct rcpt_session_rows *positions_query(struct positions *positions, const char *file)
{
    return rcpt_session_query(positions->context.session, rcpt_sql(file), 0, NULL,
                              &positions->context.error);
}

struct rcpt_pg_server positions_server_in(const struct rcpt_session_rows *rows, size_t row)
{
    return (struct rcpt_pg_server){
        strtoull(rcpt_session_rows_text(rows, row, "system_identifier"), NULL, 10),
        (int32_t)rcpt_session_rows_int(rows, row, "timeline")};
}
