#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/core/hash.h"

#define X23 "xxxxxxxxxxxxxxxxxxxxxxx"

/* From PostgreSQL 15: select hashtextextended(text, seed). */
static const struct {
    const char *text;
    uint64_t seed;
    uint64_t hash;
} vectors[] = {
    {"", 0, UINT64_C(0x9fb1b765a7ea466d)},
    {"a", 0, UINT64_C(0x31d94c66401370b1)},
    {"ab", 0, UINT64_C(0x2751f60c666effbd)},
    {"abc", 0, UINT64_C(0xa25b273dd12feb97)},
    {"abcdefgh", 0, UINT64_C(0x84bc1e238b1e9c33)},
    {"abcdefghijk", 0, UINT64_C(0x2b3346a5a78ef3d3)},
    {"abcdefghijkl", 0, UINT64_C(0x97216e83a1763ad4)},
    {"abcdefghijklm", 0, UINT64_C(0x7b1e572e1830c6d0)},
    {"message 12345", 0, UINT64_C(0xe5956b4e634be8fa)},
    {"wamid.HBgLMTIzNDU2Nzg5MDE", 0, UINT64_C(0x86ae53906f90f6af)},
    {"wamid.HBgLMTIzNDU2Nzg5MDE", 7, UINT64_C(0x2480d4d9b8247431)},
    {"0192f5a0-7c1e-7d3a-9b44-5a1f0c2e8d77", 0, UINT64_C(0x60db4018016f955c)},
    {"0192f5a0-7c1e-7d3a-9b44-5a1f0c2e8d77", 7, UINT64_C(0x33b562a625a1f7c6)},
    {"0192f5a0-7c1e-7d3a-9b44-5a1f0c2e8d77", UINT64_C(1) << 40, UINT64_C(0x7749cbbd7fed6255)},
    {"SM1342fe1b2c904d1ab04f0fc7a58abca9", 0, UINT64_C(0x8c5fa8138a9b05cc)},
    {X23, 0, UINT64_C(0x0b518da3239dcc6a)},
    {X23 "x", 0, UINT64_C(0x73f0dcff52446a25)},
    {X23 "xx", 0, UINT64_C(0x349702042bbee40e)},
    {"\xc3\xa9", 0, UINT64_C(0xf565f73cc5672b0b)},
    {"\xc3\xbc"
     "berm\xc3\xa4\xc3\x9fig",
     0, UINT64_C(0x7f3ea6c5a7b179e1)},
    {"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 0, UINT64_C(0x27d73c3f210d4344)},
    {"\xf0\x9f\x98\x80", 0, UINT64_C(0x8105648a675e3fda)},
    {"abc", 1, UINT64_C(0x1d7feafe1d185a5d)},
    {"abc", UINT64_MAX, UINT64_C(0x1a86146d4d561077)},
    {"", UINT64_C(0x123456789), UINT64_C(0xa9d702c9c9fcad02)},
};

static void text_hash_agrees_with_postgresql(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        uint64_t hash =
            rcpt_hash_text_extended(vectors[i].text, strlen(vectors[i].text), vectors[i].seed);
        assert_true(hash == vectors[i].hash);
    }
}

static void text_hash_does_not_depend_on_alignment(void **state)
{
    (void)state;
    char room[64];
    for (size_t shift = 0; shift < 16; shift++) {
        memcpy(room + shift, "abcdefghijklm", 13);
        assert_true(rcpt_hash_text_extended(room + shift, 13, 0) == UINT64_C(0x7b1e572e1830c6d0));
    }
}

static void position_hash_depends_on_every_part(void **state)
{
    (void)state;
    uint64_t hash = rcpt_hash_position("dlr-events", 3, 1000, 7);
    assert_true(hash == rcpt_hash_position("dlr-events", 3, 1000, 7));
    assert_true(hash != rcpt_hash_position("dlr-event", 3, 1000, 7));
    assert_true(hash != rcpt_hash_position("dlr-events", 4, 1000, 7));
    assert_true(hash != rcpt_hash_position("dlr-events", 3, 1001, 7));
    assert_true(hash != rcpt_hash_position("dlr-events", 3, 1000, 8));
    assert_true(hash != rcpt_hash_position("dlr-events", 3, 1000, UINT32_MAX));
}

/* The lane of a dead letter must not change between versions while letters are on their way. */
static void position_hash_stays_what_it_was(void **state)
{
    (void)state;
    assert_true(rcpt_hash_position("dlr-events", 3, 1000, UINT32_MAX) ==
                UINT64_C(0x3379407b0feea206));
}

static void record_hash_tells_records_apart(void **state)
{
    (void)state;
    static char value[5000];
    uint32_t hash = rcpt_hash_record("key", 3, value, sizeof(value));
    assert_true(hash == rcpt_hash_record("key", 3, value, sizeof(value)));
    assert_true(hash != rcpt_hash_record("kex", 3, value, sizeof(value)));
    assert_true(hash != rcpt_hash_record("key", 3, value, sizeof(value) - 1));
    assert_true(rcpt_hash_record("ab", 2, "c", 1) != rcpt_hash_record("a", 1, "bc", 2));
    value[4095] = 1;
    assert_true(hash != rcpt_hash_record("key", 3, value, sizeof(value)));
    value[4095] = 0;
    value[4096] = 1; /* behind the first 4 KiB */
    assert_true(hash == rcpt_hash_record("key", 3, value, sizeof(value)));
}

/* Anchors are kept in the database: from Python, zlib.crc32(key + value + two sizes of 8 bytes). */
static void record_hash_is_the_crc_of_key_value_and_sizes(void **state)
{
    (void)state;
    assert_int_equal(rcpt_hash_record("key", 3, "value", 5), 0xfcb276abu);
    assert_int_equal(rcpt_hash_record(NULL, 0, NULL, 0), 0xecbb4b55u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_hash_agrees_with_postgresql),
        cmocka_unit_test(text_hash_does_not_depend_on_alignment),
        cmocka_unit_test(position_hash_depends_on_every_part),
        cmocka_unit_test(position_hash_stays_what_it_was),
        cmocka_unit_test(record_hash_tells_records_apart),
        cmocka_unit_test(record_hash_is_the_crc_of_key_value_and_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
