/* Rows for a reader: an aligned table, CSV (RFC 4180) or JSON objects. Private to this folder. */
#ifndef RECEIPTD_COMMANDS_REPORT_H
#define RECEIPTD_COMMANDS_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "command.h"
#include "receiptd/base/json.h"

enum report_kind {
    REPORT_TEXT,
    REPORT_NUMBER, /* an integer or decimal as text: aligned to the right, bare in JSON */
};

struct report_column {
    const char *name;
    enum report_kind kind;
};

struct report { /* embedded; private */
    const struct report_column *columns;
    size_t column_count;
    char **cells; /* row by row; NULL: no value */
    size_t cell_count, capacity;
};

void report_init(struct report *report, const struct report_column *columns, size_t column_count);
void report_fini(struct report *report);

/* The next cell, copied; NULL: no value ("-" in a table, empty in CSV, null in JSON). Rows must be
 * complete when printed. */
void report_add(struct report *report, const char *text);
void report_add_int(struct report *report, int64_t value);

size_t report_row_count(const struct report *report);
/* NULL: no value. */
const char *report_cell(const struct report *report, size_t row, size_t column);

/* Both begin with a line of titles. The table is empty without rows, and shows bytes that would
 * steer a terminal as "?". In CSV, a text that a spreadsheet would take for a formula gets a quote
 * in front. */
void report_print_table(const struct report *report, FILE *out);
void report_print_csv(const struct report *report, FILE *out);
/* As an array of objects. */
void report_write_json(const struct report *report, struct rcpt_json *json);

/* Columns that a UTF-8 text takes on a terminal, one per character. */
size_t report_width(const char *text);
/* The text in a field of `width`, set to its left or right end; steering bytes as in a table. */
void report_print_padded(FILE *out, const char *text, size_t width, bool right);

/* A row of the report for each row of the result; its columns are found by their names. */
void report_add_rows(struct report *report, const struct rcpt_session_rows *rows);
/* To stdout. `none` takes the place of an empty table; NULL: nothing does. */
void report_print(const struct report *report, enum command_format format, const char *none);

#endif
