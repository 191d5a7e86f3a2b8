/* Columns of arrays in a row of an answer, read side by side: one element of each makes an entry.
 * Included by sums.c and stream_records.c. */
#ifndef RECEIPTD_FOLDS_COLUMNS_H
#define RECEIPTD_FOLDS_COLUMNS_H

#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/connection.h"

/* An array of the row. Where all elements are equal, the array holds one: the last element read
 * stands for those that follow. */
struct folds_column {
    struct rcpt_array_reader reader;
    struct rcpt_text text;
    int64_t number;
};

/* A NULL array reads as an empty one: `text` and `number` keep their initial values for every
 * entry. */
static inline struct folds_column column_of(const struct rcpt_pg_rows *rows, size_t row, int index)
{
    struct folds_column column = {.text = {NULL, 0}};
    rcpt_array_reader_init(&column.reader, rcpt_pg_rows_text(rows, row, index));
    return column;
}

static inline struct rcpt_text next_text(struct folds_column *column, struct rcpt_arena *arena)
{
    struct rcpt_text text;
    if (rcpt_array_reader_next(&column->reader, arena, &text))
        column->text = text;
    return column->text;
}

static inline int64_t next_number(struct folds_column *column)
{
    int64_t number;
    if (rcpt_array_reader_next_int(&column->reader, &number))
        column->number = number;
    return column->number;
}

#endif
