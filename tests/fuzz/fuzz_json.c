/* libFuzzer target: the decoder against jansson. Both must accept and refuse the same documents and
 * find the same events and ranges in them.
 *
 * What may differ, because only one of the two says anything about it:
 * - halves of surrogate pairs, NULs in keys and integers above 64 bits are errors for jansson:
 * legal JSON by its grammar, so the decoder takes them (and refuses an id that holds the first
 * two);
 * - more than RCPT_JSON_READ_MAX_DEPTH levels, and bytes that are no UTF-8: the decoder refuses the
 *   record for the first, and only the event for the second where one holds them;
 * - jansson overlooks a NUL behind a number: such a text is no JSON, and the decoder must say so.
 * Fractions are compared to the microsecond below, as jansson rounds them to a double.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/core/record.h"
#include "receiptd/core/timestamp.h"

#define NOW_MS    1700000000000
#define LATEST_US INT64_C(253402300799999999)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rcpt_ladder *ladder;
static struct rcpt_decoder *decoder;

struct moment {
    double us;
    bool is_exact;
};

/* What an element must become. */
struct wanted {
    int reason;     /* -1: an event; RANGE_OFF: a range, which this decoder takes */
    const char *id; /* of a range the recipient; NULL: a number, whose text is not known here */
    size_t id_size;
    int entry;
    uint32_t flags;
    int64_t part, parts;
    struct moment at, until;
};

static void refuse(struct wanted *wanted, enum rcpt_reject_reason reason)
{
    if (wanted->reason < 0)
        wanted->reason = (int)reason;
}

static void want_id(const json_t *id, struct wanted *wanted)
{
    wanted->id = json_string_value(id);
    wanted->id_size = json_string_length(id);
    if (id == NULL || json_is_null(id) || (json_is_string(id) && wanted->id_size == 0))
        refuse(wanted, RCPT_REJECT_MISSING_ID);
    else if (wanted->id_size > RCPT_RECORD_MAX_ID_BYTES)
        refuse(wanted, RCPT_REJECT_ID_TOO_LONG);
    else if (!json_is_string(id) || memchr(wanted->id, '\0', wanted->id_size) != NULL)
        refuse(wanted, RCPT_REJECT_INVALID_ID);
}

static void want_status(const json_t *status, const json_t *channel, struct wanted *wanted)
{
    const char *name = json_string_value(channel);
    size_t size = json_string_length(channel);
    wanted->entry = -1;
    if (status == NULL || json_is_null(status))
        refuse(wanted, RCPT_REJECT_MISSING_STATUS);
    else if (json_is_string(status))
        wanted->entry = rcpt_ladder_find_name(ladder, json_string_value(status),
                                              json_string_length(status), name, size);
    else if (json_is_integer(status))
        wanted->entry = rcpt_ladder_find_code(ladder, json_integer_value(status), name, size);
    if (wanted->entry < 0)
        refuse(wanted, RCPT_REJECT_UNKNOWN_STATUS);
}

/* `missing_us`: what a field that names no time stands for. */
static void want_time(const json_t *at, int64_t missing_us, struct moment *moment,
                      struct wanted *wanted)
{
    int64_t at_us = missing_us;
    bool good = true;
    moment->is_exact = true;
    if (json_is_string(at)) {
        const char *text = json_string_value(at);
        good = rcpt_timestamp_parse(text, json_string_length(at), &at_us) ||
               rcpt_timestamp_parse_epoch(text, json_string_length(at), &at_us);
    } else if (json_is_integer(at)) {
        int64_t value = json_integer_value(at);
        bool seconds = value < INT64_C(100000000000);
        good = value >= 0 && value <= LATEST_US / 1000;
        at_us = good ? value * (seconds ? 1000000 : 1000) : 0;
        good = good && at_us <= LATEST_US;
    } else if (json_is_real(at)) {
        double value = json_real_value(at);
        moment->is_exact = false;
        moment->us = value < 1e11 ? value * 1e6 : value * 1e3;
        good = !signbit(value) && moment->us <= (double)LATEST_US;
    } else {
        good = at == NULL || json_is_null(at);
    }
    if (moment->is_exact)
        moment->us = (double)at_us;
    if (moment->us < 1) /* zero is no time */
        *moment = (struct moment){(double)missing_us, true};
    if (!good)
        refuse(wanted, RCPT_REJECT_INVALID_TIME);
}

