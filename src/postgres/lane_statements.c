/* What is prepared on a lane's connections: files of sql/lane. Some statements are made of several
 * files: the table below says which ones, in order, and when. Their texts are
 * joined as they stand; the subscribers of transitions name theirs. While the inbox has a recent
 * set, some files stand in place of others, and the boundary is put in. Called by receipts/lanes.c
 * and by `receiptd generate sql`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array_text.h"
#include "bind.h"
#include "sql.h"
#include "statements.h"

#define INBOX "message_inbox"

/* When a file belongs to a statement. */
enum {
    ALWAYS = 1 << 0,
    PLAIN = 1 << 1,        /* nothing subscribes to transitions */
    SUBSCRIBED = 1 << 2,   /* something does */
    UNSUBSCRIBED = 1 << 3, /* the selective subscriber has nothing in this batch */
    COUNTED = 1 << 4,      /* there are rules */
    RULED = 1 << 5,        /* some of them read receipts */
    DIMENSIONED = 1 << 6,  /* one counts by dimensions */
    TIMED = 1 << 8,        /* the row keeps first times of its message */
    UNTIMED = 1 << 9,
    FACETED = 1 << 10, /* a rule reads reasons or gateways */
    UNFACETED = 1 << 11,
    /* What the funnel's delta consists of. */
    OF_GROUPS = 1 << 12,
    OF_MINUTES = 1 << 13, /* a rule counts the series */
    OF_DIMENSIONS = 1 << 14,
};
#define SUBSCRIBERS ""  /* in place of a file: those of the subscribers */
#define RULES       "/" /* likewise those of the rules */

/* And with how many stages: two while the inbox has a recent set. */
enum stages {
    ONE_STAGE = 1 << 0,
    TWO_STAGES = 1 << 1,
    ANY_STAGES = ONE_STAGE | TWO_STAGES,
};

struct piece {
    const char *file;
    unsigned when;
    enum stages stages;
};

/* Of each stage: what the UPDATE sets, and what it returns. */
/* clang-format off */
#define SET(STAGES)                                                                                \
    {"lane/apply/11_set", UNTIMED, (STAGES)}, {"lane/apply/11_set_times", TIMED, (STAGES)}
#define CHANGES(STAGES)                                                                            \
    {"lane/apply/14_or_earlier", TIMED, (STAGES)}, {"lane/apply/14_end", ALWAYS, (STAGES)}
#define RETURNING(STAGES)                                                                          \
    {"lane/apply/15_returning", ALWAYS, (STAGES)},                                                 \
    {"lane/apply/15_returning_ruled", COUNTED | SUBSCRIBED, (STAGES)},                             \
    {"lane/apply/15_returning_subscribed", SUBSCRIBED, (STAGES)},                                  \
    {"lane/apply/15_returning_dimensions", DIMENSIONED, (STAGES)},                                 \
    {"lane/apply/15_returning_times", TIMED, (STAGES)},                                            \
    {"lane/apply/15_end", ALWAYS, (STAGES)}
#define WAKE_CHANGE(STAGES)                                                                        \
    {"lane/wake/21_set", UNTIMED, (STAGES)}, {"lane/wake/21_set_times", TIMED, (STAGES)},          \
    {"lane/wake/22_from", ALWAYS, (STAGES)}, {"lane/wake/23_or_earlier", TIMED, (STAGES)},         \
    {"lane/wake/24_end", ALWAYS, (STAGES)}
#define WAKE_RETURNING(STAGES)                                                                     \
    {"lane/wake/26_returning", ALWAYS, (STAGES)},                                                  \
    {"lane/apply/15_returning_times", TIMED, (STAGES)}, {"lane/wake/27_end", ALWAYS, (STAGES)}
/* clang-format on */

