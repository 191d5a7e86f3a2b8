/* Networks as they are configured, and addresses as they come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <string.h>

#include <cmocka.h>

#include "base/network.h"

static void test_only_what_can_mean_one_thing_is_a_network(void **state)
{
    static const char *const good[] = {"192.0.2.1",   "192.0.2.0/24",         "0.0.0.0/0",
                                       "2001:db8::1", "::ffff:192.0.2.0/120", "::ffff:192.0.2.1",
                                       "::/0"};
    static const char *const bad[] = {"::ffff:192.0.2.0/24",
                                      "::ffff:0:0/95",
                                      "192.0.2.0/33",
                                      "192.000.002.001",
                                      "192.0.2",
                                      "0xc0000201",
                                      "192.0.2.0/+24",
                                      "192.0.2.0/ 24",
                                      "fe80::1%eth0",
                                      "[::1]",
                                      "192.0.2.1:80",
                                      "192.0.2.0/24/24",
                                      ""};
    struct rcpt_network network;
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!rcpt_network_parse(good[i], &network))
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (rcpt_network_parse(bad[i], &network))
            fail_msg("%s", bad[i]);
}

static bool has(const struct rcpt_network *network, const char *text)
{
    struct rcpt_address address;
    return rcpt_address_parse(text, strlen(text), &address) && rcpt_network_has(network, &address);
}

static void test_an_address_is_the_same_in_both_families(void **state)
{
    static const char *const networks[] = {"192.0.2.0/24", "::ffff:192.0.2.0/120"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rcpt_network network;
        assert_true(rcpt_network_parse(networks[i], &network));
        assert_true(has(&network, "192.0.2.7"));
        assert_true(has(&network, "::ffff:192.0.2.7"));
        assert_true(has(&network, "::ffff:c000:207"));
        assert_false(has(&network, "192.0.3.7"));
        assert_false(has(&network, "::192.0.2.7"));
        assert_false(has(&network, "192.0.02.7"));
        assert_false(has(&network, "192.0.2.7 "));
        assert_false(has(&network, "unknown"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_what_can_mean_one_thing_is_a_network),
        cmocka_unit_test(test_an_address_is_the_same_in_both_families),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
