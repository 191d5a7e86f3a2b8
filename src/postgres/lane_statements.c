/* What is prepared on a lane's connections: the files of sql/lane, with the optional lines of a
 * statement where there are blocks that need them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql.h"
#include "statements.h"

#define INBOX    "message_inbox"
#define OPTIONAL "--+ "
#define QUIET    "--? "
#define BLOCKS   ":blocks"

static const struct rcpt_pg_statement templates[] = {
    {.name = "fence"},       {.name = "apply", .must_use_index_on = INBOX},
    {.name = "insert"},      {.name = "letters"},
    {.name = "probe_abort"}, {.name = "wake", .must_use_index_on = INBOX},
    {.name = "discard"},     {.name = "expire"},
    {.name = "positions"},   {.name = "timeline", .must_use_index_on = INBOX},
};

#define STATEMENT_COUNT (sizeof(templates) / sizeof(templates[0]))

struct rcpt_lane_statements {
    struct rcpt_pg_statement list[STATEMENT_COUNT + 1]; /* and the unsubscribed form of apply */
    char *texts[STATEMENT_COUNT + 1];
    size_t count;
};

struct composition {
    const char *const *blocks;
    size_t count;
    bool unsubscribed;
};

static void write_blocks(FILE *out, const struct composition *composition)
{
    for (size_t index = 0; index < composition->count; index++)
        fprintf(out, ",\n%s\n", composition->blocks[index]);
}

static void write_line(FILE *out, const char *line, size_t size,
                       const struct composition *composition)
{
    size_t indent = strspn(line, " ");
    const char *text = line + indent;
    bool optional = indent < size && strncmp(text, OPTIONAL, strlen(OPTIONAL)) == 0;
    bool unsubscribed = indent < size && strncmp(text, QUIET, strlen(QUIET)) == 0;
    if (!optional && !unsubscribed) {
        fwrite(line, 1, size, out);
        return;
    }
    text += optional ? strlen(OPTIONAL) : strlen(QUIET);
    if (optional ? composition->count == 0 : !composition->unsubscribed)
        return;
    if (strncmp(text, BLOCKS, strlen(BLOCKS)) == 0)
        write_blocks(out, composition);
    else
        fwrite(text, 1, size - (size_t)(text - line), out);
}

static char *compose(const char *sql, const struct composition *composition)
{
    char *text = NULL;
    size_t text_size = 0;
    FILE *out = open_memstream(&text, &text_size);
    RCPT_ASSERT(out != NULL);
    while (*sql != '\0') {
        size_t size = strcspn(sql, "\n");
        size += sql[size] == '\n';
        write_line(out, sql, size, composition);
        sql += size;
    }
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

static void add_statement(struct rcpt_lane_statements *statements,
                          const struct rcpt_pg_statement *template, const char *file,
                          const struct composition *composition)
{
    size_t index = statements->count++;
    statements->texts[index] = compose(rcpt_sql(file), composition);
    statements->list[index] = *template;
    statements->list[index].sql = statements->texts[index];
}

struct rcpt_lane_statements *rcpt_lane_statements_new(const char *const *blocks, size_t block_count)
{
    struct rcpt_lane_statements *statements = rcpt_calloc(1, sizeof(*statements));
    const struct composition composition = {.blocks = blocks, .count = block_count};
    for (size_t index = 0; index < STATEMENT_COUNT; index++) {
        char file[64];
        int size = snprintf(file, sizeof(file), "lane/%s", templates[index].name);
        RCPT_ASSERT(size > 0 && (size_t)size < sizeof(file));
        add_statement(statements, &templates[index], file, &composition);
    }
    return statements;
}

void rcpt_lane_statements_add_unsubscribed(struct rcpt_lane_statements *statements,
                                           const char *const *blocks, size_t block_count)
{
    static const struct rcpt_pg_statement apply_unsubscribed = {.name = "apply_unsubscribed",
                                                                .must_use_index_on = INBOX};
    const struct composition composition = {
        .blocks = blocks, .count = block_count, .unsubscribed = true};
    RCPT_ASSERT(statements->count == STATEMENT_COUNT);
    add_statement(statements, &apply_unsubscribed, "lane/apply", &composition);
}

void rcpt_lane_statements_free(struct rcpt_lane_statements *statements)
{
    if (statements == NULL)
        return;
    for (size_t index = 0; index < statements->count; index++)
        free(statements->texts[index]);
    free(statements);
}

const struct rcpt_pg_statement *rcpt_lane_statements_list(
    const struct rcpt_lane_statements *statements, size_t *count)
{
    *count = statements->count;
    return statements->list;
}