static bool is_absent(const json_t *value)
{
    return value == NULL || json_is_null(value);
}

static void want_flags(const json_t *flags, struct wanted *wanted)
{
    if (!is_absent(flags) && !json_is_array(flags))
        refuse(wanted, RCPT_REJECT_INVALID_FLAGS);
    for (size_t index = 0; index < json_array_size(flags); index++) {
        const json_t *name = json_array_get(flags, index);
        int entry = json_is_string(name) ? rcpt_ladder_find_name(ladder, json_string_value(name),
                                                                 json_string_length(name), NULL, 0)
                                         : -1;
        uint32_t mask = entry >= 0 ? rcpt_ladder_entry(ladder, (size_t)entry)->mask : 0;
        wanted->flags |= mask;
        if (mask == 0)
            refuse(wanted, RCPT_REJECT_INVALID_FLAGS);
    }
}

/* Digits, as a number or as text; 0: it names none, or none that is good. */
static int64_t want_count(const json_t *count, struct wanted *wanted)
{
    const char *text = json_string_value(count);
    size_t size = json_string_length(count), zeros = text != NULL ? strspn(text, "0") : 0;
    int64_t value = json_integer_value(count);
    if (is_absent(count))
        return 0;
    if (text != NULL && strspn(text, "0123456789") == size && size - zeros < 10)
        value = strtoll(text, NULL, 10);
    if (value >= 1 && value <= RCPT_RECORD_MAX_PARTS)
        return value;
    refuse(wanted, RCPT_REJECT_INVALID_PART);
    return 0;
}

static void want_part(const json_t *element, struct wanted *wanted)
{
    wanted->part = want_count(json_object_get(element, "part"), wanted);
    wanted->parts = want_count(json_object_get(element, "parts"), wanted);
    if (wanted->parts > 0 && wanted->part > wanted->parts)
        refuse(wanted, RCPT_REJECT_INVALID_PART);
    /* A part may come without the total; the only part of a message is the message. */
    if (wanted->part == 0 || wanted->parts == 1)
        wanted->part = wanted->parts = 0;
}

static bool is_name(const json_t *text)
{
    return json_string_length(text) > 0 &&
           strlen(json_string_value(text)) == json_string_length(text);
}

/* A receipt of all messages to a person: it names no flag, and the account by which they went. */
static void want_range(const json_t *element, struct wanted *wanted)
{
    const json_t *recipient = json_object_get(element, "recipient");
    bool named = json_is_number(recipient) ||
                 (is_name(recipient) && json_string_length(recipient) <= RCPT_RECORD_MAX_ID_BYTES);
    want_time(json_object_get(element, "until"), 0, &wanted->until, wanted);
    want_flags(json_object_get(element, "flags"), wanted);
    wanted->id = json_string_value(recipient);
    wanted->id_size = json_string_length(recipient);
    if (wanted->flags != 0 || !named || !is_name(json_object_get(element, "gateway")) ||
        (wanted->entry >= 0 && rcpt_ladder_entry(ladder, (size_t)wanted->entry)->mask != 0))
        refuse(wanted, RCPT_REJECT_INVALID_RANGE);
    refuse(wanted, RCPT_REJECT_RANGE_OFF);
}

