#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "commands/csv.h"

/* Records as text: fields in brackets, a record a line; then the error. */
static char *read_all(const char *bytes, size_t size)
{
    char *text = NULL;
    size_t text_size = 0;
    struct csv *csv = calloc(1, sizeof(*csv));
    struct rcpt_error error;
    FILE *in = fmemopen((void *)(uintptr_t)bytes, size, "r"),
         *out = open_memstream(&text, &text_size);
    assert_non_null(csv);
    csv_init(csv, in);
    while (csv_next(csv, &error)) {
        fprintf(out, "%u:", csv->line);
        for (size_t index = 0; index < csv->count; index++)
            fprintf(out, "[%s]", csv->fields[index]);
        fputc('\n', out);
    }
    fputs(error.text, out);
    fclose(out);
    fclose(in);
    free(csv);
    return text;
}

static void records_are_read_as_they_are_meant(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *records;
    } examples[] = {
        {"a,b\n1,2\n", "1:[a][b]\n2:[1][2]\n"},
        {"a,b\r\n1,2", "1:[a][b]\n2:[1][2]\n"},
        {"a,b\r1,2\r3,\"4\"\r", "1:[a][b]\n2:[1][2]\n3:[3][4]\n"},
        {"a\r\r\"b\rc\"\r\nd", "1:[a]\n3:[b\rc]\n4:[d]\n"},
        {"\n\na\n\nb\n\n", "3:[a]\n5:[b]\n"},
        {"\"a,b\",\"c\"\"d\"\n", "1:[a,b][c\"d]\n"},
        {"\"two\nlines\",x\ny,\"\"\n", "1:[two\nlines][x]\n3:[y][]\n"},
        {",\n", "1:[][]\n"},
        {"\xef\xbb\xbf"
         "a,b\n1,2\n",
         "1:[a][b]\n2:[1][2]\n"},
        {"\xef\xbb\xbf\"a\",b\r\n", "1:[a][b]\n"},
        {"a\n\xef\xbb\xbf\n", "1:[a]\n2:[\xef\xbb\xbf]\n"},
        {"a \"b\" c\n", "1:[a \"b\" c]\n"},
        {"a\n\"open", "1:[a]\nline 2: a quote is not closed"},
    };
    for (size_t index = 0; index < sizeof(examples) / sizeof(examples[0]); index++) {
        char *text = read_all(examples[index].bytes, strlen(examples[index].bytes));
        assert_string_equal(text, examples[index].records);
        free(text);
    }
}

static void what_is_too_much_is_refused(void **state)
{
    (void)state;
    char commas[100], nul[] = "a\0b\n";
    memset(commas, ',', sizeof(commas));
    char *text = read_all(commas, sizeof(commas));
    assert_string_equal(text, "line 1: has more than 64 fields");
    free(text);
    text = read_all(nul, 4);
    assert_string_equal(text, "line 1: there is a NUL byte");
    free(text);
    char *large = malloc(CSV_MAX_BYTES + 10);
    assert_non_null(large);
    memset(large, 'x', CSV_MAX_BYTES + 10);
    text = read_all(large, CSV_MAX_BYTES + 10);
    assert_string_equal(text, "line 1: is longer than 64 KiB");
    free(text);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read_as_they_are_meant),
        cmocka_unit_test(what_is_too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
