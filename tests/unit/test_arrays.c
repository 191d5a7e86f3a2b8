/* Binary parameters, byte by byte as array_recv reads them. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "receiptd/postgres/arrays.h"
#include "receiptd/postgres/connection.h"

static struct rcpt_pg_params finish(struct rcpt_pg_encoder *encoder)
{
    struct rcpt_pg_params params;
    rcpt_pg_encoder_params(encoder, &params);
    return params;
}

#define assert_bytes(params, index, literal)                                                       \
    do {                                                                                           \
        assert_int_equal((params).lengths[index], sizeof(literal) - 1);                            \
        assert_int_equal((params).formats[index], 1);                                              \
        assert_memory_equal((params).values[index], literal, sizeof(literal) - 1);                 \
    } while (0)

static void an_empty_array_is_twelve_bytes_without_a_dimension(void **state)
{
    (void)state;
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    rcpt_pg_begin_text_array(encoder, 0);
    rcpt_pg_begin_int2_array(encoder, 0);
    struct rcpt_pg_params params = finish(encoder);
    assert_int_equal(params.count, 2);
    assert_bytes(params, 0, "\0\0\0\0\0\0\0\0\0\0\0\x19");
    assert_bytes(params, 1, "\0\0\0\0\0\0\0\0\0\0\0\x15");
    rcpt_pg_encoder_free(encoder);
}

static void texts_and_nulls_stand_behind_their_length(void **state)
{
    (void)state;
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    rcpt_pg_begin_text_array(encoder, 3);
    rcpt_pg_put_bytes(encoder, "ab", 2);
    rcpt_pg_put_null(encoder);
    rcpt_pg_put_bytes(encoder, NULL, 0);
    struct rcpt_pg_params params = finish(encoder);
    assert_bytes(params, 0,
                 "\0\0\0\1\0\0\0\1\0\0\0\x19\0\0\0\3\0\0\0\1"
                 "\0\0\0\2ab\xff\xff\xff\xff\0\0\0\0");
    rcpt_pg_encoder_free(encoder);
}

static void integers_are_big_endian_with_their_own_type(void **state)
{
    (void)state;
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    rcpt_pg_begin_int2_array(encoder, 2);
    rcpt_pg_put_int2(encoder, 600);
    rcpt_pg_put_int2(encoder, -2);
    rcpt_pg_begin_int4_array(encoder, 1);
    rcpt_pg_put_int4(encoder, 0x01020304);
    rcpt_pg_begin_int8_array(encoder, 1);
    rcpt_pg_put_int8(encoder, -2);
    rcpt_pg_begin_bytea_array(encoder, 1);
    rcpt_pg_put_bytes(encoder, "\0\xff", 2);
    struct rcpt_pg_params params = finish(encoder);
    assert_int_equal(params.count, 4);
    assert_bytes(params, 0,
                 "\0\0\0\1\0\0\0\0\0\0\0\x15\0\0\0\2\0\0\0\1\0\0\0\2\x02\x58\0\0\0\2\xff\xfe");
    assert_bytes(params, 1, "\0\0\0\1\0\0\0\0\0\0\0\x17\0\0\0\1\0\0\0\1\0\0\0\4\1\2\3\4");
    assert_bytes(params, 2,
                 "\0\0\0\1\0\0\0\0\0\0\0\x14\0\0\0\1\0\0\0\1\0\0\0\x08"
                 "\xff\xff\xff\xff\xff\xff\xff\xfe");
    assert_bytes(params, 3, "\0\0\0\1\0\0\0\0\0\0\0\x11\0\0\0\1\0\0\0\1\0\0\0\2\0\xff");
    rcpt_pg_encoder_free(encoder);
}

static void times_count_from_the_year_2000(void **state)
{
    (void)state;
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    rcpt_pg_begin_timestamp_array(encoder, 3);
    rcpt_pg_put_timestamp(encoder, INT64_C(946684800000001));
    rcpt_pg_put_timestamp(encoder, INT64_C(946684800000000) - 1);
    rcpt_pg_put_timestamp(encoder, INT64_MIN); /* must not wrap, and not become -infinity */
    struct rcpt_pg_params params = finish(encoder);
    assert_bytes(params, 0,
                 "\0\0\0\1\0\0\0\0\0\0\x04\xa0\0\0\0\3\0\0\0\1"
                 "\0\0\0\x08\0\0\0\0\0\0\0\1"
                 "\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xff"
                 "\0\0\0\x08\x80\0\0\0\0\0\0\1");
    rcpt_pg_encoder_free(encoder);
}

