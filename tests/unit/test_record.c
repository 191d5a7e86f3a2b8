#include "record_fixture.h"

#include <malloc.h>

#include "receiptd/core/hash.h"

#define WITH(fields)   "{\"message_id\":\"m\"," fields "}"
#define STATUS(status) "{\"message_id\":\"m\",\"status\":" status "}"
#define AT(at)         "{\"message_id\":\"m\",\"status\":\"SENT\",\"at\":" at "}"

static const struct rcpt_ladder_entry *entry_of(const struct bench *bench,
                                                const struct rcpt_event *event)
{
    return rcpt_ladder_entry(bench->ladder, event->entry);
}

static void records_have_three_forms(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {EVENT("a"), 0, 1, OK, 0},
        {"  \r\n\t" EVENT("a") " \n", 0, 1, OK, 0},
        {"[" EVENT("a") "," EVENT("b") "]", 0, 2, OK, 0},
        {"[]", 0, 0, OK, 0},
        {"{\"events\":[" EVENT("a") "," EVENT("b") "]}", 0, 2, OK, 0},
        {"{\"events\":[]}", 0, 0, OK, 0},
        {"{\"message_id\":\"x\",\"status\":7,\"events\":[" EVENT("a") "],\"at\":true}", 0, 1, OK,
         0},
        {"{\"z\":{\"events\":[1,2]},\"events\":[" EVENT("a") "],\"y\":[" EVENT("b") "]}", 0, 1, OK,
         0},
        {"{\"\\u0065vents\":[" EVENT("a") "]}", 0, 1, OK, 0},
        /* the last of equal keys wins */
        {"{\"events\":[" EVENT("a") "],\"events\":[" EVENT("b") "," EVENT("c") "]}", 0, 2, OK, 0},
        {"{\"events\":7,\"events\":[" EVENT("a") "]}", 0, 1, OK, 0},
        {"{\"events\":[" EVENT("a") "],\"events\":7}", 0, 0, RCPT_REJECT_NOT_AN_EVENT, -1},
        {"{\"events\":{}}", 0, 0, RCPT_REJECT_NOT_AN_EVENT, -1},
        {"{\"events\":null}", 0, 0, RCPT_REJECT_NOT_AN_EVENT, -1},
        {"{\"events\":\"x\","
         "\"message_id\":\"m\",\"status\":\"SENT\"}",
         0, 0, RCPT_REJECT_NOT_AN_EVENT, -1},
        /* "events" means nothing inside an event of a list */
        {"[{\"events\":[1],\"message_id\":\"m\",\"status\":\"SENT\"}]", 0, 1, OK, 0},
        {"{\"events\":[{\"events\":7,\"message_id\":\"m\",\"status\":\"SENT\"}]}", 0, 1, OK, 0},
        {"42", 0, 0, RCPT_REJECT_NOT_AN_EVENT, -1},
        {"\"x\"", 0, 0, RCPT_REJECT_NOT_AN_EVENT, -1},
        {"null", 0, 0, RCPT_REJECT_NOT_AN_EVENT, -1},
        {" true ", 0, 0, RCPT_REJECT_NOT_AN_EVENT, -1},
        {"{}", 0, 0, RCPT_REJECT_MISSING_ID, 0},
        {"[{}]", 0, 0, RCPT_REJECT_MISSING_ID, 0},
    };
    check_all(examples, COUNT(examples));
}

static void what_is_no_event_leaves_its_neighbours_alone(void **state)
{
    (void)state;
    static const char *const strangers[] = {
        "null",
        "true",
        "17",
        "-1.5e3",
        "\"text\"",
        "\"\\n\\\"\"",
        "[]",
        "[[1,{\"a\":[]}],2]",
        "\"\"",
        "false",
        "[" EVENT("x") "]",
    };
    struct bench bench;
    set_up(&bench, 1);
    for (size_t i = 0; i < COUNT(strangers); i++) {
        char value[256];
        int size = snprintf(value, sizeof(value), "{\"events\":[%s , \n%s\t,%s]}", EVENT("a"),
                            strangers[i], EVENT("b"));
        struct rcpt_record *record = decode(&bench, value, (size_t)size);
        assert_int_equal(record->event_count, 2);
        assert_int_equal(record->events[0].index, 0);
        assert_int_equal(record->events[1].index, 2);
        assert_int_equal(record->reject_count, 1);
        const struct rcpt_reject *reject = &record->rejects[0];
        assert_int_equal(reject->reason, RCPT_REJECT_NOT_AN_EVENT);
        assert_int_equal(reject->index, 1);
        assert_int_equal(reject->payload_size, strlen(strangers[i]));
        assert_memory_equal(record->value + reject->payload, strangers[i], strlen(strangers[i]));
        rcpt_record_free(record);
    }
    tear_down(&bench);
}

static void ids_are_strings_of_1_to_255_bytes(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {"{\"status\":\"SENT\"}", 0, 0, RCPT_REJECT_MISSING_ID, 0},
        {"{\"message_id\":null,\"status\":\"SENT\"}", 0, 0, RCPT_REJECT_MISSING_ID, 0},
        {"{\"message_id\":\"\",\"status\":\"SENT\"}", 0, 0, RCPT_REJECT_MISSING_ID, 0},
        {"{\"message_id\":17,\"status\":\"SENT\"}", 0, 0, RCPT_REJECT_INVALID_ID, 0},
        {"{\"message_id\":true,\"status\":\"SENT\"}", 0, 0, RCPT_REJECT_INVALID_ID, 0},
        {"{\"message_id\":[\"a\"],\"status\":\"SENT\"}", 0, 0, RCPT_REJECT_INVALID_ID, 0},
        {"{\"message_id\":{\"a\":1},\"status\":\"SENT\"}", 0, 0, RCPT_REJECT_INVALID_ID, 0},
        {EVENT("a\\u0000b"), 0, 0, RCPT_REJECT_INVALID_ID, 0},
        {EVENT("\\u0000"), 0, 0, RCPT_REJECT_INVALID_ID, 0},
        {EVENT("\\n"), 0, 1, OK, 0},
        {"{\"message_id\":\"a\",\"message_id\":\"b\",\"status\":\"SENT\"}", 0, 1, OK, 0},
        {"{\"message_id\":\"a\",\"message_id\":null,\"status\":\"SENT\"}", 0, 0,
         RCPT_REJECT_MISSING_ID, 0},
        {"{\"message_id\":1,\"message_id\":\"a\",\"status\":\"SENT\"}", 0, 1, OK, 0},
        {"{\"Message_id\":\"a\",\"status\":\"SENT\"}", 0, 0, RCPT_REJECT_MISSING_ID, 0},
        {"{\"x\":{\"message_id\":\"a\"},\"status\":\"SENT\"}", 0, 0, RCPT_REJECT_MISSING_ID, 0},
    };
    check_all(examples, COUNT(examples));

    struct bench bench;
    set_up(&bench, 8);
    for (int bytes = 254; bytes <= 300; bytes++) {
        char id[301], value[512];
        memset(id, 'i', sizeof(id));
        id[bytes] = '\0';
        bool valid = bytes <= RCPT_RECORD_MAX_ID_BYTES;
        snprintf(value, sizeof(value), "{\"message_id\":\"%s\",\"status\":\"SENT\"}", id);
        check(&bench, &(struct example){value, 0, valid, valid ? OK : RCPT_REJECT_ID_TOO_LONG, 0});
        memcpy(id, "\\u0069", 6); /* counted as it is meant, not as it is written */
        snprintf(value, sizeof(value), "{\"message_id\":\"%siiiii\",\"status\":\"SENT\"}", id);
        check(&bench, &(struct example){value, 0, valid, valid ? OK : RCPT_REJECT_ID_TOO_LONG, 0});
    }
    tear_down(&bench);
}

