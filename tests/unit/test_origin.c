#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/core/origin.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void assert_text(struct rcpt_text found, const char *expected)
{
    const char *text = found.at;
    size_t size = found.size;
    if (expected == NULL) {
        assert_null(text);
        return;
    }
    assert_non_null(text);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(text, expected, size);
}

static void strings_and_numbers_of_the_event_itself_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *json, *org_id, *campaign_id;
    } examples[] = {
        {"{}", NULL, NULL},
        {"{\"org_id\":\"o\",\"campaign_id\":\"c\"}", "o", "c"},
        {"{\"org_id\":7,\"campaign_id\":12345678901234567890}", "7", "12345678901234567890"},
        {"{\"org_id\":null,\"campaign_id\":true}", NULL, NULL},
        {"{\"org_id\":{\"org_id\":\"inner\"},\"campaign_id\":[\"c\"]}", NULL, NULL},
        {"{\"x\":{\"org_id\":\"inner\"},\"org_id\":\"outer\"}", "outer", NULL},
        {"{\"org_id\":\"first\",\"org_id\":\"last\"}", "last", NULL},
        {"{\"org_id\":\"first\",\"org_id\":{}}", NULL, NULL},
        {"{\"org_id\":\"a\\u0000b\",\"campaign_id\":\"\\u00e9\\\"\"}", NULL, "\xc3\xa9\""},
        {"{\"reason\":\"\\ud800\",\"x\":1e400,\"org_id\":\"o\"}", "o", NULL},
        {"{\"org_id\":\"\"}", "", NULL},
    };
    struct rcpt_arena arena;
    rcpt_arena_init(&arena, 256);
    for (size_t index = 0; index < COUNT(examples); index++) {
        struct rcpt_origin origin =
            rcpt_origin_read(examples[index].json, strlen(examples[index].json), &arena);
        assert_text(origin.org_id, examples[index].org_id);
        assert_text(origin.campaign_id, examples[index].campaign_id);
    }
    rcpt_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_and_numbers_of_the_event_itself_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
