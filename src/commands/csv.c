/* Reads CSV (RFC 4180) record by record into a buffer of fixed size. Lines are counted for errors;
 * a quoted field may span several. Called by `actions import`. */
#include "csv.h"

#include <string.h>

/* Skips the byte order mark that spreadsheets write in front of UTF-8. */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

void csv_init(struct csv *csv, FILE *in)
{
    csv->in = in;
    csv->line = 0;
    csv->next_line = 1;
    csv->count = 0;
}

/* The decision REJECT means that the file is not CSV; the caller chooses the exit code. */
static bool refuse(const struct csv *csv, const char *text, struct rcpt_error *error)
{
    return rcpt_error_set(error, RCPT_DECISION_REJECT, NULL, "line %u: %s", csv->line, text);
}

/* Lines end with LF, CR LF, or CR alone, which some spreadsheets write. All three are read as a
 * line feed. */
static int get_unquoted(struct csv *csv)
{
    int byte = getc(csv->in);
    if (byte != '\r')
        return byte;
    int next = getc(csv->in);
    if (next != '\n' && next != EOF)
        ungetc(next, csv->in);
    return '\n';
}

/* One field into the text. A quote opens a field only at its beginning; two of them inside stand
 * for one. `end` is what ended the field: a comma, a line feed or EOF. */
static bool read_field(struct csv *csv, size_t *used, int *end, struct rcpt_error *error)
{
    bool quoted = false, was_quoted = false;
    csv->fields[csv->count++] = csv->text + *used;
    for (;;) {
        int byte = quoted ? getc(csv->in) : get_unquoted(csv);
        if (byte == '\n')
            csv->next_line++;
        if (byte == '"' && !quoted && csv->text + *used == csv->fields[csv->count - 1] &&
            !was_quoted) {
            quoted = was_quoted = true;
            continue;
        }
        if (byte == '"' && quoted) {
            byte = get_unquoted(csv);
            if (byte != '"') {
                quoted = false;
                if (byte == '\n')
                    csv->next_line++;
            }
        }
        if (byte == EOF && ferror(csv->in))
            return refuse(csv, "cannot be read", error);
        if (byte == EOF && quoted)
            return refuse(csv, "a quote is not closed", error);
        if (byte == '\0')
            return refuse(csv, "there is a NUL byte", error);
        if (*used + 1 >= CSV_MAX_BYTES)
            return refuse(csv, "is longer than 64 KiB", error);
        if (byte == EOF || (!quoted && (byte == ',' || byte == '\n'))) {
            csv->text[(*used)++] = '\0';
            *end = byte;
            return true;
        }
        csv->text[(*used)++] = (char)byte;
        if (csv->line == 1 && *used == strlen(BYTE_ORDER_MARK) &&
            memcmp(csv->text, BYTE_ORDER_MARK, *used) == 0)
            *used = 0;
    }
}

static bool is_empty(const struct csv *csv)
{
    return csv->count == 1 && csv->fields[0][0] == '\0';
}

/* Empty lines are skipped: editors leave one at the end. */
bool csv_next(struct csv *csv, struct rcpt_error *error)
{
    int end = ',';
    rcpt_error_clear(error);
    do {
        size_t used = 0;
        csv->line = csv->next_line;
        csv->count = 0;
        do {
            if (csv->count == CSV_MAX_FIELDS)
                return refuse(csv, "has more than 64 fields", error);
            if (!read_field(csv, &used, &end, error))
                return false;
        } while (end == ',');
    } while (is_empty(csv) && end != EOF);
    return !is_empty(csv);
}
