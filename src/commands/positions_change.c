/* `receiptd positions set` and `skip-gap`: whether the position may be moved, and moving it. The log
 * itself is asked whether it is the one that was consumed, as the daemon does. Called by positions.c.
 */
#include "positions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "core/hash.h"
#include "kafka/history.h"
#include "postgres/sql.h"

#define NUMBER 24 /* bytes of a number's text */

/* ---- whether the log is the one that was consumed ---- */

struct proof {
    struct standing *standing;
    bool differs;
};

/* The first record from the anchor's offset on; a later one proves nothing. */
static bool on_anchor(void *context, const struct rcpt_kafka_message *message)
{
    struct proof *proof = context;
    const struct standing *standing = proof->standing;
    proof->differs = message->offset == standing->anchor.offset &&
                     (message->timestamp_ms != standing->anchor.timestamp_ms ||
                      rcpt_hash_record(message->key, message->key_size, message->value,
                                       message->value_size) != (uint32_t)standing->anchor.crc);
    return false;
}

/* Reads the record just below the position, as the daemon does at each assignment. */
static bool prove(struct positions *positions, struct standing *standing)
{
    const struct rcpt_config *config = positions->context.config;
    struct proof proof = {.standing = standing};
    const struct rcpt_kafka_place *place = standing->place;
    RCPT_ASSERT(place != NULL);
    if (standing->fit != LOG_FITS || standing->anchor.offset < place->low ||
        standing->anchor.offset >= place->high)
        return true;
    const struct rcpt_kafka_history history = {.brokers = config->kafka.brokers,
                                               .topic = positions->topic,
                                               .properties = positions->properties,
                                               .property_count = config->kafka.properties_count,
                                               .from_offset = true,
                                               .partition = standing->partition,
                                               .offset = standing->anchor.offset,
                                               .context = &proof,
                                               .on_message = on_anchor};
    if (!rcpt_kafka_read_history(&history, &positions->context.error))
        return false;
    if (proof.differs)
        standing->fit = LOG_OTHER;
    return true;
}

/* A log that the daemon stands still before is nobody's work; otherwise nobody may have it. */
static bool check_owner(struct positions *positions, const struct standing *standing)
{
    struct rcpt_error *error = &positions->context.error;
    const struct rcpt_kafka_place *place = standing->place;
    RCPT_ASSERT(place != NULL);
    if (standing->fit != LOG_FITS || place->owner == RCPT_KAFKA_OWNER_NOBODY ||
        place->owner == RCPT_KAFKA_OWNER_OTHER)
        return true;
    if (place->owner == RCPT_KAFKA_OWNER_OURS) {
        rcpt_error_fatal(error, EX_TEMPFAIL, "%s works on topic %s partition %" PRId32,
                         place->member, positions->topic, standing->partition);
        rcpt_error_hint(error, "stop the instances of the group first, then try again");
    } else {
        rcpt_error_fatal(error, EX_TEMPFAIL,
                         "it is not known who works on topic %s partition %" PRId32 ": %.200s",
                         positions->topic, standing->partition,
                         positions->survey.error.text[0] != '\0' ? positions->survey.error.text
                                                                 : "the group rebalances");
        rcpt_error_hint(error, "try again in some seconds");
    }
    return false;
}

/* ---- set, skip-gap ---- */

struct change {
    struct standing standing;
    int64_t to;
    const char *lanes, *reason; /* for positions_set.sql, for the record */
    bool set_aside;
};

/* A number within the log, or a name of one of its ends. */
static bool read_target(struct positions *positions, const char *text, struct change *change)
{
    const struct rcpt_kafka_place *place = change->standing.place;
    char *end;
    errno = 0;
    if (strcmp(text, "beginning") == 0 || strcmp(text, "end") == 0) {
        change->to = text[0] == 'b' ? place->low : place->high;
        return true;
    }
    change->to = strtoll(text, &end, 10);
    if (errno == 0 && *end == '\0' && end != text && change->to >= place->low &&
        change->to <= place->high)
        return true;
    rcpt_error_fatal(&positions->context.error, EX_USAGE,
                     "\"%.40s\" is no offset of topic %s partition %" PRId32
                     ", which holds %" PRId64 " up to %" PRId64,
                     text, positions->topic, change->standing.partition, place->low, place->high);
    rcpt_error_hint(&positions->context.error, "a number, beginning or end");
    return false;
}

