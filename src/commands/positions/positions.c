/* `receiptd positions`: compares each partition's position with Kafka's log, and moves positions on
 * purpose, of one partition or of a whole topic. An operator needs it when the daemon stops before
 * a log that it does not know. The command asks Kafka and PostgreSQL itself, so it needs no daemon.
 * Moves are refused while a daemon works on the partition. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "../report.h"
#include "positions.h"
#include "receiptd/base/error.h"
#include "receiptd/core/timestamp.h"
#include "receiptd/host/context.h"
#include "receiptd/postgres/sql.h"

/* ---- show ---- */

static void add_known(struct report *report, int64_t value)
{
    if (value >= 0)
        report_add_int(report, value);
    else
        report_add(report, NULL);
}

static void add_standing(struct report *report, const struct positions *positions,
                         const char *topic, const struct standing *standing)
{
    const struct rcpt_kafka_place *place = standing->place;
    int64_t position = standing->position;
    report_add(report, positions->reader);
    report_add(report, topic);
    report_add_int(report, standing->partition);
    add_known(report, position);
    add_known(report, place != NULL ? place->low : -1);
    add_known(report, place != NULL ? place->high : -1);
    add_known(report, place == NULL ? -1
                                    : rcpt_kafka_place_lag(
                                          place, position,
                                          rcpt_pg_server_wrote(positions->server, place->note)));
    report_add(report, place != NULL && place->owner == RCPT_KAFKA_OWNER_NOBODY ? "nobody"
                       : place != NULL                                          ? place->member
                                                                                : NULL);
    report_add(report, place == NULL ? "not in Kafka" : positions_fit_texts[standing->fit]);
}

/* The rows come topic by topic. The caller frees the array, not the texts. */
static const char **topics_of(const struct rcpt_session_rows *rows, size_t *count)
{
    size_t all = rcpt_session_rows_count(rows);
    const char **topics = rcpt_calloc(all + 1, sizeof(*topics));
    *count = 0;
    for (size_t row = 0; row < all; row++) {
        const char *topic = rcpt_session_rows_text(rows, row, "topic");
        if (*count == 0 || strcmp(topics[*count - 1], topic) != 0)
            topics[(*count)++] = topic;
    }
    return topics;
}

/* Compares the records of one topic. If they cannot be read, the other columns are still shown. */
static void show_topic(struct positions *positions, const char *topic, struct standing *standings,
                       size_t count, struct report *report)
{
    if (!positions_prove(positions, topic, standings, count)) {
        fprintf(stderr, "note: the records of topic %s cannot be compared: %s\n", topic,
                positions->context.error.text);
        for (size_t index = 0; index < count; index++)
            if (standings[index].fit == LOG_FITS)
                standings[index].fit = LOG_UNREAD;
    }
    for (size_t index = 0; index < count; index++)
        add_standing(report, positions, topic, &standings[index]);
}

static void show_topics(struct positions *positions, const struct rcpt_session_rows *rows,
                        struct report *report)
{
    size_t all = rcpt_session_rows_count(rows), first = 0;
    struct standing *standings = rcpt_calloc(all + 1, sizeof(*standings));
    for (size_t row = 0; row < all; row++) {
        const char *topic = rcpt_session_rows_text(rows, row, "topic");
        standings[row] = positions_standing(positions, rows, row);
        if (row + 1 == all || strcmp(rcpt_session_rows_text(rows, row + 1, "topic"), topic) != 0) {
            show_topic(positions, topic, standings + first, row + 1 - first, report);
            first = row + 1;
        }
    }
    free(standings);
}

static bool show_reader(struct positions *positions, const char *reader, struct report *report)
{
    positions->reader = reader;
    struct rcpt_session_rows *rows = positions_read(positions, NULL);
    if (rows == NULL)
        return false;
    size_t count;
    const char **topics = topics_of(rows, &count);
    bool good = count == 0 || positions_survey(positions, topics, count, -1);
    if (good)
        show_topics(positions, rows, report);
    rcpt_kafka_survey_free(&positions->survey);
    free(topics);
    rcpt_session_rows_free(rows);
    return good;
}

