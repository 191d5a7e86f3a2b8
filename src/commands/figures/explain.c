/* `receiptd explain`: one message's row, the receipts that are known of it with what each did and
 * why (explain_why.c), and dead letters that name it. Reads in one snapshot. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "../command.h"
#include "../report.h"
#include "explain_why.h"
#include "receiptd/base/error.h"
#include "receiptd/base/json.h"
#include "receiptd/config/rule_columns.h"
#include "receiptd/postgres/bind.h"
#include "receiptd/postgres/sql.h"

/* Results of the queries; freed by command_explain(). */
struct explanation {
    const struct rcpt_ladder *ladder;
    struct rcpt_session_rows *message, *receipts, *letters;
    struct rcpt_session_rows *groups[RCPT_GROUPS]; /* of counters.groups; NULL: no more */
};

/* ---- as JSON ---- */

/* Missing values are null in the JSON; rcpt_json_text() writes NULL so. */
static void put(struct rcpt_json *json, const struct rcpt_session_rows *rows, size_t row,
                const char *column)
{
    rcpt_json_put_text(json, column, rcpt_session_rows_text(rows, row, column));
}

/* Members that most messages or receipts do not have are left out. */
static void put_given(struct rcpt_json *json, const struct rcpt_session_rows *rows, size_t row,
                      const char *column)
{
    if (rcpt_session_rows_text(rows, row, column) != NULL)
        put(json, rows, row, column);
}

static void put_number(struct rcpt_json *json, const struct rcpt_session_rows *rows, size_t row,
                       const char *column)
{
    rcpt_json_put_int(json, column, rcpt_session_rows_int(rows, row, column));
}

/* The database joins names by blanks, which no name of the ladder has. */
static void put_words(struct rcpt_json *json, const char *name, const char *words)
{
    rcpt_json_key(json, name);
    rcpt_json_begin_array(json);
    while (words != NULL && *words != '\0') {
        size_t size = strcspn(words, " ");
        rcpt_json_bytes(json, words, size);
        words += size + (words[size] == ' ');
    }
    rcpt_json_end_array(json);
}

/* A record's place and the event's index in it name a receipt. */
static void put_place(struct rcpt_json *json, const struct rcpt_session_rows *rows, size_t row)
{
    put(json, rows, row, "topic");
    put_number(json, rows, row, "partition");
    put_number(json, rows, row, "offset");
    put_number(json, rows, row, "index");
}

/* null says that the message has no row, which is not the same as an empty one. */
static void write_message(struct rcpt_json *json, const struct rcpt_session_rows *rows)
{
    rcpt_json_key(json, "message");
    if (rcpt_session_rows_count(rows) == 0) {
        rcpt_json_null(json);
        return;
    }
    rcpt_json_begin_object(json);
    put(json, rows, 0, "message_id");
    put(json, rows, 0, "org_id");
    put(json, rows, 0, "campaign_id");
    put_number(json, rows, 0, "status");
    put(json, rows, 0, "status_name");
    put(json, rows, 0, "before_name");
    put_words(json, "path", rcpt_session_rows_text(rows, 0, "path"));
    put_words(json, "flags", rcpt_session_rows_text(rows, 0, "flag_names"));
    put(json, rows, 0, "status_at");
    put(json, rows, 0, "updated_at");
    put_given(json, rows, 0, "customer");
    put_given(json, rows, 0, "logical");
    put_given(json, rows, 0, "parts");
    put_given(json, rows, 0, "proven");
    rcpt_json_end_object(json);
}

