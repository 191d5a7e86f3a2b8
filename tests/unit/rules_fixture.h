/* Batches by hand, and what rules make of them as one line of text. */
#ifndef RECEIPTD_TESTS_UNIT_RULES_FIXTURE_H
#define RECEIPTD_TESTS_UNIT_RULES_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/core/hash.h"
#include "receiptd/core/rules/rules.h"

/* A case names what it is about; the rest of a receipt and of a row is 0. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define RECEIPTS      1000u
#define MINUTE        INT64_C(60000000)
/* Minutes of cases count from the begin of an hour; it is half past. */
#define HOUR INT64_C(28333320)
#define NOW  ((HOUR + 30) * MINUTE)

/* Numbers of gateways and reasons in events. */
enum { NO_NAME, KANNEL, TWILIO };
enum { NO_REASON, BLOCKED, INVALID };

static const char *name_of(const void *context, enum rcpt_facet facet, uint32_t number)
{
    static const char *const names[RCPT_FACET__COUNT][3] = {{"", "kannel", "twilio"},
                                                            {"", "blocked", "invalid"}};
    (void)context;
    return number < 3 ? names[facet][number] : NULL;
}

static const struct rcpt_lane_names test_names = {.name = name_of};

/* One record holds all events; the keys stand behind them. */
struct rules_fixture {
    struct rcpt_ladder *ladder;
    struct rcpt_batch batch;
    struct rcpt_batch_message messages[RECEIPTS];
    struct rcpt_batch_event raw[RECEIPTS];
    struct rcpt_record record;
    struct {
        struct rcpt_event events[RECEIPTS];
        uint64_t keys[RECEIPTS];
    } decoded;
    char value[RECEIPTS * 64]; /* of the record: what receipts say, one behind the other */
    size_t said;
};

/* On the heap: it is large. */
static inline struct rules_fixture *rules_fixture_new(void)
{
    struct rcpt_error error;
    struct rules_fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    assert_non_null(fixture->ladder);
    fixture->batch.messages = fixture->messages;
    fixture->batch.events = fixture->raw;
    fixture->record = (struct rcpt_record){.events = fixture->decoded.events,
                                           .event_count = RECEIPTS,
                                           .has_keys = true,
                                           .value = fixture->value,
                                           .traceparent = ""};
    return fixture;
}

static inline void rules_fixture_free(struct rules_fixture *fixture)
{
    rcpt_ladder_free(fixture->ladder);
    free(fixture);
}

struct receipt {
    const char *id; /* NULL: there are no more */
    int16_t code;
    uint32_t flags;
    int64_t minute; /* of its hour */
    uint8_t gateway, reason;
    uint64_t key;
    bool is_echo;
    const char *json; /* its text; NULL: none */
    uint8_t machines; /* 1 << RCPT_MACHINE_CLICK: CLICKED beside it */
};

/* As core/batch_build.c folds: the highest status, the earliest time among equals, all flags. */
static inline void fold(struct rules_fixture *fixture, struct rcpt_batch_message *message,
                        int16_t code, int64_t at_us)
{
    const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(
        fixture->ladder, (size_t)rcpt_ladder_find_code(fixture->ladder, code, NULL, 0));
    if (entry->top > message->top || (entry->top == message->top && at_us < message->at_us)) {
        message->top = entry->top;
        message->at_us = at_us;
    }
    message->mask |= entry->mask;
}

/* Receipts of a message come one behind the other, messages by id. */
static inline void add_receipt(struct rules_fixture *fixture, const struct receipt *receipt)
{
    struct rcpt_batch *batch = &fixture->batch;
    struct rcpt_batch_message *message = batch->messages + batch->message_count - 1;
    uint32_t at = batch->event_count++;
    if (batch->message_count == 0 || strcmp(message->id, receipt->id) != 0) {
        message = &batch->messages[batch->message_count++];
        *message = (struct rcpt_batch_message){.id = receipt->id,
                                               .id_size = (uint32_t)strlen(receipt->id),
                                               .top = -1,
                                               .first_event = at};
    }
    fixture->decoded.events[at] = (struct rcpt_event){
        .id = receipt->id,
        .id_size = (uint8_t)strlen(receipt->id),
        .hash = rcpt_hash_text_extended(receipt->id, strlen(receipt->id), 0),
        .at_us = (HOUR + receipt->minute) * MINUTE,
        .flags = receipt->flags,
        .entry = (uint8_t)rcpt_ladder_find_code(fixture->ladder, receipt->code, NULL, 0),
        .gateway = receipt->gateway,
        .reason = receipt->reason};
    if (receipt->json != NULL) {
        size_t size = strlen(receipt->json);
        assert_true(fixture->said + size < sizeof(fixture->value));
        fixture->decoded.events[at].payload = (uint32_t)fixture->said;
        fixture->decoded.events[at].payload_size = (uint32_t)size;
        memcpy(fixture->value + fixture->said, receipt->json, size);
        fixture->said += size;
    }
    fixture->decoded.events[at].machines = receipt->machines;
    fixture->decoded.events[at].beside[RCPT_MACHINE_CLICK] = 800;
    fixture->decoded.keys[at] = receipt->key;
    fixture->raw[at] = (struct rcpt_batch_event){
        .record = &fixture->record, .event = &fixture->decoded.events[at], .code = receipt->code};
    fold(fixture, message, receipt->code, fixture->decoded.events[at].at_us);
    for (uint32_t flags = receipt->flags; flags != 0; flags &= flags - 1)
        fold(fixture, message, (int16_t)(RCPT_LADDER_FIRST_FLAG_CODE + __builtin_ctz(flags)),
             fixture->decoded.events[at].at_us);
}

