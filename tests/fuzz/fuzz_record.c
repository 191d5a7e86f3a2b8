/* libFuzzer target: records from any bytes. Everything of the result is touched and must be
 * consistent, and the payload of each event, decoded alone, gives the event again. The first byte
 * chooses the number of lanes. Where the scan of common records takes a record, the parser of all
 * records must have found the same: both ways are gone for each input. */
#include <stdlib.h>
#include <string.h>

#include "core/record_internal.h"
#include "receiptd/base/error.h"
#include "receiptd/core/hash.h"
#include "receiptd/core/record.h"

#define LATEST_US INT64_C(253402300799999999)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_event(const struct rcpt_ladder *ladder, const struct rcpt_record *record,
                        const struct rcpt_event *event)
{
    RCPT_ASSERT(event->id_size >= 1);
    RCPT_ASSERT(memchr(event->id, '\0', event->id_size) == NULL);
    RCPT_ASSERT(event->hash == rcpt_hash_text_extended(event->id, event->id_size, 0));
    RCPT_ASSERT(event->at_us >= 0 && event->at_us <= LATEST_US);
    RCPT_ASSERT(event->index < RCPT_RECORD_MAX_EVENTS);
    RCPT_ASSERT(rcpt_ladder_entry(ladder, event->entry)->name[0] != '\0');
    RCPT_ASSERT((size_t)event->payload + event->payload_size <= record->value_size);
    RCPT_ASSERT(record->value[event->payload] == '{');
    RCPT_ASSERT(record->value[event->payload + event->payload_size - 1] == '}');
    RCPT_ASSERT(!event->refused);
}

static void check_reject(const struct rcpt_record *record, const struct rcpt_reject *reject)
{
    RCPT_ASSERT(rcpt_reject_name(reject->reason)[0] != '\0');
    RCPT_ASSERT(reject->detail[0] != '\0' && memchr(reject->detail, '\0', sizeof(reject->detail)));
    if (reject->receipts > 1) { /* behind the value */
        RCPT_ASSERT(reject->payload >= record->value_size && reject->indexes > reject->payload);
        RCPT_ASSERT(record->value[reject->payload] == '[' && record->value[reject->indexes] == '{');
        return;
    }
    RCPT_ASSERT((size_t)reject->payload + reject->payload_size <= record->value_size);
    if (reject->index >= 0) {
        RCPT_ASSERT(reject->payload_size > 0 && reject->index < RCPT_RECORD_MAX_EVENTS);
        RCPT_ASSERT(strchr(" \t\r\n,", record->value[reject->payload]) == NULL);
    } else { /* all or nothing */
        RCPT_ASSERT(record->event_count == 0 && record->reject_count == 1);
        RCPT_ASSERT(reject->payload == 0 && reject->payload_size == record->value_size);
    }
}

/* A letter for many receipts has their indexes: "{99,100}". Returns how many. */
static uint32_t see_reject(const struct rcpt_record *record, const struct rcpt_reject *reject,
                           unsigned char *seen)
{
    uint32_t receipts = 0;
    if (reject->receipts == 1) {
        RCPT_ASSERT(reject->index < 0 || !seen[reject->index]++);
        return 1;
    }
    for (const char *at = record->value + reject->indexes; *at != '}'; receipts++) {
        char *end;
        RCPT_ASSERT(!seen[strtoul(at + 1, &end, 10)]++);
        at = end;
    }
    RCPT_ASSERT(receipts == reject->receipts);
    return receipts;
}

/* Each event lies in its lane, in the order of the record, and each position is there once. */
static void check_lanes(const struct rcpt_ladder *ladder, const struct rcpt_record *record,
                        uint32_t lanes)
{
    unsigned char *seen = rcpt_calloc(RCPT_RECORD_MAX_EVENTS + 1, 1);
    uint32_t receipts = record->event_count;
    RCPT_ASSERT(record->lane_events[0] == 0 && record->lane_events[lanes] == record->event_count);
    RCPT_ASSERT(record->lane_rejects[0] == 0 &&
                record->lane_rejects[lanes] == record->reject_count);
    for (uint32_t lane = 0; lane < lanes; lane++) {
        for (uint32_t i = record->lane_events[lane]; i < record->lane_events[lane + 1]; i++) {
            const struct rcpt_event *event = &record->events[i];
            check_event(ladder, record, event);
            RCPT_ASSERT((event->hash & (lanes - 1)) == lane);
            RCPT_ASSERT(i == record->lane_events[lane] || event[-1].index < event->index);
            RCPT_ASSERT(!seen[event->index]++);
        }
        for (uint32_t i = record->lane_rejects[lane]; i < record->lane_rejects[lane + 1]; i++) {
            const struct rcpt_reject *reject = &record->rejects[i];
            check_reject(record, reject);
            uint64_t hash = rcpt_hash_position("fuzz", 1, 2, (uint32_t)reject->index);
            RCPT_ASSERT((hash & (lanes - 1)) == lane);
            RCPT_ASSERT(i == record->lane_rejects[lane] || reject[-1].index < reject->index);
            receipts += see_reject(record, reject, seen);
        }
    }
    for (uint32_t i = 0; i < receipts; i++)
        RCPT_ASSERT(seen[i] || record->rejects[0].index == -1);
    free(seen);
}

