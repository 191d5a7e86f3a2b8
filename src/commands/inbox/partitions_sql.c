/* The layout of a partitioned inbox as it is, and scripts of SQL that change it without a batch
 * that waits long (partitions_internal.h). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "../turns.h"
#include "partitions_internal.h"
#include "receiptd/postgres/sql.h"

#define SPANS_AHEAD 7
#define DAY_MS      INT64_C(86400000)

/* Attempts are up to a second apart. */
#define ATTEMPTS 75

/* ---- the layout ---- */

/* Partitions whose bounds are no times of this kind of ids are left out: receiptd did not make
 * them. */
static bool read_parts(struct layout *layout)
{
    const char *const values[] = {layout->place.schema, layout->place.table};
    layout->parts = rcpt_session_query(layout->context->session, rcpt_sql("partitions/list"), 2,
                                       values, &layout->context->error);
    if (layout->parts == NULL)
        return false;
    for (size_t row = 0; row < rcpt_session_rows_count(layout->parts); row++) {
        const char *lower = rcpt_session_rows_text(layout->parts, row, "lower");
        const char *upper = rcpt_session_rows_text(layout->parts, row, "upper");
        int64_t from_ms = 0, to_ms;
        if (!rcpt_id_has_bounds(layout->ids) || upper == NULL ||
            !rcpt_id_time(layout->ids, upper, &to_ms) ||
            (lower != NULL && !rcpt_id_time(layout->ids, lower, &from_ms)))
            continue;
        if (from_ms < layout->first_ms)
            layout->first_ms = from_ms;
        if (to_ms > layout->last_ms)
            layout->last_ms = to_ms;
    }
    return true;
}

/* There is no such table if the state has no row. Then the error is empty. */
bool layout_read(struct layout *layout, struct command_context *context)
{
    *layout = (struct layout){.context = context,
                              .ids = context->config->inbox.ids,
                              .span_ms = context->config->inbox.partition_span_ms,
                              .first_ms = INT64_MAX};
    inbox_place_of(context->config, &layout->place);
    const char *const values[] = {layout->place.schema, layout->place.table,
                                  layout->place.columns[INBOX_message_id]};
    context->error = (struct rcpt_error){0};
    layout->state = rcpt_session_query(context->session, rcpt_sql("partitions/state"), 3, values,
                                       &context->error);
    if (layout->state == NULL || rcpt_session_rows_count(layout->state) == 0)
        return false;
    layout->owner = rcpt_session_rows_text(layout->state, 0, "owner");
    layout->other = rcpt_session_rows_text(layout->state, 0, "other");
    layout->now_ms = rcpt_session_rows_int(layout->state, 0, "now_ms");
    return read_parts(layout);
}

void layout_forget(struct layout *layout)
{
    rcpt_session_rows_free(layout->state);
    rcpt_session_rows_free(layout->parts);
}

bool layout_is(const struct layout *layout, const char *column)
{
    return rcpt_session_rows_bool(layout->state, 0, column);
}

int64_t layout_span_end(const struct layout *layout, int64_t ms)
{
    return (ms / layout->span_ms + 1) * layout->span_ms;
}

/* Batches may look in partitions that are made ahead, so they are few: seven short ones, or a week
 * of longer ones. */
int64_t layout_horizon(const struct layout *layout)
{
    int64_t week_ms = 7 * DAY_MS, ahead_ms = SPANS_AHEAD * layout->span_ms;
    if (ahead_ms > week_ms)
        ahead_ms = layout->span_ms > week_ms ? layout->span_ms : week_ms;
    return layout_span_end(layout, layout->now_ms + ahead_ms);
}

int64_t layout_adopted_end(const struct layout *layout)
{
    int64_t horizon_ms = layout_horizon(layout), week_ms = (layout->now_ms / DAY_MS + 8) * DAY_MS;
    return horizon_ms < week_ms ? horizon_ms : week_ms;
}

/* The name has the day if spans are whole days, else the minute, so each start has its own. */
void layout_name(const struct layout *layout, int64_t start_ms, char name[64])
{
    time_t start = (time_t)(start_ms / 1000);
    struct tm parts;
    bool whole = layout->span_ms % DAY_MS == 0 && start_ms % DAY_MS == 0;
    RCPT_ASSERT(gmtime_r(&start, &parts) != NULL);
    strftime(name, 64, whole ? "message_inbox_p%Y%m%d" : "message_inbox_p%Y%m%d_%H%M", &parts);
}

/* ---- scripts ---- */

void script_begin(struct script *script, struct command_context *context)
{
    *script = (struct script){.context = context, .good = true};
    script->out = rcpt_open_memory(&script->text, &script->size);
}

void script_add(struct script *script, const char *file, const struct rcpt_pg_binding *bindings,
                size_t count)
{
    char *sql = script->good
                    ? rcpt_pg_bind(rcpt_sql(file), bindings, count, &script->context->error)
                    : NULL;
    script->good = sql != NULL;
    if (sql != NULL)
        fprintf(script->out, "%s\n", sql);
    free(sql);
}

/* lock_timeout is short, so that batches that queue behind our lock do not wait long either. */
static bool run_once(const struct script *script, bool waits)
{
    struct rcpt_session *session = script->context->session;
    struct rcpt_error *error = &script->context->error;
    char wait[64];
    snprintf(wait, sizeof(wait), "SET LOCAL lock_timeout = %d", LOCK_WAIT_MS);
    if (!rcpt_session_begin(session, "", error))
        return false;
    if ((waits || rcpt_session_execute(session, wait, error)) &&
        rcpt_session_execute(session, script->text, error) && rcpt_session_commit(session, error))
        return true;
    rcpt_session_rollback(session);
    return false;
}

/* Only locks and deadlocks are worth another attempt. The pauses vary, so that two commands do not
 * stay in step. */
bool script_again(struct command_context *context, unsigned *attempts, const char *what)
{
    const char *code = context->error.code;
    if (strcmp(code, "55P03") != 0 && strcmp(code, "40P01") != 0)
        return false;
    if (++*attempts < ATTEMPTS) {
        usleep(100000 + *attempts % 10 * 90000);
        return true;
    }
    rcpt_error_fatal(&context->error, EX_TEMPFAIL,
                     "%s: other transactions have held the lock for a minute, and batches do not "
                     "wait longer than %d ms for this one",
                     what, LOCK_WAIT_MS);
    rcpt_error_hint(&context->error, "a long query, a dump or a vacuum of the inbox holds the "
                                     "lock; the next run continues from here");
    return false;
}

static void end(struct script *script)
{
    if (script->out != NULL)
        RCPT_ASSERT(fclose(script->out) == 0);
    script->out = NULL;
}

bool script_run(struct script *script, const char *what)
{
    unsigned attempts = 0;
    bool good;
    end(script);
    do {
        good = script->good && run_once(script, false);
    } while (!good && script->good && script_again(script->context, &attempts, what));
    free(script->text);
    return good;
}

bool script_run_at_length(struct script *script)
{
    end(script);
    bool good = script->good && run_once(script, true);
    free(script->text);
    return good;
}

/* Two runs at once would make and drop the same partitions. */
bool partitions_lock(struct command_context *context)
{
    bool taken = false;
    if (!turns_take(context, "inbox_partition", &taken))
        return false;
    if (!taken)
        puts("another run works on the partitions of the inbox: this one leaves them alone");
    return taken;
}