static void statuses_are_names_or_codes_of_the_ladder(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {"{\"message_id\":\"m\"}", 0, 0, RCPT_REJECT_MISSING_STATUS, 0},
        {STATUS("null"), 0, 0, RCPT_REJECT_MISSING_STATUS, 0},
        {STATUS("\"\""), 0, 0, RCPT_REJECT_UNKNOWN_STATUS, 0},
        {STATUS("\"sent\""), 0, 0, RCPT_REJECT_UNKNOWN_STATUS, 0},
        {STATUS("\"300\""), 0, 0, RCPT_REJECT_UNKNOWN_STATUS, 0},
        {STATUS("\"SENT\\u0000\""), 0, 0, RCPT_REJECT_UNKNOWN_STATUS, 0},
        {STATUS("301"), 0, 0, RCPT_REJECT_UNKNOWN_STATUS, 0},
        {STATUS("-300"), 0, 0, RCPT_REJECT_UNKNOWN_STATUS, 0},
        {STATUS("300.0"), 0, 0, RCPT_REJECT_UNKNOWN_STATUS, 0},
        {STATUS("3e2"), 0, 0, RCPT_REJECT_UNKNOWN_STATUS, 0},
        {STATUS("4294967596"), 0, 0, RCPT_REJECT_UNKNOWN_STATUS, 0},
        {STATUS("18446744073709551916"), 0, 0, RCPT_REJECT_UNKNOWN_STATUS, 0},
        {STATUS("true"), 0, 0, RCPT_REJECT_UNKNOWN_STATUS, 0},
        {STATUS("[300]"), 0, 0, RCPT_REJECT_UNKNOWN_STATUS, 0},
        {STATUS("{}"), 0, 0, RCPT_REJECT_UNKNOWN_STATUS, 0},
        {STATUS("300"), 0, 1, OK, 0},
        {STATUS("0"), 0, 1, OK, 0},
        {STATUS("9007"), 0, 1, OK, 0},
        {STATUS("\"MACHINE_OPEN\""), 0, 1, OK, 0},
        {STATUS("\"\\u0053ENT\""), 0, 1, OK, 0},
        {"{\"message_id\":\"m\",\"st\\u0061tus\":\"SENT\"}", 0, 1, OK, 0},
        {"{\"message_id\":\"m\",\"status\":\"SENT\",\"status\":{}}", 0, 0,
         RCPT_REJECT_UNKNOWN_STATUS, 0},
        {"{\"message_id\":\"m\",\"status\":\"NONE\",\"status\":\"SENT\"}", 0, 1, OK, 0},
    };
    check_all(examples, COUNT(examples));
}

static void a_channel_may_change_what_a_status_means(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        int code;
    } examples[] = {
        {WITH("\"status\":\"BOUNCED_HARD\",\"channel\":\"email\""), 650},
        {WITH("\"channel\":\"email\",\"status\":\"BOUNCED_HARD\""), 650},
        {WITH("\"status\":470,\"channel\":\"em\\u0061il\""), 650},
        {WITH("\"status\":\"BOUNCED_HARD\",\"channel\":\"EMAIL\""), 650},
        {WITH("\"status\":470,\"channel\":\"Email\""), 650},
        {WITH("\"status\":470,\"channel\":\"sms\""), 470},
        {WITH("\"status\":470,\"channel\":\"\""), 470},
        {WITH("\"status\":470,\"channel\":null"), 470},
        {WITH("\"status\":470,\"channel\":[\"email\"]"), 470},
        {WITH("\"status\":470,\"channel\":\"email\",\"channel\":7"), 470},
        {WITH("\"status\":470"), 470},
        {WITH("\"status\":300,\"channel\":\"email\""), 300},
    };
    struct bench bench;
    set_up(&bench, 8);
    for (size_t i = 0; i < COUNT(examples); i++) {
        struct rcpt_record *record = decode(&bench, examples[i].value, strlen(examples[i].value));
        assert_int_equal(record->event_count, 1);
        assert_int_equal(entry_of(&bench, &record->events[0])->code, examples[i].code);
        rcpt_record_free(record);
    }
    tear_down(&bench);
}

#define FLAGS(list) WITH("\"status\":\"OPENED\",\"flags\":" list)
#define COMPLAINED  1u
#define REPLIED     8u

static void flags_are_a_list_of_names_beside_the_status(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        uint32_t flags;
    } examples[] = {
        {WITH("\"status\":\"OPENED\""), 0},
        {FLAGS("[]"), 0},
        {FLAGS("[\"COMPLAINED\"]"), COMPLAINED},
        {FLAGS(" [ \"REPLIED\" ,\n\"COMPLAINED\" ] "), REPLIED | COMPLAINED},
        {FLAGS("[\"\\u0043OMPLAINED\"]"), COMPLAINED},
        {FLAGS("[\"REPLIED\",\"REPLIED\"]"), REPLIED},
        {FLAGS("null"), 0},
        /* the last of equal keys wins */
        {FLAGS("[\"REPLIED\"],\"flags\":[\"COMPLAINED\"]"), COMPLAINED},
        {FLAGS("[\"REPLIED\"],\"flags\":null"), 0},
        {FLAGS("[17,\"REPLIED\"],\"flags\":[]"), 0},
        {FLAGS("\"REPLIED\",\"flags\":[\"COMPLAINED\"]"), COMPLAINED},
        /* a flag is counted once, whichever way it is named */
        {WITH("\"status\":\"REPLIED\",\"flags\":[\"REPLIED\",\"COMPLAINED\"]"), COMPLAINED},
        /* those of a wrapper belong to nobody */
        {"{\"flags\":[\"REPLIED\"],\"events\":[" FLAGS("[\"COMPLAINED\"]") "]}", COMPLAINED},
        {"{\"events\":[" FLAGS("[\"COMPLAINED\"]") "],\"flags\":[\"REPLIED\"]}", COMPLAINED},
        {"[" FLAGS("[\"REPLIED\"]") "," WITH("\"status\":\"OPENED\"") "]", REPLIED},
    };
    struct bench bench;
    set_up(&bench, 1);
    for (size_t i = 0; i < COUNT(examples); i++) {
        struct rcpt_record *record = decode(&bench, examples[i].value, strlen(examples[i].value));
        assert_int_equal(record->reject_count, 0);
        assert_int_equal(record->events[0].flags, examples[i].flags);
        for (uint32_t event = 1; event < record->event_count; event++)
            assert_int_equal(record->events[event].flags, 0);
        rcpt_record_free(record);
    }
    tear_down(&bench);
}

/* Neither the status nor the other flags are applied: the letter has all of the receipt. */
static void a_flag_that_cannot_be_read_refuses_the_receipt(void **state)
{
    (void)state;
    static const struct {
        const char *value, *detail;
    } examples[] = {
        {FLAGS("\"UNSUBSCRIBED\""), "flags is a text: write a list, [\"UNSUBSCRIBED\"]"},
        {FLAGS("9004"), "flags is not a list of names"},
        {FLAGS("true"), "flags is not a list of names"},
        {FLAGS("{\"a\":[\"REPLIED\"]}"), "flags is not a list of names"},
        {FLAGS("[\"REPLIED\"],\"flags\":{}"), "flags is not a list of names"},
        {FLAGS("[\"REPLIED\",\"unsubscribe\"]"),
         "flags holds \"unsubscribe\", not in the ladder: did you mean \"UNSUBSCRIBED\"?"},
        {FLAGS("[\"machine-open\"]"),
         "flags holds \"machine-open\", not in the ladder: did you mean \"MACHINE_OPEN\"?"},
        {FLAGS("[\"a\\nb\"]"), "flags holds \"a?b\", which is no flag of the ladder"},
        {FLAGS("[\"\"]"), "flags holds \"\", which is no flag of the ladder"},
        {FLAGS("[\"SENT\"]"), "flags holds \"SENT\", which is a status: name it in status"},
        {FLAGS("[9004]"), "flags holds 9004: write the name, \"REPLIED\""},
        {FLAGS("[17]"), "flags holds more than text: write names of the ladder's flags"},
        {FLAGS("[\"REPLIED\",null]"),
         "flags holds more than text: write names of the ladder's flags"},
        {FLAGS("[[\"REPLIED\"]]"), "flags holds more than text: write names of the ladder's flags"},
        {FLAGS("[{\"a\":\"REPLIED\"}]"),
         "flags holds more than text: write names of the ladder's flags"},
    };
    struct bench bench;
    set_up(&bench, 1);
    for (size_t i = 0; i < COUNT(examples); i++) {
        struct rcpt_record *record = decode(&bench, examples[i].value, strlen(examples[i].value));
        assert_int_equal(record->event_count, 0);
        assert_int_equal(record->reject_count, 1);
        assert_int_equal(record->rejects[0].reason, RCPT_REJECT_INVALID_FLAGS);
        assert_string_equal(record->rejects[0].detail, examples[i].detail);
        rcpt_record_free(record);
    }
    tear_down(&bench);
}

