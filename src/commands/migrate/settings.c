/* Storage parameters of the inbox (settings.h). They are set after the migration, each in its own
 * statement: such an ALTER TABLE waits at most for a vacuum, and no batch waits for it. Called by
 * migrate.c. */
#include "settings.h"

#include <stdio.h>

#include "../inbox/place.h"
#include "receiptd/postgres/sql.h"

/* A table of the platform belongs to its owner, so the statement is printed for the owner. */
static void print_advice(const struct rcpt_session_rows *rows, size_t row)
{
    printf("%s: recommended, and left to its owner: %s: %s\n",
           rcpt_session_rows_text(rows, row, "name"), rcpt_session_rows_text(rows, row, "sql"),
           rcpt_session_rows_text(rows, row, "why"));
}

/* The line has the reason, since it is no error that one looks up. */
static bool set(struct command_context *context, const struct rcpt_session_rows *rows, size_t row)
{
    printf("set for %s (%s): %s: %s\n", rcpt_session_rows_text(rows, row, "name"),
           rcpt_session_rows_int(rows, row, "tables") > 1 ? "and its partitions" : "one table",
           rcpt_session_rows_text(rows, row, "options"), rcpt_session_rows_text(rows, row, "why"));
    fflush(stdout);
    return rcpt_session_execute(context->session, rcpt_session_rows_text(rows, row, "sql"),
                                &context->error);
}

/* Prints the statement as part of a dry run's script. */
static void print_sql(const struct rcpt_session_rows *rows, size_t row)
{
    printf("-- %s: %s%s\n%s%s;\n", rcpt_session_rows_text(rows, row, "name"),
           rcpt_session_rows_text(rows, row, "why"),
           rcpt_session_rows_bool(rows, row, "ours") ? "" : "; recommended to its owner:",
           rcpt_session_rows_bool(rows, row, "ours") ? "" : "-- ",
           rcpt_session_rows_text(rows, row, "sql"));
}

bool settings_apply(struct command_context *context, bool dry_run, bool advises)
{
    struct inbox_place place;
    inbox_place_of(context->config, &place);
    const char *const values[] = {place.schema, place.table, place.mapped ? "t" : "f",
                                  place.columns[INBOX_campaign_id]};
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("migrate/settings"), 4, values, &context->error);
    bool good = rows != NULL;
    for (size_t row = 0; good && row < rcpt_session_rows_count(rows); row++) {
        bool ours = rcpt_session_rows_bool(rows, row, "ours");
        if (dry_run && (ours || advises))
            print_sql(rows, row);
        else if (ours)
            good = set(context, rows, row);
        else if (advises)
            print_advice(rows, row);
    }
    rcpt_session_rows_free(rows);
    return good;
}
