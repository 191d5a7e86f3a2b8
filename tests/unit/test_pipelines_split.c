/* The push of once_per and the step `split`: what is refused, where, and what the rest becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/config/pipelines.h"

#define HEAD                                                                                       \
    "kafka: {brokers: \"127.0.0.1:9092\", topics: [t]}\n"                                          \
    "postgres: {dsn: \"host=/tmp\"}\n"                                                             \
    "actions: {endpoints: [{name: crm, url: \"https://example.com\"}]}\n"                          \
    "counters: {by: [variant]}\n"

#define STAGE(name, actions) "      - {name: " name ", actions: [" actions "]}\n"
#define NAMED(name, split, stages)                                                                 \
    "  - name: " name "\n"                                                                         \
    "    on: {status: SENT, match: {campaign: c}}\n"                                               \
    "    once_per: {push: spring, by: [subject]}\n"                                                \
    "    stages:\n" STAGE("deal", "{split: {" split "}}") stages
#define STAGES         STAGE("a", "{webhook: crm}") STAGE("b", "{webhook: crm}")
#define PUSH(split)    "pipelines:\n" NAMED("p", split, STAGES)
#define SIZES          "variants: [{stage: a, size: 10}, {stage: b, size: 20}], gather: 10m"
#define SHARES         "variants: [{stage: a, share: 10}, {stage: b, share: 20}]"
#define DECIDE(decide) ", decide: {" decide "}"
#define NOBODY         DECIDE("after: 4h, otherwise: nobody")
#define CLICKS         DECIDE("after: 4h, kpi: clicked_per_delivered, otherwise: best")
#define OPENS          DECIDE("after: 4h, kpi: opened_per_delivered, otherwise: best")

static struct rcpt_config *parse(const char *rest, struct rcpt_error *error)
{
    char text[8192];
    int size = snprintf(text, sizeof(text), HEAD "%s", rest);
    assert_true(size > 0 && (size_t)size < sizeof(text));
    rcpt_error_clear(error);
    return rcpt_config_parse("t.yaml", text, (size_t)size, error);
}

struct mistake {
    const char *rest, *says;
};

static void expect_mistakes(const struct mistake *mistakes, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        struct rcpt_error error;
        if (parse(mistakes[index].rest, &error) != NULL)
            fail_msg("is taken: %s", mistakes[index].rest);
        if (strstr(error.text, mistakes[index].says) == NULL)
            fail_msg("%s\nsaid: %s\nnot:  %s", mistakes[index].rest, error.text,
                     mistakes[index].says);
    }
}

static char *compiled(const char *rest)
{
    struct rcpt_error error;
    struct rcpt_config *config = parse(rest, &error);
    if (config == NULL)
        fail_msg("%s\n%s", rest, error.text);
    struct pipelines *pipelines = pipelines_take(config);
    char *definitions = rcpt_strdup(pipelines->definitions);
    pipelines_free(pipelines);
    rcpt_config_free(config);
    return definitions;
}

static void expect(const char *rest, const char *part)
{
    char *text = compiled(rest);
    if (strstr(text, part) == NULL)
        fail_msg("%s\nhas no %s", text, part);
    free(text);
}

static void a_push_is_a_name_and_the_fields_of_a_person(void **state)
{
    (void)state;
#define ONCE(once) "pipelines:\n  - {name: p, on: SENT, once_per: " once ", webhook: crm}\n"
    static const struct mistake examples[] = {
        {ONCE("{push: x}"), "t.yaml:6:35: pipelines.p: once_per needs push, a name, and by"},
        {ONCE("{by: [subject]}"), "once_per needs push"},
        {ONCE("{push: x, per: [subject]}"), "once_per has no key \"per\""},
        {ONCE("{push: [x], by: [subject]}"), "once_per.push must be a text of 1 to 249 bytes"},
        {ONCE("{push: x, by: []}"), "once_per must be a text or a list of texts"},
    };
    expect_mistakes(examples, sizeof(examples) / sizeof(examples[0]));
    expect(ONCE("{push: x, by: [org_id, subject]}"),
           "\"once_per\":[\"org_id\",\"subject\"],\"push\":\"x\"");
    expect(ONCE("{push: x, by: subject}"), "\"once_per\":[\"subject\"],\"push\":\"x\"");
    char *alone = compiled(ONCE("[subject]"));
    assert_null(strstr(alone, "\"push\"")); /* wordings without one keep their hash */
    free(alone);
}