static void times_are_texts_or_epochs_or_the_records(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        int64_t at_us; /* -1: invalid_time */
    } examples[] = {
        {STATUS("\"SENT\""), TIMESTAMP_US},
        {AT("null"), TIMESTAMP_US},
        {AT("\"2026-11-21T02:30:00.5Z\""), INT64_C(1795228200500000)},
        {AT("\"2026-11-21T02:30:00\\u002e5Z\""), INT64_C(1795228200500000)},
        {AT("0"), TIMESTAMP_US},
        {AT("0.0"), TIMESTAMP_US},
        {AT("\"0\""), TIMESTAMP_US},
        {AT("\"1970-01-01T00:00:00Z\""), TIMESTAMP_US},
        {AT("\"1970-01-01T01:00:00+01:00\""), TIMESTAMP_US},
        {AT("1795228200"), INT64_C(1795228200000000)},
        {AT("1795228200500"), INT64_C(1795228200500000)},
        {AT("1795228200.5"), INT64_C(1795228200500000)},
        {AT("\"1795228200\""), INT64_C(1795228200000000)},
        {AT("\"1795228200500.25\""), INT64_C(1795228200500250)},
        {AT("\"\""), -1},
        {AT("\"yesterday\""), -1},
        {AT("\"2026-11-21T02:30:00\""), -1},
        {AT("-1"), -1},
        {AT("1e99"), -1},
        {AT("true"), -1},
        {AT("[1795228200]"), -1},
        {AT("{}"), -1},
        {AT("1795228200,\"at\":null"), TIMESTAMP_US},
    };
    struct bench bench;
    set_up(&bench, 8);
    for (size_t i = 0; i < COUNT(examples); i++) {
        struct rcpt_record *record = decode(&bench, examples[i].value, strlen(examples[i].value));
        if (examples[i].at_us < 0) {
            assert_int_equal(record->reject_count, 1);
            assert_int_equal(record->rejects[0].reason, RCPT_REJECT_INVALID_TIME);
            assert_memory_equal(record->rejects[0].detail, "at is not a time", 16);
        } else {
            assert_int_equal(record->event_count, 1);
            assert_true(record->events[0].at_us == examples[i].at_us);
        }
        rcpt_record_free(record);
    }
    tear_down(&bench);
}

static void the_records_time_is_kept_within_1970_and_9999(void **state)
{
    (void)state;
    static const struct {
        int64_t timestamp_ms, at_us;
    } examples[] = {
        {-1, 0},
        {INT64_MIN, 0},
        {0, 0},
        {5, 5000},
        {INT64_C(253402300799999), INT64_C(253402300799999000)},
        {INT64_C(253402300800000), INT64_C(253402300799999000)},
        {INT64_C(1795782291000000), INT64_C(253402300799999000)},    /* microseconds */
        {INT64_C(1795782291000000000), INT64_C(253402300799999000)}, /* nanoseconds */
        {INT64_MAX, INT64_C(253402300799999000)},
    };
    struct bench bench;
    set_up(&bench, 8);
    for (size_t i = 0; i < COUNT(examples); i++) {
        struct rcpt_record_input input = input_of(EVENT("a"), strlen(EVENT("a")));
        input.timestamp_ms = examples[i].timestamp_ms;
        struct rcpt_record *record = rcpt_record_decode(bench.decoder, &input);
        assert_true(record->events[0].at_us == examples[i].at_us);
        assert_true(record->timestamp_ms == examples[i].at_us / 1000);
        rcpt_record_free(record);
    }
    tear_down(&bench);
}

/* Of each reason 99 have letters of their own, and one letter has the rest, whatever stands between. */
static void many_refusals_for_one_reason_share_a_letter(void **state)
{
    (void)state;
    static const struct {
        uint32_t empty, scalars, good, letters, receipts;
    } examples[] = {{99, 0, 0, 99, 0},         {100, 0, 1, 100, 0},      {101, 0, 0, 100, 2},
                    {101, 99, 3, 199, 2},      {10000, 0, 0, 100, 9901}, {5000, 0, 5000, 100, 4901},
                    {3000, 3000, 2, 200, 2901}};
    struct bench bench;
    set_up(&bench, 8);
    for (size_t i = 0; i < COUNT(examples); i++) {
        char *value = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&value, &size);
        uint32_t total = examples[i].empty + examples[i].scalars + examples[i].good, left[3];
        memcpy(left, &examples[i], sizeof(left));
        for (uint32_t at = 0, kind = 0; at < total; kind++) {
            static const char *const texts[] = {"{\"x\":1}", "7", EVENT("a")};
            if (left[kind % 3] == 0)
                continue;
            left[kind % 3]--;
            fprintf(out, "%c%s", at++ == 0 ? '[' : ',', texts[kind % 3]);
        }
        fputc(']', out);
        fclose(out);
        struct rcpt_record *record = decode(&bench, value, size);
        assert_int_equal(record->event_count, examples[i].good);
        assert_int_equal(record->reject_count, examples[i].letters);
        uint32_t receipts = 0;
        for (uint32_t at = 0; at < record->reject_count; at++) {
            const struct rcpt_reject *reject = &record->rejects[at];
            const char *payload = record->value + reject->payload;
            receipts += reject->receipts;
            if (reject->receipts == 1)
                continue;
            bool scalar = reject->reason == RCPT_REJECT_NOT_AN_EVENT;
            uint32_t count = 0;
            for (const char *index = record->value + reject->indexes; *index != '\0'; index++)
                count += *index == ',' || *index == '}';
            assert_int_equal(count, reject->receipts);
            assert_int_equal(reject->receipts, examples[i].receipts);
            assert_int_equal(reject->payload_size, reject->receipts * (scalar ? 2 : 8) + 1);
            assert_memory_equal(payload, scalar ? "[7,7" : "[{\"x\":1},", 4);
            assert_int_equal(payload[reject->payload_size - 1], ']');
            assert_int_equal(strtol(record->value + reject->indexes + 1, NULL, 10), reject->index);
            assert_non_null(
                strstr(reject->detail, scalar ? "not an object" : "message_id is missing"));
        }
        assert_int_equal(receipts, examples[i].empty + examples[i].scalars);
        assert_int_equal(rcpt_record_crc(record), rcpt_hash_record(NULL, 0, value, size));
        rcpt_record_free(record);
        free(value);
    }
    tear_down(&bench);
}

static void the_first_of_several_faults_is_named(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {"{\"at\":\"x\",\"status\":\"x\"}", 0, 0, RCPT_REJECT_MISSING_ID, 0},
        {"{\"at\":\"x\",\"status\":\"x\",\"message_id\":1}", 0, 0, RCPT_REJECT_INVALID_ID, 0},
        {"{\"at\":\"x\",\"status\":\"x\",\"message_id\":\"m\"}", 0, 0, RCPT_REJECT_UNKNOWN_STATUS,
         0},
        {"{\"at\":\"x\",\"message_id\":\"m\"}", 0, 0, RCPT_REJECT_MISSING_STATUS, 0},
    };
    check_all(examples, COUNT(examples));
}

