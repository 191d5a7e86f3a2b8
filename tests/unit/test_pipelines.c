/* The grammar of `pipelines`: what is refused, where, and what the rest becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/config/pipelines.h"
#include "repeated.h"

#define HEAD                                                                                       \
    "kafka: {brokers: \"127.0.0.1:9092\", topics: [t]}\n"                                          \
    "postgres: {dsn: \"host=/tmp\"}\n"                                                             \
    "actions: {endpoints: [{name: crm, url: \"https://example.com\"}]}\n"                          \
    "pipelines:\n"

static struct rcpt_config *parse(const char *pipelines, struct rcpt_error *error)
{
    char text[16384];
    int size = snprintf(text, sizeof(text), HEAD "%s", pipelines);
    assert_true(size > 0 && (size_t)size < sizeof(text));
    rcpt_error_clear(error);
    return rcpt_config_parse("t.yaml", text, (size_t)size, error);
}

struct mistake {
    const char *pipelines, *says;
};

static void expect_mistakes(const struct mistake *mistakes, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        struct rcpt_error error;
        if (parse(mistakes[index].pipelines, &error) != NULL)
            fail_msg("is taken: %s", mistakes[index].pipelines);
        if (strstr(error.text, mistakes[index].says) == NULL)
            fail_msg("%s\nsaid: %s\nnot:  %s", mistakes[index].pipelines, error.text,
                     mistakes[index].says);
    }
}

static void mistakes_are_refused_where_they_stand(void **state)
{
    (void)state;
    static const struct mistake examples[] = {
        {"  - {on: SENT, webhook: crm}", "t.yaml:5:5: pipelines: every pipeline needs a name"},
        {"  - {name: p, on: SEND, webhook: crm}",
         "t.yaml:5:19: pipelines.p: there is no status or"},
        {"  - {name: p, on: {flag: SENT}, webhook: crm}", "t.yaml:5:26: pipelines.p: \"SENT\" is"},
        {"  - {name: p, on: SENT}", "needs either stages, or one of webhook and produce"},
        {"  - {name: p, on: SENT, webhook: crn}", "t.yaml:5:34: pipelines.p: there is no endpoint"},
        {"  - {name: p, on: SENT, produce: \"a b\"}", "is not the name of a topic"},
        {"  - {name: p, on: SENT, webhook: crm, once: [x]}", "a pipeline has no key \"once\""},
        {"  - {name: p, on: SENT, webhook: crm, subject: \"a\\tb\"}", "is not the name of a field"},
        {"  - {name: p, on: SENT, webhook: crm}\n  - {name: p, on: SENT, webhook: crm}",
         "t.yaml:6:12: pipelines: two pipelines are named"},
        {"  - name: p\n    stages: [{name: s, actions: [{move: t}]}]",
         "t.yaml:6:41: pipelines.p: there is no stage \"t\""},
        {"  - name: p\n    stages: [{name: s, actions: [{move: s}]}]", "moves in a cycle"},
        {"  - name: p\n    stages: [{name: s, actions: [{wait: 1s}, {move: s}]}]",
         "waits and moves in a cycle in which nothing happens"},
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
        {"  - {name: \"\", on: SENT, webhook: crm}", "the name of a pipeline must be a text"},
        {"  - {name: a b, on: SENT, webhook: crm}",
         "t.yaml:5:12: pipelines: \"a b\": a name has letters, digits, dots, dashes and"},
        {"  - {name: p, name: q, on: SENT, webhook: crm}",
         "t.yaml:5:15: pipelines: \"name\" is given twice"},
        {"  - {name: p, [on]: SENT, webhook: crm}",
         "t.yaml:5:15: pipelines: a key must be plain text"},
        {"  - {name: p, on: SENT, org: \"a\\nb\", webhook: crm}",
         "t.yaml:5:30: pipelines.p: org: \"a\nb\" is not the name of a field"},
        {"  - {name: p, on: SENT, subject: [a], webhook: crm}",
         "t.yaml:5:34: pipelines.p: subject must be a text of 1 to 249 bytes"},
        {"  - {name: p, on: SENT, once_per: [], webhook: crm}",
         "t.yaml:5:35: pipelines.p: once_per must be a text or a list of texts"},
        {"  - {name: p, on: SENT, once_per: [org_id, \"a\\tb\"], webhook: crm}",
         "t.yaml:5:44: pipelines.p: once_per: \"a\tb\" is not the name of a field"},
    };
    expect_mistakes(examples, sizeof(examples) / sizeof(examples[0]));
}

static void what_begins_a_run_is_checked(void **state)
{
    (void)state;
    static const struct mistake examples[] = {
        {"  - {name: p, on: \"\", webhook: crm}",
         "t.yaml:5:19: pipelines.p: a status or flag must be a text of 1 to 249 bytes"},
        {"  - {name: p, on: [SENT], webhook: crm}",
         "t.yaml:5:19: pipelines.p: on must be a mapping with status flag topic match"},
        {"  - {name: p, on: {status: SEND}, webhook: crm}",
         "t.yaml:5:28: pipelines.p: there is no status or flag \"SEND\" in the ladder"},
        {"  - {name: p, on: {status: COMPLAINED}, webhook: crm}",
         "t.yaml:5:28: pipelines.p: \"COMPLAINED\" is a flag"},
        {"  - {name: p, on: {status: SENT, flag: COMPLAINED}, webhook: crm}",
         "t.yaml:5:19: pipelines.p: on needs either status or flag"},
        {"  - {name: p, on: {status: SENT, match: acme}, webhook: crm}",
         "t.yaml:5:41: pipelines.p: on.match must be a mapping with org campaign"},
        {"  - {name: p, on: {status: SENT, match: {orgs: acme}}, webhook: crm}",
         "t.yaml:5:42: pipelines.p: on.match has no key \"orgs\": it may have org campaign"},
        {"  - {name: p, on: {status: SENT, match: {org: {a: b}}}, webhook: crm}",
         "t.yaml:5:47: pipelines.p: on.match.org must be a text or a list of texts"},
        {"  - {name: p, on: {status: SENT, match: {campaign: [a, \"\"]}}, webhook: crm}",
         "t.yaml:5:56: pipelines.p: on.match.campaign must be a text of 1 to 249 bytes"},
        {"  - {name: p, on: {topic: [u]}, webhook: crm}",
         "t.yaml:5:27: pipelines.p: the name of a topic must be a text of 1 to 249 bytes"},
        {"  - {name: p, on: {topic: t}, webhook: crm}",
         "t.yaml:5:27: pipelines.p: \"t\" is a topic of receipts"},
    };
    expect_mistakes(examples, sizeof(examples) / sizeof(examples[0]));
}

static void an_action_is_checked_with_its_fields(void **state)
{
    (void)state;
#define ACTION(text) "  - name: p\n    stages: [{name: s, actions: [" text "]}]"
    static const struct mistake examples[] = {
        {"  - {name: p, on: SENT, webhook: [crm]}",
         "t.yaml:5:34: pipelines.p: webhook must be a mapping with endpoint"},
        {"  - {name: p, on: SENT, webhook: {endpoint: }}",
         "t.yaml:5:34: pipelines.p: webhook needs an endpoint"},
        {"  - {name: p, on: SENT, webhook: {endpoint: [crm]}}",
         "t.yaml:5:45: pipelines.p: webhook.endpoint must be a text of 1 to 249 bytes"},
        {"  - {name: p, on: SENT, produce: {to: u}}",
         "t.yaml:5:35: pipelines.p: produce has no key \"to\": it may have topic key"},
        {"  - {name: p, on: SENT, produce: {key: subject}}",
         "t.yaml:5:34: pipelines.p: produce needs a topic"},
        {"  - {name: p, on: SENT, produce: {topic: u, key: [a]}}",
         "t.yaml:5:50: pipelines.p: produce.key must be a text of 1 to 249 bytes"},
        {"  - {name: p, on: SENT, produce: {topic: u, key: channel}}",
         "t.yaml:5:50: pipelines.p: produce.key is one of subject, org_id, campaign_id, "
         "message_id, not \"channel\""},
        {"  - {name: p, on: SENT, webhook: crm, produce: u}",
         "needs either stages, or one of webhook and produce"},
        {"  - {name: p, on: SENT, webhook: crm, wait: soon}",
         "t.yaml:5:45: pipelines.p: wait: \"soon\" is not a duration up to 366d, such as 2h"},
        {"  - {name: p, on: SENT, webhook: crm, wait: 367d}",
         "t.yaml:5:45: pipelines.p: wait: \"367d\" is not a duration up to 366d, such as 2h"},
        {"  - {name: p, on: SENT, webhook: crm, wait: [2h]}",
         "t.yaml:5:45: pipelines.p: wait must be a text of 1 to 249 bytes"},
        {"  - {name: p, on: SENT, webhook: crm, if: {flag: COMPLAINED}}",
         "t.yaml:5:43: pipelines.p: expected the name of a status or flag, or a list of names"},
        {"  - {name: p, on: SENT, webhook: crm, if: [SENT, NOPE]}",
         "pipelines.p: there is no status or flag \"NOPE\" in the ladder"},
        {ACTION("webhook"), "t.yaml:6:34: pipelines.p: an action must be a mapping with wait await "
                            "webhook produce move if unless"},
        {ACTION("{if: SENT}"), "t.yaml:6:34: pipelines.p: an action is one of wait, await, webhook,"
                               " produce, move"},
        {ACTION("{wait: 1h, of: 2}"), "t.yaml:6:45: pipelines.p: an action has no key \"of\""},
        {ACTION("{await: SENT}"), "t.yaml:6:42: pipelines.p: await must be a mapping with status "
                                  "flag within else"},
        {ACTION("{await: {flag: SENT, within: 1h}}"), "t.yaml:6:49: pipelines.p: \"SENT\" is a "
                                                      "status"},
        {ACTION("{await: {status: SENT, within: 1h, else: t}}"),
         "t.yaml:6:75: pipelines.p: there is no stage \"t\""},
        {ACTION("{move: \"\"}"), "t.yaml:6:41: pipelines.p: the name of a stage must be a text"},
    };
    expect_mistakes(examples, sizeof(examples) / sizeof(examples[0]));
}

static void nonsense_about_hours_is_refused_where_it_stands(void **state)
{
    (void)state;
#define BETWEEN(text) "  - {name: p, webhook: crm, between: " text "}"
    static const struct mistake examples[] = {
        {BETWEEN("09:00"), "t.yaml:5:38: pipelines.p: between: \"09:00\" are no hours, such as"},
        {BETWEEN("9am-8pm"), "are no hours"},
        {BETWEEN("09:00-20:60"), "are no hours"},
        {BETWEEN("09:00-24:01"), "are no hours"},
        {BETWEEN("09:00:00:00-20:00"), "are no hours"},
        {BETWEEN("09:00-20:00 x"), "are no hours"},
        {BETWEEN("09:00-"), "are no hours"},
        {BETWEEN("-"), "are no hours"},
        {BETWEEN("24:00-06:00"), "the day ends at 24:00, so begin at 00:00"},
        {BETWEEN("09:00-09:00"), "\"09:00-09:00\" is shorter than 10 s; all day is 00:00-24:00"},
        {BETWEEN("09:00:00-09:00:09"), "is shorter than 10 s"},
        {BETWEEN("00:00-00:00"), "is shorter than 10 s"},
        {BETWEEN("23:59:55-00:00"), "is shorter than 10 s"},
        {BETWEEN("[09:00-20:00]"), "between must be a mapping with hours days smooth hour_field"},
        {BETWEEN("{smooth: 1h}"), "t.yaml:5:38: pipelines.p: between needs hours, days, or both"},
        {BETWEEN("{hours: 09:00-20:00, day: mon}"), "t.yaml:5:59: pipelines.p: between has no key"},
        {BETWEEN("{days: [mon, monday]}"),
         "t.yaml:5:51: pipelines.p: between.days: there is no day \"monday\""},
        {BETWEEN("{days: []}"), "between.days must be a text or a list of texts"},
        {BETWEEN("{hours: 09:00-20:00, smooth: 11h1s}"),
         "t.yaml:5:67: pipelines.p: between.smooth: \"11h1s\" is"},
        {BETWEEN("{hours: 09:00-20:00, smooth: 12h}"),
         "t.yaml:5:67: pipelines.p: between.smooth: \"12h\" is longer than the window"},
        {BETWEEN("{hours: 22:00-06:00, smooth: 481m}"), "\"481m\" is longer than the window"},
        {BETWEEN("{hours: 09:00-20:00, hour_field: \"a\\tb\"}"), "is not the name of a field"},
        {"  - name: p\n    stages: [{name: s, actions: [{wait: 1h, between: 09:00-20:00}]}]",
         "t.yaml:6:54: pipelines.p: between goes with webhook and produce, not with wait"},
    };
    expect_mistakes(examples, sizeof(examples) / sizeof(examples[0]));
}

static void a_stage_is_checked_as_a_whole(void **state)
{
    (void)state;
    static const struct mistake examples[] = {
        {"  - {name: p, stages: [s]}",
         "t.yaml:5:24: pipelines.p: a stage must be a mapping with name actions"},
        {"  - {name: p, stages: [{name: s}]}",
         "t.yaml:5:24: pipelines.p: a stage has a name and a list of actions"},
        {"  - {name: p, stages: [{name: s, actions: {wait: 1h}}]}",
         "t.yaml:5:24: pipelines.p: a stage has a name and a list of actions"},
        {"  - {name: p, stages: [{name: [s], actions: [{wait: 1h}]}]}",
         "t.yaml:5:31: pipelines.p: the name of a stage must be a text of 1 to 249 bytes"},
        {"  - {name: p, stages: [{name: s, actions: [{wait: 1h}]}, {name: s, actions: []}]}",
         "t.yaml:5:65: pipelines.p: two stages are named \"s\""},
        {"  - {name: p, stages: []}", "t.yaml:5:23: pipelines.p: stages must be a list of stages"},
        {"  - {name: p, stages: s}", "t.yaml:5:23: pipelines.p: stages must be a list of stages"},
        {"  - {name: p, stages: [{name: s, actions: [{wait: 1h}]}], unless: SENT}",
         "t.yaml:5:5: pipelines.p: has stages, so unless belongs into one of them"},
    };
    expect_mistakes(examples, sizeof(examples) / sizeof(examples[0]));
}

#define STAGES(text)         "  - name: p\n    on: SENT\n    stages:\n" text
#define STAGE(name, actions) "      - {name: " name ", actions: [" actions "]}\n"

static void a_cycle_in_which_no_time_passes_is_refused_with_what_it_needs(void **state)
{
    (void)state;
    static const struct mistake examples[] = {
        {STAGES(STAGE("s", "{move: s}")),
         "t.yaml:8:36: pipelines.p: stage \"s\" moves in a cycle without a wait"},
        {STAGES(STAGE("s", "{wait: 1h, if: CLICKED}, {move: s}")),
         "t.yaml:8:61: pipelines.p: stage \"s\" moves in a cycle without a wait as long as "
         "CLICKED "
         "is not reached"},
        {STAGES(STAGE("s", "{wait: 1h, unless: COMPLAINED}, {move: s}")),
         "moves in a cycle without a wait once COMPLAINED is reached"},
        {STAGES(STAGE("s", "{await: {status: OPENED, within: 1d}}, {move: s}")),
         "moves in a cycle without a wait once OPENED is reached"},
        {STAGES(STAGE("s", "{await: {status: OPENED, within: 1d}, unless: REPLIED}, {move: s}")),
         "moves in a cycle without a wait once REPLIED is reached"},
        {STAGES(STAGE("s", "{await: {status: OPENED, within: 1d}, if: REPLIED}, {move: s}")),
         "moves in a cycle without a wait as long as REPLIED is not reached"},
        {STAGES(STAGE("s", "{await: {status: OPENED, within: 0s, else: s}}")),
         "t.yaml:8:72: pipelines.p: stage \"s\" moves in a cycle without a wait as long as OPENED "
         "is not reached"},
        {STAGES(STAGE("s", "{wait: 0s}, {move: s}")), "moves in a cycle without a wait"},
        /* To call somebody is no pause. */
        {STAGES(STAGE("s", "{webhook: crm}, {move: s}")), "moves in a cycle without a wait"},
        {STAGES(STAGE("s", "{produce: u}, {move: s}")), "moves in a cycle without a wait"},
        {STAGES(STAGE("s", "{webhook: crm, if: CLICKED}, {move: s}")),
         "moves in a cycle without a wait"},
        {STAGES(STAGE("s", "{webhook: crm}, {move: s, unless: [CLICKED, REPLIED]}")),
         "moves in a cycle without a wait as long as CLICKED and REPLIED are not reached"},
        {STAGES(STAGE("s", "{move: t, if: [OPENED, REPLIED]}, {webhook: crm, if: COMPLAINED}")
                    STAGE("t", "{wait: 1d, unless: REPLIED}, {move: s}")),
         "t.yaml:9:65: pipelines.p: stage \"t\" moves in a cycle without a wait once OPENED and "
         "REPLIED are reached"},
        {STAGES(STAGE("s", "{wait: 1d, unless: DELIVERED}, {move: s, unless: OPENED}")),
         "moves in a cycle without a wait once DELIVERED is reached, as long as OPENED is not "
         "reached"},
        /* The way into it needs more than the cycle itself. */
        {STAGES(STAGE("s", "{move: t, if: CLICKED}") STAGE("t", "{webhook: crm}, {move: t}")),
         "t.yaml:9:52: pipelines.p: stage \"t\" moves in a cycle without a wait"},
        /* A conditional await that is passed over does not go where its else says. */
        {STAGES(STAGE("s", "{await: {status: OPENED, within: 1d, else: t}, if: REPLIED}, {move: s}")
                    STAGE("t", "{webhook: crm}")),
         "moves in a cycle without a wait as long as REPLIED is not reached"},
        /* None of it holds without a message. */
        {STAGES(STAGE("s", "{wait: 1d, if: TARGETED}, {move: s}")),
         "moves in a cycle without a wait as long as TARGETED is not reached"},
    };
    expect_mistakes(examples, sizeof(examples) / sizeof(examples[0]));
}

