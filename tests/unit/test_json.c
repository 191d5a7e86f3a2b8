#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/base/json.h"

struct page {
    FILE *out;
    char *text;
    size_t size;
    struct rcpt_json json;
};

static void page_open(struct page *page)
{
    page->out = open_memstream(&page->text, &page->size);
    assert_non_null(page->out);
    rcpt_json_init(&page->json, page->out);
}

static void page_expect(struct page *page, const char *expected)
{
    assert_int_equal(fclose(page->out), 0);
    assert_string_equal(page->text, expected);
    free(page->text);
}

static void objects_and_arrays_nest_with_commas_between_members(void **state)
{
    (void)state;
    struct page page;
    page_open(&page);
    rcpt_json_begin_object(&page.json);
    rcpt_json_key(&page.json, "a");
    rcpt_json_begin_array(&page.json);
    rcpt_json_int(&page.json, -1);
    rcpt_json_begin_object(&page.json);
    rcpt_json_end_object(&page.json);
    rcpt_json_bool(&page.json, true);
    rcpt_json_bool(&page.json, false);
    rcpt_json_end_array(&page.json);
    rcpt_json_key(&page.json, "b");
    rcpt_json_null(&page.json);
    rcpt_json_key(&page.json, "c\"d");
    rcpt_json_text(&page.json, NULL);
    rcpt_json_end_object(&page.json);
    page_expect(&page, "{\"a\":[-1,{},true,false],\"b\":null,\"c\\\"d\":null}");
}

static void a_value_alone_is_a_document(void **state)
{
    (void)state;
    struct page page;
    page_open(&page);
    rcpt_json_int(&page.json, INT64_MIN);
    page_expect(&page, "-9223372036854775808");
}

static void strings_are_escaped_and_never_invalid_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *expected;
    } rows[] = {
        {"", 0, "\"\""},
        {"plain", 5, "\"plain\""},
        {"\"\\/", 3, "\"\\\"\\\\/\""},
        {"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
        {"\0\x1f\x7f", 3, "\"\\u0000\\u001f\\u007f\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"a\xff"
         "b",
         3,
         "\"a\xef\xbf\xbd"
         "b\""},                                                         /* no first byte */
        {"\xc3", 1, "\"\xef\xbf\xbd\""},                                 /* cut off */
        {"\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},                 /* overlong */
        {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* surrogate */
        {"\xf4\x90\x80\x80", 4,
         "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, /* > 10FFFF */
        {"\xe2\x82x", 3, "\"\xef\xbf\xbd\xef\xbf\xbdx\""},
    };
    for (size_t index = 0; index < sizeof(rows) / sizeof(rows[0]); index++) {
        struct page page;
        page_open(&page);
        rcpt_json_bytes(&page.json, rows[index].bytes, rows[index].size);
        page_expect(&page, rows[index].expected);
    }
}

static void numbers_are_short_and_read_back_the_same(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *expected;
    } rows[] = {
        {0.0, "0"},
        {0.5, "0.5"},
        {0.1, "0.1"},
        {1e300, "1e+300"},
        {-2.25, "-2.25"},
        {1.0 / 3.0, "0.333333333333333"},
        {(double)NAN, "null"},
        {(double)INFINITY, "null"},
    };
    for (size_t index = 0; index < sizeof(rows) / sizeof(rows[0]); index++) {
        struct page page;
        page_open(&page);
        rcpt_json_double(&page.json, rows[index].value);
        if (index != 5) {
            page_expect(&page, rows[index].expected);
            continue;
        }
        fflush(page.out);
        double back = strtod(page.text, NULL);
        assert_memory_equal(&back, &rows[index].value, sizeof(back));
        fclose(page.out);
        free(page.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_and_arrays_nest_with_commas_between_members),
        cmocka_unit_test(a_value_alone_is_a_document),
        cmocka_unit_test(strings_are_escaped_and_never_invalid_utf8),
        cmocka_unit_test(numbers_are_short_and_read_back_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