static bool plan_skip(struct positions *positions, struct change *change)
{
    change->to = change->standing.place->low;
    change->lanes = "below";
    change->reason = "skip-gap";
    if (change->standing.fit == LOG_GAP)
        return true;
    rcpt_error_fatal(&positions->context.error, EX_USAGE,
                     "topic %s partition %" PRId32 " has no gap: its position is %" PRId64
                     ", and the log begins at %" PRId64,
                     positions->topic, change->standing.partition, change->standing.position,
                     change->standing.place->low);
    return false;
}

/* In the log that was consumed, going back counts receipts once more. */
static bool plan_set(struct positions *positions, const char *text, struct change *change)
{
    const struct standing *standing = &change->standing;
    bool same_log = standing->fit == LOG_FITS || standing->fit == LOG_GAP;
    change->lanes = standing->fit == LOG_MISSING ? "missing" : "all";
    change->reason = positions_fit_texts[standing->fit];
    change->set_aside = standing->fit == LOG_ENDS || standing->fit == LOG_OTHER;
    if (!read_target(positions, text, change))
        return false;
    if (!same_log || change->to >= standing->position ||
        command_option(positions->call, "replay") != NULL)
        return true;
    rcpt_error_fatal(&positions->context.error, EX_USAGE,
                     "topic %s partition %" PRId32 ": records %" PRId64 "…%" PRId64
                     " were applied already",
                     positions->topic, standing->partition, change->to, standing->position - 1);
    rcpt_error_hint(
        &positions->context.error,
        "--replay applies them again: statuses stay right, and events count them twice");
    return false;
}

static void print_change(const struct positions *positions, const struct change *change,
                         const char *verb)
{
    const struct standing *standing = &change->standing;
    printf("%s: topic %s partition %" PRId32 " (%s): position ", verb, positions->topic,
           standing->partition, positions_fit_texts[standing->fit]);
    if (standing->position >= 0)
        printf("%" PRId64 " -> ", standing->position);
    printf("%" PRId64, change->to);
    if (standing->fit == LOG_MISSING)
        printf(" for %" PRId64 " rows that are missing\n", standing->missing);
    else if (change->set_aside)
        printf(", and what is parked or dead of the former topic gets negative offsets\n");
    else if (change->to > standing->position)
        printf(", records %" PRId64 "…%" PRId64 " are not applied\n", standing->position,
               change->to - 1);
    else
        printf(", records %" PRId64 "…%" PRId64 " are applied again\n", change->to,
               standing->position - 1);
}

/* Runs one statement for its effect; `rows` NULL: the number does not matter. */
static bool run(struct positions *positions, const char *file, size_t count,
                const char *const *values, int64_t *rows)
{
    struct rcpt_session_rows *answer = rcpt_session_query(
        positions->context.session, rcpt_sql(file), count, values, &positions->context.error);
    if (answer != NULL && rows != NULL)
        *rows = rcpt_session_rows_int(answer, 0, "rows");
    rcpt_session_rows_free(answer);
    return answer != NULL;
}

/* The rows are locked first, then compared: nothing moves them from there on. */
static bool has_moved(struct positions *positions, const struct change *change,
                      const char *partition)
{
    struct rcpt_session_rows *rows = positions_read(positions, partition);
    bool same =
        rows != NULL && rcpt_session_rows_count(rows) == 1 &&
        strcmp(rcpt_session_rows_text(rows, 0, "positions"), change->standing.positions) == 0;
    if (rows != NULL && !same)
        rcpt_error_fatal(&positions->context.error, EX_TEMPFAIL,
                         "topic %s partition %s: its positions have moved meanwhile",
                         positions->topic, partition);
    rcpt_session_rows_free(rows);
    return !same;
}

