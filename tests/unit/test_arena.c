/* base/arena: what the chunks of an arena hold on the heap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"

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
    assert_in_range(rcpt_arena_bytes(&arena), one + 100000, one + 100000 + 64);
    rcpt_arena_reset(&arena, 4096);
    assert_int_equal(rcpt_arena_bytes(&arena), one); /* the one that was kept */
    rcpt_arena_fini(&arena);
    assert_int_equal(rcpt_arena_bytes(&arena), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_are_those_of_all_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
