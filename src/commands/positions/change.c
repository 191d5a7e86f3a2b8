/* `receiptd positions set` and `skip-gap`: checks that positions may be moved, and moves them, all
 * in one transaction. The file proof.c checks that the log is the one that was consumed. Called by
 * positions.c. */
#include "positions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "receiptd/postgres/sql.h"

#define NUMBER 24 /* bytes of a number's text */

/* No daemon works on a log that does not fit. Otherwise no instance of the group may own the
 * partition. */
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
                         "the owner is unknown of topic %s partition %" PRId32 ": %.200s",
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

struct changes {
    struct change *items;
    size_t count;
};

/* A number within the log, a name of one of its ends, or the first record of a time. */
static bool read_target(struct positions *positions, const struct positions_target *target,
                        struct change *change)
{
    const struct rcpt_kafka_place *place = change->standing.place;
    const char *text = target->offset;
    char *end;
    errno = 0;
    if (text == NULL) {
        change->to = place->at;
        return true;
    }
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

static bool plan_skip(struct change *change)
{
    change->to = change->standing.place->low;
    change->lanes = "below";
    change->reason = "skip-gap";
    return change->standing.fit == LOG_GAP;
}

static bool has_no_gap(struct positions *positions, const struct change *change)
{
    return rcpt_error_fatal(&positions->context.error, EX_USAGE,
                            "topic %s partition %" PRId32 " has no gap: its position is %" PRId64
                            ", and the log begins at %" PRId64,
                            positions->topic, change->standing.partition, change->standing.position,
                            change->standing.place->low);
}

/* Going back in the log that was consumed counts receipts again. */
static bool goes_back(const struct change *change)
{
    return (change->standing.fit == LOG_FITS || change->standing.fit == LOG_GAP) &&
           change->to < change->standing.position;
}

static bool plan_set(struct positions *positions, const struct positions_target *target,
                     struct change *change)
{
    const struct standing *standing = &change->standing;
    change->lanes = standing->fit == LOG_MISSING ? "missing" : "all";
    change->reason = positions_fit_texts[standing->fit];
    change->set_aside = standing->fit == LOG_ENDS || standing->fit == LOG_OTHER;
    return read_target(positions, target, change);
}

/* A dry run may show what a replay would do. */
static bool check_replay(struct positions *positions, const struct change *change)
{
    if (!goes_back(change) || command_option(positions->call, "replay") != NULL ||
        command_option(positions->call, "dry-run") != NULL)
        return true;
    rcpt_error_fatal(
        &positions->context.error, EX_USAGE,
        "topic %s partition %" PRId32 ": records %" PRId64 "…%" PRId64 " were applied already",
        positions->topic, change->standing.partition, change->to, change->standing.position - 1);
    rcpt_error_hint(
        &positions->context.error,
        "--replay applies them again: statuses stay right, and events count them twice");
    return false;
}

static void print_change(const struct positions *positions, const struct change *change)
{
    const struct standing *standing = &change->standing;
    bool dry_run = command_option(positions->call, "dry-run") != NULL;
    bool asks = goes_back(change) && command_option(positions->call, "replay") == NULL;
    printf("%s: topic %s partition %" PRId32 " (%s): position ",
           !dry_run ? "set"
           : asks   ? "would set, with --replay"
                    : "would set",
           positions->topic, standing->partition, positions_fit_texts[standing->fit]);
    if (standing->position >= 0)
        printf("%" PRId64 " -> ", standing->position);
    printf("%" PRId64, change->to);
    if (standing->fit == LOG_MISSING)
        printf(" for %" PRId64 " rows that are missing\n", standing->missing);
    else if (change->set_aside)
        printf(", and parked receipts and dead letters of the former topic get negative offsets\n");
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

/* The position, and the record that it was changed. */
static bool write_change(struct positions *positions, const struct change *change)
{
    char partition[NUMBER], to[NUMBER];
    snprintf(partition, sizeof(partition), "%" PRId32, change->standing.partition);
    snprintf(to, sizeof(to), "%" PRId64, change->to);
    const char *const note[] = {
        positions->reader, positions->topic, partition, change->standing.positions, to,
        change->reason};
    return (strcmp(positions->reader, "receipts") == 0 ? write_receipts : write_reader)(
               positions, change, partition, to) &&
           run(positions, "command/positions_note", 6, note, NULL);
}

/* True for a partition that `all` leaves as it is. */
static bool is_nothing(const struct change *change)
{
    return change->standing.fit == LOG_FITS && change->to == change->standing.position;
}

/* One synchronous transaction, in the order of the partitions, in which batches lock rows as
 * well. */
static bool write_changes(struct positions *positions, const struct changes *changes)
{
    struct rcpt_session *session = positions->context.session;
    struct rcpt_error *error = &positions->context.error;
    if (!rcpt_session_begin(session, "", error))
        return false;
    bool good = rcpt_session_execute(session, rcpt_sql("control/synchronous"), error);
    for (size_t index = 0; good && index < changes->count; index++)
        good = write_change(positions, &changes->items[index]);
    good = good && rcpt_session_commit(session, error);
    if (!good)
        rcpt_session_rollback(session);
    return good;
}

/* ---- the partitions that are meant ---- */

static bool check_standing(struct positions *positions, const struct standing *standing)
{
    struct rcpt_error *error = &positions->context.error;
    if (standing->place == NULL)
        return rcpt_error_fatal(error, EX_NOINPUT, "topic %s has no partition %" PRId32 " in Kafka",
                                positions->topic, standing->partition);
    if (standing->fit == LOG_CLUSTER) {
        rcpt_error_fatal(error, EX_USAGE,
                         "topic %s is consumed from another cluster than kafka.brokers lead to",
                         positions->topic);
        rcpt_error_hint(error, "if it is the right one: receiptd positions accept-cluster");
        return false;
    }
    if (standing->place->low < 0 || standing->place->high < 0)
        return rcpt_error_fatal(error, EX_UNAVAILABLE,
                                "the ends of topic %s partition %" PRId32 " cannot be read: %.200s",
                                positions->topic, standing->partition,
                                positions->survey.error.text);
    return true;
}

/* Reads the partitions from PostgreSQL and Kafka. */
static bool find_standings(struct positions *positions, const char *partition,
                           struct changes *changes)
{
    struct rcpt_session_rows *rows =
        positions_read(positions, strcmp(partition, "all") == 0 ? NULL : partition);
    if (rows == NULL)
        return false;
    size_t count = rcpt_session_rows_count(rows);
    bool good = count > 0 || rcpt_error_fatal(&positions->context.error, EX_NOINPUT,
                                              "%s has no position of topic %s partition %s",
                                              positions->reader, positions->topic, partition);
    struct standing *standings = rcpt_calloc(count + 1, sizeof(*standings));
    for (size_t row = 0; good && row < count; row++) {
        standings[row] = positions_standing(positions, rows, row);
        good = check_standing(positions, &standings[row]);
        standings[row].cluster_id = NULL; /* the row's */
    }
    good = good && positions_prove(positions, positions->topic, standings, count);
    changes->items = rcpt_calloc(count + 1, sizeof(*changes->items));
    for (size_t row = 0; good && row < count; row++) {
        changes->items[changes->count] = (struct change){.standing = standings[row]};
        changes->items[changes->count++].standing.positions =
            rcpt_strdup(rcpt_session_rows_text(rows, row, "positions"));
    }
    free(standings);
    rcpt_session_rows_free(rows);
    return good;
}

/* One refusal refuses all. `all` leaves out partitions with nothing to do, even if a daemon works
 * on them. */
static bool plan(struct positions *positions, const struct positions_target *target, bool all,
                 struct changes *changes)
{
    size_t kept = 0;
    for (size_t index = 0; index < changes->count; index++) {
        struct change change = changes->items[index];
        bool moves = target != NULL || plan_skip(&change);
        if (!moves && !all)
            return has_no_gap(positions, &change);
        if (target != NULL && !plan_set(positions, target, &change))
            return false;
        moves = moves && !(all && is_nothing(&change));
        if (moves &&
            (!check_owner(positions, &change.standing) || !check_replay(positions, &change)))
            return false;
        changes->items[index].standing.positions = NULL;
        if (moves)
            changes->items[kept++] = change;
        else
            free(change.standing.positions);
    }
    changes->count = kept;
    return true;
}

int positions_change(struct positions *positions, const char *partition,
                     const struct positions_target *target)
{
    struct changes changes = {0};
    bool good =
        positions_survey(positions, &positions->topic, 1, target != NULL ? target->at_ms : -1) &&
        find_standings(positions, partition, &changes);
    size_t found = changes.count;
    good = good && plan(positions, target, strcmp(partition, "all") == 0, &changes);
    if (good && command_option(positions->call, "dry-run") == NULL)
        good = write_changes(positions, &changes);
    for (size_t index = 0; good && index < changes.count; index++)
        print_change(positions, &changes.items[index]);
    if (good && changes.count == 0)
        printf("nothing to do: of %zu partitions of topic %s none %s\n", found, positions->topic,
               target == NULL ? "has a gap" : "would move");
    for (size_t index = 0; index < found; index++)
        free(changes.items[index].standing.positions);
    free(changes.items);
    rcpt_kafka_survey_free(&positions->survey);
    return good ? command_printed(EX_OK) : command_fail(&positions->context.error);
}
