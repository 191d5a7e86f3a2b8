/* Partitions that another program makes and takes away (inbox.partitions: external), in receiptd's
 * own inbox or in a table of the platform. Every partition is noted (inbox_partition), so receiptd
 * notices when one leaves. It is booked where it is, and dropped only with inbox.drop_detached,
 * after every audit has ended that began before it was booked. Until it is booked, audits count it
 * (detached_messages()). Called by partitions.c and partitions_drop.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "partitions_internal.h"
#include "receiptd/postgres/sql.h"

#define MOST_BINDINGS 6u

/* A row of partitions/external_left.sql; the texts belong to rows. */
struct left {
    struct command_context *context;
    const char *noted;
    struct rcpt_pg_binding bindings[MOST_BINDINGS];
};

/* The columns have the names that were noted: the mapping may have changed since the partition
 * left. */
static struct left left_of(struct command_context *context, const struct rcpt_session_rows *rows,
                           size_t row)
{
    return (struct left){
        .context = context,
        .noted = rcpt_session_rows_text(rows, row, "noted"),
        .bindings = {{"part_schema", rcpt_session_rows_text(rows, row, "schema")},
                     {"part", rcpt_session_rows_text(rows, row, "name")},
                     {"message_id", rcpt_session_rows_text(rows, row, "message_id")},
                     {"campaign_id", rcpt_session_rows_text(rows, row, "campaign_id")},
                     {"status", rcpt_session_rows_text(rows, row, "status")},
                     {"flags", rcpt_session_rows_text(rows, row, "flags")}}};
}

/* Reads only catalogs and notes, no partition. */
static struct rcpt_session_rows *read_left(struct command_context *context, const char *states)
{
    return rcpt_session_query(context->session, rcpt_sql("partitions/external_left"), 1, &states,
                              &context->error);
}

/* One statement of a file about the partition. */
static struct rcpt_session_rows *ask(const struct left *part, const char *file)
{
    struct command_context *context = part->context;
    char *sql = rcpt_pg_bind(rcpt_sql(file), part->bindings, MOST_BINDINGS, &context->error);
    struct rcpt_session_rows *rows =
        sql != NULL ? rcpt_session_query(context->session, sql, 0, NULL, &context->error) : NULL;
    free(sql);
    return rows;
}

static bool tell(const struct left *part, const char *file)
{
    struct rcpt_session_rows *rows = ask(part, file);
    rcpt_session_rows_free(rows);
    return rows != NULL;
}

/* ---- noted ---- */

/* A partition that was made and taken away between two runs is never noted and cannot be booked.
 * Rights on a partition are given with its note, while it is part of the inbox. */
bool external_note(struct command_context *context)
{
    struct inbox_place place;
    inbox_place_of(context->config, &place);
    const char *const values[] = {place.schema,
                                  place.table,
                                  place.columns[INBOX_message_id],
                                  place.columns[INBOX_campaign_id],
                                  place.columns[INBOX_status],
                                  place.columns[INBOX_flags]};
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("partitions/external_note"), 6, values, &context->error);
    rcpt_session_rows_free(rows);
    return rows != NULL &&
           rcpt_session_execute(context->session, rcpt_sql("partitions/external_rights"),
                                &context->error);
}

/* ---- booked ---- */

/* One transaction books the partition as a whole. The lock is taken first, by a statement of its
 * own, so the next snapshot shows whether the partition is still away. */
static bool book_held(const struct left *part)
{
    struct command_context *context = part->context;
    if (!tell(part, "partitions/external_hold"))
        return false;
    struct rcpt_session_rows *noted = ask(part, "partitions/external_booked");
    bool good = noted != NULL, booked = good && rcpt_session_rows_count(noted) > 0;
    rcpt_session_rows_free(noted);
    struct rcpt_session_rows *rows = booked ? ask(part, "partitions/book") : NULL;
    good =
        good && (!booked || rows != NULL) && rcpt_session_commit(context->session, &context->error);
    if (good && booked)
        printf("partition %s has left the inbox: booked %" PRId64 " messages\n", part->noted,
               rcpt_session_rows_int(rows, 0, "messages"));
    rcpt_session_rows_free(rows);
    return good;
}

/* A failure leaves nothing; the next run begins again. */
static bool book(const struct left *part)
{
    struct command_context *context = part->context;
    fflush(stdout);
    if (!rcpt_session_begin(context->session, "", &context->error))
        return false;
    if (book_held(part))
        return true;
    rcpt_session_rollback(context->session);
    return false;
}