static bool write_receipts(struct positions *positions, const struct change *change,
                           const char *partition, const char *to)
{
    const char *const values[] = {positions->topic, partition, to, change->lanes};
    int64_t rows = 0;
    return run(positions, "command/positions_lock", 2, values, NULL) &&
           !has_moved(positions, change, partition) &&
           run(positions, "command/positions_set", 4, values, &rows) &&
           (!change->set_aside || run(positions, "command/positions_set_aside", 2, values, &rows));
}

static bool write_reader(struct positions *positions, const struct change *change,
                         const char *partition, const char *to)
{
    const char *const values[] = {positions->reader, positions->topic, partition, to,
                                  change->standing.positions};
    int64_t rows = 0;
    if (!run(positions, "command/positions_set_reader", 5, values, &rows))
        return false;
    return rows == 1 || rcpt_error_fatal(&positions->context.error, EX_TEMPFAIL,
                                         "topic %s partition %s: its position has moved meanwhile",
                                         positions->topic, partition);
}

/* One synchronous transaction: the position, and the record that it was changed. */
static bool write_change(struct positions *positions, const struct change *change)
{
    struct rcpt_session *session = positions->context.session;
    struct rcpt_error *error = &positions->context.error;
    char partition[NUMBER], to[NUMBER];
    snprintf(partition, sizeof(partition), "%" PRId32, change->standing.partition);
    snprintf(to, sizeof(to), "%" PRId64, change->to);
    const char *const note[] = {
        positions->reader, positions->topic, partition, change->standing.positions, to,
        change->reason};
    if (!rcpt_session_begin(session, "", error))
        return false;
    bool good = rcpt_session_execute(session, rcpt_sql("control/synchronous"), error) &&
                (strcmp(positions->reader, "receipts") == 0 ? write_receipts : write_reader)(
                    positions, change, partition, to) &&
                run(positions, "command/positions_note", 6, note, NULL) &&
                rcpt_session_commit(session, error);
    if (!good)
        rcpt_session_rollback(session);
    return good;
}

/* The partition as PostgreSQL and Kafka have it; the caller frees `positions`. */
static bool find_standing(struct positions *positions, const char *partition,
                          struct standing *standing)
{
    struct rcpt_error *error = &positions->context.error;
    struct rcpt_session_rows *rows = NULL;
    if (!positions_survey(positions, &positions->topic, 1) ||
        (rows = positions_read(positions, partition)) == NULL)
        return false;
    bool found = rcpt_session_rows_count(rows) == 1;
    if (found) {
        *standing = positions_standing(positions, rows, 0);
        standing->positions = rcpt_strdup(rcpt_session_rows_text(rows, 0, "positions"));
        standing->cluster_id = NULL; /* the row's */
    }
    rcpt_session_rows_free(rows);
    if (!found || standing->place == NULL)
        return rcpt_error_fatal(error, EX_NOINPUT, "%s has no position of topic %s partition %s",
                                positions->reader, positions->topic, partition);
    if (standing->fit == LOG_CLUSTER) {
        rcpt_error_fatal(error, EX_USAGE,
                         "topic %s is consumed from another cluster than kafka.brokers lead to",
                         positions->topic);
        rcpt_error_hint(error, "if it is the right one: receiptd positions accept-cluster");
        return false;
    }
    if (standing->place->low < 0 || standing->place->high < 0)
        return rcpt_error_fatal(error, EX_UNAVAILABLE,
                                "the ends of topic %s partition %s cannot be read: %.200s",
                                positions->topic, partition, positions->survey.error.text);
    return true;
}

int positions_change(struct positions *positions, const char *partition, const char *target)
{
    struct change change = {0};
    bool dry_run = command_option(positions->call, "dry-run") != NULL;
    bool good = find_standing(positions, partition, &change.standing) &&
                prove(positions, &change.standing) &&
                (target != NULL || plan_skip(positions, &change)) &&
                check_owner(positions, &change.standing) &&
                (target == NULL || plan_set(positions, target, &change));
    if (good && !dry_run)
        good = write_change(positions, &change);
    if (good)
        print_change(positions, &change, dry_run ? "would set" : "set");
    free(change.standing.positions);
    rcpt_kafka_survey_free(&positions->survey);
    return good ? command_printed(EX_OK) : command_fail(&positions->context.error);
}
