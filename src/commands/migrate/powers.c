/* Finds rights of our roles beyond their work, in the catalogs (sql/migrate/powers.sql). The
 * owner's password lies on disk for the timer. If the owner can act as a superuser, that file opens
 * the whole server. Called by migrate.c and check_config.c. */
#include "powers.h"

#include <stdio.h>
#include <string.h>

#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/sql.h"

static void print_power(const struct rcpt_session_rows *rows, size_t row)
{
    bool grave = rcpt_session_rows_bool(rows, row, "grave");
    fprintf(stderr, "%s: role \"%s\" %s; have an administrator run: %s\n",
            grave ? "warning" : "note", rcpt_session_rows_text(rows, row, "role"),
            rcpt_session_rows_text(rows, row, "power"), rcpt_session_rows_text(rows, row, "undo"));
}

bool powers_describe(struct command_context *context, const char *const *names, size_t count)
{
    struct rcpt_array_text roles;
    rcpt_array_text_init(&roles);
    for (size_t index = 0; index < count; index++)
        if (names[index] != NULL)
            rcpt_array_text_add(&roles, names[index], strlen(names[index]));
    const char *const values[] = {context->config->postgres.schema, rcpt_array_text_finish(&roles)};
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("migrate/powers"), 2, values, &context->error);
    rcpt_array_text_fini(&roles);
    fflush(stdout);
    for (size_t row = 0; rows != NULL && row < rcpt_session_rows_count(rows); row++)
        print_power(rows, row);
    bool good = rows != NULL;
    rcpt_session_rows_free(rows);
    return good;
}