static struct wanted want(const json_t *element)
{
    struct wanted wanted = {.reason = -1};
    if (!json_is_object(element)) {
        wanted.reason = RCPT_REJECT_NOT_AN_EVENT;
        return wanted;
    }
    const json_t *id = json_object_get(element, "message_id");
    bool is_range = id == NULL && !is_absent(json_object_get(element, "until"));
    if (!is_range)
        want_id(id, &wanted);
    want_status(json_object_get(element, "status"), json_object_get(element, "channel"), &wanted);
    want_time(json_object_get(element, "at"), (int64_t)NOW_MS * 1000, &wanted.at, &wanted);
    if (is_range) {
        want_range(element, &wanted);
        return wanted;
    }
    want_flags(json_object_get(element, "flags"), &wanted);
    want_part(element, &wanted);
    return wanted;
}

static const struct rcpt_event *event_of(const struct rcpt_record *record, size_t index)
{
    for (uint32_t at = 0; at < record->event_count; at++) {
        if (record->events[at].index == index)
            return &record->events[at];
    }
    return NULL;
}

/* The letter of many receipts has their indexes: "{99,100}". */
static bool is_of(const struct rcpt_record *record, const struct rcpt_reject *reject, size_t index)
{
    if (reject->receipts == 1)
        return reject->index == (int32_t)index;
    for (const char *at = record->value + reject->indexes; *at != '}';) {
        char *end;
        if (strtoul(at + 1, &end, 10) == index)
            return true;
        at = end;
    }
    return false;
}

static const struct rcpt_reject *reject_of(const struct rcpt_record *record, size_t index)
{
    for (uint32_t at = 0; at < record->reject_count; at++) {
        if (is_of(record, &record->rejects[at], index))
            return &record->rejects[at];
    }
    return NULL;
}

/* The border between seconds and milliseconds, and the last moment of all, may fall either way for
 * a number that was rounded; "-0.0" is no time for the decoder. */
static bool is_close_call(const json_t *at)
{
    double value = json_real_value(at);
    return json_is_real(at) &&
           (fabs(value - 1e11) < 1e-3 || fabs(value * 1e3 - 253402300800e6) < 1e2 || value <= 0);
}

static bool is_moment(int64_t us, const struct moment *wanted)
{
    return wanted->is_exact ? us == (int64_t)wanted->us : fabs((double)us - wanted->us) <= 64;
}

static bool is_text(const char *text, size_t size, const struct wanted *wanted)
{
    return size == wanted->id_size && memcmp(text, wanted->id, size) == 0;
}

static void compare_range(const struct rcpt_range *range, const struct wanted *wanted)
{
    RCPT_ASSERT(range->is_taken && range->entry == wanted->entry);
    RCPT_ASSERT(wanted->id == NULL || is_text(range->recipient, range->recipient_size, wanted));
    RCPT_ASSERT(is_moment(range->at_us, &wanted->at) && is_moment(range->until_us, &wanted->until));
}

/* What is refused or said of an element that jansson does not know: how long the text of a
 * fraction is, and which way a close call falls. */
static bool is_open(const json_t *element)
{
    return is_close_call(json_object_get(element, "at")) ||
           is_close_call(json_object_get(element, "until")) ||
           json_is_real(json_object_get(element, "recipient"));
}

/* No time for the decoder, and zero for jansson. */
static bool is_minus_zero(const json_t *element, const struct rcpt_reject *reject)
{
    const json_t *at = json_object_get(element, "at"), *until = json_object_get(element, "until");
    return reject != NULL && reject->reason == RCPT_REJECT_INVALID_TIME &&
           ((json_is_integer(at) && json_integer_value(at) == 0) ||
            (json_is_integer(until) && json_integer_value(until) == 0));
}

