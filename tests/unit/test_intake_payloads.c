/* Every sample of a gateway's request gives exactly the events that stand beside it: those in
 * tests/payloads, and those in ../shared/payloads where that folder is there. */
#include <glob.h>

#include "intake_fixture.h"

static const char *const folders[] = {"tests/payloads/*.json", "../shared/payloads/*.json"};

struct sample {
    struct fixture fixture;
    const char *file;
    struct rcpt_text name;
};

static void expect_text(struct sample *sample, const struct rcpt_node *expected,
                        const struct rcpt_node *event, const char *name)
{
    struct rcpt_text wanted = rcpt_node_text(expected), got = rcpt_node_text_of(event, name);
    if (!rcpt_text_equal(wanted, got))
        fail_msg("%s: %.*s: %s is \"%.*s\", not \"%.*s\"", sample->file, (int)sample->name.size,
                 sample->name.at, name, (int)got.size, got.at, (int)wanted.size, wanted.at);
}

/* A time without zone is a hint, and no `at`. */
static void expect_time(struct sample *sample, const struct rcpt_node *expected,
                        const struct rcpt_node *event)
{
    struct rcpt_text wanted = rcpt_node_text(expected);
    bool hint = wanted.size > 0 && wanted.at[wanted.size - 1] != 'Z';
    expect_text(sample, expected, event, hint ? "gateway_at" : "at");
    if (hint)
        assert_null(rcpt_node_get(event, "at"));
}

static void expect_flags(struct sample *sample, const struct rcpt_node *expected,
                         const struct rcpt_node *event)
{
    const struct rcpt_node *got = rcpt_node_get(event, "flags");
    got = got != NULL ? got->first : NULL;
    for (const struct rcpt_node *flag = expected->first; flag != NULL; flag = flag->next) {
        if (got == NULL || !rcpt_text_equal(flag->text, got->text)) {
            fail_msg("%s: %.*s: other flags", sample->file, (int)sample->name.size,
                     sample->name.at);
            return;
        }
        got = got->next;
    }
    assert_null(got);
}

static void expect_event(struct sample *sample, const struct rcpt_node *expected,
                         const struct rcpt_node *event)
{
    static const char *const names[][2] = {{"gateway_id", "gateway_message_id"},
                                           {"raw", "gateway_status"},
                                           {"event_key", "event_id"},
                                           {"error", "reason"},
                                           {"own_id", "message_id"}};
    for (const struct rcpt_node *field = expected->first; field != NULL; field = field->next) {
        const char *name = rcpt_text_terminated(&sample->fixture.arena, field->key);
        for (size_t index = 0; index < COUNT(names); index++)
            if (strcmp(name, names[index][0]) == 0)
                name = names[index][1];
        if (strcmp(name, "at") == 0)
            expect_time(sample, field, event);
        else if (strcmp(name, "flags") == 0)
            expect_flags(sample, field, event);
        else
            expect_text(sample, field, event, name);
    }
    if (rcpt_node_get(expected, "flags") == NULL)
        assert_null(rcpt_node_get(event, "flags"));
    assert_true(rcpt_text_is(rcpt_node_text_of(event, "gateway"), "acme"));
    assert_true(rcpt_text_is(rcpt_node_text_of(event, "org_id"), "o1"));
    assert_true(rcpt_node_text_of(event, "message_id").size > 0);
    assert_true(rcpt_node_text_of(event, "event_id").size > 0);
}

static void expect_reply(struct sample *sample, const struct rcpt_node *reply)
{
    const struct rcpt_gateway_answer *answer = &sample->fixture.result.answer;
    struct rcpt_text text = rcpt_node_text(reply);
    assert_int_equal(answer->code, 200);
    if (text.size > 4)
        assert_true(rcpt_text_equal(answer->body, rcpt_text_part(text, 4, text.size)));
}

static void run_sample(struct sample *sample, const struct rcpt_node *node)
{
    struct fixture *fixture = &sample->fixture;
    const struct rcpt_node *expected = rcpt_node_get(node, "expect")->first;
    sample->name = rcpt_node_text_of(node, "name");
    fixture_sample(fixture, rcpt_node_get(node, "request"));
    fixture_adapt(fixture);
    for (size_t index = 0; index < fixture->result.event_count; index++) {
        if (expected == NULL) {
            fail_msg("%s: %.*s: more events than expected", sample->file, (int)sample->name.size,
                     sample->name.at);
            return;
        }
        expect_event(sample, expected, fixture_event(fixture, index));
        expected = expected->next;
    }
    if (expected != NULL)
        fail_msg("%s: %.*s: fewer events than expected (%s)", sample->file, (int)sample->name.size,
                 sample->name.at,
                 fixture->result.drop_count > 0 ? fixture->result.drops[0].reason : "no drop");
    expect_reply(sample, rcpt_node_get(node, "reply"));
}

static size_t run_file(const char *path)
{
    struct sample sample = {.file = path};
    const char *reason = NULL;
    size_t count = 0;
    char *text = file_text(path);
    assert_non_null(text);
    fixture_init(&sample.fixture);
    struct rcpt_arena arena;
    rcpt_arena_init(&arena, 65536);
    const struct rcpt_node *root = rcpt_document_parse(rcpt_text_of(text), &arena, &reason);
    const struct rcpt_node *cases = rcpt_node_get(root, "cases");
    if (cases != NULL)
        fixture_gateway(&sample.fixture,
                        rcpt_text_terminated(&arena, rcpt_node_text_of(root, "gateway")));
    for (const struct rcpt_node *node = cases != NULL ? cases->first : NULL; node != NULL;
         node = node->next, count++)
        run_sample(&sample, node);
    rcpt_arena_fini(&arena);
    fixture_fini(&sample.fixture);
    free(text);
    return count;
}

static void each_sample_gives_its_events(void **state)
{
    size_t count = 0;
    (void)state;
    for (size_t folder = 0; folder < COUNT(folders); folder++) {
        glob_t found;
        if (glob(folders[folder], 0, NULL, &found) != 0)
            continue;
        for (size_t index = 0; index < found.gl_pathc; index++)
            count += run_file(found.gl_pathv[index]);
        globfree(&found);
    }
    assert_true(count > 60); /* run from the root of the repository */
}

static void every_adapter_has_samples(void **state)
{
    size_t count;
    const char *const *names = rcpt_gateway_list(&count);
    (void)state;
    for (size_t index = 0; index < count; index++) {
        char path[128];
        snprintf(path, sizeof(path), "tests/payloads/%s.json", names[index]);
        char *text = file_text(path);
        if (text == NULL)
            fail_msg("%s is missing", path);
        free(text);
        assert_true(index == 0 || strcmp(names[index - 1], names[index]) < 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sample_gives_its_events),
        cmocka_unit_test(every_adapter_has_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