static void details_say_what_is_wrong_and_show_no_id(void **state)
{
    (void)state;
    static const struct {
        const char *value, *detail;
    } examples[] = {
        {STATUS("\"DELIVRD\""),
         "status \"DELIVRD\" is not in the ladder: did you mean \"DELIVERED\"?"},
        {STATUS("\"delivered\""),
         "status \"delivered\" is not in the ladder: did you mean \"DELIVERED\"?"},
        {STATUS("\"bounced-hard\""),
         "status \"bounced-hard\" is not in the ladder: did you mean \"BOUNCED_HARD\"?"},
        {STATUS("\"600\""), "status \"600\" is a code in quotes: write 600 or \"DELIVERED\""},
        {STATUS("\"601\""), "status \"601\" is not in the ladder"},
        {STATUS("\"zzz\""), "status \"zzz\" is not in the ladder"},
        {AT("\"2026-11-21 02:30:00.5\""), "at is not a time without a zone: write "
                                          "2026-11-21 02:30:00.5Z, or an offset like +01:00"},
        {AT("\"2026-11-21\""), "at is not a time but a date: write 2026-11-21T00:00:00Z"},
        {AT("17952282005000000"),
         "at is not a time: write it like 2026-11-21T02:30:00Z, or as epoch in s or ms"},
        {AT("true"),
         "at is not a time: write it like 2026-11-21T02:30:00Z, or as epoch in s or ms"},
        {STATUS("471"), "status 471 is not in the ladder"},
        {STATUS("1.5"), "status 1.5 is not in the ladder"},
        {STATUS("\"a\\n\xc3\xa9~\\u0000\""), "status \"a???~?\" is not in the ladder"},
        {STATUS("\"0123456789012345678901234567890123456789X\""),
         "status \"0123456789012345678901234567890123456789\" is not in the ladder"},
        {STATUS("[]"), "status is neither a name nor a code"},
        {EVENT(""), "message_id is empty"},
        {"{}", "message_id is missing"},
        {"{\"message_id\":123456}", "message_id is not a string: write the number in quotes"},
        {"{\"message_id\":[]}", "message_id is not a string"},
        {EVENT("secret\\u0000"), "message_id holds a NUL"},
        {"[7]", "the element is not an object"},
        {"7", "the value is neither an object nor an array"},
        {"{\"events\":7}", "events is not an array"},
        {"[1,2", "byte 4: the text ends too early"},
        {"[1}", "byte 2: expected ',' or ']'"},
        {"[\"\xff\"]", "the element is not an object"},
        {"{\"events\":[],\"\xff\":1}", "byte 0: invalid utf-8 outside of the events"},
        {"[\xff]", "byte 1: expected a value"},
        {"[{\"message_id\":\"\xe2\",\"status\":300}]", "the event is not UTF-8"},
        {EVENT("a\\ud800"), "message_id holds half a surrogate pair"},
        {"[1,\f2]", "byte 3: expected a value"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "byte 32: nested too deep"},
    };
    struct bench bench;
    set_up(&bench, 8);
    for (size_t i = 0; i < COUNT(examples); i++) {
        struct rcpt_record *record = decode(&bench, examples[i].value, strlen(examples[i].value));
        assert_int_equal(record->reject_count, 1);
        assert_string_equal(record->rejects[0].detail, examples[i].detail);
        rcpt_record_free(record);
    }
    char value[400] = "{\"message_id\":\"";
    memset(value + strlen(value), 's', 300);
    strcpy(value + 315, "\"}");
    struct rcpt_record *record = decode(&bench, value, strlen(value));
    assert_string_equal(record->rejects[0].detail,
                        "message_id has 300 bytes, at most 255 are allowed");
    rcpt_record_free(record);
    tear_down(&bench);
}

static void payloads_are_the_exact_bytes_of_each_event(void **state)
{
    (void)state;
    static const char *const events[] = {
        "{\"message_id\":\"a\",\"status\":\"SENT\",\"x\":{\"y\":[{},{\"z\":\"}\"}]}}",
        "{ \"message_id\" : \"b\\u0041\" ,\n \"status\" : 300 }",
        "{\"message_id\":\"c\",\"status\":\"NONE\"}",
        "{\"x\":\"\\\"}\",\"status\":\"SENT\",\"message_id\":\"\xc3\xa9\"}",
        "{}",
        "{\"message_id\":\"f\",\"status\":\"SENT\",\"n\":-1.5e-7}",
    };
    static const char *const frames[][3] = {
        {"[", ",", "]"},
        {" [ ", " ,\n", "\t] "},
        {"{\"events\":[", ",", "]}"},
        {" {\"a\":[1,{\"b\":\"\\n\"}], \"events\" : [\r\n", " , ", " ] , \"z\":{} } "},
    };
    struct bench bench;
    set_up(&bench, 1);
    for (size_t frame = 0; frame < COUNT(frames); frame++) {
        char value[2048];
        strcpy(value, frames[frame][0]);
        for (size_t i = 0; i < COUNT(events); i++) {
            strcat(value, i > 0 ? frames[frame][1] : "");
            strcat(value, events[i]);
        }
        strcat(value, frames[frame][2]);
        struct rcpt_record *record = decode(&bench, value, strlen(value));
        assert_int_equal(record->event_count, 4);
        assert_int_equal(record->reject_count, 2);
        for (uint32_t i = 0; i < 4; i++) {
            const struct rcpt_event *event = &record->events[i];
            assert_int_equal(event->payload_size, strlen(events[event->index]));
            assert_memory_equal(record->value + event->payload, events[event->index],
                                event->payload_size);
        }
        for (uint32_t i = 0; i < 2; i++) {
            const struct rcpt_reject *reject = &record->rejects[i];
            assert_int_equal(reject->payload_size, strlen(events[reject->index]));
            assert_memory_equal(record->value + reject->payload, events[reject->index],
                                reject->payload_size);
        }
        rcpt_record_free(record);
    }
    const char *single = " {\"message_id\":\"a\",\"status\":\"SENT\"}\n";
    struct rcpt_record *record = decode(&bench, single, strlen(single));
    assert_int_equal(record->events[0].payload, 1);
    assert_int_equal(record->events[0].payload_size, strlen(single) - 2);
    rcpt_record_free(record);
    tear_down(&bench);
}

/* What is no object has no place of its own in the parser: it is what follows the element before.
 */
static void payloads_of_elements_that_are_no_objects_are_exact_too(void **state)
{
    (void)state;
    static const char *const values[] = {"[7]", " [ \n7 ] ", "{\"events\":[7]}",
                                         "{\"a\":[1,2], \"events\" : [ 7 ]}"};
    struct bench bench;
    set_up(&bench, 1);
    for (size_t i = 0; i < COUNT(values); i++) {
        struct rcpt_record *record = decode(&bench, values[i], strlen(values[i]));
        assert_int_equal(record->reject_count, 1);
        assert_int_equal(record->rejects[0].reason, RCPT_REJECT_NOT_AN_EVENT);
        assert_int_equal(record->rejects[0].payload_size, 1);
        assert_int_equal(record->value[record->rejects[0].payload], '7');
        rcpt_record_free(record);
    }
    tear_down(&bench);
}

static void a_refused_record_is_kept_whole(void **state)
{
    (void)state;
    static const char value[] = "[" EVENT("a") "\0\xff garbage";
    struct bench bench;
    set_up(&bench, 8);
    struct rcpt_record *record = decode(&bench, value, sizeof(value));
    assert_int_equal(record->event_count, 0);
    assert_int_equal(record->reject_count, 1);
    assert_int_equal(record->value_size, sizeof(value));
    assert_memory_equal(record->value, value, sizeof(value));
    assert_int_equal(record->rejects[0].payload, 0);
    assert_int_equal(record->rejects[0].payload_size, sizeof(value));
    rcpt_record_free(record);
    tear_down(&bench);
}

static void a_record_without_a_value_is_empty(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench, 8);
    static const char *const values[] = {NULL, ""};
    for (size_t i = 0; i < COUNT(values); i++) {
        struct rcpt_record *record = decode(&bench, values[i], 0);
        assert_int_equal(record->reject_count, 1);
        assert_int_equal(record->rejects[0].reason, RCPT_REJECT_EMPTY_RECORD);
        assert_int_equal(record->rejects[0].index, -1);
        assert_int_equal(record->value_size, 0);
        rcpt_record_free(record);
    }
    tear_down(&bench);
}

