/* The statements that connections beside those of lanes prepare: files and folders of sql/, by the
 * connection that sends them. lane_statements.c has those of lanes. Called where these connections
 * are made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/postgres/bind.h"
#include "receiptd/postgres/sql.h"
#include "receiptd/postgres/statements.h"

/* As map_inbox.sql names it: the platform's table, or the view on it. */
#define INBOX "message_inbox"

/* A file, or the files of a folder, joined in their order as they stand. */
static const char *text_of(const char *name)
{
    char *text = NULL;
    size_t size = strlen(name), text_size = 0;
    for (size_t index = 0; rcpt_sql_name(index) != NULL; index++)
        if (strcmp(rcpt_sql_name(index), name) == 0)
            return rcpt_sql(name);
    FILE *out = rcpt_open_memory(&text, &text_size);
    for (size_t index = 0; rcpt_sql_name(index) != NULL; index++)
        if (strncmp(rcpt_sql_name(index), name, size) == 0 && rcpt_sql_name(index)[size] == '/')
            fputs(rcpt_sql(rcpt_sql_name(index)), out);
    RCPT_ASSERT(fclose(out) == 0 && text_size > 0);
    return text;
}

/* A prepared statement is named like its file or folder, without the folder above. Texts are no
 * constant expressions, so the tables get them at the first call; they stay the same. */
static const struct rcpt_pg_statement *with_texts(struct rcpt_pg_statement *statements,
                                                  size_t count, const char *folder)
{
    for (size_t index = 0; index < count; index++) {
        char file[64];
        int size = snprintf(file, sizeof(file), "%s/%s", folder, statements[index].name);
        RCPT_ASSERT(size > 0 && (size_t)size < sizeof(file));
        if (statements[index].sql == NULL)
            statements[index].sql = text_of(file);
    }
    return statements;
}

/* Prepared on the control connection: positions, roll-up, parking, blockers. */
const struct rcpt_pg_statement *rcpt_control_statements(size_t *count)
{
    static struct rcpt_pg_statement statements[] = {
        {.name = "rollup"},         {.name = "parked_probe", .must_use_index_on = INBOX},
        {.name = "pins_read"},      {.name = "progress_read"},
        {.name = "synchronous"},    {.name = "pins_insert"},
        {.name = "partitions_add"}, {.name = "blockers"},
        {.name = "snapshot_age"},   {.name = "schema_check"},
        {.name = "timeline_trim"},  {.name = "ladder_read"},
        {.name = "letter_trim"},    {.name = "retired_trim"},
        {.name = "folds_left"},     {.name = "places"},
        {.name = "recent_read"},    {.name = "status_leave"},
        {.name = "rollup_groups"},  {.name = "tally_trim"},
        {.name = "dedup_trim"},     {.name = "maintenance"},
        {.name = "layout"},         {.name = "parts_trim"},
        {.name = "status_store"},   {.name = "ranges_trim"},
        {.name = "deltas"},
    };
    *count = RCPT_COUNT_OF(statements);
    return with_texts(statements, *count, "control");
}

/* Prepared on the connection of the actions. */
const struct rcpt_pg_statement *rcpt_action_statements(size_t *count)
{
    static struct rcpt_pg_statement statements[] = {
        {.name = "claim"},         {.name = "finish"},          {.name = "own"},
        {.name = "leave"},         {.name = "store"},           {.name = "tidy"},
        {.name = "counts"},        {.name = "begin"},           {.name = "topic"},
        {.name = "topic_letters"}, {.name = "topic_positions"}, {.name = "topic_begin"},
        {.name = "import"},        {.name = "subscriptions"},   {.name = "pushes"},
        {.name = "lookups"}};
    *count = RCPT_COUNT_OF(statements);
    return with_texts(statements, *count, "actions");
}

/* Prepared on the connection of announced messages. */
const struct rcpt_pg_statement *rcpt_message_statements(size_t *count)
{
    static struct rcpt_pg_statement statements[] = {
        {.name = "positions"}, {.name = "begin"}, {.name = "announce"}};
    *count = RCPT_COUNT_OF(statements);
    return with_texts(statements, *count, "messages");
}

/* Prepared on the intake's connection, whose role may read aliases and nothing else. */
const struct rcpt_pg_statement *rcpt_intake_statements(size_t *count)
{
    static struct rcpt_pg_statement statements[] = {{.name = "aliases"}};
    *count = RCPT_COUNT_OF(statements);
    return with_texts(statements, *count, "intake");
}