static void a_cycle_in_which_time_passes_whatever_is_reached_is_taken(void **state)
{
    (void)state;
    static const char *const examples[] = {
        STAGE("s", "{webhook: crm}, {wait: 1d}, {move: s}"),
        STAGE("s", "{wait: 1d, unless: CLICKED}, {webhook: crm, unless: CLICKED}, "
                   "{move: s, unless: CLICKED}"),
        STAGE("s", "{webhook: crm}, {await: {status: OPENED, within: 1d, else: s}}, {move: done}")
            STAGE("done", "{webhook: crm}"),
        /* One of the two holds. */
        STAGE("s", "{wait: 1h, if: CLICKED}, {wait: 1d, unless: CLICKED}, {move: s}"),
        STAGE("s", "{wait: 1h, if: REPLIED}, {wait: 1d, unless: REPLIED}, {move: s}"),
        /* CLICKED is OPENED, and COMPLAINED brings DELIVERED along, or what is above it. */
        STAGE("s", "{wait: 1d, unless: CLICKED}, {move: s, unless: OPENED}"),
        STAGE("s", "{wait: 1d, unless: COMPLAINED}, {move: s, unless: SENT}"),
        /* No message is OPENED and BLOCKED. */
        STAGE("s", "{wait: 1d, unless: [OPENED, BLOCKED]}, {move: t, if: OPENED}")
            STAGE("t", "{move: s, if: BLOCKED}"),
        /* It goes another way back. */
        STAGE("s", "{move: t, if: REPLIED}, {wait: 1d}, {move: s}")
            STAGE("t", "{move: s, unless: REPLIED}"),
        /* An await in which nothing is reached, and a move that needs it. */
        STAGE("s",
              "{await: {flag: REPLIED, within: 1d}}, {webhook: crm}, {move: s, unless: REPLIED}"),
        /* Stages that one has come to by several ways turn by none of them. */
        STAGE("s", "{move: a, if: REPLIED}, {move: b}") STAGE("a", "{webhook: crm}, {move: c}")
            STAGE("b", "{move: c}") STAGE("c", "{wait: 1d}, {move: s}"),
    };
    for (size_t index = 0; index < sizeof(examples) / sizeof(examples[0]); index++) {
        char text[1024];
        struct rcpt_error error;
        snprintf(text, sizeof(text), STAGES("%s"), examples[index]);
        struct rcpt_config *config = parse(text, &error);
        if (config == NULL)
            fail_msg("%s\nsaid: %s", text, error.text);
        rcpt_config_free(config);
    }
}

