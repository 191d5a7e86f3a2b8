/* What is prepared on a lane's connections: files of sql/lane. Two statements are made of several
 * files, apply and wake: the table below says which ones, in order, and when. Their texts are
 * joined as they stand; the subscribers of transitions name theirs. Called by receipts/lanes.c and
 * by `receiptd generate sql`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql.h"
#include "statements.h"

#define INBOX "message_inbox"

/* When a file belongs to a statement. */
enum {
    PLAIN = 1 << 0,        /* nothing subscribes to transitions */
    SUBSCRIBED = 1 << 1,   /* something does */
    UNSUBSCRIBED = 1 << 2, /* the selective subscriber has nothing in this batch */
};
#define ALWAYS      (PLAIN | SUBSCRIBED)
#define SUBSCRIBERS "" /* in place of a file: those of the subscribers */

struct piece {
    const char *file;
    unsigned when;
};

static const struct piece apply_pieces[] = {
    {"lane/apply/10_update", ALWAYS},
    {"lane/apply/20_changed", PLAIN},
    {"lane/apply/20_changed_subscribed", SUBSCRIBED},
    {"lane/apply/30_count", ALWAYS},
    {"lane/apply/40_unknown", ALWAYS},
    {SUBSCRIBERS, SUBSCRIBED},
    {"lane/apply/90_answer", ALWAYS},
    {"lane/apply/91_unsubscribed", UNSUBSCRIBED},
    {NULL, 0},
};
static const struct piece wake_pieces[] = {
    {"lane/wake/10_apply", ALWAYS},
    {SUBSCRIBERS, SUBSCRIBED},
    {"lane/wake/90_answer", ALWAYS},
    {NULL, 0},
};

/* Where the control connection waits itself, one of these asks for it. */
static const struct piece blockers_pieces[] = {{"control/blockers", ALWAYS}, {NULL, 0}};

/* Without pieces: the file of sql/lane that is called like the statement. */
static const struct source {
    struct rcpt_pg_statement statement;
    const struct piece *pieces;
} sources[] = {
    {{.name = "fence"}, NULL},
    {{.name = "apply", .must_use_index_on = INBOX}, apply_pieces},
    {{.name = "letters"}, NULL},
    {{.name = "probe_abort"}, NULL},
    {{.name = "wake", .must_use_index_on = INBOX}, wake_pieces},
    {{.name = "discard"}, NULL},
    {{.name = "expire"}, NULL},
    {{.name = "positions"}, NULL},
    {{.name = "timeline", .must_use_index_on = INBOX}, NULL},
    {{.name = "address"}, NULL},
    {{.name = "blockers"}, blockers_pieces},
};
static const struct source unsubscribed = {
    {.name = "apply_unsubscribed", .must_use_index_on = INBOX}, apply_pieces};
/* Only with `unknown: insert`. */
static const struct source inserts[] = {
    {{.name = "insert", .must_use_index_on = INBOX}, NULL},
    {{.name = "insert_parked", .must_use_index_on = INBOX}, NULL},
};

#define STATEMENT_COUNT (sizeof(sources) / sizeof(sources[0]))
#define INSERT_COUNT    (sizeof(inserts) / sizeof(inserts[0]))
#define MOST_STATEMENTS (STATEMENT_COUNT + INSERT_COUNT + 1) /* and apply_unsubscribed */

struct rcpt_lane_statements {
    struct rcpt_pg_statement list[MOST_STATEMENTS];
    char *texts[MOST_STATEMENTS];
    size_t count;
};

/* Which pieces a statement consists of, and whose subscribers stand in it. */
struct composition {
    const char *const *subscribers; /* names of their files */
    size_t count;
    unsigned when;
};

/* Texts are joined as they stand, so what is prepared can be read in sql/. */
static void write_piece(FILE *out, const struct piece *piece, const struct composition *composition)
{
    if ((piece->when & composition->when) == 0)
        return;
    if (strcmp(piece->file, SUBSCRIBERS) != 0)
        fputs(rcpt_sql(piece->file), out);
    for (size_t index = 0; strcmp(piece->file, SUBSCRIBERS) == 0 && index < composition->count;
         index++)
        fputs(rcpt_sql(composition->subscribers[index]), out);
}

/* A statement without pieces is one file. The caller frees the text. */
static char *compose(const struct source *source, const struct composition *composition)
{
    char file[64], *text = NULL;
    size_t size = 0;
    int file_size = snprintf(file, sizeof(file), "lane/%s", source->statement.name);
    RCPT_ASSERT(file_size > 0 && (size_t)file_size < sizeof(file));
    const struct piece whole[] = {{file, ALWAYS}, {NULL, 0}};
    const struct piece *piece = source->pieces != NULL ? source->pieces : whole;
    FILE *out = rcpt_open_memory(&text, &size);
    for (; piece->file != NULL; piece++)
        write_piece(out, piece, composition);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

static void add_statement(struct rcpt_lane_statements *statements, const struct source *source,
                          const struct composition *composition)
{
    size_t index = statements->count++;
    statements->texts[index] = compose(source, composition);
    statements->list[index] = source->statement;
    statements->list[index].sql = statements->texts[index];
}

/* The texts live as long as the list, since connections prepare them again after each reconnect. One
 * subscriber at most is selective, so one more form of apply is enough. */
struct rcpt_lane_statements *rcpt_lane_statements_new(const struct rcpt_lane_variant *variant)
{
    struct rcpt_lane_statements *statements = rcpt_calloc(1, sizeof(*statements));
    struct composition composition = {variant->subscribers, variant->count,
                                      variant->count > 0 ? SUBSCRIBED : PLAIN};
    for (size_t index = 0; index < STATEMENT_COUNT; index++)
        add_statement(statements, &sources[index], &composition);
    for (size_t index = 0; variant->inserts_unknown && index < INSERT_COUNT; index++)
        add_statement(statements, &inserts[index], &composition);
    if (variant->selective) {
        composition.count--;
        composition.when = (composition.count > 0 ? SUBSCRIBED : PLAIN) | UNSUBSCRIBED;
        add_statement(statements, &unsubscribed, &composition);
    }
    return statements;
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