static void scalars_are_parameters_of_their_own(void **state)
{
    (void)state;
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    rcpt_pg_add_int4(encoder, 7);
    rcpt_pg_add_int8(encoder, 7);
    rcpt_pg_add_text(encoder, "park");
    rcpt_pg_add_text(encoder, NULL);
    rcpt_pg_add_text(encoder, "");
    memcpy(rcpt_pg_add_bytea(encoder, 3), "xyz", 3);
    (void)rcpt_pg_add_bytea(encoder, 0);
    struct rcpt_pg_params params = finish(encoder);
    assert_int_equal(params.count, 7);
    assert_bytes(params, 0, "\0\0\0\7");
    assert_bytes(params, 1, "\0\0\0\0\0\0\0\7");
    assert_bytes(params, 2, "park");
    assert_null(params.values[3]);
    assert_bytes(params, 4, "");
    assert_bytes(params, 5, "xyz");
    assert_bytes(params, 6, "");
    rcpt_pg_encoder_free(encoder);
}

static void growth_moves_no_parameter_and_a_reset_forgets_all(void **state)
{
    (void)state;
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    static char large[64 * 1024];
    for (int round = 0; round < 2; round++) {
        rcpt_pg_encoder_reset(encoder);
        rcpt_pg_add_text(encoder, "first");
        rcpt_pg_begin_bytea_array(encoder, 200); /* 12.8 MiB: released by the reset */
        for (int element = 0; element < 200; element++)
            rcpt_pg_put_bytes(encoder, large, sizeof(large));
        for (int32_t number = 0; number < 40; number++)
            rcpt_pg_add_int4(encoder, number);
        struct rcpt_pg_params params = finish(encoder);
        assert_int_equal(params.count, 42);
        assert_bytes(params, 0, "first");
        assert_int_equal(params.lengths[1], 20 + 200 * (4 + (int)sizeof(large)));
        assert_bytes(params, 41, "\0\0\0\x27");
    }
    rcpt_pg_encoder_reset(encoder);
    assert_int_equal(finish(encoder).count, 0);
    rcpt_pg_encoder_free(encoder);
}

static void one_too_few(struct rcpt_pg_encoder *encoder)
{
    rcpt_pg_begin_int2_array(encoder, 2);
    rcpt_pg_put_int2(encoder, 1);
    rcpt_pg_add_int4(encoder, 1);
}

static void one_too_many(struct rcpt_pg_encoder *encoder)
{
    rcpt_pg_begin_int2_array(encoder, 1);
    rcpt_pg_put_int2(encoder, 1);
    rcpt_pg_put_int2(encoder, 1);
}

static void unfinished(struct rcpt_pg_encoder *encoder)
{
    rcpt_pg_begin_int2_array(encoder, 1);
    (void)finish(encoder);
}

static void wrong_type(struct rcpt_pg_encoder *encoder)
{
    rcpt_pg_begin_int2_array(encoder, 1);
    rcpt_pg_put_int8(encoder, 1);
}

static void a_wrong_number_or_type_of_elements_is_a_bug(void **state)
{
    (void)state;
    void (*const bugs[])(struct rcpt_pg_encoder *) = {one_too_few, one_too_many, unfinished,
                                                      wrong_type};
    for (size_t index = 0; index < sizeof(bugs) / sizeof(bugs[0]); index++) {
        int status = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            signal(SIGABRT, SIG_DFL);
            close(STDERR_FILENO);
            bugs[index](rcpt_pg_encoder_new());
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_array_is_twelve_bytes_without_a_dimension),
        cmocka_unit_test(texts_and_nulls_stand_behind_their_length),
        cmocka_unit_test(integers_are_big_endian_with_their_own_type),
        cmocka_unit_test(times_count_from_the_year_2000),
        cmocka_unit_test(scalars_are_parameters_of_their_own),
        cmocka_unit_test(growth_moves_no_parameter_and_a_reset_forgets_all),
        cmocka_unit_test(a_wrong_number_or_type_of_elements_is_a_bug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
