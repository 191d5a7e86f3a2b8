/* Limits the tests that a program of cmocka runs to RECEIPTD_TEST_FILTER, a pattern with * and ?.
 * Each program is linked with it, for scripts/test -k. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void choose_tests(void)
{
    const char *pattern = getenv("RECEIPTD_TEST_FILTER");
    if (pattern && *pattern)
        cmocka_set_test_filter(pattern);
}