/* ---- texts ---- */

struct line {
    char text[4096];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static inline void say(struct line *line, const char *format,
                                                             ...)
{
    va_list list;
    if (line->used > 0)
        line->used +=
            (size_t)snprintf(line->text + line->used, sizeof(line->text) - line->used, ", ");
    va_start(list, format);
    line->used +=
        (size_t)vsnprintf(line->text + line->used, sizeof(line->text) - line->used, format, list);
    va_end(list);
    assert_true(line->used < sizeof(line->text));
}

/* KIND CAMPAIGN/KEY@MINUTE STATUS MESSAGES/EVENTS, the funnel without kind and key. */
static inline void say_cells(struct line *line, const struct rcpt_rules *rules)
{
    uint32_t count;
    const struct rcpt_tally_cell *cells = rcpt_rules_cells(rules, &count);
    for (uint32_t index = 0; index < count; index++) {
        const struct rcpt_tally_place *place = &cells[index].place;
        char minute[24] = "";
        if (place->minute != RCPT_TALLY_NO_TIME)
            snprintf(minute, sizeof(minute), "@%lld",
                     (long long)(rcpt_tally_since_1970(place->minute) - HOUR));
        bool is_funnel = place->kind == RCPT_COUNT_FUNNEL;
        say(line, "%s%s%s%s%s%s %d %lld/%lld", is_funnel ? "" : rcpt_rules_kind(rules, place->kind),
            is_funnel ? "" : " ", place->campaign->text.at, is_funnel ? "" : "/",
            place->key->text.at, minute, place->status, (long long)cells[index].messages,
            (long long)cells[index].events);
    }
}

/* ---- cases ---- */

#define MOST 8

struct row {
    const char *campaign; /* NULL: there are no more */
    uint32_t message;
    int16_t was, now;
    uint32_t gained;
    uint32_t had;    /* flags before */
    bool same;       /* it did not change */
    const char *org; /* NULL: none */
    const char *columns[8];
};

struct rules_case {
    struct rcpt_rules_settings settings; /* ladder and names are filled in */
    struct receipt receipts[MOST];
    struct row rows[MOST]; /* a message that no row has is missed */
    const char *expected;
};

static inline void add_row(struct rcpt_rules *rules, const struct row *row)
{
    struct rcpt_text columns[LENGTH(row->columns)];
    for (size_t index = 0; index < LENGTH(columns); index++)
        columns[index] = rcpt_text_of(row->columns[index]);
    rcpt_rules_add(rules, &(struct rcpt_rules_row){.message = row->message,
                                                   .was = row->was,
                                                   .now = row->now,
                                                   .gained = row->gained,
                                                   .flags = row->had | row->gained,
                                                   .changed = !row->same,
                                                   .campaign = rcpt_text_of(row->campaign),
                                                   .org = rcpt_text_of(row->org),
                                                   .columns = columns});
}

static inline void fill_in(struct rules_fixture *fixture, const struct rules_case *played)
{
    fixture->batch.message_count = fixture->batch.event_count = 0;
    fixture->said = 0;
    for (const struct receipt *receipt = played->receipts; receipt->id != NULL; receipt++)
        add_receipt(fixture, receipt);
}

static inline void add_rows(struct rcpt_rules *rules, const struct rules_case *played,
                            bool backwards)
{
    size_t count = 0;
    while (played->rows[count].campaign != NULL)
        count++;
    for (size_t index = 0; index < count; index++)
        add_row(rules, &played->rows[backwards ? count - 1 - index : index]);
}

static inline void add_missed(struct rcpt_rules *rules, const struct rules_fixture *fixture,
                              const struct rules_case *played)
{
    for (uint32_t message = 0; message < fixture->batch.message_count; message++) {
        bool has_row = false;
        for (const struct row *row = played->rows; row->campaign != NULL; row++)
            has_row |= row->message == message;
        if (!has_row)
            rcpt_rules_missed(rules, message);
    }
}

/* Twice with the same rules, since nothing of the first batch may stay; the second time the rows
 * come backwards. */
static inline void play(const struct rules_case *played,
                        void (*say_results)(struct line *line, const struct rcpt_rules *rules))
{
    struct rules_fixture *fixture = rules_fixture_new();
    struct rcpt_rules_settings settings = played->settings;
    settings.ladder = fixture->ladder;
    struct rcpt_rules *rules = rcpt_rules_new(&settings);
    fill_in(fixture, played);
    for (int time = 0; time < 2; time++) {
        struct line line = {.used = 0};
        rcpt_rules_begin(rules, &fixture->batch, NOW, &test_names);
        for (uint32_t index = 0; index < fixture->batch.event_count; index++)
            if (played->receipts[index].is_echo)
                rcpt_rules_echo(rules, index);
        add_rows(rules, played, time == 1);
        add_missed(rules, fixture, played);
        rcpt_rules_finish(rules);
        say_results(&line, rules);
        assert_string_equal(line.text, played->expected);
    }
    rcpt_rules_free(rules);
    rules_fixture_free(fixture);
}

#endif