/* Two rails on which a run changes sides at each flag that it bears, twice over all of them: it
 * ends on the side where it began, and time passes there. That no flags lead to the other end is
 * known when all of them have been tried. */
static char *rails(unsigned flags)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, HEAD "  - name: p\n    stages:\n");
    for (unsigned at = 0; at < 2 * flags; at++)
        for (unsigned side = 0; side < 2; side++)
            fprintf(out, STAGE("x%u_%u", "{move: x%u_%u, if: F%u}, {move: x%u_%u}"), at, side,
                    at + 1, 1 - side, at % flags, at + 1, side);
    fprintf(out, STAGE("x%u_0", "{wait: 1d}, {move: x0_0}"), 2 * flags);
    fprintf(out, STAGE("x%u_1", "{webhook: crm}, {move: x0_0}"), 2 * flags);
    fprintf(out, "ladder:\n  statuses: [{name: A, code: 0}]\n  flags:\n");
    for (unsigned flag = 0; flag < flags; flag++)
        fprintf(out, "    - {name: F%u}\n", flag);
    fclose(out);
    return text;
}

static void a_cycle_that_would_take_for_ever_to_find_is_refused_as_unclear(void **state)
{
    (void)state;
    struct rcpt_error error;
    char *few = rails(8), *many = rails(20);
    struct rcpt_config *config = rcpt_config_parse("t.yaml", few, strlen(few), &error);
    if (config == NULL)
        fail_msg("%s", error.text);
    rcpt_config_free(config);
    assert_null(rcpt_config_parse("t.yaml", many, strlen(many), &error));
    assert_string_equal(error.text, "t.yaml:5:5: pipelines.p: has too many conditions on flags to "
                                    "see whether it moves in a cycle without a wait");
    free(few);
    free(many);
}

