/* Networks as they are configured, and addresses as they come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/base/network_set.h"

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

/* ---- lists ---- */

static struct rcpt_network_set *parse_good(const char *text)
{
    struct rcpt_network_fault fault;
    struct rcpt_network_set *set = rcpt_network_set_parse(text, &fault);
    if (set == NULL)
        fail_msg("line %u: %s", fault.line, fault.value);
    return set;
}

static bool set_has(const struct rcpt_network_set *set, const char *text)
{
    struct rcpt_address address;
    assert_true(rcpt_address_parse(text, strlen(text), &address));
    return rcpt_network_set_has(set, &address);
}

static void test_a_list_has_comments_blanks_and_networks_within_each_other(void **state)
{
    (void)state;
    struct rcpt_network_set *set = parse_good("# scanners\n\n  192.0.2.0/24\t# of a vendor\r\n"
                                              "192.0.2.128/25\n192.0.2.0/24\n2001:db8::/32\n"
                                              "198.51.100.7/24 \n203.0.113.9");
    assert_int_equal(rcpt_network_set_count(set), 4);
    static const char *const inside[] = {"192.0.2.0",
                                         "192.0.2.255",
                                         "::ffff:192.0.2.200",
                                         "198.51.100.0",
                                         "203.0.113.9",
                                         "2001:db8::",
                                         "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"};
    static const char *const outside[] = {
        "192.0.1.255", "192.0.3.0", "203.0.113.8",    "203.0.113.10",
        "2001:db9::",  "::",        "255.255.255.255"};
    for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++)
        if (!set_has(set, inside[i]))
            fail_msg("%s", inside[i]);
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
        if (set_has(set, outside[i]))
            fail_msg("%s", outside[i]);
    rcpt_network_set_free(set);
    set = parse_good("# nothing yet\n");
    assert_false(set_has(set, "192.0.2.1"));
    rcpt_network_set_free(set);
}

static void test_a_line_that_is_no_network_is_named(void **state)
{
    static const struct {
        const char *text, *value;
        unsigned line;
    } cases[] = {
        {"192.0.2.0/24\n\n 192.0.2.0/33 # typing error\n", "192.0.2.0/33", 3},
        {"scanner.example", "scanner.example", 1},
        {"192.0.2.1 192.0.2.2\n", "192.0.2.1 192.0.2.2", 1},
        {"::1\n2001:0db8:0000:0000:0000:0000:0000:0000/0000000000000000000000000000032\n",
         "2001:0db8:0000:0000:0000:0000:0000:0000/00000000000000000000000", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rcpt_network_fault fault;
        assert_null(rcpt_network_set_parse(cases[i].text, &fault));
        assert_int_equal(fault.line, cases[i].line);
        assert_string_equal(fault.value, cases[i].value);
    }
}

/* The same on every machine. */
static unsigned next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33);
}

/* Any networks, in any order: the set has what one of them has. */
static void test_a_set_agrees_with_the_networks_one_by_one(void **state)
{
    enum { NETWORKS = 40 };
    (void)state;
    uint64_t random = 23;
    for (unsigned round = 0; round < 500; round++) {
        struct rcpt_network networks[NETWORKS];
        char text[NETWORKS * 24], address[24];
        size_t used = 0;
        for (size_t i = 0; i < NETWORKS; i++) {
            snprintf(address, sizeof(address), "10.0.%u.%u/%u", next_random(&random) % 4,
                     next_random(&random) % 256, 20 + next_random(&random) % 13);
            assert_true(rcpt_network_parse(address, &networks[i]));
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\n", address);
        }
        struct rcpt_network_set *set = parse_good(text);
        for (unsigned probe = 0; probe < 200; probe++) {
            struct rcpt_address wanted;
            snprintf(address, sizeof(address), "10.0.%u.%u", next_random(&random) % 6,
                     next_random(&random) % 256);
            assert_true(rcpt_address_parse(address, strlen(address), &wanted));
            if (rcpt_network_set_has(set, &wanted) !=
                rcpt_networks_have(networks, NETWORKS, &wanted))
                fail_msg("%s in\n%s", address, text);
        }
        rcpt_network_set_free(set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_what_can_mean_one_thing_is_a_network),
        cmocka_unit_test(test_an_address_is_the_same_in_both_families),
        cmocka_unit_test(test_a_list_has_comments_blanks_and_networks_within_each_other),
        cmocka_unit_test(test_a_line_that_is_no_network_is_named),
        cmocka_unit_test(test_a_set_agrees_with_the_networks_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
