/* `lookup` of a pipeline: SQL of the platform's, whose row goes along with each call of a run or
 * prevents it. The text is put into a statement that answers for many runs at once, a row each. The
 * conditions of steps are part of it, so the server checks their columns where it prepares the
 * statement. Called by pipelines.c and pipelines_write.c. */
#include "pipelines_internal.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/postgres/bind.h"

#define MAX_SQL_BYTES 16384u
#define MAX_ROW_BYTES "65536" /* of its JSON; src/actions/lookup.c says it, too */

/* Parameters of the SQL are columns of the statement's runs. */
static const struct rcpt_pg_binding parameters[] = {
    {"=subject", "receiptd_run.subject"},
    {"=org_id", "receiptd_run.org_id"},
    {"=campaign_id", "receiptd_run.campaign_id"},
    {"=message_id", "receiptd_run.message_id"},
};

/* The row becomes a member of the body, beside those that every body has. */
static bool read_as(struct compiler *compiler, const yaml_node_t *node)
{
    static const char *const taken[] = {"type",    "action_id", "run_id",      "pipeline",
                                        "stage",   "org_id",    "campaign_id", "message_id",
                                        "subject", "status",    "data"};
    if (!pipelines_read_field(compiler, node, "lookup.as", &compiler->lookup_as))
        return false;
    const char *as = compiler->lookup_as;
    if (strspn(as, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != strlen(as))
        return pipelines_fail(compiler, node,
                              "lookup.as: \"%.63s\" is not of letters, digits and underscores", as);
    for (size_t index = 0; index < RCPT_COUNT_OF(taken); index++)
        if (strcmp(as, taken[index]) == 0)
            return pipelines_fail(compiler, node,
                                  "lookup.as: each body has a member \"%s\" already", as);
    return true;
}

/* A semicolon at the end is cut off, since the text becomes part of another one. */
static bool read_sql(struct compiler *compiler, const yaml_node_t *node)
{
    struct rcpt_error error;
    const char *text = node->type == YAML_SCALAR_NODE ? rcpt_config_scalar(node) : "";
    if (text[0] == '\0' || strlen(text) > MAX_SQL_BYTES)
        return pipelines_fail(compiler, node, "lookup.sql must be a text of 1 to %u bytes",
                              MAX_SQL_BYTES);
    compiler->lookup_sql =
        rcpt_pg_bind_strictly(text, parameters, RCPT_COUNT_OF(parameters), &error);
    if (compiler->lookup_sql == NULL)
        return pipelines_fail(compiler, node,
                              "lookup.sql: %s; it may have :subject, :org_id, :campaign_id and "
                              ":message_id",
                              error.text);
    size_t size = strlen(compiler->lookup_sql);
    while (size > 0 && strchr("; \t\r\n", compiler->lookup_sql[size - 1]) != NULL)
        compiler->lookup_sql[--size] = '\0';
    return true;
}

bool pipelines_read_lookup(struct compiler *compiler, const yaml_node_t *pipeline)
{
    const yaml_node_t *node = pipelines_member(compiler, pipeline, "lookup");
    free(compiler->lookup_sql);
    compiler->lookup_sql = NULL;
    if (node == NULL)
        return true;
    if (!pipelines_check_keys(compiler, node, "lookup", "sql as"))
        return false;
    const yaml_node_t *as = pipelines_member(compiler, node, "as");
    compiler->lookup = pipelines_member(compiler, node, "sql");
    if (compiler->lookup == NULL || as == NULL)
        return pipelines_fail(compiler, node, "lookup needs sql and as");
    return read_as(compiler, as) && read_sql(compiler, compiler->lookup);
}

static bool read_condition(struct compiler *compiler, const yaml_node_t *action, const char *name,
                           const struct step *step, yaml_node_t **columns)
{
    *columns = pipelines_member(compiler, action, name);
    if (*columns == NULL)
        return true;
    if (compiler->lookup_sql == NULL)
        return pipelines_fail(compiler, *columns, "%s needs lookup of the pipeline", name);
    if (step->op != OP_WEBHOOK && step->op != OP_PRODUCE)
        return pipelines_fail(compiler, *columns, "%s is for webhook and produce only", name);
    return pipelines_check_texts(compiler, *columns, name, true);
}

bool pipelines_read_lookup_conditions(struct compiler *compiler, const yaml_node_t *action,
                                      struct step *step)
{
    return read_condition(compiler, action, "if_lookup", step, &step->if_lookup) &&
           read_condition(compiler, action, "unless_lookup", step, &step->unless_lookup);
}

/* ---- the statement ---- */

static void write_column(FILE *out, const yaml_node_t *node, const char *test)
{
    fputs(" OR lookup.\"", out);
    for (const char *byte = rcpt_config_scalar(node); *byte != '\0'; byte++)
        fprintf(out, *byte == '"' ? "\"%c" : "%c", *byte);
    fprintf(out, "\" IS %s", test);
}

static void write_columns(const struct compiler *compiler, FILE *out, const yaml_node_t *node,
                          const char *test)
{
    if (node != NULL && node->type == YAML_SCALAR_NODE)
        write_column(out, node, test);
    else if (node != NULL)
        for (const yaml_node_item_t *item = node->data.sequence.items.start;
             item < node->data.sequence.items.top; item++)
            write_column(out, pipelines_node(compiler, *item), test);
}

/* Parameters: subjects, organisations, campaigns, messages, steps. Columns, a row for each run in
 * their order: the row as JSON, its size, whether the step is passed over. A row that is too large
 * stays on the server. */
static char *statement_of(const struct compiler *compiler)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    fputs("SELECT CASE WHEN octet_length(j.value) <= " MAX_ROW_BYTES " THEN j.value END,"
          " octet_length(j.value), false",
          out);
    for (size_t index = 0; index < compiler->step_count; index++) {
        const struct step *step = &compiler->steps[index];
        if (step->if_lookup == NULL && step->unless_lookup == NULL)
            continue;
        fprintf(out, " OR receiptd_run.step = %zu AND (false", index);
        write_columns(compiler, out, step->if_lookup, "NOT TRUE");
        write_columns(compiler, out, step->unless_lookup, "TRUE");
        fputc(')', out);
    }
    fprintf(out,
            " FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int4[]) WITH"
            " ORDINALITY AS receiptd_run (subject, org_id, campaign_id, message_id, step, n)"
            " LEFT JOIN LATERAL (SELECT * FROM (\n%s\n) found LIMIT 1) lookup ON true"
            " CROSS JOIN LATERAL (SELECT to_jsonb(lookup)::text OFFSET 0) j (value)"
            " ORDER BY receiptd_run.n",
            compiler->lookup_sql);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

void pipelines_write_lookup(const struct compiler *compiler, struct rcpt_json *json)
{
    if (compiler->lookup_sql == NULL)
        return;
    char *statement = statement_of(compiler);
    rcpt_json_key(json, "lookup");
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "as", compiler->lookup_as);
    rcpt_json_put_text(json, "sql", statement);
    rcpt_json_end_object(json);
    free(statement);
}

void pipelines_write_lookup_place(const struct compiler *compiler, struct rcpt_json *json)
{
    if (compiler->lookup_sql == NULL)
        return;
    struct rcpt_config_place place = rcpt_config_place_of(compiler->lookup);
    rcpt_json_put_int(json, "lookup_line", place.line);
    rcpt_json_put_int(json, "lookup_column", place.column);
}