static void more_than_there_is_room_for_is_refused_with_its_limit(void **state)
{
    (void)state;
    static const struct {
        const char *before, *each, *behind;
        unsigned most;
        const char *says;
    } limits[] = {
        {"  - name: p\n    on: SENT\n    webhook: crm\n    if: [", "SENT,", "]\n", 32,
         "t.yaml:8:9: pipelines.p: more than 32 names"},
        {"  - name: p\n    stages: [{name: s, actions: [", "{wait: 1s},", "]}]\n", 200,
         "pipelines.p: more than 200 actions"},
        {"  - name: p\n    stages: [{name: s, actions: [",
         "{await: {flag: REPLIED, within: 1s}, if: SENT},", "]}]\n", 200,
         "pipelines.p: more than 200 actions"},
        {"  - name: p\n    stages: [", "{name: s#, actions: [{wait: 1s}]},", "]\n", 100,
         "pipelines.p: more than 100 stages"},
        {"", "  - {name: p#, on: SENT, produce: t#}\n", "", 8,
         "t.yaml:13:35: pipelines.p8: more than 8 topics are produced to"},
        {"", "  - {name: p#, on: {topic: u#}, webhook: crm}\n", "", 8,
         "t.yaml:13:28: pipelines.p8: more than 8 topics are read"},
        {"", "  - {name: p#, webhook: crm}\n", "", 200, "must have 0 to 200 entries, has 201"},
    };
    for (size_t index = 0; index < sizeof(limits) / sizeof(limits[0]); index++) {
        struct rcpt_error error;
        char *fits = repeated(limits[index].before, limits[index].each, limits[index].most,
                              limits[index].behind);
        char *more = repeated(limits[index].before, limits[index].each, limits[index].most + 1,
                              limits[index].behind);
        struct rcpt_config *config = parse(fits, &error);
        if (config == NULL)
            fail_msg("%s", error.text);
        rcpt_config_free(config);
        const struct mistake mistake = {more, limits[index].says};
        expect_mistakes(&mistake, 1);
        free(fits);
        free(more);
    }
}