/* `effect` is a word for tools, `why` a sentence for people. */
static void write_receipt(struct rcpt_json *json, const struct explanation *explanation, size_t row)
{
    const struct rcpt_session_rows *rows = explanation->receipts;
    char why[EXPLAIN_WHY_BYTES], text[16];
    const char *effect = explain_why(explanation->ladder, rows, row, why);
    rcpt_json_begin_object(json);
    put_place(json, rows, row);
    rcpt_json_key(json, "status_name");
    rcpt_json_text(json, explain_status(explanation->ladder,
                                        rcpt_session_rows_int(rows, row, "status"), text));
    put(json, rows, row, "at");
    put(json, rows, row, "recorded_at");
    put_given(json, rows, row, "gateway");
    put_given(json, rows, row, "reason");
    put_given(json, rows, row, "reason_class");
    put_given(json, rows, row, "event_id");
    if (rcpt_session_rows_text(rows, row, "parts") != NULL) {
        put_number(json, rows, row, "part");
        put_number(json, rows, row, "parts");
    }
    rcpt_json_put_text(json, "effect", effect);
    rcpt_json_put_text(json, "why", why);
    rcpt_json_end_object(json);
}

/* Writes nothing unless counters.groups is set. */
static void write_groups(struct rcpt_json *json, const struct explanation *explanation)
{
    if (explanation->groups[0] == NULL)
        return;
    rcpt_json_key(json, "groups");
    rcpt_json_begin_array(json);
    for (size_t index = 0; index < RCPT_GROUPS && explanation->groups[index] != NULL; index++) {
        if (rcpt_session_rows_count(explanation->groups[index]) == 0)
            continue;
        rcpt_json_begin_object(json);
        put(json, explanation->groups[index], 0, "kind");
        put(json, explanation->groups[index], 0, "status");
        put(json, explanation->groups[index], 0, "statuses");
        rcpt_json_end_object(json);
    }
    rcpt_json_end_array(json);
}

static void write_json(const struct explanation *explanation)
{
    struct rcpt_json json;
    rcpt_json_init(&json, stdout);
    rcpt_json_begin_object(&json);
    write_message(&json, explanation->message);
    rcpt_json_key(&json, "receipts");
    rcpt_json_begin_array(&json);
    for (size_t row = 0; row < rcpt_session_rows_count(explanation->receipts); row++)
        write_receipt(&json, explanation, row);
    rcpt_json_end_array(&json);
    rcpt_json_key(&json, "dead_letters");
    rcpt_json_begin_array(&json);
    for (size_t row = 0; row < rcpt_session_rows_count(explanation->letters); row++) {
        rcpt_json_begin_object(&json);
        put_place(&json, explanation->letters, row);
        put(&json, explanation->letters, row, "reason");
        put(&json, explanation->letters, row, "detail");
        put(&json, explanation->letters, row, "dead_at");
        rcpt_json_end_object(&json);
    }
    rcpt_json_end_array(&json);
    write_groups(&json, explanation);
    rcpt_json_end_object(&json);
    putchar('\n');
}

/* ---- for people ---- */

/* For people a dash says "none"; the JSON has null. */
static const char *or_dash(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : "-";
}

/* Ids come from others, so control bytes are replaced. */
static void print_text(const char *text)
{
    report_print_padded(stdout, text, 0, false);
}

/* One line for each fact; a dash for what is not known. */
static void print_message(const struct rcpt_session_rows *rows)
{
    static const struct {
        const char *label, *column;
    } lines[] =
        {{"status", "status_name"},  {"before", "before_name"},     {"path", "path"},
         {"flags", "flag_names"},    {"status since", "status_at"}, {"changed", "updated_at"},
         {"organisation", "org_id"}, {"campaign", "campaign_id"}},
      rare[] = {{"customer", "customer"},
                {"logical", "logical"},
                {"parts", "parts"},
                {"recounted", "proven"}};
    if (rcpt_session_rows_count(rows) == 0) {
        puts("no row: the platform has not made this message yet, or has removed it");
        return;
    }
    for (size_t index = 0; index < RCPT_COUNT_OF(lines); index++) {
        printf("%-14s", lines[index].label);
        print_text(or_dash(rcpt_session_rows_text(rows, 0, lines[index].column)));
        putchar('\n');
    }
    for (size_t index = 0; index < RCPT_COUNT_OF(rare); index++) {
        if (rcpt_session_rows_text(rows, 0, rare[index].column) == NULL)
            continue;
        printf("%-14s", rare[index].label);
        print_text(rcpt_session_rows_text(rows, 0, rare[index].column));
        putchar('\n');
    }
}

