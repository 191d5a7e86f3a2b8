/* Reads the answers of sql/lane/decide (decided.h). An id may stand in rows of several partitions:
 * then it has several lines. Called by flights.c.
 */
#include "decided.h"

#include <string.h>

/* Columns of sql/lane/decide; the columns of rules come last. */
enum {
    DECIDE_FATE,
    DECIDE_N,
    DECIDE_STATUS,
    DECIDE_FLAGS,
    DECIDE_CAMPAIGN,
    DECIDE_OWNER,
    DECIDE_ORGANISATION
};
#define DECIDE_MORE (DECIDE_ORGANISATION + 1)

void rcpt_decided_begin(struct rcpt_decided *decided, const struct rcpt_batch *batch,
                        const struct rcpt_rules *rules)
{
    uint32_t count = batch->message_count;
    *decided = (struct rcpt_decided){.batch = batch, .row_capacity = count};
    rcpt_rules_columns(rules, &decided->column_count);
    rcpt_arena_init(&decided->arena, 128 * 1024);
    decided->messages = rcpt_arena_alloc(&decided->arena, count * sizeof(*decided->messages));
    memset(decided->messages, 0, count * sizeof(*decided->messages));
    decided->rows = rcpt_arena_alloc(&decided->arena, count * sizeof(*decided->rows));
}

void rcpt_decided_end(struct rcpt_decided *decided)
{
    rcpt_arena_fini(&decided->arena);
}

static enum rcpt_fate fate_of(char letter)
{
    switch (letter) {
    case 'c':
    case 's':
        return RCPT_FATE_KNOWN;
    case 't':
        return RCPT_FATE_STALE;
    case 'o':
        return RCPT_FATE_REFUSED;
    case 'h':
        return RCPT_FATE_HELD;
    case 'd':
        return RCPT_FATE_DELETED;
    case 'e':
        return RCPT_FATE_ERASED;
    default:
        return RCPT_FATE_ABSENT;
    }
}

/* Maps a line of the answer to its message: the first question is about all messages, each later
 * one about the stale ones. */
static uint32_t message_of(const uint32_t *asked, const struct rcpt_pg_rows *answer, size_t line)
{
    uint32_t place = (uint32_t)rcpt_pg_rows_int(answer, line, DECIDE_N) - 1;
    return asked != NULL ? asked[place] : place;
}

/* A text whose `at` is NULL stays so. */
static struct rcpt_text keep(struct rcpt_decided *decided, struct rcpt_text text)
{
    return text.at != NULL ? rcpt_text_copy(&decided->arena, text) : text;
}

/* An id may stand in several rows, each with a fate: the largest counts, so one row that is known
 * makes the message known. */
static void take_fates(struct rcpt_decided *decided, const uint32_t *asked,
                       const struct rcpt_pg_rows *answer)
{
    for (size_t line = 0; line < rcpt_pg_rows_count(answer); line++) {
        enum rcpt_fate fate = fate_of(rcpt_pg_rows_text(answer, line, DECIDE_FATE)[0]);
        struct rcpt_decided_message *message = &decided->messages[message_of(asked, answer, line)];
        if (fate <= message->fate)
            continue;
        message->fate = fate;
        if (fate == RCPT_FATE_REFUSED)
            message->owner =
                keep(decided, rcpt_text_of(rcpt_pg_rows_text(answer, line, DECIDE_OWNER)));
    }
}

/* Several lines of one id may need more rows than there are messages. */
static struct rcpt_count_row *add_row(struct rcpt_decided *decided)
{
    if (decided->row_count == decided->row_capacity) {
        struct rcpt_count_row *old = decided->rows;
        decided->row_capacity = decided->row_capacity * 2 + 16;
        decided->rows =
            rcpt_arena_alloc(&decided->arena, decided->row_capacity * sizeof(*decided->rows));
        memcpy(decided->rows, old, decided->row_count * sizeof(*old));
    }
    return &decided->rows[decided->row_count++];
}

/* Borrowed from the answer, or kept where there will be another one. */
static struct rcpt_text text_at(struct rcpt_decided *decided, const struct rcpt_pg_rows *answer,
                                size_t line, int column)
{
    struct rcpt_text text = rcpt_text_of(rcpt_pg_rows_text(answer, line, column));
    return decided->stale_count > 0 ? keep(decided, text) : text;
}

static const struct rcpt_text *columns_at(struct rcpt_decided *decided,
                                          const struct rcpt_pg_rows *answer, size_t line)
{
    size_t count = decided->column_count;
    struct rcpt_text *columns = rcpt_arena_alloc(&decided->arena, count * sizeof(*columns));
    for (size_t index = 0; index < count; index++)
        columns[index] = text_at(decided, answer, line, DECIDE_MORE + (int)index);
    return columns;
}

/* A message that did not change still counts its receipts. One that changed may have gained flags
 * alone: its status stays then. */
static void take_row(struct rcpt_decided *decided, uint32_t number,
                     const struct rcpt_pg_rows *answer, size_t line)
{
    const struct rcpt_batch_message *message = &decided->batch->messages[number];
    struct rcpt_decided_message *known = &decided->messages[number];
    struct rcpt_count_row *row = add_row(decided);
    *row = (struct rcpt_count_row){
        .message = number,
        .was = (int16_t)rcpt_pg_rows_int(answer, line, DECIDE_STATUS),
        .had = (uint32_t)rcpt_pg_rows_int(answer, line, DECIDE_FLAGS),
        .changed = rcpt_pg_rows_text(answer, line, DECIDE_FATE)[0] == 'c',
        .campaign = text_at(decided, answer, line, DECIDE_CAMPAIGN),
        .org = text_at(decided, answer, line, DECIDE_ORGANISATION),
        .columns = decided->column_count > 0 ? columns_at(decided, answer, line) : NULL};
    known->was = known->is = row->was;
    if (!row->changed)
        return;
    known->is = message->top > row->was ? message->top : row->was;
    known->gained = message->mask & ~row->had;
}

/* In the order of the messages, so that each has the same place whatever the answer's order. */
static void list_stale(struct rcpt_decided *decided)
{
    uint32_t count = decided->batch->message_count;
    uint32_t *stale = NULL;
    decided->stale_count = 0;
    for (uint32_t number = 0; number < count; number++) {
        if (decided->messages[number].fate != RCPT_FATE_STALE)
            continue;
        if (stale == NULL)
            stale = rcpt_arena_alloc(&decided->arena, (count - number) * sizeof(*stale));
        stale[decided->stale_count++] = number;
        decided->messages[number].fate = RCPT_FATE_NONE;
    }
    decided->stale = stale;
}

void rcpt_decided_take(struct rcpt_decided *decided, const struct rcpt_pg_rows *answer)
{
    const uint32_t *asked = decided->stale;
    take_fates(decided, asked, answer);
    list_stale(decided);
    for (size_t line = 0; line < rcpt_pg_rows_count(answer); line++) {
        uint32_t number = message_of(asked, answer, line);
        bool known = fate_of(rcpt_pg_rows_text(answer, line, DECIDE_FATE)[0]) == RCPT_FATE_KNOWN;
        if (known && decided->messages[number].fate == RCPT_FATE_KNOWN)
            take_row(decided, number, answer, line);
    }
}