static void compare(const struct rcpt_record *record, const json_t *element, size_t index)
{
    struct wanted wanted = want(element);
    const struct rcpt_event *event = event_of(record, index);
    const struct rcpt_reject *reject = reject_of(record, index);
    RCPT_ASSERT((event != NULL) != (reject != NULL));
    if (json_is_object(element) && (is_open(element) || is_minus_zero(element, reject)))
        return;
    RCPT_ASSERT((event != NULL) == (wanted.reason < 0));
    if (event == NULL) {
        RCPT_ASSERT((int)reject->reason == wanted.reason);
        if (wanted.reason == RCPT_REJECT_RANGE_OFF)
            compare_range(&reject->range, &wanted);
        return;
    }
    RCPT_ASSERT(is_text(event->id, event->id_size, &wanted));
    RCPT_ASSERT(event->entry == wanted.entry);
    RCPT_ASSERT(event->flags ==
                (wanted.flags & ~rcpt_ladder_entry(ladder, (size_t)wanted.entry)->mask));
    RCPT_ASSERT(event->part == wanted.part && event->parts == wanted.parts);
    RCPT_ASSERT(is_moment(event->at_us, &wanted.at));
}

static void compare_list(const struct rcpt_record *record, const json_t *list)
{
    size_t receipts = record->event_count;
    for (uint32_t at = 0; at < record->reject_count; at++)
        receipts += record->rejects[at].receipts;
    RCPT_ASSERT(receipts == json_array_size(list));
    for (size_t index = 0; index < json_array_size(list); index++)
        compare(record, json_array_get(list, index), index);
}

static bool is_refused_whole(const struct rcpt_record *record, enum rcpt_reject_reason reason)
{
    return record->event_count == 0 && record->reject_count == 1 &&
           record->rejects[0].index == -1 && record->rejects[0].reason == reason;
}

static void compare_all(const struct rcpt_record *record, const json_t *root)
{
    const json_t *events = json_object_get(root, "events");
    if (json_is_array(root)) {
        compare_list(record, root);
    } else if (json_is_array(events)) {
        compare_list(record, events);
    } else if (json_is_object(root) && events == NULL) {
        RCPT_ASSERT(record->event_count + record->reject_count == 1);
        compare(record, root, 0);
    } else {
        RCPT_ASSERT(is_refused_whole(record, RCPT_REJECT_NOT_AN_EVENT));
    }
}

/* Errors that are jansson's own, not the grammar's. */
static bool is_own_error(const json_error_t *error)
{
    switch (json_error_code(error)) {
    case json_error_invalid_utf8:
    case json_error_null_byte_in_key:
    case json_error_numeric_overflow:
    case json_error_stack_overflow:
        return true;
    default: /* half of a pair is a syntax error there */
        return strstr(error->text, "invalid Unicode") != NULL;
    }
}

static bool is_too_deep(const struct rcpt_record *record)
{
    return is_refused_whole(record, RCPT_REJECT_INVALID_JSON) &&
           strstr(record->rejects[0].detail, "nested too deep") != NULL;
}

static void set_up(void)
{
    struct rcpt_error error;
    ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    RCPT_ASSERT(ladder != NULL);
    decoder = rcpt_decoder_new(ladder, 1);
    rcpt_decoder_take_ranges(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_error_t error;
    if (ladder == NULL)
        set_up();
    if (size == 0)
        return 0;
    struct rcpt_record_input input = {
        .topic = "fuzz", .timestamp_ms = NOW_MS, .value = data, .value_size = size};
    struct rcpt_record *record = rcpt_record_decode(decoder, &input);
    if (memchr(data, '\0', size) != NULL) {
        RCPT_ASSERT(is_refused_whole(record, RCPT_REJECT_INVALID_JSON));
        rcpt_record_free(record);
        return 0;
    }
    size_t mark = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* skipped here */
    json_t *root = json_loadb((const char *)data + mark, size - mark,
                              JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (root != NULL && !is_too_deep(record))
        compare_all(record, root);
    else if (root == NULL && !is_own_error(&error))
        RCPT_ASSERT(is_refused_whole(record, RCPT_REJECT_INVALID_JSON));
    json_decref(root);
    rcpt_record_free(record);
    return 0;
}