static char *repeat(const char *element, size_t count, size_t *size)
{
    size_t element_size = strlen(element);
    char *value = malloc(count * (element_size + 1) + 2);
    size_t used = 0;
    value[used++] = '[';
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            value[used++] = ',';
        memcpy(value + used, element, element_size);
        used += element_size;
    }
    value[used++] = ']';
    *size = used;
    return value;
}

static void a_record_holds_10_000_events_and_no_more(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench, 8);
    static const char *const elements[] = {EVENT("m"), "{}", "7"};
    for (size_t i = 0; i < COUNT(elements); i++) {
        size_t size;
        char *value = repeat(elements[i], RCPT_RECORD_MAX_EVENTS, &size);
        struct rcpt_record *record = decode(&bench, value, size);
        assert_int_equal(record->event_count + refusals(record), RCPT_RECORD_MAX_EVENTS);
        rcpt_record_free(record);
        free(value);
        value = repeat(elements[i], RCPT_RECORD_MAX_EVENTS + 1, &size);
        check(&bench, &(struct example){value, size, 0, RCPT_REJECT_TOO_MANY_EVENTS, -1});
        value[size - 1] = ','; /* not JSON weighs more */
        check(&bench, &(struct example){value, size, 0, RCPT_REJECT_INVALID_JSON, -1});
        free(value);
    }
    tear_down(&bench);
}

static void a_huge_record_leaves_little_memory_behind(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench, 8);
    static const char *const elements[] = {
        EVENT("\\u006d-0123456789012345678901234567890123456789"), "{}"};
    size_t before = mallinfo2().uordblks;
    for (size_t i = 0; i < COUNT(elements); i++) {
        size_t size;
        char *value = repeat(elements[i], RCPT_RECORD_MAX_EVENTS, &size);
        struct rcpt_record *record = decode(&bench, value, size);
        assert_int_equal(record->event_count + refusals(record), RCPT_RECORD_MAX_EVENTS);
        rcpt_record_free(record);
        free(value);
    }
    assert_true(mallinfo2().uordblks < before + 200 * 1024);
    tear_down(&bench);
}

static void a_value_has_8_mib_and_no_more(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench, 8);
    char *value = malloc(RCPT_RECORD_MAX_BYTES + 1);
    memset(value, ' ', RCPT_RECORD_MAX_BYTES + 1);
    memcpy(value, EVENT("m"), strlen(EVENT("m")));
    check(&bench, &(struct example){value, RCPT_RECORD_MAX_BYTES, 1, OK, 0});
    struct rcpt_record *record = decode(&bench, value, RCPT_RECORD_MAX_BYTES + 1);
    assert_int_equal(record->event_count, 0);
    assert_int_equal(record->rejects[0].reason, RCPT_REJECT_RECORD_TOO_LARGE);
    assert_int_equal(record->rejects[0].payload_size, RCPT_RECORD_MAX_LETTER_BYTES);
    assert_int_equal(record->rejects[0].full_size, RCPT_RECORD_MAX_BYTES + 1);
    assert_int_equal(record->value_size, RCPT_RECORD_MAX_LETTER_BYTES);
    assert_memory_equal(record->value, value, RCPT_RECORD_MAX_LETTER_BYTES);
    assert_int_equal(rcpt_record_crc(record),
                     rcpt_hash_record(NULL, 0, value, RCPT_RECORD_MAX_BYTES + 1));
    rcpt_record_free(record);
    free(value);
    tear_down(&bench);
}

static void a_record_that_is_refused_as_a_whole_costs_no_more_than_its_letter(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench, 8);
    const size_t sizes[] = {RCPT_RECORD_MAX_LETTER_BYTES - 1, RCPT_RECORD_MAX_LETTER_BYTES,
                            RCPT_RECORD_MAX_LETTER_BYTES + 1, 1024 * 1024, 200 * 1024 * 1024};
    char *value = calloc(1, sizes[COUNT(sizes) - 1]);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
        struct rcpt_record *record = decode(&bench, value, sizes[i]);
        size_t kept =
            sizes[i] < RCPT_RECORD_MAX_LETTER_BYTES ? sizes[i] : RCPT_RECORD_MAX_LETTER_BYTES;
        assert_int_equal(record->rejects[0].payload_size, kept);
        assert_int_equal(record->rejects[0].full_size, sizes[i]);
        assert_true(record->memory_bytes < kept + 1024);
        assert_true(mallinfo2().uordblks + mallinfo2().hblkhd < before + kept + 64 * 1024);
        rcpt_record_free(record);
    }
    free(value);
    tear_down(&bench);
}

static void a_record_that_could_not_be_read_is_refused_with_the_reason(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench, 8);
    struct rcpt_record_input input = {.topic = "t", .offset = 7, .unreadable = "not inflated"};
    struct rcpt_record *record = rcpt_record_decode(bench.decoder, &input);
    assert_int_equal(record->reject_count, 1);
    assert_int_equal(record->rejects[0].reason, RCPT_REJECT_RECORD_TOO_LARGE);
    assert_string_equal(record->rejects[0].detail, "not inflated");
    assert_true(record->unreadable);
    rcpt_record_free(record);
    tear_down(&bench);
}

/* Ids: plain, escaped, and with each kind of fault among them; `index` tells them apart. */
static char *mixed_value(size_t count, size_t *size)
{
    char *value = malloc(count * 64 + 2);
    size_t used = 0;
    value[used++] = '[';
    for (size_t i = 0; i < count; i++) {
        const char *prefix = i % 7 == 3 ? "\\u0069d" : "id";
        const char *status = i % 7 != 3 && i % 11 == 5 ? "NONE" : "SENT";
        used += (size_t)sprintf(value + used, "%s{\"message_id\":\"%s-%zu\",\"status\":\"%s\"}",
                                i > 0 ? "," : "", prefix, i, status);
    }
    value[used++] = ']';
    *size = used;
    return value;
}

static void events_and_rejects_are_grouped_by_lane_in_order(void **state)
{
    (void)state;
    static const uint32_t lane_counts[] = {1, 2, 8, 256};
    for (size_t run = 0; run < COUNT(lane_counts); run++) {
        struct bench bench;
        uint32_t lanes = lane_counts[run];
        set_up(&bench, lanes);
        size_t size;
        char *value = mixed_value(3000, &size);
        struct rcpt_record *record = decode(&bench, value, size);
        free(value); /* the record stands on its own */
        assert_int_equal(record->event_count + refusals(record), 3000);
        assert_int_equal(record->lane_events[0], 0);
        assert_int_equal(record->lane_events[lanes], record->event_count);
        assert_int_equal(record->lane_rejects[0], 0);
        assert_int_equal(record->lane_rejects[lanes], record->reject_count);
        for (uint32_t lane = 0; lane < lanes; lane++) {
            for (uint32_t i = record->lane_events[lane]; i < record->lane_events[lane + 1]; i++) {
                const struct rcpt_event *event = &record->events[i];
                char id[32];
                snprintf(id, sizeof(id), "id-%u", event->index);
                assert_int_equal(event->id_size, strlen(id));
                assert_memory_equal(event->id, id, event->id_size);
                assert_true(event->hash == rcpt_hash_text_extended(id, strlen(id), 0));
                assert_int_equal(event->hash & (lanes - 1), lane);
                assert_true(i == record->lane_events[lane] || event[-1].index < event->index);
            }
            for (uint32_t i = record->lane_rejects[lane]; i < record->lane_rejects[lane + 1]; i++) {
                const struct rcpt_reject *reject = &record->rejects[i];
                uint64_t hash = rcpt_hash_position("dlr-events", 3, 42, (uint32_t)reject->index);
                assert_int_equal(hash & (lanes - 1), lane);
                assert_int_equal(reject->index % 11, 5);
                assert_true(i == record->lane_rejects[lane] || reject[-1].index < reject->index);
            }
        }
        rcpt_record_free(record);
        tear_down(&bench);
    }
}

