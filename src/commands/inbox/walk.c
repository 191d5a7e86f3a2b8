/* The walk of a table page by page, in steps: see walk.h. Called by expire.c and retire.c. */
#include "walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "partitions.h"
#include "receiptd/base/clock.h"
#include "receiptd/postgres/sql.h"

/* A batch may wait for a step, so steps are short. The next one takes twice as many pages after a
 * step below STEP_SHORT, and half as many after one above STEP_LONG. On a busy server even a step
 * of one page takes long, so a step has at least PAGES_MIN pages; otherwise a walk would take many
 * times longer. */
#define PAGES_MIN      32
#define PAGES_START    PAGES_MIN
#define PAGES_MAX      512
#define STEP_SHORT     (20 * RCPT_NS_PER_MS)
#define STEP_LONG      (50 * RCPT_NS_PER_MS)
#define PAUSE_MOST     (250 * RCPT_NS_PER_MS)
#define PROGRESS_EVERY 10 /* seconds */

static char *bind_part(struct command_walk *walk, const char *text,
                       const struct rcpt_session_rows *parts, size_t part)
{
    walk->bindings[0] =
        (struct rcpt_pg_binding){"part_schema", rcpt_session_rows_text(parts, part, "schema")};
    walk->bindings[1] =
        (struct rcpt_pg_binding){"part_table", rcpt_session_rows_text(parts, part, "name")};
    return rcpt_pg_bind(text, walk->bindings, walk->binding_count, &walk->context->error);
}

/* Returns the rows that went, -1 on error. */
static int64_t step(struct command_walk *walk, const char *sql, int64_t first, int64_t end)
{
    char from[32], to[32];
    const char *values[COMMAND_WALK_PARAMS + 2] = {from, to};
    snprintf(from, sizeof(from), "(%" PRId64 ",0)", first);
    snprintf(to, sizeof(to), "(%" PRId64 ",0)", end);
    if (walk->act != NULL)
        return walk->act(walk, sql, from, to);
    memcpy(values + 2, walk->values, walk->value_count * sizeof(values[0]));
    struct rcpt_session_rows *rows = rcpt_session_query(
        walk->context->session, sql, walk->value_count + 2, values, &walk->context->error);
    int64_t gone = rows != NULL ? rcpt_session_rows_int(rows, 0, "rows") : -1;
    rcpt_session_rows_free(rows);
    return gone;
}

static void print_progress(const struct command_walk *walk, const char *part, int64_t page,
                           int64_t pages, time_t *next)
{
    if (time(NULL) < *next)
        return;
    printf("%s: %" PRId64 " %s, page %" PRId64 " of %" PRId64 " of %s\n", walk->name, walk->rows,
           walk->done, page, pages, part);
    fflush(stdout);
    *next = time(NULL) + PROGRESS_EVERY;
}

/* Pauses as long as the step took, so that receipts have the server at least half of the time. */
static void pause_after(int64_t took_ns)
{
    int64_t pause = took_ns < PAUSE_MOST ? took_ns : PAUSE_MOST;
    const struct timespec wait = {.tv_sec = pause / RCPT_NS_PER_S,
                                  .tv_nsec = pause % RCPT_NS_PER_S};
    nanosleep(&wait, NULL);
}

static int64_t next_size(int64_t size, int64_t took_ns)
{
    if (took_ns > STEP_LONG && size > PAGES_MIN)
        return size / 2;
    return took_ns < STEP_SHORT && size < PAGES_MAX ? size * 2 : size;
}

/* The walk covers the pages that exist at its start: later rows are young. A step that changes
 * nothing makes no batch wait, so no pause follows. */
static bool walk_part(struct command_walk *walk, const struct rcpt_session_rows *parts, size_t part)
{
    char *sql = bind_part(walk, walk->step, parts, part);
    int64_t pages = rcpt_session_rows_int(parts, part, "pages"), size = PAGES_START, gone = 0;
    time_t next = time(NULL) + PROGRESS_EVERY;
    for (int64_t page = 0; sql != NULL && gone >= 0 && page < pages;) {
        int64_t begun_ns = rcpt_monotonic_ns();
        gone = step(walk, sql, page, page + size);
        int64_t took_ns = rcpt_monotonic_ns() - begun_ns;
        walk->rows += gone > 0 ? gone : 0;
        page += size;
        size = next_size(size, took_ns);
        print_progress(walk, rcpt_session_rows_text(parts, part, "name"), page, pages, &next);
        if (gone > 0)
            pause_after(took_ns);
    }
    free(sql);
    return sql != NULL && gone >= 0;
}

/* Counts the rows that would go, by one read of the part. */
static bool print_due(struct command_walk *walk, const struct rcpt_session_rows *parts, size_t part)
{
    char *sql = bind_part(walk, walk->due, parts, part);
    struct rcpt_session_rows *rows =
        sql != NULL ? rcpt_session_query(walk->context->session, sql, walk->value_count,
                                         walk->values, &walk->context->error)
                    : NULL;
    if (rows != NULL && rcpt_session_rows_int(rows, 0, "rows") > 0) {
        printf("%s: %s rows of %s would go, the oldest of %s", walk->name,
               rcpt_session_rows_text(rows, 0, "rows"), rcpt_session_rows_text(parts, part, "name"),
               rcpt_session_rows_text(rows, 0, "oldest"));
        if (walk->retires)
            printf(", of %s campaigns", rcpt_session_rows_text(rows, 0, "campaigns"));
        putchar('\n');
        walk->rows += rcpt_session_rows_int(rows, 0, "rows");
    }
    rcpt_session_rows_free(rows);
    free(sql);
    return rows != NULL;
}

bool command_check_booked(struct command_context *context, const char *schema, const char *table,
                          const struct rcpt_session_rows *parts)
{
    if (rcpt_session_rows_count(parts) == 0 || rcpt_session_rows_bool(parts, 0, "booked"))
        return true;
    rcpt_error_fatal(
        &context->error, EX_CONFIG,
        "table %s.%s has no enabled trigger receiptd_count_deleted: deletions would not be booked",
        schema, table);
    rcpt_error_hint(&context->error, "run receiptd migrate, or ALTER TABLE … ENABLE TRIGGER; "
                                     "inbox.targeted: none has no trigger");
    return false;
}

static bool is_left_out(const struct command_walk *walk, const struct rcpt_session_rows *parts,
                        size_t part)
{
    return walk->retires &&
           partitions_is_young(walk->context->config, rcpt_session_rows_int(parts, part, "now_ms"),
                               rcpt_session_rows_text(parts, part, "lower"),
                               rcpt_session_rows_text(parts, part, "upper"));
}

bool command_walk(struct command_walk *walk, bool dry_run)
{
    const char *const values[] = {walk->schema, walk->table};
    struct rcpt_session_rows *parts = rcpt_session_query(
        walk->context->session, rcpt_sql("retire/parts"), 2, values, &walk->context->error);
    bool good =
        parts != NULL &&
        (!walk->retires || command_check_booked(walk->context, walk->schema, walk->table, parts));
    for (size_t part = 0; good && part < rcpt_session_rows_count(parts); part++)
        if (!is_left_out(walk, parts, part))
            good = dry_run ? print_due(walk, parts, part) : walk_part(walk, parts, part);
    if (good)
        printf("%s: %" PRId64 " %s\n", walk->name, walk->rows,
               dry_run ? "would go; nothing was deleted" : walk->done);
    rcpt_session_rows_free(parts);
    return good;
}
