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

#include "core/record.h"

#define EVENT_ROOM 256
#define ROUNDS     7
#define LANES      8

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static size_t write_event(char *text, int number)
{
    static const char *const statuses[] = {"IN_GTW", "SENT", "DELIVERED", "OPENED", "CLICKED"};
    uint64_t id = (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)snprintf(
        text, EVENT_ROOM,
        "{\"message_id\":\"%08x-%04x-7%03x-8%03x-%012" PRIx64 "\",\"status\":\"%s\","
        "\"at\":\"2026-11-21T02:%02d:%02d.%03dZ\",\"campaign_id\":\"campaign-%d\","
        "\"channel\":\"sms\",\"gateway\":\"gateway-%d\"}",
        (unsigned)(id >> 32), (unsigned)(id >> 16) & 0xffff, (unsigned)(id >> 4) & 0xfff,
        (unsigned)id & 0xfff, id & UINT64_C(0xffffffffffff), statuses[number % 5], number / 60 % 60,
        number % 60, number % 1000, number % 5, number % 3);
}

static size_t write_record(char *text, int events)
{
    size_t size = 0;
    text[size++] = '[';
    for (int i = 0; i < events; i++) {
        if (i > 0)
            text[size++] = ',';
        size += write_event(text + size, i);
    }
    text[size++] = ']';
    return size;
}

static void measure(struct rcpt_decoder *decoder, int events, int records)
{
    char *value = malloc((size_t)events * EVENT_ROOM + 2);
    struct rcpt_record_input input = {.topic = "dlr-events", .value = value, .timestamp_ms = 1};
    input.value_size = write_record(value, events);
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
    printf("%5d events a record, %3zu bytes an event: %4.0f ns an event (best of %d, %" PRIu64
           " decoded)\n",
           events, input.value_size / (size_t)events, best, ROUNDS, decoded);
    free(value);
}

int main(void)
{
    struct rcpt_error error;
    struct rcpt_ladder *ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    if (ladder == NULL)
        return 1;
    struct rcpt_decoder *decoder = rcpt_decoder_new(ladder, LANES);
    measure(decoder, 1000, 300);
    measure(decoder, 100, 3000);
    measure(decoder, 1, 100000);
    rcpt_decoder_free(decoder);
    rcpt_ladder_free(ladder);
    return 0;
}
