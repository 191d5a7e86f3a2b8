/* Which texts name a message that is erased: ids as the encoders of several languages write them, and what is another id. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "commands/inbox/erase_names.h"
#include "receiptd/base/document.h"
#include "receiptd/base/error.h"
#include "receiptd/base/readings.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct rcpt_text read_file(const char *path, struct rcpt_arena *arena)
{
    FILE *in = fopen(path, "re");
    assert_non_null(in);
    char *text = rcpt_arena_alloc(arena, 1 << 20);
    size_t size = fread(text, 1, 1 << 20, in);
    fclose(in);
    return (struct rcpt_text){text, size};
}

static bool names(struct rcpt_text id, struct rcpt_text text)
{
    struct erase_names names;
    erase_names_init(&names);
    erase_names_add(&names, rcpt_text_of(NULL), id);
    bool named = erase_names_any(&names, text);
    erase_names_fini(&names);
    return named;
}

/* tests/fixtures/encoded_ids.json: [writer, number of the id, text] */
static void what_encoders_write_names_its_id_and_no_other(void **state)
{
    struct rcpt_arena arena;
    const char *reason;
    unsigned texts = 0;
    (void)state;
    rcpt_arena_init(&arena, 4096);
    const struct rcpt_node *root =
        rcpt_document_parse(read_file("tests/fixtures/encoded_ids.json", &arena), &arena, &reason);
    const struct rcpt_node *ids = rcpt_node_get(root, "ids");
    for (const struct rcpt_node *row = rcpt_node_get(root, "texts")->first; row != NULL;
         row = row->next, texts++) {
        unsigned number;
        struct rcpt_text text = rcpt_node_element(row, 2)->text;
        assert_true(rcpt_text_number(rcpt_node_element(row, 1)->text, &number));
        for (unsigned id = 0; rcpt_node_element(ids, id) != NULL; id++) {
            struct rcpt_text wanted = rcpt_node_element(ids, id)->text;
            if (names(wanted, text) != (id == number))
                fail_msg("%.*s, id %u: %.*s", (int)row->first->text.size, row->first->text.at, id,
                         (int)text.size, text.at);
            struct rcpt_text longer = RCPT_TEXT_JOIN(&arena, wanted, RCPT_TEXT("x"));
            assert_false(names(longer, text));
            assert_false(names(RCPT_TEXT_JOIN(&arena, RCPT_TEXT("x"), wanted), text));
        }
    }
    assert_true(texts > 300);
    rcpt_arena_fini(&arena);
}

static void an_id_is_a_word_of_its_own(void **state)
{
    static const struct {
        const char *id, *text;
        bool named;
    } examples[] = {
        {"anna-1", "{\"message_id\": \"anna-1\"}", true},
        {"anna-1", "anna-1", true},
        {"anna-1", "id=anna-1&status=", true},
        {"anna-1", "{\"message_id\": \"anna-1-1\"}", false},
        {"anna-1", "{\"message_id\": \"joanna-1\"}", false},
        {"anna-1", "{\"message_id\": \"\\u00e4anna-1\"}", false},
        {"anna-1", "{\"text\": \"line\\nanna-1\\tend\"}", true},
        {"a@x.example", "ba@x.example", false},
        {"a@x.example", "a%40x.example", true},
        {"a+b@x.example", "to=a+b%40x.example", true},
        {"a b@x.example", "to=a+b%40x.example", true},
        {"a%40b", "{\"id\": \"a%40b\"}", true},
        {"a\\u0062", "{\"id\": \"a\\\\u0062\"}", true},
        {"\xf0\x9f\x98\x80", "{\"id\": \"\\ud83d\\ude00\"}", true},
        {"\xf0\x9f\x98\x80", "{\"id\": \"\\ud83d\"}", false},
        {"\xf0\x9f\x98\x80", "{\"id\": \"\\ud83d\\u0041\"}", false},
        {"j\xc3\xa4nner", "id=j%E4nner", true},
        {"j\xc3\xa4nner", "id=j\xe4nner", true},
        {"880055", "{\"id\": 880055}", true},
        {"880055", "{\"id\": 880055.0}", true},
        {"880055", "{\"id\": 8.80055E+5}", true},
        {"880055", "{\"id\": 88005500e-2}", true},
        {"880055", "{\"id\": 880055.5}", false},
        {"880055", "{\"id\": 8800551}", false},
        {"880055", "{\"id\": -880055}", false},
        {"-880055", "{\"id\": -8.80055e5}", true},
        {"880055", "{\"id\": 8.80055e99999999999999999999}", false},
        {"0", "{\"id\": 0.000}", true},
        {"x", "", false},
        {"%", "100 %", true},
    };
    (void)state;
    for (size_t index = 0; index < COUNT(examples); index++)
        if (names(rcpt_text_of(examples[index].id), rcpt_text_of(examples[index].text)) !=
            examples[index].named)
            fail_msg("%s in %s", examples[index].id, examples[index].text);
}

