#include "receiptd/base/json_read.h"
#include "record_fixture.h"

static void what_is_not_json_is_one_dead_letter(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        size_t size; /* 0: up to the terminator */
    } wrong[] = {
        {" ", 0},
        {"\n\t ", 0},
        {"{", 0},
        {"[" EVENT("a"), 0},
        {"[" EVENT("a") "," EVENT("b") ",]", 0},
        {"[" EVENT("a") "," EVENT("b") "}", 0},
        {EVENT("a") EVENT("b"), 0},
        {EVENT("a") "\n" EVENT("b"), 0},
        {EVENT("a") " x", 0},
        {EVENT("a") "]", 0},
        {EVENT("a") "\0", sizeof(EVENT("a"))},
        {"[] []", 0},
        {EVENT("a") "\"", 0},
        {EVENT("a") " \"x", 0},
        {"7\"", 0},
        {"null \"", 0},
        {"\"x\"\"", 0},
        {"1 2", 0},
        {"nul", 0},
        {"nullx", 0},
        {"NaN", 0},
        {"-", 0},
        {"01", 0},
        {"[-01]", 0},
        {"[1.]", 0},
        {"[.5]", 0},
        {"[+1]", 0},
        {"[1e]", 0},
        {"[0x1]", 0},
        {"[Infinity]", 0},
        {"['a']", 0},
        {"{a:1}", 0},
        {"{1:1}", 0},
        {"{\"a\":1,}", 0},
        {"{\"a\" 1}", 0},
        {"[1,,2]", 0},
        {"[]/**/", 0},
        {"// c\n[]", 0},
        {"[\v]", 0},
        {"[\f]", 0},
        {"\xef\xbb\xbf\xef\xbb\xbf[]", 0},
        {"[]\xef\xbb\xbf", 0},
        {"[\"a\nb\"]", 0},
        {"[\"a\tb\"]", 0},
        {"[\"a\x1f\"]", 0},
        {"[\"a\0b\"]", 7},
        {"[\0]", 3},
        {"[\"\\x41\"]", 0},
        {"[\"\\u00g0\"]", 0},
        {"[\"\\u12\"]", 0},
        {"[\"\\\"]", 0},
        {"[\"\\", 0},
        {"\\", 0},
        {"[" EVENT("a") ",{\"status\":\\u0041}]", 0},
    };
    struct bench bench;
    set_up(&bench, 8);
    for (size_t i = 0; i < COUNT(wrong); i++)
        check(&bench,
              &(struct example){wrong[i].value, wrong[i].size, 0, RCPT_REJECT_INVALID_JSON, -1});
    tear_down(&bench);
}

static const char *const not_utf8[] = {
    "\xc3\xa9 1\xff 2345678", /* behind something valid, in the same eight bytes */
    "\xc3\xa9 1234567 \xff",
    "\x80",
    "\xbf",
    "\xc0\x80",
    "\xc1\xbf",
    "\xc3",
    "\xc3(",
    "\xe0\x9f\xbf",
    "\xe2\x82",
    "\xe2\x82(",
    "\xed\xa0\x80",
    "\xed\xbf\xbf",
    "\xf0\x8f\xbf\xbf",
    "\xf0\x9f\x98",
    "\xf4\x90\x80\x80",
    "\xf5\x80\x80\x80",
    "\xff",
    "\xfe",
};
static const char *const half_pairs[] = {
    "\\ud800",          "\\udc00",
    "\\ud83d\\u0041",   "\\ud83dx",
    "\\ude00\\ud83d",   "\\ud83d\\ud83d\\ude00",
    "\\uDBFF\\\\uDFFF", "\\uD83D\\n",
    "\\\"\\ud800",      "\\\\\\\"\\ud800\\\\",
    "\\ud800\\\"x",
};
static const char *const unicode[] = {
    "\xc2\x80",
    "\xdf\xbf",
    "\xe0\xa0\x80",
    "\xed\x9f\xbf",
    "\xee\x80\x80",
    "\xef\xbf\xbf",
    "\xf0\x90\x80\x80",
    "\xf4\x8f\xbf\xbf",
    "\x7f",
    "\\ud83d\\ude00",
    "\\uD800\\uDC00",
    "\\udbff\\udfff",
    "\\\\ud800",
    "\\ud7ff\\ue000",
    "\\\\\\u0041",
    "\xef\xbb\xbf",
    "\\\"\\\\\\/\\b\\f\\n\\r\\t",
};

/* The text as id, in an unknown field and as a key, at every place of a word, before a good
 * neighbour. */
static void check_text(struct bench *bench, const char *text, enum rcpt_reject_reason in_id,
                       enum rcpt_reject_reason elsewhere)
{
    static const struct {
        const char *before, *after;
    } forms[] = {
        {"{\"message_id\":\"", "\",\"status\":\"SENT\"}"},
        {"{\"message_id\":\"m\",\"status\":\"SENT\",\"x\":\"", "\"}"},
        {"{\"message_id\":\"m\",\"status\":\"SENT\",\"", "\":[1]}"},
    };
    for (size_t form = 0; form < COUNT(forms); form++) {
        enum rcpt_reject_reason reason = form == 0 ? in_id : elsewhere;
        for (int padding = 0; padding < 9; padding++) {
            char value[256];
            snprintf(value, sizeof(value), "[%*s%s%s%s,{\"message_id\":\"n\",\"status\":300}]",
                     padding, "", forms[form].before, text, forms[form].after);
            check(bench, &(struct example){value, 0, reason == OK ? 2 : 1, reason, 0});
        }
    }
}

static void an_event_that_is_not_utf8_leaves_its_neighbours_alone(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench, 8);
    for (size_t i = 0; i < COUNT(not_utf8); i++)
        check_text(&bench, not_utf8[i], RCPT_REJECT_INVALID_UTF8, RCPT_REJECT_INVALID_UTF8);
    for (size_t i = 0; i < COUNT(unicode); i++)
        check_text(&bench, unicode[i], OK, OK);
    tear_down(&bench);
}

static void half_a_surrogate_pair_is_no_id(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench, 8);
    for (size_t i = 0; i < COUNT(half_pairs); i++)
        check_text(&bench, half_pairs[i], RCPT_REJECT_INVALID_ID, OK);
    tear_down(&bench);
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench, 8);
    for (int depth = RCPT_JSON_READ_MAX_DEPTH - 1; depth <= RCPT_JSON_READ_MAX_DEPTH + 1; depth++) {
        char value[512] = "{\"message_id\":\"m\",\"status\":\"SENT\",\"x\":";
        for (int i = 1; i < depth; i++)
            strcat(value, "[");
        for (int i = 1; i < depth; i++)
            strcat(value, "]");
        strcat(value, "}");
        bool valid = depth <= RCPT_JSON_READ_MAX_DEPTH;
        check(&bench,
              &(struct example){value, 0, valid, valid ? OK : RCPT_REJECT_INVALID_JSON, -1});
    }
    char *value = malloc(100000);
    memset(value, '[', 100000);
    check(&bench, &(struct example){value, 100000, 0, RCPT_REJECT_INVALID_JSON, -1});
    free(value);
    tear_down(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_json_is_one_dead_letter),
        cmocka_unit_test(an_event_that_is_not_utf8_leaves_its_neighbours_alone),
        cmocka_unit_test(half_a_surrogate_pair_is_no_id),
        cmocka_unit_test(nesting_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
