/* receiptd generate sql: the statements that the daemon prepares, as PREPARE statements for psql. A
 * statement is called by its folder and file of sql/; the one of a lane that depends on
 * rules comes once for each variant. Called by generate.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manual.h"
#include "receiptd/base/error.h"
#include "receiptd/postgres/sql.h"
#include "receiptd/postgres/statements.h"

/* A file ends with a semicolon and a line feed, which PREPARE puts itself. */
static void write_statement(FILE *out, const char *folder, const char *variant,
                            const struct rcpt_pg_statement *statement)
{
    size_t size = strlen(statement->sql);
    if (rcpt_lane_statement_is_utility(statement))
        return;
    while (size > 0 && strchr(";\n", statement->sql[size - 1]) != NULL)
        size--;
    fprintf(out, "\nPREPARE \"%s/%s%s\" AS\n%.*s;\n", folder, statement->name, variant, (int)size,
            statement->sql);
}

/* Statements outside of the lanes have one form each. */
static void write_list(FILE *out, const char *folder,
                       const struct rcpt_pg_statement *(*list_of)(size_t *count))
{
    size_t count;
    const struct rcpt_pg_statement *list = list_of(&count);
    for (size_t index = 0; index < count; index++)
        write_statement(out, folder, "", &list[index]);
}

/* Compares name and text, so that only statements that differ are printed again. */
static bool is_among(const struct rcpt_lane_statements *statements,
                     const struct rcpt_pg_statement *statement)
{
    size_t count;
    const struct rcpt_pg_statement *list = rcpt_lane_statements_list(statements, &count);
    for (size_t index = 0; index < count; index++)
        if (strcmp(list[index].name, statement->name) == 0)
            return strcmp(list[index].sql, statement->sql) == 0;
    return false;
}

#define BOUNDARY "-infinity" /* the daemon puts that of inbox_recent here */

/* The daemon puts the columns of counters.by, counters.groups and ranges here. */
#define DIMENSION_COLUMN "org_id"
static const struct rcpt_pg_binding bindings[] = {
    {.name = "range_recipient", .value = DIMENSION_COLUMN},
    {.name = "range_account", .value = DIMENSION_COLUMN},
    {.name = "range_sent", .value = "created_at"}};

static const struct rcpt_rules_settings everything = {
    .dimensions = {{"by_variant", DIMENSION_COLUMN}},
    .dimension_count = 1,
    .groups = {{"customer", DIMENSION_COLUMN}},
    .group_count = 1,
    .times = true,
    .folds = true,
    .fold_columns = true,
    .stream = true,
    .stream_state = true,
    .stream_columns = {DIMENSION_COLUMN},
    .stream_column_count = 1};

struct variant {
    const char *name, *recent_since;
    bool ruled;
};

/* Prints the statements that differ from those of `plain`, which has no rules; NULL: all. The
 * caller frees the result. */
static struct rcpt_lane_statements *write_variant(FILE *out,
                                                  const struct rcpt_lane_statements *plain,
                                                  const struct variant *of)
{
    size_t count, column_count;
    struct rcpt_rules *rules =
        rcpt_rules_new(of->ruled ? &everything : &(struct rcpt_rules_settings){.dedup = false});
    const struct rcpt_rules_column *columns = rcpt_rules_columns(rules, &column_count);
    struct rcpt_lane_statements *statements = rcpt_lane_statements_new(
        &(struct rcpt_lane_variant){.columns = columns,
                                    .column_count = column_count,
                                    .orgs = of->ruled,
                                    .times = of->ruled,
                                    .payloads = of->ruled,
                                    .bindings = bindings,
                                    .binding_count = RCPT_COUNT_OF(bindings),
                                    .resolves_ranges = true,
                                    .inserts_unknown = true,
                                    .recent_since = of->recent_since});
    const struct rcpt_pg_statement *list = rcpt_lane_statements_list(statements, &count);
    for (size_t index = 0; index < count; index++)
        if (plain == NULL || !is_among(plain, &list[index]))
            write_statement(out, "lane", of->name, &list[index]);
    rcpt_rules_free(rules);
    return statements;
}

/* One statement of lanes depends on rules and on whether the inbox has a recent set. */
static void write_lane(FILE *out)
{
    static const struct variant variants[] = {{"", NULL, false},
                                              {" recent", BOUNDARY, false},
                                              {" rules", NULL, true},
                                              {" rules recent", BOUNDARY, true}};
    struct rcpt_lane_statements *plain = NULL;
    for (size_t index = 0; index < RCPT_COUNT_OF(variants); index++) {
        struct rcpt_lane_statements *made = write_variant(out, plain, &variants[index]);
        if (index > 0)
            rcpt_lane_statements_free(made);
        else
            plain = made;
    }
    rcpt_lane_statements_free(plain);
}

/* All other statements of an expiry are those of lanes. */
static void write_expiry(FILE *out)
{
    static const struct rcpt_pg_binding own[] = {{"part_schema", "receiptd"},
                                                 {"part_table", "message_inbox"},
                                                 {"message_id", "message_id"},
                                                 {"status", "status"},
                                                 {"updated_at", "updated_at"}};
    struct rcpt_error error;
    char *sql = rcpt_pg_bind(rcpt_sql("expiry/candidates"), own, RCPT_COUNT_OF(own), &error);
    write_statement(out, "expiry", "",
                    &(struct rcpt_pg_statement){.name = "candidates", .sql = sql});
    free(sql);
}

/* The variant has a customer and a channel, which are in the column of the dimensions. */
static const struct rcpt_pg_statement *serve_statements(size_t *count)
{
    const struct rcpt_serve_columns columns = {.customer = DIMENSION_COLUMN,
                                               .logical = DIMENSION_COLUMN,
                                               .channel = DIMENSION_COLUMN,
                                               .newest = "created_at",
                                               .expiry = {DIMENSION_COLUMN},
                                               .expiry_count = 1};
    return rcpt_serve_statements(&columns, count);
}

/* The variant has a table of receiptd's own in place of the platform's view. */
static const struct rcpt_pg_statement *names_statements(size_t *count)
{
    return rcpt_serve_names_statements("receiptd.action", count);
}

void generate_sql(FILE *out)
{
    fputs("-- What receiptd prepares, by folder and file of sql/. Set search_path to its schema.\n"
          "-- \"lane/decide recent\": while the inbox has a recent set, here with the boundary\n"
          "-- " BOUNDARY "; \"lane/decide rules\": with rules that want something of a row, here\n"
          "-- dimensions, groups, first times and folds by columns of the inbox, all by\n"
          "-- " DIMENSION_COLUMN ".\n"
          "-- \"serve/messages_of_customer\", \"serve/recipients\" and \"lane/range_resolve\":\n"
          "-- likewise; \"serve/names\": by receiptd.action for the view; \"serve/funnels\":\n"
          "-- serve/funnel for many campaigns at once; \"expiry/candidates\": of receiptd's own\n"
          "-- inbox, in a transaction that goes on with statements of lanes.\n",
          out);
    write_lane(out);
    write_expiry(out);
    write_list(out, "control", rcpt_control_statements);
    write_list(out, "actions", rcpt_action_statements);
    write_list(out, "fold", rcpt_fold_statements);
    write_list(out, "fold", rcpt_fold_topic_statements);
    write_list(out, "messages", rcpt_message_statements);
    write_list(out, "intake", rcpt_intake_statements);
    write_list(out, "serve", serve_statements);
    write_list(out, "serve", names_statements);
}