/* topic/partition@offset[index], as log lines and dead letters name a record's event. */
static void print_place(const struct rcpt_session_rows *rows, size_t row)
{
    print_text(rcpt_session_rows_text(rows, row, "topic"));
    printf("/%" PRId64 "@%" PRId64 "[%" PRId64 "]", rcpt_session_rows_int(rows, row, "partition"),
           rcpt_session_rows_int(rows, row, "offset"), rcpt_session_rows_int(rows, row, "index"));
}

/* Prints the statuses of attempts at the same logical message, or of messages of the same customer.
 */
static void print_groups(const struct explanation *explanation)
{
    for (size_t index = 0; index < RCPT_GROUPS && explanation->groups[index] != NULL; index++) {
        const struct rcpt_session_rows *rows = explanation->groups[index];
        if (rcpt_session_rows_count(rows) > 0)
            printf("  %-13s %s (%s)\n", rcpt_session_rows_text(rows, 0, "kind"),
                   or_dash(rcpt_session_rows_text(rows, 0, "status")),
                   or_dash(rcpt_session_rows_text(rows, 0, "statuses")));
    }
}

/* Prints reason and gateway on a line of their own, which the receipt gives beside its status. */
static void print_said(const struct rcpt_session_rows *rows, size_t row)
{
    static const char *const columns[][2] = {{"gateway", "gateway"},
                                             {"reason", "reason"},
                                             {"class", "reason_class"},
                                             {"event", "event_id"}};
    const char *between = "      ";
    for (size_t index = 0; index < RCPT_COUNT_OF(columns); index++) {
        const char *text = rcpt_session_rows_text(rows, row, columns[index][1]);
        if (text == NULL)
            continue;
        printf("%s%s ", between, columns[index][0]);
        print_text(text);
        between = ", ";
    }
    if (rcpt_session_rows_text(rows, row, "parts") != NULL) {
        printf("%spart %" PRId64 " of %" PRId64, between, rcpt_session_rows_int(rows, row, "part"),
               rcpt_session_rows_int(rows, row, "parts"));
        between = ", ";
    }
    if (between[0] == ',')
        putchar('\n');
}

/* Only parked receipts are known unless timeline.retention is set; the line says how to keep more.
 */
static void print_receipts(const struct explanation *explanation)
{
    const struct rcpt_session_rows *rows = explanation->receipts;
    char why[EXPLAIN_WHY_BYTES], text[16];
    if (rcpt_session_rows_count(rows) == 0)
        puts("\nno receipts are known (what each one does is kept with timeline.retention)");
    else
        puts("\nreceipts, as they were recorded:");
    for (size_t row = 0; row < rcpt_session_rows_count(rows); row++) {
        const char *effect = explain_why(explanation->ladder, rows, row, why);
        printf(
            "  %s  %-14s %-13s %s  (", rcpt_session_rows_text(rows, row, "recorded_at"),
            explain_status(explanation->ladder, rcpt_session_rows_int(rows, row, "status"), text),
            effect, why);
        if (explain_is_expiry(rows, row))
            fputs("inbox.expiry", stdout);
        else
            print_place(rows, row);
        puts(")");
        print_said(rows, row);
    }
}

static void print_letters(const struct rcpt_session_rows *rows)
{
    if (rcpt_session_rows_count(rows) > 0)
        puts("\ndead letters that name it:");
    for (size_t row = 0; row < rcpt_session_rows_count(rows); row++) {
        printf("  %s  ", rcpt_session_rows_text(rows, row, "dead_at"));
        print_text(rcpt_session_rows_text(rows, row, "reason"));
        fputs(": ", stdout);
        print_text(or_dash(rcpt_session_rows_text(rows, row, "detail")));
        fputs("  (", stdout);
        print_place(rows, row);
        puts(")");
    }
}

/* ---- reading ---- */