static char *compiled(const char *text)
{
    struct rcpt_error error;
    struct rcpt_config *config = parse(text, &error);
    if (config == NULL)
        fail_msg("%s", error.text);
    struct pipelines *pipelines = pipelines_take(config);
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
    /* A wait before an await passes before that begins, or what is awaited would cut it short. */
    assert_has(text, "\"next_step\":4,\"next_delay_ms\":5000,\"else_step\":4");
    assert_has(text, "\"step\":4,\"stage\":\"b\",\"op\":\"wait\"");
    assert_has(text, "\"next_step\":5,\"next_delay_ms\":0,\"else_step\":5");
    assert_has(text, "\"op\":\"await\"");
    assert_has(text, "\"awaits\":700,\"within_ms\":2000,\"next_step\":6,\"next_delay_ms\":0,"
                     "\"else_step\":3,\"else_delay_ms\":0");
    /* A wait that has a condition is decided when it is reached. */
    assert_has(text, "\"step\":6,\"stage\":\"b\",\"op\":\"wait\"");
    assert_has(text, "\"next_step\":7,\"next_delay_ms\":7000,\"else_step\":7,\"else_delay_ms\":0");
    assert_has(text, "\"step\":7,\"stage\":\"\",\"op\":\"end\"");
    free(text);
}

