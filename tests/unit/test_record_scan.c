/* The scan of common records against the parser of all records: where the scan takes a record, both
 * give the same. */
#include "core/record_internal.h"
#include "record_fixture.h"

#define MUTATIONS 300000

struct taken {
    struct rcpt_event events[16];
    struct rcpt_reject rejects[16];
    uint32_t event_count, reject_count;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void give(struct rcpt_decoder *decoder, const char *value, size_t size)
{
    decoder->input = input_of(value, size);
    decoder->default_at_us = TIMESTAMP_US;
    rcpt_record_forget(decoder);
}

static struct taken copy_of(const struct rcpt_decoder *decoder)
{
    struct taken taken = {.event_count = decoder->event_count,
                          .reject_count = decoder->reject_count};
    for (uint32_t i = 0; i < COUNT(taken.events) && i < taken.event_count; i++)
        taken.events[i] = decoder->events[i];
    for (uint32_t i = 0; i < COUNT(taken.rejects) && i < taken.reject_count; i++)
        taken.rejects[i] = decoder->rejects[i];
    return taken;
}

static bool same_event(const struct rcpt_event *left, const struct rcpt_event *right)
{
    return left->id == right->id && left->id_size == right->id_size && left->hash == right->hash &&
           left->at_us == right->at_us && left->payload == right->payload &&
           left->payload_size == right->payload_size && left->index == right->index &&
           left->entry == right->entry && left->flags == right->flags;
}

static bool same_reject(const struct rcpt_reject *left, const struct rcpt_reject *right)
{
    return left->reason == right->reason && left->index == right->index &&
           left->payload == right->payload && left->payload_size == right->payload_size &&
           strcmp(left->detail, right->detail) == 0;
}

static bool same(const struct taken *left, const struct taken *right)
{
    if (left->event_count != right->event_count || left->reject_count != right->reject_count)
        return false;
    for (uint32_t i = 0; i < COUNT(left->events) && i < left->event_count; i++) {
        if (!same_event(&left->events[i], &right->events[i]))
            return false;
    }
    for (uint32_t i = 0; i < COUNT(left->rejects) && i < left->reject_count; i++) {
        if (!same_reject(&left->rejects[i], &right->rejects[i]))
            return false;
    }
    return true;
}

/* Returns whether the scan takes it. */
static bool compare(struct rcpt_decoder *decoder, const char *value, size_t size)
{
    give(decoder, value, size);
    if (!rcpt_record_scan(decoder)) {
        assert_int_equal(decoder->event_count + decoder->reject_count, 0);
        return false;
    }
    struct taken scanned = copy_of(decoder);
    give(decoder, value, size);
    rcpt_record_parse_any(decoder);
    struct taken parsed = copy_of(decoder);
    if (!same(&scanned, &parsed))
        fail_msg("scan and parser differ on: %.*s (%u and %u events, %u and %u rejects)", (int)size,
                 value, scanned.event_count, parsed.event_count, scanned.reject_count,
                 parsed.reject_count);
    return true;
}

static const char *const common[] = {
    "[]",
    " [ ] ",
    "{\"events\":[]}",
    EVENT("m-1"),
    "[" EVENT("m-1") "]",
    "[" EVENT("m-1") "," EVENT("m-2") "]",
    "{\"events\":[" EVENT("m-1") " , " EVENT("m-2") "]}",
    " { \"events\" : [ " EVENT("m-1") "\t]\r\n} ",
    "[{\"message_id\":\"a\",\"status\":600,\"at\":1700000000.5,\"x\":null,\"y\":true,\"z\":false}]",
    "{\"message_id\":\"m\",\"status\":\"SENT\",\"at\":\"2026-11-21T02:30:00.1Z\",\"n\":-0.25}",
    "[{\"message_id\":\"first\",\"message_id\":\"last\",\"status\":\"SENT\",\"status\":null}]",
    "[{\"status\":\"SENT\"},{},{\"message_id\":\"\"},{\"message_id\":\"m\",\"status\":\"NONE\"}]",
    "[{\"message_id\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\",\"status\":\"SENT\"}]",
    "[{\"message_id\":\"events\",\"events\":1,\"status\":\"SENT\"}]",
    "[{\"message_id\":7,\"status\":\"SENT\"},{\"message_id\":\"m\",\"status\":9001}]",
    "[{\"message_id\":\"m\",\"status\":\"OPENED\",\"flags\":[ \"MACHINE_OPEN\" , \"none\" ]}]",
    "[{\"message_id\":\"m\",\"flags\":[\"REPLIED\"],\"flags\":7},{\"flags\":[]}]",
};

static const char *const uncommon[] = {
    "",
    " ",
    "7",
    "\"text\"",
    "[",
    "[1]",
    "[[]]",
    "[{}",
    "[{},]",
    "[,{}]",
    "[{}]x",
    "[{}]{}",
    "{\"events\":{}}",
    "{\"events\":[],\"more\":1}",
    "{\"more\":1,\"events\":[]}",
    "{\"events\":[]",
    "[{\"message_id\":\"a\\u0062\",\"status\":\"SENT\"}]",
    "[{\"message_id\":\"a\nb\",\"status\":\"SENT\"}]",
    "[{\"message_id\":\"a\",\"status\":\"SENT\",\"meta\":{\"k\":1}}]",
    "[{\"message_id\":\"a\",\"status\":\"SENT\",\"tags\":[1]}]",
    "[{\"message_id\":\"a\",\"status\":\"SENT\",\"flags\":[1]}]",
    "[{\"message_id\":\"a\",\"status\":\"SENT\",\"flags\":{\"k\":[]}}]",
    "[{\"message_id\":\"a\",\"status\":\"SENT\",\"flags\":[\"REPLIED\"}]",
    "[{\"message_id\":\"a\",\"status\":\"SENT\",\"flags\":[\"REPLIED\",]}]",
    "[{\"message_id\":\"a\",\"status\":01}]",
    "[{\"message_id\":\"a\",\"status\":1e2}]",
    "[{\"message_id\":\"a\",\"status\":1.}]",
    "[{\"message_id\":\"a\",\"status\":-}]",
    "[{\"message_id\":\"a\",\"status\":+1}]",
    "[{\"message_id\":\"a\",\"status\":tru}]",
    "[{\"message_id\":\"a\",\"status\":truex}]",
    "[{\"message_id\":\"a\",}]",
    "[{\"message_id\":\"\xff\",\"status\":\"SENT\"}]",
    "[{\"message_id\":\"\xed\xa0\x80\",\"status\":\"SENT\"}]",
    "[{\"message_id\" \v:\"a\",\"status\":\"SENT\"}]",
};

static void common_records_are_scanned_and_give_what_the_parser_gives(void **state)
{
    struct bench bench;
    (void)state;
    set_up(&bench, 8);
    for (size_t i = 0; i < COUNT(common); i++) {
        if (!compare(bench.decoder, common[i], strlen(common[i])))
            fail_msg("not scanned: %s", common[i]);
    }
    tear_down(&bench);
}

static void what_is_wrong_or_unusual_is_left_to_the_parser(void **state)
{
    struct bench bench;
    (void)state;
    set_up(&bench, 8);
    for (size_t i = 0; i < COUNT(uncommon); i++) {
        if (compare(bench.decoder, uncommon[i], strlen(uncommon[i])))
            fail_msg("scanned: %s", uncommon[i]);
    }
    tear_down(&bench);
}

/* Bytes that matter in JSON are drawn more often than others. */
static char any_byte(uint64_t *random)
{
    static const char likely[] = "{}[]\",:\\ \t\n\r\v\f0123456789.-+eEtrufalsn\x80\xc3\xff\x1f";
    uint64_t draw = next_random(random);
    return draw % 4 == 0 ? (char)(draw >> 8) : likely[(draw >> 8) % (sizeof(likely) - 1)];
}

static size_t mutate(char *text, size_t size, size_t capacity, uint64_t *random)
{
    for (uint64_t changes = 1 + next_random(random) % 3; changes > 0 && size > 0; changes--) {
        size_t at = next_random(random) % size;
        switch (next_random(random) % 4) {
        case 0:
            text[at] = any_byte(random);
            break;
        case 1:
            memmove(text + at, text + at + 1, size - at - 1);
            size--;
            break;
        case 2:
            size = at;
            break;
        default:
            if (size == capacity)
                break;
            memmove(text + at + 1, text + at, size - at);
            text[at] = any_byte(random);
            size++;
        }
    }
    return size;
}

static void changed_bytes_never_make_scan_and_parser_differ(void **state)
{
    struct bench bench;
    uint64_t random = 0x9e3779b97f4a7c15;
    uint32_t scanned = 0;
    (void)state;
    set_up(&bench, 8);
    for (uint32_t round = 0; round < MUTATIONS; round++) {
        const char *origin = common[next_random(&random) % COUNT(common)];
        char text[512];
        size_t size = strlen(origin);
        memcpy(text, origin, size);
        size = mutate(text, size, sizeof(text), &random);
        char *alone = malloc(size > 0 ? size : 1); /* so that reading past the end is seen */
        memcpy(alone, text, size);
        scanned += compare(bench.decoder, alone, size);
        free(alone);
    }
    assert_true(scanned > MUTATIONS / 20);
    tear_down(&bench);
}

static void more_events_than_allowed_are_left_to_the_parser(void **state)
{
    static const char event[] = EVENT("m");
    struct bench bench;
    (void)state;
    set_up(&bench, 8);
    size_t each = sizeof(event), size = 0;
    char *text = malloc((RCPT_RECORD_MAX_EVENTS + 1) * each + 2);
    text[size++] = '[';
    for (uint32_t i = 0; i < RCPT_RECORD_MAX_EVENTS; i++) {
        memcpy(text + size, event, each - 1);
        size += each - 1;
        text[size++] = ',';
    }
    text[size - 1] = ']';
    assert_true(compare(bench.decoder, text, size));
    text[size - 1] = ',';
    memcpy(text + size, event, each - 1);
    size += each - 1;
    text[size++] = ']';
    assert_false(compare(bench.decoder, text, size));
    free(text);
    tear_down(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(common_records_are_scanned_and_give_what_the_parser_gives),
        cmocka_unit_test(what_is_wrong_or_unusual_is_left_to_the_parser),
        cmocka_unit_test(changed_bytes_never_make_scan_and_parser_differ),
        cmocka_unit_test(more_events_than_allowed_are_left_to_the_parser),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