/* The id as a JSON writer puts it, quotes included; the caller frees it. */
static char *as_json(const char *id)
{
    char *text = NULL;
    size_t size = 0;
    struct rcpt_json json;
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    rcpt_json_text(&json, id);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

static struct rcpt_session_rows *read_group(struct command_context *context, const char *id,
                                            const struct rcpt_kinds *groups, size_t index)
{
    const struct rcpt_pg_binding bindings[] = {{"kind", groups->names[index]},
                                               {"column", groups->columns[index]}};
    struct rcpt_session_rows *rows = NULL;
    char *sql = rcpt_pg_bind(rcpt_sql("command/explain_group"), bindings, 2, &context->error);
    if (sql != NULL)
        rows = rcpt_session_query(context->session, sql, 1, &id, &context->error);
    free(sql);
    return rows;
}

static bool read_groups(struct command_context *context, const char *id,
                        struct explanation *explanation)
{
    struct rcpt_kinds groups;
    bool good = true;
    rcpt_groups_read(context->config, &groups);
    for (size_t index = 0; good && index < groups.count; index++) {
        explanation->groups[index] = read_group(context, id, &groups, index);
        good = explanation->groups[index] != NULL;
    }
    return good;
}

/* Letters are found by the id as it stands in JSON; a rollback ends the snapshot. */
static bool read_all(struct command_context *context, const char *id,
                     struct explanation *explanation)
{
    char *quoted = as_json(id);
    const struct rcpt_config *config = context->config;
    const char *const plain[] = {id}, *const in_json[] = {quoted};
    const char *customer = config->inbox.customer_id;
    const char *const row[] = {id,
                               customer != NULL ? customer : rcpt_groups_column(config, "customer"),
                               rcpt_groups_column(config, "logical")};
    bool good = rcpt_session_begin(context->session, "ISOLATION LEVEL REPEATABLE READ READ ONLY",
                                   &context->error);
    if (good)
        explanation->message = rcpt_session_query(context->session, rcpt_sql("command/explain_row"),
                                                  3, row, &context->error);
    if (explanation->message != NULL)
        explanation->receipts = rcpt_session_query(
            context->session, rcpt_sql("command/explain_receipts"), 1, plain, &context->error);
    if (explanation->receipts != NULL)
        explanation->letters = rcpt_session_query(
            context->session, rcpt_sql("command/explain_letters"), 1, in_json, &context->error);
    good = explanation->letters != NULL && read_groups(context, id, explanation);
    rcpt_session_rollback(context->session);
    free(quoted);
    return good;
}

/* An unknown message has an exit code of its own. */
static int print(const struct explanation *explanation, enum command_format format)
{
    /* A message may be known by its row alone, or by a dead letter alone. */
    size_t known = rcpt_session_rows_count(explanation->message) +
                   rcpt_session_rows_count(explanation->receipts) +
                   rcpt_session_rows_count(explanation->letters);
    if (format == COMMAND_FORMAT_JSON) {
        write_json(explanation);
    } else if (known == 0) {
        puts("nothing is known of this message");
    } else {
        print_message(explanation->message);
        print_groups(explanation);
        print_receipts(explanation);
        print_letters(explanation->letters);
    }
    return command_printed(known > 0 ? EX_OK : EX_NOINPUT);
}

/* The session is read-only: nothing here can change the message. */
int command_explain(const struct command_call *call)
{
    enum command_format format;
    struct command_context context;
    struct explanation explanation = {0};
    int exit_code;
    if (!command_format(call, &format))
        return EX_USAGE;
    if (format == COMMAND_FORMAT_CSV)
        return command_usage(call, "there is no csv of this: table or json");
    if (call->argument == NULL)
        return command_usage(call, "which message?");
    if (!command_open(&context, call, true, &exit_code))
        return exit_code;
    explanation.ladder = context.config->ladder;
    exit_code = read_all(&context, call->argument, &explanation) ? print(&explanation, format)
                                                                 : command_fail(&context.error);
    rcpt_session_rows_free(explanation.message);
    rcpt_session_rows_free(explanation.receipts);
    rcpt_session_rows_free(explanation.letters);
    for (size_t index = 0; index < RCPT_GROUPS; index++)
        rcpt_session_rows_free(explanation.groups[index]);
    command_close(&context);
    return exit_code;
}