static const struct piece apply_pieces[] = {
    {"lane/apply/10_update", ALWAYS, ONE_STAGE},
    {"lane/apply/10_recent", ALWAYS, TWO_STAGES},
    SET(ANY_STAGES),
    {"lane/apply/13_from", ALWAYS, ONE_STAGE},
    {"lane/apply/13_from_recent", ALWAYS, TWO_STAGES},
    CHANGES(ANY_STAGES),
    RETURNING(ANY_STAGES),
    {"lane/apply/16_older", ALWAYS, TWO_STAGES},
    CHANGES(TWO_STAGES),
    {"lane/apply/16_older_from", ALWAYS, TWO_STAGES},
    SET(TWO_STAGES),
    {"lane/apply/17_from_seen", ALWAYS, TWO_STAGES},
    CHANGES(TWO_STAGES),
    RETURNING(TWO_STAGES),
    {"lane/apply/17_both", ALWAYS, TWO_STAGES},
    {"lane/apply/20_changed", PLAIN, ANY_STAGES},
    {"lane/apply/20_changed_subscribed", SUBSCRIBED, ANY_STAGES},
    {"lane/apply/25_unchanged", ALWAYS, ONE_STAGE},
    {"lane/apply/25_unchanged_recent", ALWAYS, TWO_STAGES},
    CHANGES(ANY_STAGES),
    {"lane/apply/26_unchanged", ALWAYS, ONE_STAGE},
    {"lane/apply/26_unchanged_recent", ALWAYS, TWO_STAGES},
    {"lane/apply/30_count", ALWAYS, ANY_STAGES},
    {"lane/apply/31_dimensions", DIMENSIONED, ANY_STAGES},
    {"lane/apply/31_delta", OF_GROUPS, ANY_STAGES},
    {"lane/apply/31_delta_minutes", OF_MINUTES, ANY_STAGES},
    {"lane/apply/31_delta_dimensions", OF_DIMENSIONS, ANY_STAGES},
    {"lane/apply/40_unknown", ALWAYS, ANY_STAGES},
    {"lane/apply/45_receipts", RULED, ANY_STAGES},
    {"lane/apply/45_alike", RULED, ANY_STAGES},
    {RULES, COUNTED, ANY_STAGES},
    {SUBSCRIBERS, SUBSCRIBED | DIMENSIONED, ANY_STAGES},
    {"lane/apply/85_figures", UNFACETED, ANY_STAGES},
    {"lane/apply/85_figures_ruled", FACETED, ANY_STAGES},
    {"lane/apply/90_answer", ALWAYS, ANY_STAGES},
    {"lane/apply/91_unsubscribed", UNSUBSCRIBED, ANY_STAGES},
    {NULL, 0, ANY_STAGES},
};
static const struct piece wake_pieces[] = {
    {"lane/wake/10_apply", ALWAYS, ANY_STAGES},
    {"lane/wake/20_update", ALWAYS, ONE_STAGE},
    {"lane/wake/20_update_recent", ALWAYS, TWO_STAGES},
    WAKE_CHANGE(ANY_STAGES),
    {"lane/wake/25_recent", ALWAYS, TWO_STAGES},
    WAKE_RETURNING(ANY_STAGES),
    {"lane/wake/28_older", ALWAYS, TWO_STAGES},
    WAKE_CHANGE(TWO_STAGES),
    {"lane/wake/25_older", ALWAYS, TWO_STAGES},
    WAKE_RETURNING(TWO_STAGES),
    {"lane/wake/29_both", ALWAYS, TWO_STAGES},
    {"lane/wake/30_count", ALWAYS, ANY_STAGES},
    {"lane/wake/45_receipts", RULED, ANY_STAGES},
    {"lane/wake/45_alike", RULED, ANY_STAGES},
    {"lane/wake/45_dimensions", DIMENSIONED, ANY_STAGES},
    {RULES, COUNTED, ANY_STAGES},
    {SUBSCRIBERS, SUBSCRIBED | DIMENSIONED, ANY_STAGES},
    {"lane/wake/90_answer", ALWAYS, ANY_STAGES},
    {NULL, 0, ANY_STAGES},
};

static const struct piece timeline_pieces[] = {
    {"lane/timeline/10_insert", ALWAYS, ANY_STAGES},
    {"lane/timeline/20_message", ALWAYS, ONE_STAGE},
    {"lane/timeline/20_message_recent", ALWAYS, TWO_STAGES},
    {"lane/timeline/30_events", ALWAYS, ANY_STAGES},
    {NULL, 0, ANY_STAGES},
};
static const struct piece insert_pieces[] = {
    {"lane/insert/10_make", ALWAYS, ANY_STAGES},
    {"lane/insert/20_known", ALWAYS, ONE_STAGE},
    {"lane/insert/20_known_recent", ALWAYS, TWO_STAGES},
    {"lane/insert/30_answer", ALWAYS, ANY_STAGES},
    {NULL, 0, ANY_STAGES},
};
static const struct piece insert_parked_pieces[] = {
    {"lane/insert_parked/10_pick", ALWAYS, ANY_STAGES},
    {"lane/insert_parked/20_known", ALWAYS, ONE_STAGE},
    {"lane/insert_parked/20_known_recent", ALWAYS, TWO_STAGES},
    {"lane/insert_parked/30_make", ALWAYS, ANY_STAGES},
    {NULL, 0, ANY_STAGES},
};

static const struct piece resolve_pieces[] = {{"lane/range_resolve", ALWAYS, ANY_STAGES},
                                              {NULL, 0, ANY_STAGES}};

