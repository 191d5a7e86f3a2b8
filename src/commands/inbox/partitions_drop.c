/* A partition is dropped when all of its messages are past their retention (partitions.h). A short
 * transaction takes it out of the inbox and makes it a child of inbox_detached. A second one books
 * and drops it. At each moment a message is live, detached or retired, and audits count all three.
 * The next run finishes what a killed run has left. Called by retire.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "partitions.h"
#include "partitions_internal.h"
#include "receiptd/postgres/sql.h"

#define MOST_BINDINGS 8u

/* A partition; the texts belong to rows. */
struct leaving {
    struct command_context *context;
    const struct keeps *keeps;
    struct rcpt_pg_binding bindings[MOST_BINDINGS]; /* part_schema, part, lower, upper; columns */
};

/* Rows have schema, name, lower and upper. */
static struct leaving leaving_of(struct command_context *context, const struct keeps *keeps,
                                 const struct rcpt_session_rows *rows, size_t row)
{
    const char *lower = rcpt_session_rows_text(rows, row, "lower");
    const char *upper = rcpt_session_rows_text(rows, row, "upper");
    return (struct leaving){
        .context = context,
        .keeps = keeps,
        .bindings = {{"part_schema", rcpt_session_rows_text(rows, row, "schema")},
                     {"part", rcpt_session_rows_text(rows, row, "name")},
                     {"lower", lower != NULL ? lower : ""},
                     {"upper", upper != NULL ? upper : ""},
                     {"message_id", "message_id"},
                     {"campaign_id", "campaign_id"},
                     {"status", "status"},
                     {"flags", "flags"}}};
}

static const char *name_of(const struct leaving *part)
{
    return part->bindings[1].value;
}

/* One statement of a file, with the retentions as parameters where it needs them. */
static struct rcpt_session_rows *ask(const struct leaving *part, const char *file, size_t count)
{
    struct command_context *context = part->context;
    char *sql = rcpt_pg_bind(rcpt_sql(file), part->bindings, MOST_BINDINGS, &context->error);
    struct rcpt_session_rows *rows =
        sql != NULL
            ? rcpt_session_query(context->session, sql, count, part->keeps->values, &context->error)
            : NULL;
    free(sql);
    return rows;
}

static bool tell(const struct leaving *part, const char *file)
{
    struct command_context *context = part->context;
    char *sql = rcpt_pg_bind(rcpt_sql(file), part->bindings, MOST_BINDINGS, &context->error);
    bool good = sql != NULL && rcpt_session_execute(context->session, sql, &context->error);
    free(sql);
    return good;
}

/* Reads the partition: `young` is true if it has a message that must stay. */
static bool ask_young(const struct leaving *part, bool *young)
{
    struct rcpt_session_rows *rows = ask(part, "partitions/young", KEEPS_VALUES);
    *young = rows != NULL && rcpt_session_rows_bool(rows, 0, "young");
    rcpt_session_rows_free(rows);
    return rows != NULL;
}

/* ---- out of the inbox, and back ---- */

static bool detach(const struct leaving *part)
{
    struct script script;
    script_begin(&script, part->context);
    script_add(&script, "partitions/close", NULL, 0);
    script_add(&script, "partitions/detach", part->bindings, MOST_BINDINGS);
    script_add(&script, "partitions/note_bounds", part->bindings, MOST_BINDINGS);
    return script_run(&script, name_of(part));
}

/* A message with an old id was inserted after the partition had been read. */
static bool take_back(const struct leaving *part)
{
    struct script script;
    printf("partition %s: a new message is within its retention, so the partition stays\n",
           name_of(part));
    script_begin(&script, part->context);
    script_add(&script, "partitions/back_check", part->bindings, MOST_BINDINGS);
    if (!script_run_at_length(&script))
        return false;
    script_begin(&script, part->context);
    script_add(&script, "partitions/close", NULL, 0);
    script_add(&script, "partitions/back", part->bindings, MOST_BINDINGS);
    return script_run(&script, name_of(part));
}

/* ---- booked and dropped ---- */

/* An audit may be reading the partition, so the lock is tried again. The booking is kept until
 * then. */
static bool drop(const struct leaving *part)
{
    struct command_context *context = part->context;
    unsigned attempts = 0;
    char begin[80];
    snprintf(begin, sizeof(begin), "SAVEPOINT booked; SET LOCAL lock_timeout = %d", LOCK_WAIT_MS);
    for (;;) {
        if (!rcpt_session_execute(context->session, begin, &context->error))
            return false;
        if (tell(part, "partitions/drop"))
            return true;
        struct rcpt_error cause = context->error;
        if (!rcpt_session_execute(context->session, "ROLLBACK TO booked", &context->error))
            return false;
        context->error = cause;
        if (!script_again(context, &attempts, name_of(part)))
            return false;
    }
}