static struct rcpt_record *decode_numbered(struct bench *bench, unsigned number)
{
    char value[64];
    int size = snprintf(value, sizeof(value), "{\"message_id\":\"id-%u\",\"status\":\"%s\"}",
                        number, number % 5 == 0 ? "NONE" : "SENT");
    return decode(bench, value, (size_t)size);
}

/* With one event, or one reject. */
static void assert_numbered(const struct rcpt_record *record, unsigned number, uint32_t lanes)
{
    char id[16];
    snprintf(id, sizeof(id), "id-%u", number);
    assert_non_null(memmem(record->value, record->value_size, id, strlen(id)));
    assert_int_equal(record->event_count, number % 5 != 0);
    assert_int_equal(record->reject_count, number % 5 == 0);
    uint64_t hash = number % 5 == 0 ? rcpt_hash_position("dlr-events", 3, 42, 0)
                                    : rcpt_hash_text_extended(id, strlen(id), 0);
    const uint32_t *table = number % 5 == 0 ? record->lane_rejects : record->lane_events;
    const uint32_t *other = number % 5 == 0 ? record->lane_events : record->lane_rejects;
    for (uint32_t lane = 0; lane <= lanes; lane++) {
        assert_int_equal(table[lane], lane > (hash & (lanes - 1)));
        assert_int_equal(other[lane], 0);
    }
}

/* They share memory: those that are freed, in any order, take nothing from the others. */
static void records_of_one_event_stand_on_their_own(void **state)
{
    (void)state;
    static const uint32_t lane_counts[] = {1, 8, 256};
    enum { RECORDS = 1000 };
    struct rcpt_record *records[RECORDS];
    for (size_t run = 0; run < COUNT(lane_counts); run++) {
        struct bench bench;
        set_up(&bench, lane_counts[run]);
        for (unsigned i = 0; i < RECORDS; i++)
            records[i] = decode_numbered(&bench, i);
        for (unsigned i = 0; i < RECORDS; i += 3)
            rcpt_record_free(records[i]);
        for (unsigned i = 0; i < RECORDS; i += 3)
            records[i] = decode_numbered(&bench, i);
        for (unsigned i = 0; i < RECORDS; i++)
            assert_true(records[i]->memory_bytes < 400);
        tear_down(&bench); /* before the records */
        for (unsigned i = RECORDS; i-- > 0;) {
            assert_numbered(records[i], i, lane_counts[run]);
            rcpt_record_free(records[i]);
        }
    }
}

static void every_lane_table_can_be_walked_when_there_is_nothing(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench, 256);
    struct rcpt_record *record = decode(&bench, "[]", 2);
    for (uint32_t lane = 0; lane <= 256; lane++) {
        assert_int_equal(record->lane_events[lane], 0);
        assert_int_equal(record->lane_rejects[lane], 0);
    }
    rcpt_record_free(record);
    tear_down(&bench);
}

static void a_record_carries_its_position_and_identity(void **state)
{
    (void)state;
    struct bench bench;
    set_up(&bench, 8);
    struct rcpt_record_input input = input_of(EVENT("a"), strlen(EVENT("a")));
    input.key = "key";
    input.key_size = 3;
    struct rcpt_record *record = rcpt_record_decode(bench.decoder, &input);
    assert_int_equal(record->offset, 42);
    assert_int_equal(record->timestamp_ms, TIMESTAMP_MS);
    assert_int_equal(rcpt_record_crc(record),
                     rcpt_hash_record("key", 3, input.value, input.value_size));
    assert_int_equal(record->refs, 0);
    assert_false(record->events[0].refused);
    assert_string_equal(record->traceparent, "");
    assert_true(record->memory_bytes >=
                sizeof(*record) + sizeof(struct rcpt_event) + record->value_size);
    assert_true(record->memory_bytes < 1024);
    rcpt_record_free(record);
    tear_down(&bench);
}

static void only_a_well_formed_traceparent_is_kept(void **state)
{
    (void)state;
    static const char *const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    static const char *const bad[] = {
        "",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7 01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
    };
    struct bench bench;
    set_up(&bench, 8);
    struct rcpt_record_input input = input_of("[]", 2);
    input.traceparent = good;
    input.traceparent_size = strlen(good);
    struct rcpt_record *record = rcpt_record_decode(bench.decoder, &input);
    assert_string_equal(record->traceparent, good);
    rcpt_record_free(record);
    for (size_t i = 0; i < COUNT(bad); i++) {
        input.traceparent = bad[i];
        input.traceparent_size = strlen(bad[i]);
        record = rcpt_record_decode(bench.decoder, &input);
        assert_string_equal(record->traceparent, "");
        rcpt_record_free(record);
    }
    tear_down(&bench);
}

static void assert_tracestate(struct bench *bench, const char *parent, const char *text,
                              const char *kept)
{
    struct rcpt_record_input input = input_of(EVENT("a"), strlen(EVENT("a")));
    input.traceparent = parent;
    input.traceparent_size = strlen(parent);
    input.tracestate = text;
    input.tracestate_size = text != NULL ? strlen(text) : 0;
    struct rcpt_record *record = rcpt_record_decode(bench->decoder, &input);
    if (kept == NULL)
        assert_null(record->tracestate);
    else
        assert_string_equal(record->tracestate, kept);
    rcpt_record_free(record);
}

static void a_tracestate_is_kept_with_its_traceparent_only(void **state)
{
    (void)state;
    static const char *const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    struct bench bench;
    set_up(&bench, 8);
    assert_tracestate(&bench, parent, "congo=t61,rojo=00f067", "congo=t61,rojo=00f067");
    assert_tracestate(&bench, parent, "a=\n", NULL);
    assert_tracestate(&bench, parent, "", NULL);
    assert_tracestate(&bench, parent, NULL, NULL);
    assert_tracestate(&bench, "", "congo=t61", NULL);
    tear_down(&bench);
}

/* The number of the gateway that the event names with this JSON value; NULL: it names none. */
static uint32_t gateway_of(struct bench *bench, const char *json)
{
    char value[256];
    snprintf(value, sizeof(value), "{\"message_id\":\"m\",\"status\":\"SENT\"%s%s}",
             json != NULL ? ",\"gateway\":" : "", json != NULL ? json : "");
    struct rcpt_record *record = decode(bench, value, strlen(value));
    assert_int_equal(record->event_count, 1);
    uint32_t gateway = record->events[0].gateway;
    rcpt_record_free(record);
    return gateway;
}

