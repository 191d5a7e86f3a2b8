/* Nanoseconds per event of rcpt_record_decode, for records of 1000 events of about 170 bytes and
 * for single events.
 *
 *   make build/tests/bench/decode_bench && build/tests/bench/decode_bench
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "receiptd/core/record.h"

#define EVENT_ROOM 256
#define ROUNDS     7
#define LANES      8

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* `dash` escaped: the scan leaves the record to the reader of any JSON. */
static size_t write_event(char *text, int number, const char *dash)
{
    static const char *const statuses[] = {"IN_GTW", "SENT", "DELIVERED", "OPENED", "CLICKED"};
    uint64_t id = (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)snprintf(
        text, EVENT_ROOM,
        "{\"message_id\":\"%08x-%04x-7%03x-8%03x-%012" PRIx64 "\",\"status\":\"%s\","
        "\"at\":\"2026-11-21T02:%02d:%02d.%03dZ\",\"campaign_id\":\"campaign%s%d\","
        "\"channel\":\"sms\",\"gateway\":\"gateway-%d\"}",
        (unsigned)(id >> 32), (unsigned)(id >> 16) & 0xffff, (unsigned)(id >> 4) & 0xfff,
        (unsigned)id & 0xfff, id & UINT64_C(0xffffffffffff), statuses[number % 5], number / 60 % 60,
        number % 60, number % 1000, dash, number % 5, number % 3);
}

static size_t write_record(char *text, int events, const char *dash)
{
    size_t size = 0;
    text[size++] = '[';
    for (int i = 0; i < events; i++) {
        if (i > 0)
            text[size++] = ',';
        size += write_event(text + size, i, dash);
    }
    text[size++] = ']';
    return size;
}

static void measure(struct rcpt_decoder *decoder, int events, int records, const char *dash)
{
    char *value = malloc((size_t)events * EVENT_ROOM + 2);
    struct rcpt_record_input input = {.topic = "dlr-events", .value = value, .timestamp_ms = 1};
    input.value_size = write_record(value, events, dash);
    double best = 1e18;
    uint64_t decoded = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start = now_ns();
        for (int i = 0; i < records; i++) {
            struct rcpt_record *record = rcpt_record_decode(decoder, &input);
            decoded += record->event_count;
            rcpt_record_free(record);
        }
        double spent = (double)(now_ns() - start) / records / events;
        best = spent < best ? spent : best;
    }
    printf("%s, %5d events a record, %3zu bytes an event: %4.0f ns an event (best of %d, %" PRIu64
           " decoded)\n",
           dash[0] == '-' ? "scanned" : "read   ", events, input.value_size / (size_t)events, best,
           ROUNDS, decoded);
    free(value);
}

int main(void)
{
    struct rcpt_error error;
    struct rcpt_ladder *ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    if (ladder == NULL)
        return 1;
    struct rcpt_decoder *decoder = rcpt_decoder_new(ladder, LANES);
    static const char *const dashes[] = {"-", "\\u002d"};
    for (int way = 0; way < 2; way++) {
        measure(decoder, 1000, 300, dashes[way]);
        measure(decoder, 100, 3000, dashes[way]);
        measure(decoder, 1, 100000, dashes[way]);
    }
    rcpt_decoder_free(decoder);
    rcpt_ladder_free(ladder);
    return 0;
}
