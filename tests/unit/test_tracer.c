#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/base/log.h"
#include "receiptd/http/http.h"
#include "receiptd/trace/tracer.h"

/* Nobody listens at port 1 of the loopback. */
#define NOBODY "http://127.0.0.1:1/v1/traces"

struct bench {
    uv_loop_t loop;
    struct rcpt_tracer *tracer;
    unsigned closed;
    /* of a collector */
    struct rcpt_http_server *server;
    char url[64];
    const int *statuses; /* of its answers, one after the other; 0: none, the last one stays */
    unsigned requests;
    struct rcpt_http_request *unanswered;
    char authorization[64], body[4096];
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

/* ---- with a collector ---- */

static void on_spans(void *context, struct rcpt_http_request *request)
{
    struct bench *bench = context;
    struct rcpt_http_text token = rcpt_http_header(request, "authorization");
    snprintf(bench->authorization, sizeof(bench->authorization), "%s",
             token.bytes != NULL ? token.bytes : "");
    snprintf(bench->body, sizeof(bench->body), "%s", rcpt_http_body(request).bytes);
    bench->requests++;
    int status = *bench->statuses;
    if (bench->statuses[1] >= 0)
        bench->statuses++;
    if (status > 0)
        rcpt_http_answer_text(request, status, "seen");
    else
        bench->unanswered = request;
}

static void collector_open(struct bench *bench, const int *statuses)
{
    struct rcpt_error error;
    memset(bench, 0, sizeof(*bench));
    rcpt_log_configure(RCPT_LOG_WARN, RCPT_LOG_LOGFMT);
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    bench->statuses = statuses;
    bench->server = rcpt_http_new(
        &(struct rcpt_http_settings){.loop = &bench->loop, .listen = "127.0.0.1:0"}, &error);
    assert_non_null(bench->server);
    rcpt_http_route(bench->server, &(struct rcpt_http_route){.prefix = "/v1/traces",
                                                             .methods = RCPT_HTTP_POST,
                                                             .handler = on_spans,
                                                             .context = bench});
    assert_true(rcpt_http_start(bench->server, &error));
    snprintf(bench->url, sizeof(bench->url), "http://127.0.0.1:%d/v1/traces",
             rcpt_http_port(bench->server));
    const struct rcpt_tracer_settings settings = {.loop = &bench->loop,
                                                  .endpoint = bench->url,
                                                  .token = "t0ken",
                                                  .instance = "test",
                                                  .queue_bytes = 8 << 20,
                                                  .timeout_ms = 10000};
    bench->tracer = rcpt_tracer_new(&settings);
}

static void collector_close(struct bench *bench)
{
    rcpt_tracer_close(bench->tracer, on_closed, bench);
    while (bench->closed == 0)
        uv_run(&bench->loop, UV_RUN_ONCE);
    if (bench->unanswered != NULL)
        rcpt_http_answer_text(bench->unanswered, 200, "late");
    rcpt_http_close(bench->server, on_closed, bench);
    assert_int_equal(uv_run(&bench->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(bench->closed, 2);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
}

static void send_spans(struct bench *bench, unsigned count)
{
    while (count-- > 0)
        rcpt_span_end_take(bench->tracer,
                           rcpt_span_begin(bench->tracer, RCPT_SPAN_SERVER, "many", NULL), 0);
}

/* The newest warning of this component; "" when there is none. */
static const char *warned(void)
{
    static struct rcpt_log_entry entries[RCPT_LOG_RECENT];
    size_t count = rcpt_log_recent(entries);
    for (size_t index = 0; index < count; index++)
        if (strcmp(entries[index].component, "trace") == 0)
            return entries[index].text;
    return "";
}

static void a_span_comes_with_what_was_said_of_it(void **state)
{
    static const int statuses[] = {200, -1};
    struct bench bench;
    (void)state;
    collector_open(&bench, statuses);
    struct rcpt_span *span = rcpt_span_begin(bench.tracer, RCPT_SPAN_CLIENT, "call", NULL);
    rcpt_span_set_begin(span, uv_hrtime());
    rcpt_span_add_number(span, "answer.status", -42);
    rcpt_span_add_text(span, "peer", "crm");
    rcpt_span_fail(span, "refused");
    rcpt_span_end_take(bench.tracer, span, 1); /* before its begin: it took no time */
    assert_int_equal(bench.requests, 0);       /* one span waits for others */
    while (rcpt_tracer_get_stats(bench.tracer)->exported == 0)
        uv_run(&bench.loop, UV_RUN_ONCE);
    assert_string_equal(bench.authorization, "Bearer t0ken");
    assert_non_null(strstr(bench.body, "\"name\":\"call\",\"kind\":3"));
    assert_non_null(
        strstr(bench.body, "\"key\":\"answer.status\",\"value\":{\"intValue\":\"-42\"}"));
    assert_non_null(strstr(bench.body, "\"key\":\"peer\",\"value\":{\"stringValue\":\"crm\"}"));
    assert_non_null(strstr(bench.body, "\"message\":\"refused\""));
    char began[32], ended[32];
    assert_int_equal(sscanf(strstr(bench.body, "\"startTimeUnixNano\":"),
                            "\"startTimeUnixNano\":\"%31[0-9]\",\"endTimeUnixNano\":\"%31[0-9]\"",
                            began, ended),
                     2);
    assert_string_equal(ended, began);
    assert_int_equal(rcpt_tracer_get_stats(bench.tracer)->queued_bytes, 0);
    collector_close(&bench);
}

static void refused_spans_are_counted_and_complained_of_once_per_outage(void **state)
{
    static const int statuses[] = {404, 404, 200, -1};
    struct bench bench;
    char expected[200];
    (void)state;
    collector_open(&bench, statuses);
    send_spans(&bench, 512); /* as many do not wait for the timer */
    while (rcpt_tracer_get_stats(bench.tracer)->dropped_refused < 512)
        uv_run(&bench.loop, UV_RUN_ONCE);
    snprintf(expected, sizeof(expected),
             "spans are not taken at %s: status 404; HINT: tracing.endpoint needs the whole path, "
             "as in http://127.0.0.1:4318/v1/traces",
             bench.url);
    assert_string_equal(warned(), expected);
    uint64_t lines = rcpt_log_get_counts().lines[RCPT_LOG_WARN];
    send_spans(&bench, 1024); /* the second half while the first is on its way */
    while (rcpt_tracer_get_stats(bench.tracer)->exported < 512)
        uv_run(&bench.loop, UV_RUN_ONCE);
    assert_int_equal(rcpt_tracer_get_stats(bench.tracer)->dropped_refused, 1024);
    assert_int_equal(rcpt_log_get_counts().lines[RCPT_LOG_WARN], lines);
    assert_int_equal(bench.requests, 3);
    collector_close(&bench);
}

static void a_busy_collector_gets_the_same_spans_again(void **state)
{
    static const int statuses[] = {503, 200, -1};
    struct bench bench;
    char expected[200];
    (void)state;
    collector_open(&bench, statuses);
    send_spans(&bench, 512);
    while (rcpt_tracer_get_stats(bench.tracer)->exported == 0)
        uv_run(&bench.loop, UV_RUN_ONCE);
    snprintf(expected, sizeof(expected),
             "spans are not taken at %s: status 503; they are kept while the queue has capacity",
             bench.url);
    assert_string_equal(warned(), expected);
    assert_int_equal(bench.requests, 2);
    assert_int_equal(rcpt_tracer_get_stats(bench.tracer)->exported, 512);
    assert_int_equal(rcpt_tracer_get_stats(bench.tracer)->dropped_refused, 0);
    assert_int_equal(rcpt_tracer_get_stats(bench.tracer)->dropped_lost, 0);
    collector_close(&bench);
}

static void a_collector_that_says_nothing_does_not_hold_up_the_end(void **state)
{
    static const int statuses[] = {0, -1};
    struct bench bench;
    char expected[200];
    (void)state;
    collector_open(&bench, statuses);
    send_spans(&bench, 512);
    while (bench.requests == 0)
        uv_run(&bench.loop, UV_RUN_ONCE);
    uint64_t before_ns = uv_hrtime();
    collector_close(&bench);
    assert_in_range((uv_hrtime() - before_ns) / 1000000, 1000,
                    8000); /* not the 10 s of a request */
    snprintf(expected, sizeof(expected), "spans cannot be sent to %s: no answer in time",
             bench.url);
    assert_string_equal(warned(), expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_is_in_its_parents_trace_and_a_root_in_one_of_its_own),
        cmocka_unit_test(the_share_that_is_drawn_is_the_share_that_was_asked_for),
        cmocka_unit_test(what_waits_is_bounded_and_what_is_dropped_is_counted),
        cmocka_unit_test(a_span_comes_with_what_was_said_of_it),
        cmocka_unit_test(refused_spans_are_counted_and_complained_of_once_per_outage),
        cmocka_unit_test(a_busy_collector_gets_the_same_spans_again),
        cmocka_unit_test(a_collector_that_says_nothing_does_not_hold_up_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