/* All readers are shown unless --reader names one. */
static int show(struct positions *positions, enum command_format format)
{
    static const struct report_column columns[] = {
        {"reader", REPORT_TEXT},     {"topic", REPORT_TEXT},    {"partition", REPORT_NUMBER},
        {"position", REPORT_NUMBER}, {"begins", REPORT_NUMBER}, {"ends", REPORT_NUMBER},
        {"lag", REPORT_NUMBER},      {"owner", REPORT_TEXT},    {"state", REPORT_TEXT}};
    static const char *const readers[] = {"receipts", "folds", "actions", "messages"};
    const char *only = command_option(positions->call, "reader");
    struct report report;
    struct rcpt_session_rows *server = positions_query(positions, "command/server_identity");
    bool good = server != NULL;
    if (good)
        positions->server = positions_server_in(server, 0);
    rcpt_session_rows_free(server);
    report_init(&report, columns, RCPT_COUNT_OF(columns));
    for (size_t index = 0; good && index < RCPT_COUNT_OF(readers); index++)
        if (only == NULL || strcmp(only, readers[index]) == 0)
            good = show_reader(positions, readers[index], &report);
    if (good)
        report_print(&report, format, "no positions");
    report_fini(&report);
    return good ? command_printed(EX_OK) : command_fail(&positions->context.error);
}

/* ---- the command ---- */

static bool is_number(const char *text)
{
    size_t size = strlen(text);
    return size > 0 && size < 10 && strspn(text, "0123456789") == size;
}

static bool is_reader(const char *text)
{
    return strcmp(text, "receipts") == 0 || strcmp(text, "folds") == 0 ||
           strcmp(text, "actions") == 0 || strcmp(text, "messages") == 0;
}

/* Kafka's times are milliseconds from 1970 on. */
static bool read_time(const char *text, int64_t *at_ms)
{
    int64_t at_us;
    if (text == NULL || !rcpt_timestamp_parse(text, strlen(text), &at_us) || at_us < 0)
        return false;
    *at_ms = at_us / 1000 + (at_us % 1000 > 0);
    return true;
}

/* The target is either an offset or a time. */
static int check_target(const struct command_call *call)
{
    const char *at = command_option(call, "at");
    int64_t at_ms;
    if ((at == NULL) == (call->more[2] == NULL))
        return command_usage(call,
                             "set it to which offset? A number, beginning, end, or --at TIME");
    if (at != NULL && !read_time(at, &at_ms))
        return command_usage(call, "--at %.40s: a time is written 2026-11-21T02:30:00Z", at);
    return EX_OK;
}

/* Returns 0, or the exit code after printing what is wrong. */
static int check_arguments(const struct command_call *call, const char *verb)
{
    const char *reader = command_option(call, "reader");
    bool sets = strcmp(verb, "set") == 0, skips = strcmp(verb, "skip-gap") == 0;
    if (reader != NULL && !is_reader(reader))
        return command_usage(call, "--reader is receipts, folds, actions or messages");
    if (strcmp(verb, "show") == 0 || strcmp(verb, "accept-database") == 0 ||
        strcmp(verb, "accept-cluster") == 0)
        return EX_OK;
    if (!sets && !skips)
        return command_usage(
            call, "unknown verb \"%.40s\": show, set, skip-gap, accept-database or accept-cluster",
            verb);
    if (call->more[0] == NULL || call->more[1] == NULL ||
        (!is_number(call->more[1]) && strcmp(call->more[1], "all") != 0))
        return command_usage(call, "%s TOPIC PARTITION|all%s", verb, sets ? " OFFSET" : "");
    return sets ? check_target(call) : EX_OK;
}

int command_positions(const struct command_call *call)
{
    enum command_format format;
    struct positions positions = {.call = call};
    const char *verb = call->argument != NULL ? call->argument : "show";
    const char *reader = command_option(call, "reader");
    int exit_code = command_format(call, &format) ? check_arguments(call, verb) : EX_USAGE;
    bool shows = strcmp(verb, "show") == 0;
    struct positions_target target = {.offset = call->more[2], .at_ms = -1};
    if (command_option(call, "at") != NULL)
        (void)read_time(command_option(call, "at"), &target.at_ms);
    if (exit_code != EX_OK || !command_open(&positions.context, call, shows, &exit_code))
        return exit_code;
    positions.reader = reader != NULL ? reader : "receipts";
    positions.topic = call->more[0];
    positions.properties = host_kafka_properties(positions.context.config);
    if (shows)
        exit_code = show(&positions, format);
    else if (strcmp(verb, "accept-database") == 0)
        exit_code = positions_accept(&positions);
    else if (strcmp(verb, "accept-cluster") == 0)
        exit_code = positions_accept_cluster(&positions);
    else
        exit_code =
            positions_change(&positions, call->more[1], strcmp(verb, "set") == 0 ? &target : NULL);
    free(positions.properties);
    command_close(&positions.context);
    return exit_code;
}