static void calls_have_their_own_window_or_that_of_the_pipeline(void **state)
{
    (void)state;
    char *text = compiled(
        "  - name: p\n"
        "    between: {hours: 09:00-20:00, days: [fri, mon], smooth: 30m, hour_field: best}\n"
        "    stages:\n"
        "      - name: s\n"
        "        actions:\n"
        "          - webhook: crm\n"
        "          - {produce: u, between: 22:00-06:30:15}\n"
        "          - {webhook: crm, between: {days: sun}}\n"
        "          - {await: {status: OPENED, within: 1h}}\n");
    char *brief = compiled("  - {name: q, between: 20:00-00:00, wait: 1h, webhook: crm}\n"
                           "  - {name: r, webhook: crm}\n");
    assert_has(text, "\"else_delay_ms\":0,\"from_second\":32400,\"till_second\":72000,"
                     "\"smooth_ms\":1800000,\"hour_field\":\"best\",\"days\":[1,5]},{\"step\":1");
    assert_has(text, "\"from_second\":79200,\"till_second\":23415,\"smooth_ms\":0,"
                     "\"hour_field\":null},{\"step\":2");
    assert_has(text, "\"from_second\":0,\"till_second\":86400,\"smooth_ms\":0,"
                     "\"hour_field\":null,\"days\":[7]},{\"step\":3");
    assert_has(text, "\"else_step\":4,\"else_delay_ms\":0},{\"step\":4");
    assert_has(brief, "\"from_second\":72000,\"till_second\":86400");
    assert_null(strstr(strstr(brief, "\"name\":\"r\""), "from_second"));
    free(text);
    free(brief);
}