/* The booking holds if this fails, so the two need no common transaction. */
static bool drop(const struct left *part)
{
    struct script script;
    script_begin(&script, part->context);
    script_add(&script, "partitions/drop", part->bindings, MOST_BINDINGS);
    if (!script_run(&script, part->noted))
        return false;
    printf("partition %s is booked: dropped\n", part->noted);
    return true;
}

/* ---- those that have come ---- */

/* Puts the triggers of the inbox on the partition, for statements that name it. The statement waits
 * for writers of the partition. */
static bool cover(struct command_context *context, const struct rcpt_session_rows *rows, size_t row)
{
    const char *name = rcpt_session_rows_text(rows, row, "name");
    const struct rcpt_pg_binding bindings[] = {
        {"part_schema", rcpt_session_rows_text(rows, row, "schema")},
        {"part", rcpt_session_rows_text(rows, row, "part")}};
    char what[256];
    snprintf(what, sizeof(what), "put the triggers on partition %s", name);
    struct script script;
    script_begin(&script, context);
    script_add(&script, "partitions/triggers", bindings, 2);
    if (!script_run(&script, what))
        return false;
    printf("partition %s is new: statements that name it are counted from now on\n", name);
    return true;
}

/* Each partition has a transaction of its own, so a locked one delays the others only by its
 * attempts. */
static bool cover_all(struct command_context *context)
{
    struct inbox_place place;
    inbox_place_of(context->config, &place);
    const char *const values[] = {place.schema, place.table};
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("partitions/external_uncovered"), 2, values, &context->error);
    bool good = rows != NULL;
    for (size_t row = 0; good && row < rcpt_session_rows_count(rows); row++)
        good = cover(context, rows, row);
    rcpt_session_rows_free(rows);
    return good;
}

/* ---- all that have left ---- */

/* The first failure ends the run: a missing right stops all of them. */
static bool book_all(struct command_context *context, bool dry_run)
{
    struct rcpt_session_rows *rows = read_left(context, "{detached}");
    bool good = rows != NULL;
    for (size_t row = 0; good && row < rcpt_session_rows_count(rows); row++) {
        struct left part = left_of(context, rows, row);
        if (dry_run)
            printf("partition %s has left the inbox: it would be booked\n", part.noted);
        else
            good = book(&part);
    }
    rcpt_session_rows_free(rows);
    return good;
}

/* A partition without a name was dropped already; the next note forgets it. */
static bool drop_booked(struct command_context *context, bool dry_run)
{
    struct rcpt_session_rows *rows = read_left(context, "{booked}");
    bool good = rows != NULL;
    for (size_t row = 0; good && row < rcpt_session_rows_count(rows); row++) {
        struct left part = left_of(context, rows, row);
        if (part.bindings[1].value == NULL || !rcpt_session_rows_bool(rows, row, "old"))
            continue;
        if (dry_run)
            printf("partition %s is booked: it would be dropped\n", part.noted);
        else
            good = drop(&part);
    }
    rcpt_session_rows_free(rows);
    return good;
}

/* A dry run notes nothing: it may be a role that only reads. */
bool external_retire(struct command_context *context, bool dry_run)
{
    return (dry_run || external_note(context)) && book_all(context, dry_run) &&
           (!context->config->inbox.drop_detached || drop_booked(context, dry_run)) &&
           (dry_run || cover_all(context));
}

/* ---- what is amiss ---- */

/* Prints one warning: the state, what it means for the counters, what to do. */
static void warn(const struct rcpt_session_rows *rows, size_t row)
{
    const char *name = rcpt_session_rows_text(rows, row, "noted");
    const char *state = rcpt_session_rows_text(rows, row, "state");
    fflush(stdout);
    if (strcmp(state, "dropped") == 0)
        fprintf(
            stderr,
            "warning: partition %s was dropped before its messages were booked: if it had any, the "
            "counters are ahead of the inbox; receiptd audit --repair books them and ends this "
            "warning. Detach partitions instead of dropping them: receiptd maintain books those\n",
            name);
    else if (strcmp(state, "returned") == 0)
        fprintf(stderr,
                "warning: partition %s was booked after it had left the inbox, and is in it again: "
                "audits count its messages twice; detach it\n",
                name);
    else
        fprintf(
            stderr,
            "warning: partition %s is just being detached, and audits wait for it; if its DETACH "
            "CONCURRENTLY was interrupted, run ALTER TABLE … DETACH PARTITION %s FINALIZE\n",
            name, name);
}

/* Detached partitions are no fault before they are booked: the same run books them. */
bool external_warn(struct command_context *context)
{
    struct rcpt_session_rows *rows = read_left(context, "{leaving,dropped,returned}");
    for (size_t row = 0; rows != NULL && row < rcpt_session_rows_count(rows); row++)
        warn(rows, row);
    rcpt_session_rows_free(rows);
    return rows != NULL;
}
