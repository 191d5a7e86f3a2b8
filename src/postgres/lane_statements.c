/* What is prepared on a lane's connections: the files of sql/lane, with the optional lines of a
 * statement where there are blocks that need them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/postgres/sql.h"
#include "receiptd/postgres/statements.h"

#define INBOX    "message_inbox"
#define OPTIONAL "--+ "
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
    struct rcpt_pg_statement list[STATEMENT_COUNT];
    char *texts[STATEMENT_COUNT];
};

static void write_blocks(FILE *out, const char *const *blocks, size_t count)
{
    for (size_t index = 0; index < count; index++)
        fprintf(out, ",\n%s\n", blocks[index]);
}

static void write_line(FILE *out, const char *line, size_t size, const char *const *blocks,
                       size_t count)
{
    size_t indent = strspn(line, " ");
    const char *text = line + indent;
    if (indent >= size || strncmp(text, OPTIONAL, strlen(OPTIONAL)) != 0) {
        fwrite(line, 1, size, out);
        return;
    }
    text += strlen(OPTIONAL);
    if (count == 0)
        return;
    if (strncmp(text, BLOCKS, strlen(BLOCKS)) == 0)
        write_blocks(out, blocks, count);
    else
        fwrite(text, 1, size - (size_t)(text - line), out);
}

static char *compose(const char *sql, const char *const *blocks, size_t count)
{
    char *text = NULL;
    size_t text_size = 0;
    FILE *out = open_memstream(&text, &text_size);
    RCPT_ASSERT(out != NULL);
    while (*sql != '\0') {
        size_t size = strcspn(sql, "\n");
        size += sql[size] == '\n';
        write_line(out, sql, size, blocks, count);
        sql += size;
    }
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

struct rcpt_lane_statements *rcpt_lane_statements_new(const char *const *blocks, size_t block_count)
{
    struct rcpt_lane_statements *statements = rcpt_calloc(1, sizeof(*statements));
    for (size_t index = 0; index < STATEMENT_COUNT; index++) {
        char file[64];
        int size = snprintf(file, sizeof(file), "lane/%s", templates[index].name);
        RCPT_ASSERT(size > 0 && (size_t)size < sizeof(file));
        statements->texts[index] = compose(rcpt_sql(file), blocks, block_count);
        statements->list[index] = templates[index];
        statements->list[index].sql = statements->texts[index];
    }
    return statements;
}

void rcpt_lane_statements_free(struct rcpt_lane_statements *statements)
{
    if (statements == NULL)
        return;
    for (size_t index = 0; index < STATEMENT_COUNT; index++)
        free(statements->texts[index]);
    free(statements);
}

const struct rcpt_pg_statement *rcpt_lane_statements_list(
    const struct rcpt_lane_statements *statements, size_t *count)
{
    *count = STATEMENT_COUNT;
    return statements->list;
}