static void it_is_stored_where_each_stage_begins(void **state)
{
    (void)state;
    char *text = compiled("  - name: p\n"
                          "    stages:\n"
                          "      - {name: a, actions: [{wait: 1h}, {webhook: crm}, {move: b}]}\n"
                          "      - {name: b, actions: [{wait: 2h}, {move: \"the end\"}]}\n"
                          "      - {name: \"the end\", actions: [{wait: 3h}]}\n"
                          "      - {name: d, actions: [{wait: 1h}, {await: {status: SENT, "
                          "within: 1h}}]}\n");
    char *brief = compiled("  - {name: q, webhook: crm}\n");
    assert_has(text, "\"stages\":{\"a\":[1,3600000],\"b\":[8,18000000],"
                     "\"the end\":[8,10800000],\"d\":[6,3600000]}");
    assert_has(brief, "\"stages\":{}");
    free(text);
    free(brief);
}

static void a_wait_that_has_a_condition_passes_before_the_await_behind_it_begins(void **state)
{
    (void)state;
    char *text = compiled(
        "  - name: p\n"
        "    on: SENT\n"
        "    stages:\n"
        "      - {name: a, actions: [{wait: 1h, if: CLICKED}, {await: {status: OPENED, within: "
        "2s}},"
        " {wait: 3s}, {move: b}]}\n"
        "      - {name: b, actions: [{await: {flag: REPLIED, within: 4s}}, {webhook: crm}]}\n");
    assert_has(text, "\"step\":0,\"stage\":\"a\",\"op\":\"wait\"");
    assert_has(text,
               "\"next_step\":1,\"next_delay_ms\":3600000,\"else_step\":2,\"else_delay_ms\":0}");
    assert_has(text, "\"step\":1,\"stage\":\"a\",\"op\":\"move\"");
    assert_has(text, "\"next_step\":2,\"next_delay_ms\":0,");
    assert_has(text, "\"awaits\":700,\"within_ms\":2000,\"next_step\":4,\"next_delay_ms\":3000,"
                     "\"else_step\":4,\"else_delay_ms\":3000");
    assert_has(text, "\"step\":4,\"stage\":\"a\",\"op\":\"move\"");
    assert_has(text, "\"step\":5,\"stage\":\"b\",\"op\":\"await\"");
    free(text);
}