static void variants_are_checked(void **state)
{
    (void)state;
    static const struct mistake examples[] = {
        {PUSH("gather: 1m" NOBODY), "t.yaml:10:40: pipelines.p: split needs variants"},
        {PUSH("variants: []" NOBODY), "split needs variants, a list"},
        {PUSH("variants: [{stage: a}]" NOBODY), "a variant has a stage, and a size"},
        {PUSH("variants: [{stage: a, size: 1, share: 1}]" NOBODY), "a variant has a stage, and"},
        {PUSH("variants: [{size: 1}]" NOBODY), "a variant has a stage, and a size"},
        {PUSH("variants: [{stage: a, weight: 1}]" NOBODY), "a variant has no key \"weight\""},
        {PUSH("variants: [{stage: a, size: 1}, {stage: b, share: 1}]" NOBODY),
         "either all variants have a size, or all a share"},
        {PUSH("variants: [{stage: a, size: 1}, {stage: a, size: 1}], gather: 1m" NOBODY),
         "two variants have the stage \"a\""},
        {PUSH("variants: [{stage: a, size: 0}], gather: 1m" NOBODY),
         "size: \"0\" is not an integer from 1 to 1000000000"},
        {PUSH("variants: [{stage: a, share: 101}]" NOBODY), "is not an integer from 1 to 100"},
        {PUSH("variants: [{stage: a, share: 60}, {stage: b, share: 50}]" NOBODY),
         "the shares are more than 100 percent together"},
        {PUSH("variants: [{stage: a, size: 600000000}, {stage: b, size: 600000000}]" NOBODY),
         "the sizes are more than 1000000000 together"},
        {PUSH("variants: [{stage: x, size: 1}], gather: 1m" NOBODY), "there is no stage \"x\""},
        {PUSH(SHARES ", gather: 1m" NOBODY), "belongs to variants with sizes"},
        {PUSH("variants: [{stage: a, size: 1}]" NOBODY), "belongs to variants with sizes"},
        {PUSH(SIZES ", then: x" NOBODY), "split has no key \"then\""},
    };
    expect_mistakes(examples, sizeof(examples) / sizeof(examples[0]));
}

static void who_decides_by_what_is_checked(void **state)
{
    (void)state;
    static const struct mistake examples[] = {
        {PUSH(SIZES), "split needs decide, for the remainder"},
        {PUSH("variants: [{stage: a, share: 100}]" NOBODY), "the shares are 100 percent"},
        {PUSH(SIZES DECIDE("otherwise: a")), "split.decide needs after, the horizon"},
        {PUSH(SIZES DECIDE("after: 4h")), "split.decide needs otherwise"},
        {PUSH(SIZES DECIDE("after: soon, otherwise: a")), "split.decide.after: \"soon\" is not"},
        {PUSH(SIZES DECIDE("after: 4h, otherwise: deal")), "\"deal\" is no stage of a variant"},
        {PUSH(SIZES DECIDE("after: 4h, otherwise: best")), "nor best with a kpi"},
        {PUSH(SIZES DECIDE("after: 4h, margin: 0.1, otherwise: a")), "belong to a kpi"},
        {PUSH(SIZES DECIDE("after: 4h, kpi: click_rate, otherwise: a")),
         "\"click_rate\" is none of delivered_per_sent, opened_per_delivered"},
        {PUSH(SIZES DECIDE("after: 4h, kpi: machine_opened_per_delivered, otherwise: a")),
         "is none of"},
        {PUSH(SIZES DECIDE("after: 4h, kpi: clicked_per_delivered, by: channel, otherwise: a")),
         "counters.by does not count by \"channel\""},
        {PUSH(SIZES DECIDE("after: 4h, kpi: clicked_per_delivered, margin: -1, otherwise: a")),
         "split.decide.margin: \"-1\" is not a number from 0 to 100"},
        {"machine: {opens: count}\n" PUSH(SIZES OPENS), "counts machines as persons"},
        {"machine: {clicks: count}\n" PUSH(SIZES OPENS), "counts machines as persons"},
        {"machine: {clicks: count}\n" PUSH(SIZES CLICKS), "counts machines as persons"},
        {"machine: {rules: [{kind: click, account: x, policy: count}]}\n" PUSH(SIZES CLICKS),
         "counts machines as persons"},
    };
    expect_mistakes(examples, sizeof(examples) / sizeof(examples[0]));
    expect("machine: {opens: count}\n" PUSH(SIZES CLICKS), "\"op\":\"split\"");
    expect("machine: {opens: ignore, clicks: ignore}\n" PUSH(SIZES OPENS), "\"op\":\"split\"");
}

