/* base/arena: what the chunks of an arena hold on the heap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "receiptd/base/arena.h"

static void the_bytes_are_those_of_all_chunks(void **state)
{
    struct rcpt_arena arena;
    (void)state;
    rcpt_arena_init(&arena, 4096);
    assert_int_equal(rcpt_arena_bytes(&arena), 0);
    rcpt_arena_alloc(&arena, 16);
    size_t one = rcpt_arena_bytes(&arena);
    assert_in_range(one, 4096, 4096 + 64);
    rcpt_arena_alloc(&arena, 64);
    assert_int_equal(rcpt_arena_bytes(&arena), one); /* from the same chunk */
    rcpt_arena_alloc(&arena, 100000);
    assert_in_range(rcpt_arena_bytes(&arena), one + 100000, one + 100000 + 4096 + 64);
    rcpt_arena_reset(&arena, 4096);
    assert_int_equal(rcpt_arena_bytes(&arena), one); /* the one that was kept */
    rcpt_arena_fini(&arena);
    assert_int_equal(rcpt_arena_bytes(&arena), 0);
}

/* As batches are that vary: what a larger one needs takes the place of what it cannot use. */
static void a_chunk_that_is_too_small_gives_way(void **state)
{
    struct rcpt_arena arena;
    (void)state;
    rcpt_arena_init(&arena, 4096);
    for (size_t bytes = 10000; bytes <= 100000; bytes += 100) {
        rcpt_arena_alloc(&arena, bytes);
        rcpt_arena_alloc(&arena, bytes);
        assert_in_range(rcpt_arena_bytes(&arena), 2 * bytes, 2 * (bytes + 4096 + 64));
        rcpt_arena_reset(&arena, SIZE_MAX);
    }
    rcpt_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_those_of_all_chunks),
        cmocka_unit_test(a_chunk_that_is_too_small_gives_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
