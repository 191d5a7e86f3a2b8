/* What the tests of the record decoder share: a decoder around the default ladder, a check of what
 * one value gives. */
#ifndef RECEIPTD_TESTS_RECORD_FIXTURE_H
#define RECEIPTD_TESTS_RECORD_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/core/record.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TIMESTAMP_MS INT64_C(1700000000123)
#define TIMESTAMP_US (TIMESTAMP_MS * 1000)
#define OK           RCPT_REJECT_REASON__COUNT
#define EVENT(id)    "{\"message_id\":\"" id "\",\"status\":\"SENT\"}"

struct bench {
    struct rcpt_ladder *ladder;
    struct rcpt_decoder *decoder;
};

static inline void set_up(struct bench *bench, uint32_t lanes)
{
    struct rcpt_error error;
    bench->ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    assert_non_null(bench->ladder);
    bench->decoder = rcpt_decoder_new(bench->ladder, lanes);
}

static inline void tear_down(struct bench *bench)
{
    rcpt_decoder_free(bench->decoder);
    rcpt_ladder_free(bench->ladder);
}

static inline struct rcpt_record_input input_of(const char *value, size_t size)
{
    return (struct rcpt_record_input){.topic = "dlr-events",
                                      .partition = 3,
                                      .offset = 42,
                                      .timestamp_ms = TIMESTAMP_MS,
                                      .value = value,
                                      .value_size = size};
}

static inline struct rcpt_record *decode(struct bench *bench, const char *value, size_t size)
{
    struct rcpt_record_input input = input_of(value, size);
    return rcpt_record_decode(bench->decoder, &input);
}

/* Receipts that the record's rejects stand for. */
static inline uint32_t refusals(const struct rcpt_record *record)
{
    uint32_t receipts = 0;
    for (uint32_t at = 0; at < record->reject_count; at++)
        receipts += record->rejects[at].receipts;
    return receipts;
}

/* What one value gives: so many events, and the reason and index of its only reject, if any. */
struct example {
    const char *value;
    size_t size; /* 0: up to the terminator */
    uint32_t events;
    enum rcpt_reject_reason reason; /* OK: no reject */
    int32_t index;
};

static inline void check(struct bench *bench, const struct example *example)
{
    size_t size = example->size > 0 ? example->size : strlen(example->value);
    struct rcpt_record *record = decode(bench, example->value, size);
    bool rejected = example->reason != OK;
    bool as_expected = record->event_count == example->events &&
                       record->reject_count == (rejected ? 1 : 0) &&
                       (!rejected || (record->rejects[0].reason == example->reason &&
                                      record->rejects[0].index == example->index));
    if (!as_expected)
        fail_msg("%s: %u events, %u rejects, first: %s at %d (%s)", example->value,
                 record->event_count, record->reject_count,
                 record->reject_count > 0 ? rcpt_reject_name(record->rejects[0].reason) : "-",
                 record->reject_count > 0 ? record->rejects[0].index : 0,
                 record->reject_count > 0 ? record->rejects[0].detail : "");
    if (rejected)
        assert_true(record->rejects[0].detail[0] != '\0');
    rcpt_record_free(record);
}

static inline void check_all(const struct example *examples, size_t count)
{
    struct bench bench;
    set_up(&bench, 8);
    for (size_t i = 0; i < count; i++)
        check(&bench, &examples[i]);
    tear_down(&bench);
}

#endif