/* Gateways number their messages themselves: the same id at another account is another message. */
static void a_gateways_id_counts_with_its_account_only(void **state)
{
    struct erase_names names;
    (void)state;
    erase_names_init(&names);
    erase_names_add(&names, RCPT_TEXT("acme"), RCPT_TEXT("17"));
    erase_names_add(&names, RCPT_TEXT("other"), RCPT_TEXT("17"));
    erase_names_add(&names, RCPT_TEXT("acme"), RCPT_TEXT("17-2"));
    assert_true(erase_names_any(&names, RCPT_TEXT("{\"gateway\": \"acme\", \"id\": 17}")));
    assert_true(erase_names_any(&names, RCPT_TEXT("{\"gateway\": \"other\", \"id\": 17}")));
    assert_false(erase_names_any(&names, RCPT_TEXT("{\"gateway\": \"third\", \"id\": 17}")));
    assert_true(erase_names_any(&names, RCPT_TEXT("account=acme&body=%7B%22id%22%3A17%7D")));
    assert_false(erase_names_any(&names, RCPT_TEXT("{\"gateway\": \"other\", \"id\": \"17-2\"}")));
    erase_names_fini(&names);
}

static void many_ids_are_told_apart(void **state)
{
    struct erase_names names;
    char text[32];
    (void)state;
    erase_names_init(&names);
    assert_false(erase_names_any(&names, RCPT_TEXT("anything")));
    for (unsigned n = 0; n < 3000; n += 3) {
        snprintf(text, sizeof(text), "<m%u@x>", n);
        erase_names_add(&names, rcpt_text_of(NULL), rcpt_text_of(text));
    }
    for (unsigned n = 0; n < 3000; n++) {
        snprintf(text, sizeof(text), "{\"id\": \"\\u003cm%u@x>\"}", n);
        assert_int_equal(erase_names_any(&names, rcpt_text_of(text)), n % 3 == 0);
    }
    erase_names_fini(&names);
}

static bool count_reading(void *context, struct rcpt_text reading)
{
    (void)reading;
    return ++*(unsigned *)context > 0;
}

/* A payload is a stranger's: what it costs is bounded. */
static void the_number_of_readings_is_bounded(void **state)
{
    struct rcpt_arena arena;
    char text[4096];
    unsigned count = 0;
    (void)state;
    rcpt_arena_init(&arena, 65536);
    for (size_t index = 0; index < sizeof(text); index++)
        text[index] = "%25+\\u0025\\\\%2525eyJhIjoiJTI1In0="[index % 33];
    assert_true(
        rcpt_readings_each((struct rcpt_text){text, sizeof(text)}, &arena, count_reading, &count));
    assert_in_range(count, 2, RCPT_READINGS_MOST);
    rcpt_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_encoders_write_names_its_id_and_no_other),
        cmocka_unit_test(an_id_is_a_word_of_its_own),
        cmocka_unit_test(a_gateways_id_counts_with_its_account_only),
        cmocka_unit_test(many_ids_are_told_apart),
        cmocka_unit_test(the_number_of_readings_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