/* Where the control connection waits itself, one of these asks for it. */
static const struct piece blockers_pieces[] = {{"control/blockers", ALWAYS, ANY_STAGES},
                                               {NULL, 0, ANY_STAGES}};

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
    {{.name = "timeline", .must_use_index_on = INBOX}, timeline_pieces},
    {{.name = "address"}, NULL},
    {{.name = "blockers"}, blockers_pieces},
};
static const struct source unsubscribed = {
    {.name = "apply_unsubscribed", .must_use_index_on = INBOX}, apply_pieces};
/* Only with `unknown: insert`. */
static const struct source inserts[] = {
    {{.name = "insert", .must_use_index_on = INBOX}, insert_pieces},
    {{.name = "insert_parked", .must_use_index_on = INBOX}, insert_parked_pieces},
};

/* Only where ranges are on. */
static const struct source ranges[] = {
    {{.name = "range_store"}, NULL},
    {{.name = "range_lock"}, NULL},
    {{.name = "range_resolve",
      .must_use_index_on = INBOX,
      .index_over =
          "what inbox.columns.recipient, gateway and sent_at (or created_at) name, in this "
          "order"},
     resolve_pieces},
};

/* Only for batches in two flights: files of sql/heart. */
static const struct piece begin_pieces[] = {{"heart/begin", ALWAYS, ANY_STAGES},
                                            {NULL, 0, ANY_STAGES}};
static const struct piece decide_pieces[] = {{"heart/decide", ALWAYS, ANY_STAGES},
                                             {NULL, 0, ANY_STAGES}};
static const struct piece cells_pieces[] = {{"heart/cells", ALWAYS, ANY_STAGES},
                                            {NULL, 0, ANY_STAGES}};
static const struct piece commit_pieces[] = {{"heart/commit", ALWAYS, ANY_STAGES},
                                             {NULL, 0, ANY_STAGES}};
static const struct piece rollback_pieces[] = {{"heart/rollback", ALWAYS, ANY_STAGES},
                                               {NULL, 0, ANY_STAGES}};
static const struct source flights[] = {
    {{.name = "begin"}, begin_pieces},
    {{.name = "decide", .must_use_index_on = INBOX}, decide_pieces},
    {{.name = "cells"}, cells_pieces},
    {{.name = "commit"}, commit_pieces},
    {{.name = "rollback"}, rollback_pieces},
};

const struct rcpt_pg_statement *rcpt_heart_statements(size_t *count)
{
    static struct rcpt_pg_statement list[2];
    *count = 0;
    for (const struct source *source = flights; *count < sizeof(list) / sizeof(list[0]); source++) {
        if (source->pieces != decide_pieces && source->pieces != cells_pieces)
            continue;
        list[*count] = source->statement;
        list[(*count)++].sql = rcpt_sql(source->pieces->file);
    }
    return list;
}

#define STATEMENT_COUNT (sizeof(sources) / sizeof(sources[0]))
#define INSERT_COUNT    (sizeof(inserts) / sizeof(inserts[0]))
#define RANGE_COUNT     (sizeof(ranges) / sizeof(ranges[0]))
#define FLIGHT_COUNT    (sizeof(flights) / sizeof(flights[0]))
#define MOST_BINDINGS   16
#define MOST_STATEMENTS                                                                            \
    (STATEMENT_COUNT + INSERT_COUNT + RANGE_COUNT + FLIGHT_COUNT + 1) /* and apply_unsubscribed */

struct rcpt_lane_statements {
    struct rcpt_pg_statement list[MOST_STATEMENTS];
    char *texts[MOST_STATEMENTS];
    size_t count;
};

/* Which pieces a statement consists of, and whose subscribers stand in it. */
struct composition {
    const char *const *subscribers; /* names of their files */
    size_t count;
    const char *const *rules; /* likewise */
    size_t rule_count;
    unsigned when;
    enum stages stages;
    const struct rcpt_pg_binding *bindings; /* those of the variant, and the boundary */
    size_t binding_count;
};

static void write_files(FILE *out, const char *const *files, size_t count)
{
    for (size_t index = 0; index < count; index++)
        fputs(rcpt_sql(files[index]), out);
}

/* Texts are joined as they stand, so what is prepared can be read in sql/. */
static void write_piece(FILE *out, const struct piece *piece, const struct composition *composition)
{
    if ((piece->when & composition->when) == 0 || (piece->stages & composition->stages) == 0)
        return;
    if (strcmp(piece->file, SUBSCRIBERS) == 0)
        write_files(out, composition->subscribers, composition->count);
    else if (strcmp(piece->file, RULES) == 0)
        write_files(out, composition->rules, composition->rule_count);
    else
        fputs(rcpt_sql(piece->file), out);
}

/* Columns of dimensions and groups, and the boundary of the recent set as a literal, or a generic
 * plan could not use its index. Takes the text. */