static void a_condition_of_an_await_is_decided_before_it_and_else_is_not_where_it_leads(
    void **state)
{
    (void)state;
    char *text = compiled("  - name: p\n"
                          "    on: SENT\n"
                          "    stages:\n"
                          "      - name: a\n"
                          "        actions:\n"
                          "          - await: {status: OPENED, within: 2s, else: b}\n"
                          "            if: [SENT, REPLIED]\n"
                          "            unless: COMPLAINED\n"
                          "          - {wait: 5s}\n"
                          "          - webhook: crm\n"
                          "          - {await: {flag: REPLIED, within: 3s, else: b}, if: CLICKED}\n"
                          "      - {name: b, actions: [{webhook: crm}]}\n");
    assert_has(text, "\"first_step\":0,\"first_delay_ms\":0");
    assert_has(text, "\"step\":0,\"stage\":\"a\",\"op\":\"move\",\"target\":null,\"key\":null,"
                     "\"if\":[300,9004],\"unless\":[9001],\"awaits\":null,\"within_ms\":0,"
                     "\"next_step\":1,\"next_delay_ms\":0,\"else_step\":3,\"else_delay_ms\":5000}");
    assert_has(text, "\"step\":1,\"stage\":\"a\",\"op\":\"await\",\"target\":null,\"key\":null,"
                     "\"if\":[],\"unless\":[],\"awaits\":700,\"within_ms\":2000,"
                     "\"next_step\":3,\"next_delay_ms\":5000,\"else_step\":6,\"else_delay_ms\":0}");
    /* The last of its stage: behind it the run ends. */
    assert_has(text, "\"step\":4,\"stage\":\"a\",\"op\":\"move\",\"target\":null,\"key\":null,"
                     "\"if\":[800],\"unless\":[],\"awaits\":null,\"within_ms\":0,"
                     "\"next_step\":5,\"next_delay_ms\":0,\"else_step\":7,\"else_delay_ms\":0}");
    assert_has(text, "\"next_step\":7,\"next_delay_ms\":0,\"else_step\":6,\"else_delay_ms\":0}");
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

static void what_a_pipeline_is_for_is_stored_with_it(void **state)
{
    (void)state;
    char *listed = compiled("  - name: p\n"
                            "    on: {flag: COMPLAINED, match: {org: [a, b], campaign: c}}\n"
                            "    once_per: [org_id, customer_id]\n"
                            "    webhook: crm\n"
                            "    wait: 2h\n"
                            "    if: [SENT, OPENED]\n");
    char *asked = compiled("  - {name: q, on: api, once_per: campaign_id, webhook: crm}\n"
                           "  - {name: r, webhook: {endpoint: crm}}\n");
    assert_has(listed, "\"orgs\":[\"a\",\"b\"],\"campaigns\":[\"c\"],"
                       "\"once_per\":[\"org_id\",\"customer_id\"]");
    /* The wait of the short form comes first and is over when its action is reached. */
    assert_has(listed, "\"first_step\":1,\"first_delay_ms\":7200000");
    assert_has(listed, "\"if\":[300,700]");
    assert_has(asked, "\"name\":\"q\",\"on\":null,\"topic\":null");
    assert_has(asked, "\"orgs\":null,\"campaigns\":null,\"once_per\":[\"campaign_id\"]");
    assert_has(asked, "\"name\":\"r\",\"on\":null,\"topic\":null");
    free(listed);
    free(asked);
}

static void topics_are_known_once_each(void **state)
{
    (void)state;
    struct rcpt_error error;
    struct rcpt_config *config =
        parse("  - name: p\n"
              "    on: {topic: people}\n"
              "    stages: [{name: s, actions: [{produce: {topic: u, key: org_id}}]}]\n"
              "  - {name: q, on: {topic: people}, produce: u}\n"
              "  - {name: r, on: SENT, produce: {topic: v, key: message_id}}\n",
              &error);
    if (config == NULL)
        fail_msg("%s", error.text);
    struct pipelines *pipelines = pipelines_take(config);
    assert_int_equal(pipelines->count, 3);
    assert_int_equal(pipelines->sources.count, 1);
    assert_string_equal(pipelines->sources.names[0], "people");
    assert_int_equal(pipelines->topics.count, 2);
    assert_string_equal(pipelines->topics.names[0], "u");
    assert_string_equal(pipelines->topics.names[1], "v");
    assert_has(pipelines->definitions, "\"op\":\"produce\",\"target\":\"u\",\"key\":\"org_id\"");
    assert_has(pipelines->definitions, "\"op\":\"produce\",\"target\":\"u\",\"key\":\"subject\"");
    pipelines_free(pipelines);
    rcpt_config_free(config);
}

static void without_pipelines_there_are_none(void **state)
{
    (void)state;
    struct rcpt_error error;
    struct rcpt_config *config = parse("  []\n", &error);
    assert_non_null(config);
    struct pipelines *none = pipelines_take(config);
    assert_int_equal(none->count, 0);
    assert_string_equal(none->definitions, "[]");
    assert_null(pipelines_take(config)); /* once */
    pipelines_free(none);
    pipelines_free(NULL);
    rcpt_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_refused_where_they_stand),
        cmocka_unit_test(what_begins_a_run_is_checked),
        cmocka_unit_test(an_action_is_checked_with_its_fields),
        cmocka_unit_test(a_stage_is_checked_as_a_whole),
        cmocka_unit_test(a_cycle_in_which_no_time_passes_is_refused_with_what_it_needs),
        cmocka_unit_test(a_cycle_in_which_time_passes_whatever_is_reached_is_taken),
        cmocka_unit_test(a_cycle_that_would_take_for_ever_to_find_is_refused_as_unclear),
        cmocka_unit_test(more_than_there_is_room_for_is_refused_with_its_limit),
        cmocka_unit_test(what_a_pipeline_is_for_is_stored_with_it),
        cmocka_unit_test(topics_are_known_once_each),
        cmocka_unit_test(without_pipelines_there_are_none),
        cmocka_unit_test(waits_and_moves_become_delays_and_targets),
        cmocka_unit_test(nonsense_about_hours_is_refused_where_it_stands),
        cmocka_unit_test(calls_have_their_own_window_or_that_of_the_pipeline),
        cmocka_unit_test(it_is_stored_where_each_stage_begins),
        cmocka_unit_test(a_wait_that_has_a_condition_passes_before_the_await_behind_it_begins),
        cmocka_unit_test(
            a_condition_of_an_await_is_decided_before_it_and_else_is_not_where_it_leads),
        cmocka_unit_test(the_same_wording_has_the_same_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
