/* What a statement returns about its effects, as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "postgres/effects.h"

static void gateways_are_read_from_lines_and_damaged_ones_left_out(void **state)
{
    char text[] = "3 acme\n12 two words\nnone\n7\n\n5 \n1 last", none[] = "";
    struct rcpt_lane_gateway gateways[8];
    (void)state;
    assert_int_equal(rcpt_effects_read_gateways(none, gateways, 8), 0);
    assert_int_equal(rcpt_effects_read_gateways(text, gateways, 8), 4);
    assert_string_equal(gateways[0].name, "acme");
    assert_int_equal(gateways[0].events, 3);
    assert_string_equal(gateways[1].name, "two words");
    assert_int_equal(gateways[1].events, 12);
    assert_string_equal(gateways[2].name, ""); /* of events that name none */
    assert_string_equal(gateways[3].name, "last");
    char more[] = "1 a\n2 b\n3 c";
    assert_int_equal(rcpt_effects_read_gateways(more, gateways, 2), 2);
    assert_string_equal(gateways[1].name, "b");
}

static void a_statement_that_nobody_looks_at_is_not_read(void **state)
{
    (void)state;
    rcpt_effects_report(NULL, NULL, 0, RCPT_BATCH_APPLY, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gateways_are_read_from_lines_and_damaged_ones_left_out),
        cmocka_unit_test(a_statement_that_nobody_looks_at_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
