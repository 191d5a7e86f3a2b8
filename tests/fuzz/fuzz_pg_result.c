/* libFuzzer target: what src/postgres reads of a server's words: cells of rows, messages of
 * failures, plans of EXPLAIN. The first byte chooses which.
 *
 * Results are made with libpq's own calls, so no server is needed. What a server could send that is
 * no result at all is libpq's to refuse: fuzz_pg_wire.c. */
#include <stdlib.h>
#include <string.h>

#include "postgres/failure.h"
#include "postgres/plan.h"
#include "postgres/submissions.h"
#include "receiptd/postgres/bind.h"

#define MAX_COLUMNS 8
#define MAX_LINES   64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- rows: a byte for the number of columns, then cells, each with its length before it; 255 is
 * NULL ---- */

static PGresult *make_result(const uint8_t **data, const uint8_t *end, int *columns)
{
    PGresAttDesc attributes[MAX_COLUMNS] = {{.name = NULL}};
    *columns = *data < end ? 1 + *(*data)++ % MAX_COLUMNS : 1;
    for (int column = 0; column < *columns; column++)
        attributes[column] = (PGresAttDesc){.name = (char[]){"c"}, .typid = 25, .typlen = -1};
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    RCPT_ASSERT(result != NULL && PQsetResultAttrs(result, *columns, attributes) == 1);
    return result;
}

static void fill(PGresult *result, const uint8_t *data, const uint8_t *end, int columns)
{
    for (int cell = 0; data < end; cell++) {
        int length = *data++;
        char text[256];
        if (length == 255) {
            RCPT_ASSERT(PQsetvalue(result, cell / columns, cell % columns, NULL, -1) == 1);
            continue;
        }
        if (length > end - data)
            length = (int)(end - data);
        memcpy(text, data, (size_t)length);
        data += length;
        RCPT_ASSERT(PQsetvalue(result, cell / columns, cell % columns, text, length) == 1);
    }
}

static void check_cell(const struct rcpt_pg_rows *rows, size_t row, int column)
{
    const char *text = rcpt_pg_rows_text(rows, row, column);
    int64_t number = rcpt_pg_rows_int(rows, row, column);
    bool truth = rcpt_pg_rows_bool(rows, row, column);
    char again[24];
    if (text == NULL) {
        RCPT_ASSERT(number == 0 && !truth);
        return;
    }
    RCPT_ASSERT(truth == (text[0] == 't'));
    snprintf(again, sizeof(again), "%lld", (long long)number);
    bool is_plain = text[0] != '\0' && strspn(text + (text[0] == '-'), "0123456789") ==
                                           strlen(text) - (size_t)(text[0] == '-');
    if (is_plain && strlen(text) < 19 && text[text[0] == '-'] != '0' && text[1] != '\0')
        RCPT_ASSERT(strcmp(text, again) == 0); /* an integer as PostgreSQL writes it */
}

static void read_rows(const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size;
    int columns;
    struct rcpt_pg_rows rows = {.result = make_result(&data, end, &columns)};
    fill(rows.result, data, end, columns);
    for (size_t row = 0; row < rcpt_pg_rows_count(&rows); row++) {
        for (int column = 0; column < columns; column++)
            check_cell(&rows, row, column);
    }
    PQclear(rows.result);
}

/* ---- texts ---- */

static char *terminated(const uint8_t *data, size_t size)
{
    char *text = rcpt_malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static void read_message(const uint8_t *data, size_t size)
{
    struct rcpt_error error;
    char *text = terminated(data, size);
    rcpt_failure_of_message(text, &error);
    RCPT_ASSERT(error.decision == RCPT_DECISION_RECONNECT && error.text[0] != '\0');
    RCPT_ASSERT(strlen(error.code) == 0 || strlen(error.code) == 5);
    RCPT_ASSERT(strchr(error.text, '\n') == NULL);
    RCPT_ASSERT(rcpt_pg_hint(text) != NULL && rcpt_pg_decide(text) != RCPT_DECISION_FATAL);
    free(text);
}

static void read_plan(const uint8_t *data, size_t size)
{
    static const char *const relations[] = {"message_inbox", "m1"};
    const char *lines[MAX_LINES];
    size_t count = 0;
    char *text = terminated(data, size), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL && count < MAX_LINES;
         line = strtok_r(NULL, "\n", &rest))
        lines[count++] = line;
    enum rcpt_plan plan = rcpt_plan_check(lines, count, relations, 2);
    RCPT_ASSERT(plan < RCPT_PLAN__COUNT);
    RCPT_ASSERT(plan == RCPT_PLAN_ABSENT || count > 0);
    RCPT_ASSERT(rcpt_plan_check(lines, count, relations, 0) == RCPT_PLAN_ABSENT);
    free(text);
}

/* SQL with variables: what is bound holds none of the texts that were put in bare. */
static void bind_text(const uint8_t *data, size_t size)
{
    static const struct rcpt_pg_binding bindings[] = {
        {"schema", "a\"b"}, {"text", "it's \\"}, {"number", "42"}, {"1", "x"}, {"2", NULL}};
    struct rcpt_error error;
    char *sql = terminated(data, size);
    char *bound = rcpt_pg_bind(sql, bindings, sizeof(bindings) / sizeof(bindings[0]), &error);
    if (bound != NULL && strpbrk(sql, ":$") == NULL)
        RCPT_ASSERT(strcmp(sql, bound) == 0);
    free(bound);
    free(sql);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const uint8_t *, size_t) = {read_rows, read_message, read_plan,
                                                               bind_text};
    if (size > 0)
        readers[data[0] % 4](data + 1, size - 1);
    return 0;
}
