/* Sums of transitions, as fold_event holds them: columns of arrays, one element per entry. Writes
 * them as parameters of gather and keep.sql, reads them from rows of events.sql. Called by gather.c
 * and flush.c. */
#include "columns.h"
#include "internal.h"

/* ---- to the database ---- */

/* Entries of which each field becomes a parameter. */
struct numbers {
    struct rcpt_pg_encoder *encoder;
    const struct rcpt_fold_transition *const *entries;
    size_t count;
};

/* NULL stands for a column that the transition does not have. */
static void put_text(struct rcpt_pg_encoder *encoder, struct rcpt_text text)
{
    if (text.at == NULL)
        rcpt_pg_put_null(encoder);
    else
        rcpt_pg_put_bytes(encoder, text.at, text.size);
}

/* `offset` is that of the text within struct rcpt_fold_transition. */
static void add_texts(const struct numbers *of, size_t offset)
{
    rcpt_pg_begin_text_array(of->encoder, of->count);
    for (size_t index = 0; index < of->count; index++)
        put_text(
            of->encoder,
            *(const struct rcpt_text *)(const void *)((const char *)of->entries[index] + offset));
}

static void add_numbers(const struct numbers *of, size_t offset)
{
    rcpt_pg_begin_int8_array(of->encoder, of->count);
    for (size_t index = 0; index < of->count; index++)
        rcpt_pg_put_int8(
            of->encoder,
            *(const int64_t *)(const void *)((const char *)of->entries[index] + offset));
}

/* A count of 0 asks for the groups of an entry without adding anything. */
static void add_counts(const struct numbers *of, bool only_asked)
{
    rcpt_pg_begin_int8_array(of->encoder, of->count);
    for (size_t index = 0; index < of->count; index++)
        rcpt_pg_put_int8(of->encoder, only_asked ? 0 : of->entries[index]->count);
}

/* In the order of the parameters of gather: org, campaign, old, new, gained, columns, n, first,
 * last, link, first row, last row. */
void folds_sums_add(struct rcpt_pg_encoder *encoder,
                    const struct rcpt_fold_transition *const *entries, size_t count,
                    bool only_asked)
{
    struct numbers numbers = {encoder, entries, count}, *of = &numbers;
    add_texts(of, offsetof(struct rcpt_fold_transition, org));
    add_texts(of, offsetof(struct rcpt_fold_transition, campaign));
    rcpt_pg_begin_int2_array(encoder, of->count);
    for (size_t index = 0; index < of->count; index++)
        rcpt_pg_put_int2(encoder, of->entries[index]->old);
    rcpt_pg_begin_int2_array(encoder, of->count);
    for (size_t index = 0; index < of->count; index++)
        rcpt_pg_put_int2(encoder, of->entries[index]->new);
    rcpt_pg_begin_int4_array(encoder, of->count);
    for (size_t index = 0; index < of->count; index++)
        rcpt_pg_put_int4(encoder, of->entries[index]->gained);
    add_texts(of, offsetof(struct rcpt_fold_transition, columns));
    add_counts(of, only_asked);
    add_numbers(of, offsetof(struct rcpt_fold_transition, first_us));
    add_numbers(of, offsetof(struct rcpt_fold_transition, last_us));
    add_texts(of, offsetof(struct rcpt_fold_transition, link));
    add_numbers(of, offsetof(struct rcpt_fold_transition, first_row));
    add_numbers(of, offsetof(struct rcpt_fold_transition, last_row));
}

/* ---- from the database ---- */

/* Columns of sql/fold/events. */
enum {
    EVENT_ID,
    EVENT_AT,
    EVENT_SIZE,
    EVENT_ORGS,
    EVENT_CAMPAIGNS,
    EVENT_OLD,
    EVENT_NEW,
    EVENT_GAINED,
    EVENT_N,
    EVENT_COLUMNS,
    EVENT_LINKS,
    EVENT_FIRSTS,
    EVENT_LASTS,
    EVENT_FIRST_ROWS,
    EVENT_LAST_ROWS
};

/* Columns advance together: one element of each makes an entry. */
int64_t folds_sums_read(struct rcpt_fold_pending *pending, struct rcpt_arena *arena,
                        const struct rcpt_pg_rows *rows, size_t row, int64_t *id)
{
    struct folds_column orgs = column_of(rows, row, EVENT_ORGS),
                        campaigns = column_of(rows, row, EVENT_CAMPAIGNS);
    struct folds_column old = column_of(rows, row, EVENT_OLD),
                        new = column_of(rows, row, EVENT_NEW);
    struct folds_column gained = column_of(rows, row, EVENT_GAINED),
                        counts = column_of(rows, row, EVENT_N);
    struct folds_column columns = column_of(rows, row, EVENT_COLUMNS),
                        links = column_of(rows, row, EVENT_LINKS);
    struct folds_column firsts = column_of(rows, row, EVENT_FIRSTS),
                        lasts = column_of(rows, row, EVENT_LASTS);
    struct folds_column first_rows = column_of(rows, row, EVENT_FIRST_ROWS),
                        last_rows = column_of(rows, row, EVENT_LAST_ROWS);
    *id = first_rows.number = last_rows.number = rcpt_pg_rows_int(rows, row, EVENT_ID);
    firsts.number = lasts.number = rcpt_pg_rows_int(rows, row, EVENT_AT);
    int64_t count = rcpt_pg_rows_int(rows, row, EVENT_SIZE);
    for (int64_t left = count; left > 0; left--) {
        struct rcpt_fold_transition entry = {
            .org = next_text(&orgs, arena),
            .campaign = next_text(&campaigns, arena),
            .columns = next_text(&columns, arena),
            .link = next_text(&links, arena),
            .old = (int16_t)next_number(&old),
            .new = (int16_t)next_number(&new),
            .gained = (int32_t)next_number(&gained),
            .count = next_number(&counts),
            .first_us = next_number(&firsts),
            .last_us = next_number(&lasts),
            .first_row = next_number(&first_rows),
            .last_row = next_number(&last_rows),
        };
        rcpt_fold_pending_add(pending, &entry);
    }
    return count;
}