static bool book_and_drop(const struct leaving *part)
{
    struct rcpt_session_rows *booked = ask(part, "partitions/book", 0);
    if (booked == NULL || !drop(part) ||
        !rcpt_session_commit(part->context->session, &part->context->error)) {
        rcpt_session_rows_free(booked);
        return false;
    }
    printf("partition %s: booked %" PRId64 " messages and dropped\n", name_of(part),
           rcpt_session_rows_int(booked, 0, "messages"));
    rcpt_session_rows_free(booked);
    return true;
}

/* `asks`: the partition is read again for messages that must stay. */
static bool finish(const struct leaving *part, bool asks)
{
    struct command_context *context = part->context;
    bool young = false;
    fflush(stdout);
    if (!rcpt_session_begin(context->session, "", &context->error))
        return false;
    bool good = tell(part, "partitions/hold") && (!asks || ask_young(part, &young)) &&
                (young || book_and_drop(part));
    if (!good || young)
        rcpt_session_rollback(context->session);
    return good && (!young || take_back(part));
}

/* Finishes partitions that an earlier run has detached, and those that an operator has put under
 * inbox_detached, which are dropped in any case. */
static bool finish_all(struct command_context *context, const struct keeps *keeps, bool dry_run)
{
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("partitions/detached"), 0, NULL, &context->error);
    bool good = rows != NULL;
    for (size_t row = 0; good && row < rcpt_session_rows_count(rows); row++) {
        struct leaving part = leaving_of(context, keeps, rows, row);
        if (dry_run)
            printf("partition %s is detached: it would be booked and dropped\n", name_of(&part));
        else
            good = finish(&part, rcpt_session_rows_bool(rows, row, "noted"));
    }
    rcpt_session_rows_free(rows);
    return good;
}

/* ---- which ones ---- */

static bool retire_part(const struct leaving *part, bool dry_run)
{
    bool young;
    if (!ask_young(part, &young))
        return false;
    if (young)
        return true;
    if (dry_run) {
        printf("partition %s would be booked and dropped as a whole\n", name_of(part));
        return true;
    }
    return detach(part) && finish(part, true);
}

/* The bounds show which partitions are past the shortest retention. Their rows show whether all
 * messages are. */
static bool retire_own(struct command_context *context, const struct keeps *keeps, bool dry_run)
{
    struct layout layout;
    int64_t to_ms;
    bool good = layout_read(&layout, context);
    for (size_t row = 0; good && row < rcpt_session_rows_count(layout.parts); row++) {
        const char *upper = rcpt_session_rows_text(layout.parts, row, "upper");
        if (upper == NULL || !rcpt_id_time(layout.ids, upper, &to_ms) ||
            to_ms > layout.now_ms - keeps_shortest(context->config))
            continue;
        struct leaving part = leaving_of(context, keeps, layout.parts, row);
        good = retire_part(&part, dry_run);
    }
    layout_forget(&layout);
    return good || context->error.text[0] == '\0';
}

bool partitions_retire(struct command_context *context, const struct keeps *keeps, bool dry_run)
{
    if (!dry_run && !partitions_lock(context))
        return context->error.text[0] == '\0';
    if (!finish_all(context, keeps, dry_run))
        return false;
    if (context->config->inbox.partitions == RCPT_PARTITIONS_EXTERNAL)
        return external_retire(context, dry_run);
    return (context->config->inbox.partitions != RCPT_PARTITIONS_OWN ||
            keeps_shortest(context->config) == 0 || retire_own(context, keeps, dry_run));
}

/* A partition of usual width is dropped as a whole soon after its last message is due. Wider ones
 * are read from the time on at which their first message may be due. */
bool partitions_is_young(const struct rcpt_config *config, int64_t now_ms, const char *lower,
                         const char *upper)
{
    int64_t from_ms, to_ms, due_ms = now_ms - keeps_shortest(config);
    if (config->inbox.partitions != RCPT_PARTITIONS_OWN || lower == NULL || upper == NULL ||
        !rcpt_id_time(config->inbox.ids, lower, &from_ms) ||
        !rcpt_id_time(config->inbox.ids, upper, &to_ms))
        return false;
    return from_ms > due_ms ||
           (to_ms > due_ms && to_ms - from_ms <= 2 * config->inbox.partition_span_ms);
}