static void a_subject_comes_to_its_split_once_and_with_a_push(void **state)
{
    (void)state;
    static const struct mistake examples[] = {
        {"pipelines:\n  - name: p\n    once_per: [subject]\n    stages:\n" STAGE(
             "deal", "{split: {" SIZES NOBODY "}}") STAGES,
         "a split needs a push: once_per: {push: NAME, by: [subject]}"},
        {"pipelines:\n" NAMED("p", SIZES NOBODY "}}, {webhook: {endpoint: crm", STAGES),
         "an action behind the split would never run"},
        {"pipelines:\n" NAMED("p", SIZES NOBODY,
                              STAGE("a", "{webhook: crm}") STAGE("b", "{wait: 1h}, {move: deal}")),
         "stage \"b\" comes back to its split: a subject is dealt once"},
        {"pipelines:\n" NAMED("p", SIZES NOBODY, STAGES STAGE("x", "{split: {" SIZES NOBODY "}}")),
         "a pipeline has one split"},
        {"pipelines:\n" NAMED("p", SIZES NOBODY, STAGES) NAMED("q", SHARES NOBODY, STAGES),
         "pipelines.q: pipeline p splits push \"spring\" in another way"},
    };
    expect_mistakes(examples, sizeof(examples) / sizeof(examples[0]));
    /* The same split at other steps is the same. */
    expect("pipelines:\n" NAMED("p", SIZES NOBODY, STAGES)
               NAMED("q", SIZES NOBODY, STAGE("b", "{webhook: crm}") STAGE("a", "{webhook: crm}")),
           "\"exits\":{\"a\":[2,0],\"b\":[1,0]}");
}

static void a_split_has_exits_and_a_rule(void **state)
{
    (void)state;
    expect("pipelines:\n" NAMED("p", SIZES CLICKS,
                                STAGE("a", "{wait: 1h}, {webhook: crm}")
                                    STAGE("b", "{webhook: crm}")),
           "\"op\":\"split\",\"target\":\"spring\"");
    expect("pipelines:\n" NAMED("p", SIZES CLICKS,
                                STAGE("a", "{wait: 1h}, {webhook: crm}")
                                    STAGE("b", "{webhook: crm}")),
           "\"exits\":{\"a\":[2,3600000],\"b\":[3,0]},\"rule\":{\"variants\":[{\"stage\":\"a\","
           "\"size\":10},{\"stage\":\"b\",\"size\":20}],\"gather_ms\":600000,\"after_ms\":14400000,"
           "\"kpi\":\"clicked_per_delivered\",\"campaign\":\"c\",\"by\":\"variant\",\"margin\":0,"
           "\"otherwise\":\"best\"}");
    expect(PUSH(SHARES NOBODY),
           "\"rule\":{\"variants\":[{\"stage\":\"a\",\"share\":10},{\"stage\":\"b\",\"share\":20}],"
           "\"after_ms\":14400000,\"kpi\":null");
    expect(
        PUSH("variants: [{stage: a, share: 50}, {stage: b, share: 50}]"),
        "\"rule\":{\"variants\":[{\"stage\":\"a\",\"share\":50},{\"stage\":\"b\",\"share\":50}]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_is_a_name_and_the_fields_of_a_person),
        cmocka_unit_test(variants_are_checked),
        cmocka_unit_test(who_decides_by_what_is_checked),
        cmocka_unit_test(a_subject_comes_to_its_split_once_and_with_a_push),
        cmocka_unit_test(a_split_has_exits_and_a_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
