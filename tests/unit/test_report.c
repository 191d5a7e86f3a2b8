/* Rows as a table, CSV and JSON: what a terminal or a spreadsheet makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "commands/report.h"

static const struct report_column columns[] = {
    {"name", REPORT_TEXT},
    {"sum", REPORT_NUMBER},
    {"note", REPORT_TEXT},
};

static void print_json(const struct report *report, FILE *out)
{
    struct rcpt_json json;
    rcpt_json_init(&json, out);
    report_write_json(report, &json);
}

static char *text_of(void (*print)(const struct report *report, FILE *out),
                     const struct report *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    print(report, out);
    fclose(out);
    return text;
}

static void expect(void (*print)(const struct report *report, FILE *out),
                   const struct report *report, const char *expected)
{
    char *text = text_of(print, report);
    assert_string_equal(text, expected);
    free(text);
}

static void fill(struct report *report)
{
    report_init(report, columns, 3);
    report_add(report, "a");
    report_add_int(report, -12);
    report_add(report, NULL);
    report_add(report, "Zo\u00eb\x1b");
    report_add(report, "0.25");
    report_add(report, "say \"x, y\"\n");
    report_add(report, "");
    report_add(report, NULL);
    report_add(report, "last");
}

static void a_table_is_aligned_by_characters_and_does_not_steer_the_terminal(void **state)
{
    struct report report;
    (void)state;
    fill(&report);
    assert_int_equal(report_row_count(&report), 3);
    expect(report_print_table, &report,
           "name   sum  note\n"
           "a      -12  -\n"
           "Zo\u00eb?  0.25  say \"x, y\"?\n"
           "         -  last\n");
    report_fini(&report);
}

/* U+009b is what ESC [ is, in one character. */
static void no_control_character_reaches_the_terminal(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    (void)state;
    report_print_padded(out,
                        "a\xc2\x9b"
                        "2J\xc2\x80\xc2\xa0\xc2",
                        0, false);
    fclose(out);
    assert_string_equal(text, "a?2J?\xc2\xa0\xc2");
    free(text);
}

static void a_spreadsheet_gets_each_cell_back(void **state)
{
    struct report report;
    (void)state;
    fill(&report);
    expect(report_print_csv, &report,
           "name,sum,note\r\n"
           "a,-12,\r\n"
           "Zo\u00eb\x1b,0.25,\"say \"\"x, y\"\"\n\"\r\n"
           ",,last\r\n");
    report_fini(&report);
}

/* Of a number the sign is no formula's. */
static void a_spreadsheet_gets_no_formula(void **state)
{
    static const char *const cells[][3] = {
        {"=1+1", "-1", "+x"},
        {"-x", "1", "@x"},
        {"\t=", "-0.5", "\uff1d1"},
        {"\n=", NULL, "\r="},
        {"\uff0b\uff20", "2", "\uff0d"},
        {"\uff20", "3", "\uff1ca"},
        {"'=", "4", " ="},
    };
    struct report report;
    (void)state;
    report_init(&report, columns, 3);
    for (size_t row = 0; row < sizeof(cells) / sizeof(cells[0]); row++)
        for (size_t column = 0; column < 3; column++)
            report_add(&report, cells[row][column]);
    expect(report_print_csv, &report,
           "name,sum,note\r\n"
           "'=1+1,-1,'+x\r\n"
           "'-x,1,'@x\r\n"
           "'\t=,-0.5,'\uff1d1\r\n"
           "\"'\n=\",,\"'\r=\"\r\n"
           "'\uff0b\uff20,2,'\uff0d\r\n"
           "'\uff20,3,\uff1ca\r\n"
           "'=,4, =\r\n");
    report_fini(&report);
}

static void a_program_gets_numbers_as_numbers(void **state)
{
    struct report report;
    (void)state;
    fill(&report);
    expect(print_json, &report,
           "[{\"name\":\"a\",\"sum\":-12,\"note\":null},"
           "{\"name\":\"Zo\u00eb\\u001b\",\"sum\":0.25,\"note\":\"say \\\"x, y\\\"\\n\"},"
           "{\"name\":\"\",\"sum\":null,\"note\":\"last\"}]");
    report_fini(&report);
}

static void no_row_is_no_table_but_still_columns(void **state)
{
    struct report report;
    (void)state;
    report_init(&report, columns, 3);
    expect(report_print_table, &report, "");
    expect(report_print_csv, &report, "name,sum,note\r\n");
    expect(print_json, &report, "[]");
    report_fini(&report);
}

static void more_cells_than_expected_have_room(void **state)
{
    struct report report;
    (void)state;
    report_init(&report, columns, 3);
    for (int row = 0; row < 100; row++) {
        report_add(&report, "n");
        report_add_int(&report, row);
        report_add(&report, NULL);
    }
    char *text = text_of(report_print_csv, &report);
    assert_int_equal(report_row_count(&report), 100);
    assert_non_null(strstr(text, "\r\nn,99,\r\n"));
    free(text);
    report_fini(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_aligned_by_characters_and_does_not_steer_the_terminal),
        cmocka_unit_test(no_control_character_reaches_the_terminal),
        cmocka_unit_test(a_spreadsheet_gets_each_cell_back),
        cmocka_unit_test(a_spreadsheet_gets_no_formula),
        cmocka_unit_test(a_program_gets_numbers_as_numbers),
        cmocka_unit_test(no_row_is_no_table_but_still_columns),
        cmocka_unit_test(more_cells_than_expected_have_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
