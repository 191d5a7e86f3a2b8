/* Runs a statement that may wait long, and names the sessions that it waits for (waits.h). Called
 * by recent.c and turns.c. */
#include "waits.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/postgres/sql.h"

#define LOOK_MS 2000

struct waits {
    struct command_context *context;
    /* Asks while the other one waits; NULL: not open yet, or cannot be opened. */
    struct rcpt_session *beside;
    bool alone;
    char pid[16];    /* of the one that waits */
    char named[256]; /* backends that were named already */
};

static const char *or_unknown(const struct rcpt_session_rows *rows, size_t row, const char *column)
{
    const char *text = rcpt_session_rows_text(rows, row, column);
    return text != NULL && *text != '\0' ? text : "unknown";
}

/* Each session is named once. */
static void name_one(struct waits *waits, const struct rcpt_session_rows *rows, size_t row)
{
    char mark[24];
    size_t used = strlen(waits->named);
    snprintf(mark, sizeof(mark), "<%s>", rcpt_session_rows_text(rows, row, "pid"));
    if (strstr(waits->named, mark) != NULL || used + strlen(mark) >= sizeof(waits->named))
        return;
    memcpy(waits->named + used, mark, strlen(mark) + 1);
    fprintf(stderr,
            "waiting for backend %s (user %s, application %s), %s, transaction open for %s s, last "
            "query begun at %s: it must end first\n",
            rcpt_session_rows_text(rows, row, "pid"), or_unknown(rows, row, "usename"),
            or_unknown(rows, row, "application_name"), or_unknown(rows, row, "state"),
            or_unknown(rows, row, "age"), or_unknown(rows, row, "began"));
}

/* A signal during this query is passed on to the statement that waits. */
static void on_wait(void *context)
{
    struct waits *waits = context;
    struct rcpt_error error = {0};
    const char *const values[] = {waits->pid};
    if (waits->beside == NULL && !waits->alone)
        waits->beside = command_open_beside(waits->context, &error);
    waits->alone = waits->beside == NULL;
    if (waits->alone)
        return;
    struct rcpt_session_rows *rows =
        rcpt_session_query(waits->beside, rcpt_sql("command/waits_for"), 1, values, &error);
    for (size_t row = 0; rows != NULL && row < rcpt_session_rows_count(rows); row++)
        name_one(waits, rows, row);
    if (rows == NULL && error.exit_code > 128)
        raise(error.exit_code - 128);
    rcpt_session_rows_free(rows);
}

static bool read_pid(struct command_context *context, struct waits *waits)
{
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, "SELECT pg_backend_pid() AS pid", 0, NULL, &context->error);
    if (rows != NULL)
        snprintf(waits->pid, sizeof(waits->pid), "%s", rcpt_session_rows_text(rows, 0, "pid"));
    rcpt_session_rows_free(rows);
    return rows != NULL;
}

bool waits_execute(struct command_context *context, const char *sql)
{
    struct waits waits = {.context = context};
    if (!read_pid(context, &waits))
        return false;
    const struct rcpt_session_watch watch = {LOOK_MS, on_wait, &waits};
    bool good = rcpt_session_execute_watched(context->session, sql, &watch, &context->error);
    rcpt_session_close(waits.beside);
    return good;
}
