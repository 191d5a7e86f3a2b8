/* receiptd generate sql: the statements that the daemon prepares, as PREPARE statements for psql. A
 * statement is called by its folder and file of sql/; those of a lane that depend on what
 * subscribes to transitions come once for each variant. Called by generate.c. */
#include <stdio.h>
#include <string.h>

#include "manual.h"
#include "postgres/statements.h"

/* A file ends with a semicolon and a line feed, which PREPARE puts itself. */
static void write_statement(FILE *out, const char *folder, const char *variant,
                            const struct rcpt_pg_statement *statement)
{
    size_t size = strlen(statement->sql);
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

/* By name and by text: only statements that differ are printed again. */
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

/* The files that subscribers name (transition_subscriber.file); actions, which are selective, come
 * last. */
#define FOLDS         "lane/subscribers/folds"
#define FOLDS_COLUMNS "lane/subscribers/folds_columns"
#define ACTIONS       "lane/subscribers/actions"
#define BOUNDARY      "-infinity" /* the daemon puts that of inbox_recent here */

/* All of them, as with every one switched on. */
static const char *const rules[] = {"lane/rules/dedup",      "lane/rules/series",
                                    "lane/rules/reasons",    "lane/rules/gateways",
                                    "lane/rules/times",      "lane/rules/dimensions_echoes",
                                    "lane/rules/dimensions", "lane/rules/groups"};

/* Those of dimensions and groups come last. The daemon puts the columns of counters.by and
 * counters.groups here. */
#define DIMENSION_COLUMN "org_id"
#define FIRST_BINDINGS   4u /* the first ones, which all variants have */
static const struct rcpt_pg_binding bindings[] = {
    {"range_recipient", DIMENSION_COLUMN}, {"range_account", DIMENSION_COLUMN},
    {"range_sent", "created_at"},          {"dedup_window", "168 hours"},
    {"dimension_1", DIMENSION_COLUMN},     {"dimension_2", DIMENSION_COLUMN},
    {"dimension_3", DIMENSION_COLUMN},     {"dimension_kinds", "{by_variant}"},
    {"group_1", DIMENSION_COLUMN},         {"group_2", DIMENSION_COLUMN},
    {"group_kinds", "{customer}"}};

#define RULES (sizeof(rules) / sizeof(rules[0]))

struct variant {
    const char *name, *subscribers[2], *recent_since;
    size_t rules;
    bool has_dimensions;
};

/* Writes the variant's statements that differ from those of `plain`, or all where that is NULL. */
static void write_variant(FILE *out, const struct rcpt_lane_statements *plain,
                          const struct variant *of)
{
    const char *const *subscribers = of->subscribers;
    size_t count, used = subscribers[1] != NULL ? 2 : subscribers[0] != NULL ? 1 : 0;
    static const struct rcpt_lane_rules everything = {.receipts = true,
                                                      .keys = true,
                                                      .minutes = true,
                                                      .facets = true,
                                                      .delays = true,
                                                      .times = true},
                                        nothing = {0};
    const struct rcpt_lane_variant variant = {
        .subscribers = subscribers,
        .count = used,
        .rules = rules,
        .rule_count = of->rules,
        .read = of->rules > 0 ? everything : nothing,
        .by_dimensions = of->has_dimensions,
        .bindings = bindings,
        .binding_count =
            of->has_dimensions ? sizeof(bindings) / sizeof(bindings[0]) : FIRST_BINDINGS,
        .resolves_ranges = true,
        .selective = used > 0 && strcmp(subscribers[used - 1], ACTIONS) == 0,
        .inserts_unknown = true,
        .recent_since = of->recent_since};
    struct rcpt_lane_statements *statements = rcpt_lane_statements_new(&variant);
    const struct rcpt_pg_statement *list = rcpt_lane_statements_list(statements, &count);
    for (size_t index = 0; index < count; index++)
        if (plain == NULL || !is_among(plain, &list[index]))
            write_statement(out, "lane", of->name, &list[index]);
    rcpt_lane_statements_free(statements);
}

/* Statements of lanes depend on who subscribes to transitions, on rules, and on whether the inbox
 * has a recent set; every combination without rules is a variant. */
static void write_lane(FILE *out)
{
    static const struct variant variants[] = {
        {.name = ""},
        {" folds", {FOLDS}, NULL, 0, false},
        {" folds_columns", {FOLDS_COLUMNS}, NULL, 0, false},
        {" actions", {ACTIONS}, NULL, 0, false},
        {" folds actions", {FOLDS, ACTIONS}, NULL, 0, false},
        {" folds_columns actions", {FOLDS_COLUMNS, ACTIONS}, NULL, 0, false},
        {" recent", {NULL}, BOUNDARY, 0, false},
        {" folds recent", {FOLDS}, BOUNDARY, 0, false},
        {" folds_columns recent", {FOLDS_COLUMNS}, BOUNDARY, 0, false},
        {" actions recent", {ACTIONS}, BOUNDARY, 0, false},
        {" folds actions recent", {FOLDS, ACTIONS}, BOUNDARY, 0, false},
        {" folds_columns actions recent", {FOLDS_COLUMNS, ACTIONS}, BOUNDARY, 0, false},
        {.name = " rules", .rules = RULES - 3},
        {.name = " rules dimensions", .rules = RULES, .has_dimensions = true},
        {" rules dimensions recent", {NULL}, BOUNDARY, RULES, true}};
    struct rcpt_lane_variant base = {.inserts_unknown = true,
                                     .resolves_ranges = true,
                                     .bindings = bindings,
                                     .binding_count = FIRST_BINDINGS};
    struct rcpt_lane_statements *plain = rcpt_lane_statements_new(&base);
    base.recent_since = BOUNDARY;
    struct rcpt_lane_statements *recent = rcpt_lane_statements_new(&base);
    for (size_t index = 0; index < sizeof(variants) / sizeof(variants[0]); index++) {
        bool both = variants[index].recent_since != NULL &&
                    (variants[index].subscribers[0] != NULL || variants[index].rules > 0);
        write_variant(out, index == 0 ? NULL : both ? recent : plain, &variants[index]);
    }
    rcpt_lane_statements_free(recent);
    rcpt_lane_statements_free(plain);
}

/* With a customer and a channel, which are in the column of the dimensions. */
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

/* With a table of receiptd's own in the place of the platform's view. */
static const struct rcpt_pg_statement *names_statements(size_t *count)
{
    return rcpt_serve_names_statements("receiptd.action", count);
}

void generate_sql(FILE *out)
{
    fputs(
        "-- What receiptd prepares, by folder and file of sql/. Set search_path to its schema.\n"
        "-- \"lane/apply folds\": the variant where folds subscribe to transitions; \"lane/apply\n"
        "-- recent\": while the inbox has a recent set, here with the boundary " BOUNDARY ";\n"
        "-- \"lane/apply rules\": with all rules, which may be combined with the others; "
        "dimensions:\n"
        "-- also by columns of the inbox, here by " DIMENSION_COLUMN
        "; \"serve/messages_of_customer\", \"serve/recipients\",\n"
        "-- \"serve/pending\" and \"lane/range_resolve\": likewise; \"serve/names\": by "
        "receiptd.action\n"
        "-- for the view; \"serve/funnels\": serve/funnel for many campaigns at once.\n",
        out);
    write_lane(out);
    write_list(out, "heart", rcpt_heart_statements);
    write_list(out, "control", rcpt_control_statements);
    write_list(out, "actions", rcpt_action_statements);
    write_list(out, "fold", rcpt_fold_statements);
    write_list(out, "fold", rcpt_fold_topic_statements);
    write_list(out, "intake", rcpt_intake_statements);
    write_list(out, "serve", serve_statements);
    write_list(out, "serve", names_statements);
}