static void a_part_is_read_with_its_total(void **state)
{
    (void)state;
#define PART(fields) "{\"message_id\":\"m\",\"status\":\"DELIVERED\"" fields "}"
    static const struct {
        const char *value;
        int part, parts; /* parts -1: refused */
        const char *detail;
    } examples[] = {
        {PART(",\"part\":2,\"parts\":3"), 2, 3, NULL},
        {PART(",\"parts\":\"255\",\"part\":\"1\""), 1, 255, NULL},
        {PART(",\"part\":2"), 2, 0, NULL},
        {PART(",\"parts\":2"), 0, 0, NULL},
        {PART(",\"part\":1,\"parts\":1"), 0, 0, NULL},
        {PART(",\"part\":null,\"parts\":null"), 0, 0, NULL},
        {PART(",\"part\":\"a\",\"parts\":2"), 0, -1, "part a is no whole number from 1 to 255"},
        {PART(",\"part\":1,\"parts\":[2]"), 0, -1, "parts is no whole number from 1 to 255"},
        {PART(",\"part\":true"), 0, -1, "part is no whole number from 1 to 255"},
        {PART(",\"part\":\"\",\"parts\":2"), 0, -1, "part is no whole number from 1 to 255"},
        {PART(",\"part\":1,\"parts\":2.5"), 0, -1, "parts 2.5 is no whole number from 1 to 255"},
        {PART(",\"part\":1.5,\"parts\":2"), 0, -1, "part 1.5 is no whole number from 1 to 255"},
        {PART(",\"part\":\"1.0\",\"parts\":2"), 0, -1, "part 1.0 is no whole number from 1 to 255"},
        {PART(",\"part\":-1,\"parts\":2"), 0, -1, "part -1 is no whole number from 1 to 255"},
        {PART(",\"part\":-1"), 0, -1, "part -1 is no whole number from 1 to 255"},
        {PART(",\"part\":\"-1\",\"parts\":1"), 0, -1, "part -1 is no whole number from 1 to 255"},
        {PART(",\"part\":1,\"parts\":0"), 0, -1, "parts 0 is no whole number from 1 to 255"},
        {PART(",\"parts\":0"), 0, -1, "parts 0 is no whole number from 1 to 255"},
        {PART(",\"part\":0,\"parts\":2"), 0, -1, "part 0 is no whole number from 1 to 255"},
        {PART(",\"part\":3,\"parts\":2"), 0, -1,
         "part 3 of a message in 2 parts: parts count from 1"},
        {PART(",\"part\":2,\"parts\":1"), 0, -1,
         "part 2 of a message in 1 parts: parts count from 1"},
        {PART(",\"part\":1,\"parts\":256"), 0, -1, "parts 256 is no whole number from 1 to 255"},
        {PART(",\"part\":99999999999999999999,\"parts\":1e99"), 0, -1,
         "part 99999999999999999999 is no whole number from 1 to 255"},
    };
    struct bench bench;
    set_up(&bench, 1);
    for (size_t i = 0; i < COUNT(examples); i++) {
        struct rcpt_record *record = decode(&bench, examples[i].value, strlen(examples[i].value));
        if (examples[i].parts < 0) {
            assert_int_equal(record->reject_count, 1);
            assert_int_equal(record->rejects[0].reason, RCPT_REJECT_INVALID_PART);
            assert_string_equal(record->rejects[0].detail, examples[i].detail);
        } else {
            assert_int_equal(record->event_count, 1);
            assert_int_equal(record->events[0].part, examples[i].part);
            assert_int_equal(record->events[0].parts, examples[i].parts);
            assert_int_equal(record->events[0].delivers_part, examples[i].parts > 0);
        }
        rcpt_record_free(record);
    }
    tear_down(&bench);
}

#define RANGE(fields)                                                                              \
    "{\"status\":\"OPENED\",\"gateway\":\"page\",\"until\":1760789440253" fields "}"

static void expect_range(const struct rcpt_record *record, const char *recipient)
{
    const struct rcpt_range *range = &record->rejects[0].range;
    assert_int_equal(record->event_count, 0);
    assert_int_equal(record->reject_count, 1);
    assert_int_equal(range->recipient_size, strlen(recipient));
    assert_memory_equal(range->recipient, recipient, range->recipient_size);
    assert_int_equal(range->until_us, INT64_C(1760789440253000));
}

/* Also where the id is escaped: then it stands behind the record's value. */
static void a_range_names_a_person_an_account_and_a_time(void **state)
{
    (void)state;
    static const struct {
        const char *value, *recipient; /* NULL: refused */
    } examples[] = {
        {RANGE(",\"recipient\":\"5678\""), "5678"},
        {"[" RANGE(",\"recipient\":5678,\"at\":1760789450") "]", "5678"},
        {RANGE(",\"recipient\":\"\\u00e9\\/\",\"flags\":[]"), "\303\251/"},
        {RANGE(""), NULL},
        {RANGE(",\"recipient\":\"\""), NULL},
        {RANGE(",\"recipient\":\"a\\u0000\""), NULL},
        {RANGE(",\"recipient\":\"a\",\"flags\":[\"REPLIED\"]"), NULL},
        {RANGE(",\"recipient\":\"a\",\"status\":\"COMPLAINED\""), NULL},
        {RANGE(",\"recipient\":\"a\",\"gateway\":\"\""), NULL},
        {RANGE(",\"recipient\":\"a\",\"gateway\":7"), NULL},
    };
    struct bench bench;
    set_up(&bench, 1);
    rcpt_decoder_take_ranges(bench.decoder);
    for (size_t i = 0; i < COUNT(examples); i++) {
        struct rcpt_record *record = decode(&bench, examples[i].value, strlen(examples[i].value));
        if (examples[i].recipient != NULL) {
            expect_range(record, examples[i].recipient);
        } else {
            assert_int_equal(record->rejects[0].reason, RCPT_REJECT_INVALID_RANGE);
            assert_int_equal(record->rejects[0].range.recipient_size, 0);
        }
        rcpt_record_free(record);
    }
    tear_down(&bench);
}

/* A hint: what is no day is as if it were not there, and counts. */
static void a_range_is_refused_where_they_are_off(void **state)
{
    (void)state;
    static const struct example examples[] = {
        {RANGE(",\"recipient\":\"5678\""), 0, 0, RCPT_REJECT_RANGE_OFF, 0},
        {RANGE(",\"recipient\":\"5678\",\"status\":\"READ\""), 0, 0, RCPT_REJECT_UNKNOWN_STATUS, 0},
        {RANGE(",\"recipient\":\"5678\",\"until\":\"soon\""), 0, 0, RCPT_REJECT_INVALID_TIME, 0},
        {RANGE(",\"recipient\":\"5678\",\"until\":null"), 0, 0, RCPT_REJECT_MISSING_ID, 0},
        {RANGE(",\"recipient\":\"5678\",\"message_id\":\"m\""), 0, 1, OK, 0},
    };
    check_all(examples, COUNT(examples));
}

static void gateways_are_numbered_in_order_of_appearance(void **state)
{
    (void)state;
    static const char *const none[] = {NULL, "\"\"", "null", "7", "true", "{}"};
    struct bench bench;
    set_up(&bench, 8);
    for (size_t i = 0; i < COUNT(none); i++)
        assert_int_equal(gateway_of(&bench, none[i]), RCPT_RECORD_NO_GATEWAY);
    assert_int_equal(gateway_of(&bench, "\"twilio\""), 1);
    assert_int_equal(gateway_of(&bench, "\"kannel\""), 2);
    assert_int_equal(gateway_of(&bench, "\"twilio\""), 1);
    assert_int_equal(gateway_of(&bench, "\"k\""), 3);
    assert_int_equal(gateway_of(&bench, "\"kannel\""), 2);
    assert_string_equal(
        rcpt_decoder_facet(bench.decoder, RCPT_FACET_GATEWAY, RCPT_RECORD_NO_GATEWAY), "");
    assert_string_equal(rcpt_decoder_facet(bench.decoder, RCPT_FACET_GATEWAY, 1), "twilio");
    assert_string_equal(rcpt_decoder_facet(bench.decoder, RCPT_FACET_GATEWAY, 2), "kannel");
    assert_null(rcpt_decoder_facet(bench.decoder, RCPT_FACET_GATEWAY, 4));
    assert_int_equal(rcpt_decoder_gateway_events(bench.decoder, RCPT_RECORD_NO_GATEWAY),
                     COUNT(none));
    assert_int_equal(rcpt_decoder_gateway_events(bench.decoder, 1), 2);
    assert_int_equal(rcpt_decoder_gateway_events(bench.decoder, 2), 2);
    assert_int_equal(rcpt_decoder_gateway_events(bench.decoder, 3), 1);
    tear_down(&bench);
}

/* The record came 1 000 000.5 s after the beginning of 1970. */
static void delays_are_from_the_named_time_to_the_record(void **state)
{
    (void)state;
    static const struct {
        const char *at; /* 1 s before the record, 90 s, ahead of it, and long before */
        unsigned bucket;
    } times[] = {{"999999.5", 0}, {"999910.5", 6}, {"9999999", 0}, {"1", RCPT_RECORD_DELAYS}};
    struct bench bench;
    set_up(&bench, 8);
    for (size_t i = 0; i < COUNT(times); i++) {
        char value[256];
        snprintf(value, sizeof(value),
                 "[{\"message_id\":\"a\",\"status\":\"SENT\",\"gateway\":\"g\",\"at\":%s},"
                 "{\"message_id\":\"b\",\"status\":\"SENT\",\"gateway\":\"g\"}]",
                 times[i].at);
        struct rcpt_record_input input = input_of(value, strlen(value));
        input.timestamp_ms = 1000000500;
        rcpt_record_free(rcpt_record_decode(bench.decoder, &input));
        assert_true(rcpt_decoder_gateway_delays(bench.decoder, 1)->buckets[times[i].bucket] > 0);
    }
    const struct rcpt_record_delays *delays = rcpt_decoder_gateway_delays(bench.decoder, 1);
    uint64_t count = 0;
    for (size_t i = 0; i <= RCPT_RECORD_DELAYS; i++)
        count += delays->buckets[i];
    assert_int_equal(count, COUNT(times)); /* without those that name no time */
    assert_int_equal(delays->sum * 1000, 1000 + 90000 + 999999500);
    assert_int_equal(rcpt_decoder_gateway_events(bench.decoder, 1), 2 * COUNT(times));
    tear_down(&bench);
}

