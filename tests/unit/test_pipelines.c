/* The grammar of `pipelines`: what is refused, where, and what the rest becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/app/pipelines.h"

#define HEAD                                                                                       \
    "kafka: {brokers: \"127.0.0.1:9092\", topics: [t]}\n"                                          \
    "postgres: {dsn: \"host=/tmp\"}\n"                                                             \
    "actions: {endpoints: [{name: crm, url: \"https://example.com\"}]}\n"                          \
    "pipelines:\n"

static struct rcpt_config *parse(const char *pipelines, struct rcpt_error *error)
{
    char text[4096];
    int size = snprintf(text, sizeof(text), HEAD "%s", pipelines);
    assert_true(size > 0 && (size_t)size < sizeof(text));
    rcpt_error_clear(error);
    return rcpt_config_parse("t.yaml", text, (size_t)size, error);
}

static void mistakes_are_refused_where_they_stand(void **state)
{
    (void)state;
    static const struct {
        const char *pipelines, *says;
    } examples[] = {
        {"  - {on: SENT, webhook: crm}", "t.yaml:5:5: pipelines: every pipeline needs a name"},
        {"  - {name: p, on: SEND, webhook: crm}",
         "t.yaml:5:19: pipelines.p: there is no status or"},
        {"  - {name: p, on: {flag: SENT}, webhook: crm}", "t.yaml:5:26: pipelines.p: \"SENT\" is"},
        {"  - {name: p, on: SENT}", "needs either stages, or one of webhook and produce"},
        {"  - {name: p, on: SENT, webhook: crn}", "t.yaml:5:34: pipelines.p: there is no endpoint"},
        {"  - {name: p, on: SENT, produce: \"a b\"}", "is not the name of a topic"},
        {"  - {name: p, on: SENT, webhook: crm, once: [x]}", "a pipeline has no key \"once\""},
        {"  - {name: p, on: SENT, webhook: crm, subject: \"a-b\"}", "is not the name of a field"},
        {"  - {name: p, on: SENT, webhook: crm}\n  - {name: p, on: SENT, webhook: crm}",
         "t.yaml:6:12: pipelines: two pipelines are named"},
        {"  - name: p\n    stages: [{name: s, actions: [{move: t}]}]",
         "t.yaml:6:41: pipelines.p: there is no stage \"t\""},
        {"  - name: p\n    stages: [{name: s, actions: [{move: s}]}]", "moves in a circle"},
        {"  - name: p\n    stages: [{name: s, actions: [{wait: 1s}, {move: s}]}]",
         "waits and moves in a circle in which nothing happens"},
        {"  - name: p\n    stages: [{name: s, actions: [{wait: 1s, webhook: crm}]}]",
         "an action is one of"},
        {"  - name: p\n    stages: [{name: s, actions: []}]", "has no actions"},
        {"  - name: p\n    stages: [{name: s, actions: [{await: {status: SENT}}]}]",
         "await needs within"},
        {"  - name: p\n    stages: [{name: s, actions: [{await: {within: 1h}}]}]",
         "await needs either status or flag"},
        {"  - name: p\n    stages: [{name: s, actions: [{wait: 5}]}]", "is not a duration"},
        {"  - name: p\n    stages: [{name: s, actions: [{webhook: crm, unless: NOPE}]}]",
         "there is no status or flag \"NOPE\""},
        {"  - {name: p, on: {topic: \"a b\"}, webhook: crm}", "is not the name of a topic"},
        {"  - {name: p, on: {topic: t, status: SENT}, webhook: crm}",
         "on needs one of status, flag and topic"},
        {"  - just a text", "a pipeline must be a mapping"},
        {"  text", "pipelines: expected a list of mappings"},
    };
    for (size_t index = 0; index < sizeof(examples) / sizeof(examples[0]); index++) {
        struct rcpt_error error;
        assert_null(parse(examples[index].pipelines, &error));
        if (strstr(error.text, examples[index].says) == NULL)
            fail_msg("%s\nsaid: %s\nnot:  %s", examples[index].pipelines, error.text,
                     examples[index].says);
    }
}

static char *compiled(const char *text)
{
    struct rcpt_error error;
    struct rcpt_config *config = parse(text, &error);
    if (config == NULL)
        fail_msg("%s", error.text);
    struct pipelines *pipelines = pipelines_of(config);
    char *definitions = rcpt_strdup(pipelines->definitions);
    pipelines_free(pipelines);
    rcpt_config_free(config);
    return definitions;
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("%s\nhas no %s", text, part);
}

static void waits_and_moves_become_delays_and_targets(void **state)
{
    (void)state;
    char *text = compiled("  - name: p\n"
                          "    on: SENT\n"
                          "    stages:\n"
                          "      - {name: a, actions: [{wait: 1h}, {wait: 30m}, {move: b}]}\n"
                          "      - name: b\n"
                          "        actions:\n"
                          "          - webhook: crm\n"
                          "          - {wait: 5s}\n"
                          "          - {await: {status: OPENED, within: 2s, else: b}}\n"
                          "          - {wait: 7s, if: CLICKED}\n");
    assert_has(text, "\"on\":300");
    assert_has(text, "\"first_step\":3,\"first_delay_ms\":5400000");
    assert_has(text, "\"step\":3,\"stage\":\"b\",\"op\":\"webhook\",\"target\":\"crm\"");
    assert_has(text, "\"next_step\":5,\"next_delay_ms\":5000,\"else_step\":5");
    assert_has(text, "\"op\":\"await\"");
    assert_has(text, "\"awaits\":700,\"within_ms\":2000,\"next_step\":6,\"next_delay_ms\":0,"
                     "\"else_step\":3,\"else_delay_ms\":0");
    /* A wait that has a condition is decided when it is reached. */
    assert_has(text, "\"step\":6,\"stage\":\"b\",\"op\":\"wait\"");
    assert_has(text, "\"next_step\":7,\"next_delay_ms\":7000,\"else_step\":7,\"else_delay_ms\":0");
    assert_has(text, "\"step\":7,\"stage\":\"\",\"op\":\"end\"");
    free(text);
}

static void the_same_wording_has_the_same_hash(void **state)
{
    (void)state;
    char *one = compiled("  - {name: p, on: SENT, webhook: crm}");
    char *same = compiled("  - name: p\n    webhook: {endpoint: crm}\n    on: {status: SENT}");
    char *other = compiled("  - {name: p, on: SENT, webhook: crm, unless: OPENED}");
    assert_string_equal(one, same);
    assert_memory_not_equal(one, other, 40);
    free(one);
    free(same);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_refused_where_they_stand),
        cmocka_unit_test(waits_and_moves_become_delays_and_targets),
        cmocka_unit_test(the_same_wording_has_the_same_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
