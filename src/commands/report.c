/* Rows for a reader: collected as texts, then printed as an aligned table, as CSV or as JSON. Texts
 * of others cannot steer the terminal. Called by commands. */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"

/* The columns are borrowed and must outlive the report. */
void report_init(struct report *report, const struct report_column *columns, size_t column_count)
{
    memset(report, 0, sizeof(*report));
    report->columns = columns;
    report->column_count = column_count;
}

void report_fini(struct report *report)
{
    for (size_t index = 0; index < report->cell_count; index++)
        free(report->cells[index]);
    free(report->cells);
}

/* Cells come row by row, in the order of the columns. The report keeps a copy; NULL is a missing
 * value. */
void report_add(struct report *report, const char *text)
{
    if (report->cell_count == report->capacity) {
        RCPT_GROW(report->cells, report->capacity, 64);
    }
    report->cells[report->cell_count++] = text != NULL ? rcpt_strdup(text) : NULL;
}

void report_add_int(struct report *report, int64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, value);
    report_add(report, text);
}

/* A row that is not complete is a bug of the caller. */
size_t report_row_count(const struct report *report)
{
    RCPT_ASSERT(report->cell_count % report->column_count == 0);
    return report->cell_count / report->column_count;
}

/* The cells of a row stand side by side. */
const char *report_cell(const struct report *report, size_t row, size_t column)
{
    return report->cells[row * report->column_count + column];
}

/* UTF-8 continuation bytes take no column. Wide characters count as one: a table may be off by a
 * little. */
size_t report_width(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

static void print_blanks(FILE *out, size_t count)
{
    while (count-- > 0)
        putc_unlocked(' ', out);
}

/* Control bytes would move the cursor or hide text, so each becomes a question mark. */
void report_print_padded(FILE *out, const char *text, size_t width, bool right)
{
    size_t used = report_width(text);
    size_t blanks = used < width ? width - used : 0;
    if (right)
        print_blanks(out, blanks);
    for (const unsigned char *byte = (const unsigned char *)text; *byte != '\0'; byte++) {
        /* U+0080 to U+009f steer terminals, too. */
        bool second = byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] <= 0x9f;
        putc_unlocked(*byte < 0x20 || *byte == 0x7f || second ? '?' : *byte, out);
        byte += second;
    }
    if (!right)
        print_blanks(out, blanks);
}

/* Two passes over the rows: the first finds widths, the second prints. */
static size_t column_width(const struct report *report, size_t column)
{
    size_t width = report_width(report->columns[column].name);
    for (size_t row = 0; row < report_row_count(report); row++) {
        const char *text = report_cell(report, row, column);
        size_t here = text != NULL ? report_width(text) : 1;
        width = here > width ? here : width;
    }
    return width;
}

/* The last column is not padded, so that no line ends with blanks. */
static void print_table_cell(const struct report *report, size_t column, size_t width,
                             const char *text, FILE *out)
{
    bool right = report->columns[column].kind == REPORT_NUMBER;
    bool last = column + 1 == report->column_count;
    report_print_padded(out, text != NULL ? text : "-", last && !right ? 0 : width, right);
    fputs(last ? "\n" : "  ", out);
}

/* Numbers are set to the right, texts to the left; a dash stands for a missing value. */
void report_print_table(const struct report *report, FILE *out)
{
    size_t rows = report_row_count(report);
    if (rows == 0)
        return;
    size_t *widths = rcpt_malloc(report->column_count * sizeof(*widths));
    for (size_t column = 0; column < report->column_count; column++) {
        widths[column] = column_width(report, column);
        print_table_cell(report, column, widths[column], report->columns[column].name, out);
    }
    for (size_t row = 0; row < rows; row++) {
        for (size_t column = 0; column < report->column_count; column++)
            print_table_cell(report, column, widths[column], report_cell(report, row, column), out);
    }
    free(widths);
}

/* A spreadsheet would take the text for a formula (OWASP, "CSV injection").
 * sql/serve/recipients.sql has the same list. */
static bool is_formula(const char *text)
{
    static const char *const beginnings[] = {"=",  "+",      "-",      "@",      "\t",    "\r",
                                             "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"};
    for (size_t index = 0; index < RCPT_COUNT_OF(beginnings); index++)
        if (strncmp(text, beginnings[index], strlen(beginnings[index])) == 0)
            return true;
    return false;
}

/* RFC 4180: quotes where needed, doubled inside, lines end with CR LF. */
static void print_csv_cell(const char *text, enum report_kind kind, bool last, FILE *out)
{
    text = text != NULL ? text : "";
    const char *guard = kind == REPORT_TEXT && is_formula(text) ? "'" : "";
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fprintf(out, "%s%s", guard, text);
    } else {
        fprintf(out, "\"%s", guard);
        for (; *text != '\0'; text++) {
            if (*text == '"')
                fputc('"', out);
            fputc(*text, out);
        }
        fputc('"', out);
    }
    fputs(last ? "\r\n" : ",", out);
}

void report_print_csv(const struct report *report, FILE *out)
{
    RCPT_ASSERT(report->column_count > 0);
    for (size_t column = 0; column < report->column_count; column++)
        print_csv_cell(report->columns[column].name, REPORT_TEXT,
                       column + 1 == report->column_count, out);
    for (size_t index = 0; index < report->cell_count; index++) {
        size_t column = index % report->column_count;
        print_csv_cell(report->cells[index], report->columns[column].kind,
                       column + 1 == report->column_count, out);
    }
}

/* Numbers stay numbers; PostgreSQL's text form of one is valid JSON. */
static void write_json_cell(struct rcpt_json *json, enum report_kind kind, const char *text)
{
    if (text == NULL)
        rcpt_json_null(json);
    else if (kind == REPORT_TEXT)
        rcpt_json_text(json, text);
    else if (strpbrk(text, ".eE") != NULL)
        rcpt_json_double(json, strtod(text, NULL));
    else
        rcpt_json_int(json, strtoll(text, NULL, 10));
}

void report_write_json(const struct report *report, struct rcpt_json *json)
{
    rcpt_json_begin_array(json);
    for (size_t row = 0; row < report_row_count(report); row++) {
        rcpt_json_begin_object(json);
        for (size_t column = 0; column < report->column_count; column++) {
            rcpt_json_key(json, report->columns[column].name);
            write_json_cell(json, report->columns[column].kind, report_cell(report, row, column));
        }
        rcpt_json_end_object(json);
    }
    rcpt_json_end_array(json);
}

/* Rows of a query are read by the names of the report's columns. */
void report_add_rows(struct report *report, const struct rcpt_session_rows *rows)
{
    for (size_t row = 0; row < rcpt_session_rows_count(rows); row++)
        for (size_t column = 0; column < report->column_count; column++)
            report_add(report, rcpt_session_rows_text(rows, row, report->columns[column].name));
}

/* JSON and CSV are empty if there are no rows; only the table has a sentence in its place. */
void report_print(const struct report *report, enum command_format format, const char *none)
{
    struct rcpt_json json;
    if (format == COMMAND_FORMAT_JSON) {
        rcpt_json_init(&json, stdout);
        report_write_json(report, &json);
        putchar('\n');
    } else if (format == COMMAND_FORMAT_CSV) {
        report_print_csv(report, stdout);
    } else if (report_row_count(report) == 0 && none != NULL) {
        puts(none);
    } else {
        report_print_table(report, stdout);
    }
}