static char *bind_all(char *text_taken, const struct composition *composition)
{
    struct rcpt_error error;
    char *bound =
        rcpt_pg_bind(text_taken, composition->bindings, composition->binding_count, &error);
    RCPT_ASSERT(bound != NULL);
    free(text_taken);
    return bound;
}

/* A statement without pieces is one file. The caller frees the text. */
static char *compose(const struct source *source, const struct composition *composition)
{
    char file[64], *text = NULL;
    size_t size = 0;
    int file_size = snprintf(file, sizeof(file), "lane/%s", source->statement.name);
    RCPT_ASSERT(file_size > 0 && (size_t)file_size < sizeof(file));
    const struct piece whole[] = {{file, ALWAYS, ANY_STAGES}, {NULL, 0, ANY_STAGES}};
    const struct piece *piece = source->pieces != NULL ? source->pieces : whole;
    FILE *out = rcpt_open_memory(&text, &size);
    for (; piece->file != NULL; piece++)
        write_piece(out, piece, composition);
    RCPT_ASSERT(fclose(out) == 0);
    bool is_open = source->pieces != NULL && composition->binding_count > 0;
    return is_open ? bind_all(text, composition) : text;
}

static void add_statement(struct rcpt_lane_statements *statements, const struct source *source,
                          const struct composition *composition)
{
    size_t index = statements->count++;
    statements->texts[index] = compose(source, composition);
    statements->list[index] = source->statement;
    statements->list[index].sql = statements->texts[index];
}

static unsigned when(const struct rcpt_lane_variant *variant, size_t subscribers)
{
    const struct rcpt_lane_rules *read = &variant->read;
    return ALWAYS | (subscribers > 0 ? SUBSCRIBED : PLAIN) |
           (variant->rule_count > 0 ? COUNTED : 0) | (read->receipts ? RULED : 0) |
           (read->times ? TIMED : UNTIMED) | (read->facets ? FACETED : UNFACETED) |
           (variant->by_dimensions ? DIMENSIONED : 0) |
           (read->minutes            ? OF_MINUTES
            : variant->by_dimensions ? OF_DIMENSIONS
                                     : OF_GROUPS);
}

/* The boundary is an array of one element, for the operator that no plan takes for a range of an
 * index (sql/lane/apply/10_recent.sql). */
static size_t take_bindings(const struct rcpt_lane_variant *variant, struct rcpt_array_text *since,
                            struct rcpt_pg_binding bindings[static MOST_BINDINGS])
{
    size_t count = variant->binding_count;
    RCPT_ASSERT(count + 2 <= MOST_BINDINGS);
    for (size_t index = 0; index < count; index++)
        bindings[index] = variant->bindings[index];
    if (variant->recent_since == NULL)
        return count;
    const char *column = variant->recent_column;
    rcpt_array_text_add(since, variant->recent_since, strlen(variant->recent_since));
    bindings[count++] = (struct rcpt_pg_binding){"recent_since", rcpt_array_text_finish(since)};
    bindings[count++] =
        (struct rcpt_pg_binding){"recent_column", column != NULL ? column : "created_at"};
    return count;
}

/* The texts live as long as the list, since connections prepare them again after each reconnect.
 * One subscriber at most is selective, so one more form of apply is enough. */
struct rcpt_lane_statements *rcpt_lane_statements_new(const struct rcpt_lane_variant *variant)
{
    struct rcpt_lane_statements *statements = rcpt_calloc(1, sizeof(*statements));
    struct rcpt_pg_binding bindings[MOST_BINDINGS];
    struct rcpt_array_text since;
    rcpt_array_text_init(&since);
    struct composition composition = {.subscribers = variant->subscribers,
                                      .count = variant->count,
                                      .rules = variant->rules,
                                      .rule_count = variant->rule_count,
                                      .when = when(variant, variant->count),
                                      .stages =
                                          variant->recent_since != NULL ? TWO_STAGES : ONE_STAGE,
                                      .bindings = bindings,
                                      .binding_count = take_bindings(variant, &since, bindings)};
    for (size_t index = 0; index < STATEMENT_COUNT; index++)
        add_statement(statements, &sources[index], &composition);
    for (size_t index = 0; variant->inserts_unknown && index < INSERT_COUNT; index++)
        add_statement(statements, &inserts[index], &composition);
    for (size_t index = 0; variant->resolves_ranges && index < RANGE_COUNT; index++)
        add_statement(statements, &ranges[index], &composition);
    for (size_t index = 0; variant->flights && index < FLIGHT_COUNT; index++)
        add_statement(statements, &flights[index], &composition);
    if (variant->selective) {
        composition.count--;
        composition.when = when(variant, composition.count) | UNSUBSCRIBED;
        add_statement(statements, &unsubscribed, &composition);
    }
    rcpt_array_text_fini(&since);
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