/* The payload of an event, decoded alone, gives the event again. */
static void check_payload(struct rcpt_decoder *decoder, const struct rcpt_record *record,
                          const struct rcpt_event *event)
{
    struct rcpt_record_input input = {.topic = "fuzz",
                                      .timestamp_ms = record->timestamp_ms,
                                      .value = record->value + event->payload,
                                      .value_size = event->payload_size};
    struct rcpt_record *alone = rcpt_record_decode(decoder, &input);
    if (alone->event_count == 1) { /* else it has a key "events", which makes it a wrapper there */
        RCPT_ASSERT(alone->events[0].entry == event->entry);
        RCPT_ASSERT(alone->events[0].at_us == event->at_us);
        RCPT_ASSERT(alone->events[0].hash == event->hash);
    }
    rcpt_record_free(alone);
}

/* ---- both ways ---- */

static struct rcpt_ladder *ladder;
static struct rcpt_decoder *decoders[9];      /* by the power of two of its lanes */
static struct rcpt_decoder *scanner, *parser; /* their insides are looked at */

static void set_up(void)
{
    struct rcpt_error error;
    ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    RCPT_ASSERT(ladder != NULL);
    for (uint32_t power = 0; power < 9; power++)
        decoders[power] = rcpt_decoder_new(ladder, 1u << power);
    scanner = rcpt_decoder_new(ladder, 1);
    parser = rcpt_decoder_new(ladder, 1);
}

static void give(struct rcpt_decoder *decoder, const struct rcpt_record_input *input)
{
    rcpt_record_forget(decoder);
    rcpt_arena_reset(&decoder->strings, 4096);
    decoder->input = *input;
    decoder->default_at_us = input->timestamp_ms * 1000;
}

static void check_same_event(const struct rcpt_event *left, const struct rcpt_event *right)
{
    RCPT_ASSERT(left->id_size == right->id_size);
    RCPT_ASSERT(memcmp(left->id, right->id, left->id_size) == 0);
    RCPT_ASSERT(left->at_us == right->at_us && left->entry == right->entry);
    RCPT_ASSERT(left->flags == right->flags);
    RCPT_ASSERT(left->payload == right->payload && left->payload_size == right->payload_size);
    RCPT_ASSERT(left->index == right->index && left->hash == right->hash);
}

static void check_both_ways(const struct rcpt_record_input *input)
{
    if (input->value_size == 0)
        return;
    give(scanner, input);
    if (!rcpt_record_scan(scanner))
        return;
    give(parser, input);
    rcpt_record_parse_any(parser);
    RCPT_ASSERT(scanner->event_count == parser->event_count);
    RCPT_ASSERT(scanner->reject_count == parser->reject_count);
    for (uint32_t i = 0; i < parser->event_count; i++)
        check_same_event(&scanner->events[i], &parser->events[i]);
    for (uint32_t i = 0; i < parser->reject_count; i++) {
        const struct rcpt_reject *left = &scanner->rejects[i], *right = &parser->rejects[i];
        RCPT_ASSERT(left->reason == right->reason && left->index == right->index);
        RCPT_ASSERT(left->payload == right->payload && left->payload_size == right->payload_size);
        RCPT_ASSERT(strcmp(left->detail, right->detail) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (ladder == NULL)
        set_up();
    if (size == 0)
        return 0;
    uint32_t power = data[0] % 9;
    struct rcpt_decoder *decoder = decoders[power];
    char *value = rcpt_malloc(size > 1 ? size - 1 : 1); /* so that reading past its end is seen */
    memcpy(value, data + 1, size - 1);
    struct rcpt_record_input input = {.topic = "fuzz",
                                      .partition = 1,
                                      .offset = 2,
                                      .timestamp_ms = 1700000000000,
                                      .value = value,
                                      .value_size = size - 1};
    check_both_ways(&input);
    struct rcpt_record *record = rcpt_record_decode(decoder, &input);
    RCPT_ASSERT(record->value_size == size - 1 && memcmp(record->value, value, size - 1) == 0);
    free(value);
    check_lanes(ladder, record, 1u << power);
    for (uint32_t i = 0; i < record->event_count && i < 16; i++)
        check_payload(decoder, record, &record->events[i]);
    rcpt_record_free(record);
    return 0;
}