static void gateways_that_are_too_long_or_too_many_are_others(void **state)
{
    (void)state;
    static const char longest[] = "0123456789012345678901234567890123456789";
    _Static_assert(sizeof(longest) - 1 == RCPT_RECORD_MAX_GATEWAY_BYTES, "the longest name");
    char json[64];
    struct bench bench;
    set_up(&bench, 8);
    snprintf(json, sizeof(json), "\"%sx\"", longest);
    assert_int_equal(gateway_of(&bench, json), RCPT_RECORD_OTHER_GATEWAY);
    snprintf(json, sizeof(json), "\"%s\"", longest);
    assert_int_equal(gateway_of(&bench, json), 1);
    assert_string_equal(rcpt_decoder_facet(bench.decoder, RCPT_FACET_GATEWAY, 1), longest);
    for (uint32_t number = 2; number < RCPT_RECORD_OTHER_GATEWAY; number++) {
        snprintf(json, sizeof(json), "\"g%u\"", number);
        assert_int_equal(gateway_of(&bench, json), number);
    }
    assert_int_equal(gateway_of(&bench, "\"one more\""), RCPT_RECORD_OTHER_GATEWAY);
    assert_int_equal(gateway_of(&bench, "\"g7\""), 7);
    assert_string_equal(
        rcpt_decoder_facet(bench.decoder, RCPT_FACET_GATEWAY, RCPT_RECORD_OTHER_GATEWAY), "other");
    assert_int_equal(rcpt_decoder_gateway_events(bench.decoder, RCPT_RECORD_OTHER_GATEWAY), 2);
    tear_down(&bench);
}

/* "mail" is near, "sms" is not; on a status without overrides a channel changes nothing. */
static void a_channel_that_may_be_misspelt_is_remembered(void **state)
{
    (void)state;
    static const char value[] =
        "[{\"message_id\":\"a\",\"status\":\"BOUNCED_HARD\",\"channel\":\"sms\"},"
        "{\"message_id\":\"a\",\"status\":\"SENT\",\"channel\":\"emial\"},"
        "{\"message_id\":\"a\",\"status\":\"BOUNCED_HARD\",\"channel\":\"EMAIL\"},"
        "{\"message_id\":\"a\",\"status\":\"BOUNCED_HARD\",\"channel\":\"E-Mail\"},"
        "{\"message_id\":\"a\",\"status\":\"BOUNCED_HARD\",\"channel\":\"emial\"},"
        "{\"message_id\":\"a\",\"status\":470,\"channel\":\"EMIAL\"},"
        "{\"message_id\":\"a\",\"status\":\"BOUNCED_HARD\"}]";
    struct bench bench;
    const char *near = NULL;
    set_up(&bench, 8);
    struct rcpt_record *record = decode(&bench, value, strlen(value));
    assert_int_equal(record->event_count, 7);
    assert_string_equal(rcpt_decoder_odd_channel(bench.decoder, 0, &near), "e-mail");
    assert_string_equal(near, "email");
    assert_string_equal(rcpt_decoder_odd_channel(bench.decoder, 1, &near), "emial");
    assert_null(rcpt_decoder_odd_channel(bench.decoder, 2, &near));
    rcpt_record_free(record);
    tear_down(&bench);
}

static void no_more_than_8_odd_channels_are_remembered(void **state)
{
    (void)state;
    struct bench bench;
    const char *near;
    set_up(&bench, 8);
    for (int letter = 'a'; letter <= 'j'; letter++) {
        char value[80];
        int size =
            snprintf(value, sizeof(value),
                     "{\"message_id\":\"a\",\"status\":470,\"channel\":\"email%c\"}", letter);
        rcpt_record_free(decode(&bench, value, (size_t)size));
    }
    assert_string_equal(rcpt_decoder_odd_channel(bench.decoder, 7, &near), "emailh");
    assert_null(rcpt_decoder_odd_channel(bench.decoder, RCPT_RECORD_MAX_ODD_CHANNELS, &near));
    tear_down(&bench);
}

static void reasons_have_names(void **state)
{
    (void)state;
    assert_string_equal(rcpt_reject_name(RCPT_REJECT_EMPTY_RECORD), "empty_record");
    assert_string_equal(rcpt_reject_name(RCPT_REJECT_DATABASE), "database");
    for (int reason = 0; reason < RCPT_REJECT_REASON__COUNT; reason++)
        assert_non_null(rcpt_reject_name((enum rcpt_reject_reason)reason));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_have_three_forms),
        cmocka_unit_test(what_is_no_event_leaves_its_neighbours_alone),
        cmocka_unit_test(ids_are_strings_of_1_to_255_bytes),
        cmocka_unit_test(statuses_are_names_or_codes_of_the_ladder),
        cmocka_unit_test(a_channel_may_change_what_a_status_means),
        cmocka_unit_test(flags_are_a_list_of_names_beside_the_status),
        cmocka_unit_test(a_flag_that_cannot_be_read_refuses_the_receipt),
        cmocka_unit_test(times_are_texts_or_epochs_or_the_records),
        cmocka_unit_test(the_records_time_is_kept_within_1970_and_9999),
        cmocka_unit_test(the_first_of_several_faults_is_named),
        cmocka_unit_test(many_refusals_for_one_reason_share_a_letter),
        cmocka_unit_test(details_say_what_is_wrong_and_show_no_id),
        cmocka_unit_test(payloads_are_the_exact_bytes_of_each_event),
        cmocka_unit_test(payloads_of_elements_that_are_no_objects_are_exact_too),
        cmocka_unit_test(a_refused_record_is_kept_whole),
        cmocka_unit_test(a_record_without_a_value_is_empty),
        cmocka_unit_test(a_record_holds_10_000_events_and_no_more),
        cmocka_unit_test(a_huge_record_leaves_little_memory_behind),
        cmocka_unit_test(a_value_has_8_mib_and_no_more),
        cmocka_unit_test(a_record_that_is_refused_as_a_whole_costs_no_more_than_its_letter),
        cmocka_unit_test(a_record_that_could_not_be_read_is_refused_with_the_reason),
        cmocka_unit_test(events_and_rejects_are_grouped_by_lane_in_order),
        cmocka_unit_test(records_of_one_event_stand_on_their_own),
        cmocka_unit_test(every_lane_table_can_be_walked_when_there_is_nothing),
        cmocka_unit_test(a_record_carries_its_position_and_identity),
        cmocka_unit_test(only_a_well_formed_traceparent_is_kept),
        cmocka_unit_test(a_tracestate_is_kept_with_its_traceparent_only),
        cmocka_unit_test(gateways_are_numbered_in_order_of_appearance),
        cmocka_unit_test(delays_are_from_the_named_time_to_the_record),
        cmocka_unit_test(gateways_that_are_too_long_or_too_many_are_others),
        cmocka_unit_test(a_channel_that_may_be_misspelt_is_remembered),
        cmocka_unit_test(no_more_than_8_odd_channels_are_remembered),
        cmocka_unit_test(a_part_is_read_with_its_total),
        cmocka_unit_test(a_range_names_a_person_an_account_and_a_time),
        cmocka_unit_test(a_range_is_refused_where_they_are_off),
        cmocka_unit_test(reasons_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
