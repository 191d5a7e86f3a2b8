/* `receiptd stream --backfill`: fills the stream with the present rows of the inbox while receipts
 * flow. A page is one statement and one transaction (sql/command/stream_page.sql), in the order of
 * the ids. So the command may be ended at any time, and goes on behind the last id that it has
 * printed. It waits while the daemon has much to publish. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "../command.h"
#include "receiptd/base/clock.h"
#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/sql.h"

#define PAGE_ROWS      "1000"
#define MOST_WAITING   50   /* rows of the stream, each a page or a transaction of a lane */
#define COUNT_WAITING  "51" /* counting more says nothing more */
#define POLL_MS        100
#define ATTEMPTS       100
#define PROGRESS_EVERY 10 /* seconds */

struct backfill {
    struct command_context *context;
    const char *columns; /* an array literal */
    char *last;          /* id; "": none yet */
    int64_t rows;
    time_t next_progress;
};

static void nap(void)
{
    const struct timespec wait = {.tv_nsec = POLL_MS * RCPT_NS_PER_MS};
    nanosleep(&wait, NULL);
}

static void print_place(const struct backfill *backfill, const char *what)
{
    printf("stream: %" PRId64 " messages written%s; to go on from here: --from '%s'\n",
           backfill->rows, what, backfill->last);
    fflush(stdout);
}

static void print_progress(struct backfill *backfill, const char *what)
{
    if (time(NULL) < backfill->next_progress)
        return;
    print_place(backfill, what);
    backfill->next_progress = time(NULL) + PROGRESS_EVERY;
}

/* ---- pace ---- */

/* -1: the error is in the context. */
static int64_t count_waiting(struct command_context *context)
{
    const char *const values[] = {COUNT_WAITING};
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("command/stream_waiting"), 1, values, &context->error);
    int64_t waiting = rows != NULL ? rcpt_session_rows_int(rows, 0, "rows") : -1;
    rcpt_session_rows_free(rows);
    return waiting;
}

/* The rows of the stream are a queue in the database: it stays short, so that receipts are
 * published soon, too. */
static bool wait_for_room(struct backfill *backfill)
{
    int64_t waiting;
    while ((waiting = count_waiting(backfill->context)) > MOST_WAITING) {
        print_progress(backfill, ", waiting for a daemon to publish them");
        nap();
    }
    return waiting >= 0;
}

/* ---- pages ---- */

/* A page that waits holds what it has locked, and a daemon ends sessions that hold it up: so a page
 * waits briefly, gives its locks back, and begins again. Lanes lock the messages of a batch in the
 * order of bytes. Where the inbox has another collation, two sessions may wait for each other; then
 * PostgreSQL ends one. */
static bool is_worth_another(const struct rcpt_error *error)
{
    return strcmp(error->code, "40P01") == 0 || strcmp(error->code, "55P03") == 0;
}

static struct rcpt_session_rows *write_page(struct backfill *backfill)
{
    struct command_context *context = backfill->context;
    const char *const values[] = {backfill->last, PAGE_ROWS, backfill->columns};
    struct rcpt_session_rows *rows = NULL;
    for (unsigned attempt = 0; rows == NULL && attempt < ATTEMPTS; attempt++) {
        if (attempt > 0)
            nap();
        context->error = (struct rcpt_error){0};
        rows = rcpt_session_query(context->session, rcpt_sql("command/stream_page"), 3, values,
                                  &context->error);
        if (rows == NULL && !is_worth_another(&context->error))
            break;
    }
    return rows;
}

/* False: it was the last page, or the error is in the context. */
static bool step(struct backfill *backfill)
{
    struct rcpt_session_rows *rows = wait_for_room(backfill) ? write_page(backfill) : NULL;
    int64_t count = rows != NULL ? rcpt_session_rows_int(rows, 0, "rows") : 0;
    if (count > 0) {
        free(backfill->last);
        backfill->last = rcpt_strdup(rcpt_session_rows_text(rows, 0, "last"));
        backfill->rows += count;
    }
    print_progress(backfill, "");
    rcpt_session_rows_free(rows);
    return count == strtoll(PAGE_ROWS, NULL, 10);
}

/* ---- the command ---- */

static bool run(struct command_context *context, const char *from)
{
    struct rcpt_array_text columns;
    struct backfill backfill = {.context = context,
                                .last = rcpt_strdup(from != NULL ? from : ""),
                                .next_progress = time(NULL) + PROGRESS_EVERY};
    rcpt_array_text_init(&columns);
    for (size_t index = 0; index < context->config->stream.columns_count; index++)
        rcpt_array_text_add(&columns, context->config->stream.columns[index],
                            strlen(context->config->stream.columns[index]));
    backfill.columns = rcpt_array_text_finish(&columns);
    context->error = (struct rcpt_error){0};
    if (rcpt_session_execute(context->session, "SET lock_timeout = '500ms'", &context->error))
        while (step(&backfill))
            ;
    bool good = context->error.text[0] == '\0';
    if (good)
        printf("stream: %" PRId64 " messages written; all are in the stream\n", backfill.rows);
    else
        print_place(&backfill, "");
    rcpt_array_text_fini(&columns);
    free(backfill.last);
    return good;
}

static bool check_topic(struct command_context *context)
{
    if (context->config->stream.topic != NULL)
        return true;
    rcpt_error_fatal(&context->error, EX_CONFIG, "stream.topic is not set: there is no stream");
    rcpt_error_hint(&context->error, "set stream.topic here and in the daemon's configuration");
    return false;
}

int command_stream(const struct command_call *call)
{
    struct command_context context;
    int exit_code = EX_USAGE;
    if (command_option(call, "backfill") == NULL)
        return command_usage(call, "nothing to do: give --backfill");
    if (!command_open_as(&context, call, command_option(call, "dsn"), false, &exit_code))
        return exit_code;
    bool good = check_topic(&context) && run(&context, command_option(call, "from"));
    exit_code = good ? EX_OK : command_fail_in(call, &context.error);
    command_close(&context);
    return command_printed(exit_code);
}
