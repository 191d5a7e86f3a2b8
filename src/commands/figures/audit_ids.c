/* `receiptd audit --ids`: finds ids that stand in several rows of a partitioned inbox whose key is
 * the id and the time, as PostgreSQL accepts them. The ids are walked in their order, a slice in
 * each snapshot. Called by audit.c. */
#include "audit_ids.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../inbox/place.h"
#include "../report.h"
#include "receiptd/base/json.h"
#include "receiptd/postgres/sql.h"

#define SLICE_ROWS "100000"

struct walk {
    struct command_context *context;
    int64_t rows, ids, twin_rows;
    char *last, *first; /* id; array of ids, NULL: none */
};

static const struct report_column columns[] = {{"message_id", REPORT_TEXT},
                                               {"rows", REPORT_NUMBER},
                                               {"organisations", REPORT_NUMBER},
                                               {"campaigns", REPORT_NUMBER}};

/* If there is no inbox, the walk says what is missing. */
static bool can_be_two(struct command_context *context, bool *answer)
{
    struct inbox_place place;
    inbox_place_of(context->config, &place);
    const char *const values[] = {place.schema, place.table, place.columns[INBOX_message_id]};
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("command/audit_ids_key"), 3, values, &context->error);
    *answer = rows != NULL &&
              (rcpt_session_rows_count(rows) == 0 || rcpt_session_rows_bool(rows, 0, "can_be_two"));
    bool good = rows != NULL;
    rcpt_session_rows_free(rows);
    return good;
}

/* Each slice with twins names its first ones. The command shows those of the first such slice. */
static void take(struct walk *walk, const struct rcpt_session_rows *rows)
{
    const char *last = rcpt_session_rows_text(rows, 0, "last");
    const char *first = rcpt_session_rows_text(rows, 0, "first");
    walk->rows += rcpt_session_rows_int(rows, 0, "rows");
    walk->ids += rcpt_session_rows_int(rows, 0, "ids");
    walk->twin_rows += rcpt_session_rows_int(rows, 0, "twin_rows");
    if (walk->first == NULL && first != NULL)
        walk->first = rcpt_strdup(first);
    free(walk->last);
    walk->last = last != NULL ? rcpt_strdup(last) : NULL;
}

static bool walk_all(struct walk *walk)
{
    struct command_context *context = walk->context;
    if (!rcpt_session_execute(context->session, rcpt_sql("command/audit_ids_settings"),
                              &context->error))
        return false;
    walk->last = rcpt_strdup("");
    while (walk->last != NULL) {
        const char *const values[] = {walk->last, SLICE_ROWS};
        struct rcpt_session_rows *rows = rcpt_session_query(
            context->session, rcpt_sql("command/audit_ids"), 2, values, &context->error);
        if (rows == NULL)
            return false;
        take(walk, rows);
        rcpt_session_rows_free(rows);
    }
    return true;
}

static void print(const struct walk *walk, const struct report *report, enum command_format format)
{
    if (format == COMMAND_FORMAT_JSON) {
        struct rcpt_json json;
        rcpt_json_init(&json, stdout);
        rcpt_json_begin_object(&json);
        rcpt_json_put_int(&json, "messages", walk->rows);
        rcpt_json_put_int(&json, "ids", walk->ids);
        rcpt_json_put_int(&json, "rows", walk->twin_rows);
        rcpt_json_key(&json, "first");
        report_write_json(report, &json);
        rcpt_json_end_object(&json);
        putchar('\n');
        return;
    }
    report_print(report, format, NULL);
    FILE *out = format == COMMAND_FORMAT_CSV ? stderr : stdout;
    fprintf(out, "%" PRId64 " messages, %" PRId64 " ids stand in several rows", walk->rows,
            walk->ids);
    if (walk->ids > 0)
        fprintf(out, ", in %" PRId64, walk->twin_rows);
    if (walk->ids > (int64_t)report_row_count(report))
        fprintf(out, "; the first %zu are above", report_row_count(report));
    fputc('\n', out);
    if (walk->ids > 0)
        fputs("HINT: each of these rows counts as a message, and takes the receipts of its id: "
              "delete the rows that are wrong, and send unique ids\n",
              stderr);
}

static bool show(const struct walk *walk, enum command_format format)
{
    struct command_context *context = walk->context;
    const char *const values[] = {walk->first};
    struct report report;
    struct rcpt_session_rows *rows = NULL;
    if (walk->first != NULL) {
        rows = rcpt_session_query(context->session, rcpt_sql("command/audit_ids_rows"), 1, values,
                                  &context->error);
        if (rows == NULL)
            return false;
    }
    report_init(&report, columns, RCPT_COUNT_OF(columns));
    if (rows != NULL)
        report_add_rows(&report, rows);
    print(walk, &report, format);
    report_fini(&report);
    rcpt_session_rows_free(rows);
    return true;
}

bool audit_ids(struct command_context *context, enum command_format format, int64_t *twins)
{
    struct walk walk = {.context = context};
    bool searched, good = can_be_two(context, &searched);
    if (good && !searched && format != COMMAND_FORMAT_JSON) {
        puts("the inbox's key makes each id unique");
        return true;
    }
    good = good && (!searched || walk_all(&walk)) && show(&walk, format);
    *twins = walk.ids;
    free(walk.last);
    free(walk.first);
    return good;
}
