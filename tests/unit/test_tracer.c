#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/base/log.h"
#include "receiptd/trace/tracer.h"

/* Nobody listens at port 1 of the loopback. */
#define NOBODY "http://127.0.0.1:1/v1/traces"

struct bench {
    uv_loop_t loop;
    struct rcpt_tracer *tracer;
    unsigned closed;
};

static void bench_open(struct bench *bench, size_t queue_bytes)
{
    memset(bench, 0, sizeof(*bench));
    rcpt_log_configure(RCPT_LOG_ERROR, RCPT_LOG_LOGFMT);
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    const struct rcpt_tracer_settings settings = {.loop = &bench->loop,
                                                  .endpoint = NOBODY,
                                                  .instance = "test",
                                                  .queue_bytes = queue_bytes,
                                                  .timeout_ms = 1000};
    bench->tracer = rcpt_tracer_new(&settings);
}

static void on_closed(void *context)
{
    ((struct bench *)context)->closed++;
}

static void bench_close(struct bench *bench)
{
    rcpt_tracer_close(bench->tracer, on_closed, bench);
    assert_int_equal(uv_run(&bench->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(bench->closed, 1);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
}

static void a_child_is_in_its_parents_trace_and_a_root_in_one_of_its_own(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, 65536);
    struct rcpt_span *root = rcpt_span_begin(bench.tracer, RCPT_SPAN_CONSUMER, "root", NULL);
    struct rcpt_span *other = rcpt_span_begin(bench.tracer, RCPT_SPAN_CONSUMER, "other", NULL);
    struct rcpt_trace_context at = rcpt_span_context(root), beside = rcpt_span_context(other);
    struct rcpt_span *child = rcpt_span_begin(bench.tracer, RCPT_SPAN_INTERNAL, "child", &at);
    struct rcpt_trace_context below = rcpt_span_context(child);
    assert_true(at.sampled && below.sampled);
    assert_memory_equal(at.trace, below.trace, sizeof(at.trace));
    assert_memory_not_equal(at.span, below.span, sizeof(at.span));
    assert_memory_not_equal(at.trace, beside.trace, sizeof(at.trace));
    rcpt_span_end_take(bench.tracer, child, 0);
    rcpt_span_end_take(bench.tracer, root, 0);
    rcpt_span_end_take(bench.tracer, other, 0);
    bench_close(&bench);
}

static void the_share_that_is_drawn_is_the_share_that_was_asked_for(void **state)
{
    struct bench bench;
    unsigned drawn = 0;
    (void)state;
    bench_open(&bench, 65536);
    for (unsigned index = 0; index < 100000; index++) {
        assert_false(rcpt_tracer_draw(bench.tracer, 0));
        assert_true(rcpt_tracer_draw(bench.tracer, 1000000));
        drawn += rcpt_tracer_draw(bench.tracer, 10000);
    }
    /* 1 000 expected, standard deviation 31. */
    assert_in_range(drawn, 700, 1300);
    bench_close(&bench);
}

static void what_waits_is_bounded_and_what_is_dropped_is_counted(void **state)
{
    struct bench bench;
    const struct rcpt_trace_context link = {.trace = {1}, .span = {2}, .sampled = true};
    (void)state;
    bench_open(&bench, 65536);
    for (unsigned index = 0; index < 1000; index++) {
        struct rcpt_span *span = rcpt_span_begin(bench.tracer, RCPT_SPAN_CONSUMER, "many", NULL);
        for (unsigned number = 0; number < 2 * RCPT_SPAN_MOST_LINKS; number++)
            rcpt_span_add_link(span, &link, "a=b");
        for (unsigned number = 0; number < 40; number++)
            rcpt_span_add_text(span, "name", "value");
        rcpt_span_fail(span, "first");
        rcpt_span_fail(span, "second");
        rcpt_span_end_take(bench.tracer, span, 0);
        assert_in_range(rcpt_tracer_get_stats(bench.tracer)->queued_bytes, 1, 65536);
    }
    assert_in_range(rcpt_tracer_get_stats(bench.tracer)->dropped_full, 900, 999);
    assert_int_equal(rcpt_tracer_get_stats(bench.tracer)->exported, 0);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_is_in_its_parents_trace_and_a_root_in_one_of_its_own),
        cmocka_unit_test(the_share_that_is_drawn_is_the_share_that_was_asked_for),
        cmocka_unit_test(what_waits_is_bounded_and_what_is_dropped_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