/* A condition for each column that a rule names. */
static const char *pending_text(const struct rcpt_serve_columns *columns)
{
    char *text = NULL;
    size_t size = 0;
    struct rcpt_error error;
    FILE *out = rcpt_open_memory(&text, &size);
    fputs(rcpt_sql("serve/pending/10_begin"), out);
    for (size_t index = 0; index < columns->expiry_count; index++) {
        const struct rcpt_pg_binding binding = {"column", columns->expiry[index]};
        char *condition = rcpt_pg_bind(rcpt_sql("serve/pending/20_column"), &binding, 1, &error);
        fputs(condition, out);
        free(condition);
    }
    fputs(rcpt_sql("serve/pending/30_end"), out);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

/* Texts of the first five statements and of the last one, which depend on the inbox. */
static void bind_serve(struct rcpt_pg_statement *first, struct rcpt_pg_statement *last,
                       const struct rcpt_serve_columns *columns)
{
    /* If the inbox lacks a column, another one takes its place and is not read. */
    const char *customer = columns->customer, *logical = columns->logical;
    const struct rcpt_pg_binding bindings[] = {
        {"customer", customer != NULL ? customer : "message_id"},
        {"logical", logical != NULL ? logical : "message_id"},
        {"channel", columns->channel != NULL ? columns->channel : "message_id"},
        {"has_customer", customer != NULL ? "true" : "false"},
        {"has_logical", logical != NULL ? "true" : "false"},
        {"has_channel", columns->channel != NULL ? "true" : "false"},
        {"newest", columns->newest}};
    const size_t bound = RCPT_COUNT_OF(bindings);
    const struct rcpt_pg_binding one = {"many", "one"}, many = {"many", "many"};
    struct rcpt_error error;
    first[0].sql = rcpt_pg_bind(rcpt_sql("serve/funnel"), &one, 1, &error);
    first[1].sql = rcpt_pg_bind(rcpt_sql("serve/funnel"), &many, 1, &error);
    first[2].sql = rcpt_pg_bind(rcpt_sql("serve/message"), bindings, bound, &error);
    first[3].sql = rcpt_pg_bind(rcpt_sql("serve/recipients"), bindings, bound, &error);
    first[4].sql = pending_text(columns);
    if (customer != NULL)
        last->sql = rcpt_pg_bind(rcpt_sql("serve/messages_of_customer"), bindings, bound, &error);
}

/* Prepared on each connection of the interface for readers, whose role may read and nothing else.
 */
const struct rcpt_pg_statement *rcpt_serve_statements(const struct rcpt_serve_columns *columns,
                                                      size_t *count)
{
    static struct rcpt_pg_statement statements[] = {
        {.name = "funnel"},       {.name = "funnels"},      {.name = "message"},
        {.name = "recipients"},   {.name = "pending"},      {.name = "token"},
        {.name = "changes"},      {.name = "campaigns"},    {.name = "messages"},
        {.name = "pipelines"},    {.name = "pipeline"},     {.name = "actions"},
        {.name = "dead_letters"}, {.name = "status"},       {.name = "timeline"},
        {.name = "gateways"},     {.name = "suppressions"}, {.name = "messages_of_customer"},
    };
    *count = RCPT_COUNT_OF(statements);
    if (statements[0].sql == NULL)
        bind_serve(statements, &statements[*count - 1], columns);
    RCPT_ASSERT(columns->customer == NULL || statements[*count - 1].sql != NULL);
    if (columns->customer == NULL)
        (*count)--;
    return with_texts(statements, *count, "serve");
}

const struct rcpt_pg_statement *rcpt_serve_names_statements(const char *view, size_t *count)
{
    static struct rcpt_pg_statement statements[] = {{.name = "names"}};
    const char *dot = strchr(view, '.');
    char schema[64];
    struct rcpt_error error;
    snprintf(schema, sizeof(schema), "%.*s", (int)(dot - view), view);
    const struct rcpt_pg_binding bindings[] = {{"schema", schema}, {"view", dot + 1}};
    if (statements[0].sql == NULL)
        statements[0].sql = rcpt_pg_bind(rcpt_sql("serve/names"), bindings, 2, &error);
    *count = RCPT_COUNT_OF(statements);
    return statements;
}

/* Prepared on the publisher's connection, for both shards. */
const struct rcpt_pg_statement *rcpt_fold_statements(size_t *count)
{
    static struct rcpt_pg_statement statements[] = {
        {.name = "poll"},       {.name = "take"},         {.name = "fence"},
        {.name = "events"},     {.name = "due"},          {.name = "put_off"},
        {.name = "gather"},     {.name = "keep"},         {.name = "claim"},
        {.name = "read"},       {.name = "done"},         {.name = "forget"},
        {.name = "rules"},      {.name = "totals"},       {.name = "calls"},
        {.name = "answered"},   {.name = "stream_claim"}, {.name = "stream_read"},
        {.name = "stream_lag"},
    };
    *count = RCPT_COUNT_OF(statements);
    return with_texts(statements, *count, "fold");
}

/* Prepared on the connection of the reader of topics; topics/batch.c sends them by these names. */
const struct rcpt_pg_statement *rcpt_fold_topic_statements(size_t *count)
{
    static struct rcpt_pg_statement statements[] = {
        {.name = "positions"}, {.name = "begin"},   {.name = "move"},
        {.name = "append"},    {.name = "letters"},
    };
    *count = RCPT_COUNT_OF(statements);
    return with_texts(statements, *count, "fold");
}
