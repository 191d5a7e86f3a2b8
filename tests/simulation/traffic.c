/* The producer and the logs: records of real JSON, good and bad, and what each of them means for
 * the ledger; retention and topics that are made again.
 */
#include "traffic.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "receiptd/core/hash.h"
#include "receiptd/core/record.h"

#define NOTHING     UINT32_MAX
#define VALUE_BYTES 12000
#define FIRST_AT_MS INT64_C(1600000000000)
#define BURST_TIMES 100000 /* distinct event times: collisions are intended */

static const char *const topic_names[SIM_TOPICS] = {"receipts", "webhooks"};

const char *sim_topic_name(uint32_t part)
{
    return topic_names[part / SIM_TOPIC_PARTS];
}

int32_t sim_partition(uint32_t part)
{
    return (int32_t)(part % SIM_TOPIC_PARTS);
}

/* ---- messages ---- */

static void make_message(struct sim *sim, uint32_t number)
{
    struct sim_random *random = &sim->traffic_random;
    const struct sim_plan *plan = &sim->plan;
    struct sim_message *message = &sim->traffic.messages[number];
    memset(message, 0, sizeof(*message));
    const char *tail = number % 11 == 3 ? "-\"quoted\"" : number % 7 == 2 ? "-\xc3\xa9" : "";
    message->id_size =
        (uint32_t)snprintf(message->id, sizeof(message->id), "m-%05u%s", number, tail);
    message->campaign = sim_random_below(random, plan->campaigns);
    message->first_item = NOTHING;
    for (int at = 0; at < SIM_TIMES; at++)
        message->times.at_us[at] = INT64_MAX;
    message->poison = sim_random_chance(random, plan->poison_percent);
    message->exists = !sim_random_chance(random, plan->late_percent);
    if (!message->exists && plan->unknown != UNKNOWN_INSERT && sim_random_chance(random, 80))
        message->insert_at_us =
            1 + sim_random_between(random, 0, plan->load_ms * 1300); /* 0: it is there */
    else
        message->insert_at_us = message->exists ? 0 : -1;
}

void sim_traffic_init(struct sim *sim)
{
    struct sim_traffic *traffic = &sim->traffic;
    const struct sim_plan *plan = &sim->plan;
    struct rcpt_error error;
    traffic->ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    traffic->entry_count = (uint32_t)rcpt_ladder_entry_count(traffic->ladder);
    RCPT_ASSERT(traffic->entry_count <= SIM_ENTRIES);
    traffic->record_capacity = plan->records + 1;
    traffic->records = rcpt_calloc(traffic->record_capacity, sizeof(*traffic->records));
    traffic->item_capacity = traffic->record_capacity * (plan->events_per_record + 1);
    traffic->items = rcpt_calloc(traffic->item_capacity, sizeof(*traffic->items));
    traffic->message_count = plan->messages;
    traffic->messages = rcpt_calloc(plan->messages, sizeof(*traffic->messages));
    for (uint32_t number = 0; number < plan->messages; number++)
        make_message(sim, number);
    for (uint32_t topic = 0; topic < plan->topics; topic++) {
        traffic->topic_parts[topic] = plan->partitions;
        for (uint32_t number = 0; number < plan->partitions; number++)
            traffic->logs[topic * SIM_TOPIC_PARTS + number].exists = true;
    }
}

void sim_traffic_fini(struct sim *sim)
{
    struct sim_traffic *traffic = &sim->traffic;
    for (uint32_t record = 0; record < traffic->record_count; record++)
        free(traffic->records[record].value);
    for (uint32_t part = 0; part < SIM_PARTS; part++)
        free(traffic->logs[part].records);
    free(traffic->records);
    free(traffic->items);
    free(traffic->messages);
    rcpt_ladder_free(traffic->ladder);
}

/* ---- one event as JSON ---- */

struct writer {
    char text[VALUE_BYTES];
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *writer, const char *format,
                                                      ...)
{
    va_list arguments;
    va_start(arguments, format);
    writer->used += (size_t)vsnprintf(writer->text + writer->used,
                                      sizeof(writer->text) - writer->used, format, arguments);
    va_end(arguments);
    RCPT_ASSERT(writer->used < sizeof(writer->text));
}

static void put_id(struct writer *writer, const struct sim_message *message, bool escaped)
{
    put(writer, "\"message_id\":\"");
    for (uint32_t at = 0; at < message->id_size; at++) {
        unsigned char byte = (unsigned char)message->id[at];
        if (byte == '"')
            put(writer, "\\\"");
        else if (escaped && byte < 0x80 && at == 0)
            put(writer, "\\u%04x", byte);
        else
            put(writer, "%c", byte);
    }
    put(writer, "\"");
}

static int64_t put_time(struct writer *writer, struct sim_random *random, int64_t timestamp_ms)
{
    int64_t at_ms = FIRST_AT_MS + (int64_t)sim_random_below(random, BURST_TIMES) * 1000;
    char text[40];
    time_t seconds = (time_t)(at_ms / 1000);
    struct tm calendar;
    switch (sim_random_below(random, 4)) {
    case 0:
        put(writer, ",\"at\":%lld", (long long)at_ms);
        return at_ms * 1000;
    case 1:
        put(writer, ",\"at\":%lld", (long long)at_ms / 1000);
        return at_ms * 1000;
    case 2:
        gmtime_r(&seconds, &calendar);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &calendar);
        put(writer, ",\"at\":\"%s\"", text);
        return at_ms * 1000;
    default:
        return timestamp_ms * 1000; /* none: the record's */
    }
}

static uint32_t find_entry(const struct sim *sim, const char *name)
{
    for (uint32_t entry = 0; entry < sim->traffic.entry_count; entry++) {
        if (strcmp(rcpt_ladder_entry(sim->traffic.ladder, entry)->name, name) == 0)
            return entry;
    }
    rcpt_assert_failed("a status of the default ladder", __FILE__, __LINE__, __func__);
}

static void put_status(struct sim *sim, struct writer *writer, struct sim_item *item)
{
    struct sim_random *random = &sim->traffic_random;
    if (sim_random_chance(random, 4)) { /* the one whose meaning depends on the channel */
        bool email = sim_random_chance(random, 50);
        put(writer, ",\"status\":\"BOUNCED_HARD\",\"channel\":\"%s\"", email ? "email" : "sms");
        item->entry = (uint8_t)find_entry(sim, email ? "BOUNCED_HARD_EMAIL" : "BOUNCED_HARD");
        return;
    }
    item->entry = (uint8_t)sim_random_below(random, sim->traffic.entry_count);
    const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(sim->traffic.ladder, item->entry);
    if (sim_random_chance(random, 70))
        put(writer, ",\"status\":\"%s\"", entry->name);
    else
        put(writer, ",\"status\":%d", entry->code);
}

/* An event that came before once more: some gateways send it again, word for word or with another
 * time. */
static const struct sim_item *pick_original(struct sim *sim, const struct sim_item *item)
{
    uint32_t made = (uint32_t)(item - sim->traffic.items);
    if (made == 0 || !sim_random_chance(&sim->traffic_random, sim->plan.copy_percent))
        return NULL;
    const struct sim_item *original =
        &sim->traffic.items[sim_random_below(&sim->traffic_random, made)];
    return original->message == SIM_NO_MESSAGE ? NULL : original;
}

static void put_copy(struct sim *sim, struct writer *writer, struct sim_item *item,
                     const struct sim_item *original)
{
    struct sim_random *random = &sim->traffic_random;
    item->entry = original->entry;
    item->event_id = original->event_id;
    put(writer, ",\"status\":%d", rcpt_ladder_entry(sim->traffic.ladder, item->entry)->code);
    item->at_us = original->at_us;
    if (sim_random_chance(random, 20))
        item->at_us = (FIRST_AT_MS + (int64_t)sim_random_below(random, BURST_TIMES) * 1000) * 1000;
    put(writer, ",\"at\":%lld", (long long)item->at_us / 1000);
}

static void put_new(struct sim *sim, struct writer *writer, struct sim_item *item,
                    int64_t timestamp_ms)
{
    struct sim_random *random = &sim->traffic_random;
    put_status(sim, writer, item);
    item->at_us = put_time(writer, random, timestamp_ms);
    if (sim_random_chance(random, 50))
        item->event_id = (uint32_t)(item - sim->traffic.items) + 1;
}

static void put_names(struct sim *sim, struct writer *writer, struct sim_item *item)
{
    struct sim_random *random = &sim->traffic_random;
    if (sim_random_chance(random, 30)) {
        item->gateway = (uint8_t)(1 + sim_random_below(random, SIM_GATEWAYS));
        put(writer, "\"gateway\":\"g%u\",", item->gateway);
    }
    if (sim_random_chance(random, 30)) {
        item->why = (uint8_t)(1 + sim_random_below(random, SIM_REASONS));
        put(writer, "\"reason_class\":\"r%u\",", item->why);
    }
}

/* A link with the person in its query, and a price as gateways write it. */
static void put_said(struct sim *sim, struct writer *writer, struct sim_item *item)
{
    struct sim_random *random = &sim->traffic_random;
    if (sim_random_chance(random, 60)) {
        item->link = (uint8_t)(1 + sim_random_below(random, SIM_LINKS));
        put(writer, ",\"link\":\"l%u?to=%u\"", item->link, item->message);
    }
    if (sim_random_chance(random, 30)) {
        bool euro = sim_random_chance(random, 50);
        item->price = sim_random_below(random, 3000);
        item->currency = (uint8_t)(euro ? 'R' : 'D');
        put(writer, ",\"cost\":\"%s%u.%03u0\",\"currency\":\"%s\"", euro ? "" : "-",
            item->price / 1000, item->price % 1000, euro ? "EUR" : "usd");
    }
}

static int64_t day_of(int64_t at_us)
{
    return at_us / INT64_C(86400000000);
}

/* Whether two receipts are copies of each other, by docs/rules.md. */
static bool are_copies(const struct sim_item *left, const struct sim_item *right)
{
    if (left->entry != right->entry || left->event_id != right->event_id)
        return false;
    return left->event_id != 0 ? day_of(left->at_us) == day_of(right->at_us)
                               : left->at_us == right->at_us;
}

static uint32_t find_twin(const struct sim_traffic *traffic, const struct sim_item *item)
{
    uint32_t twin = (uint32_t)(item - traffic->items);
    for (uint32_t at = item->next_of_message; at != NOTHING;
         at = traffic->items[at].next_of_message)
        if (are_copies(item, &traffic->items[at]))
            twin = traffic->items[at].twin;
    return twin;
}

static void put_good(struct sim *sim, struct writer *writer, struct sim_item *item,
                     int64_t timestamp_ms)
{
    struct sim_random *random = &sim->traffic_random;
    struct sim_traffic *traffic = &sim->traffic;
    const struct sim_item *original = pick_original(sim, item);
    item->message =
        original != NULL ? original->message : sim_random_below(random, traffic->message_count);
    struct sim_message *message = &traffic->messages[item->message];
    put(writer, "{");
    put_names(sim, writer, item);
    put_id(writer, message, sim_random_chance(random, 5));
    if (original != NULL)
        put_copy(sim, writer, item, original);
    else
        put_new(sim, writer, item, timestamp_ms);
    if (item->event_id != 0)
        put(writer, ",\"event_id\":\"e%u\"", item->event_id);
    put_said(sim, writer, item);
    put(writer, ",\"campaign_id\":\"c%u\"}", message->campaign);
    item->next_of_message = message->first_item;
    item->twin = find_twin(traffic, item);
    message->first_item = (uint32_t)(item - traffic->items);
    traffic->receipts++;
}

static void put_bad(struct writer *writer, struct sim_item *item, uint32_t kind)
{
    static const struct {
        const char *text;
        enum rcpt_reject_reason reason;
    } bad[] = {
        {"{\"status\":\"SENT\"}", RCPT_REJECT_MISSING_ID},
        {"{\"message_id\":\"\",\"status\":\"SENT\"}", RCPT_REJECT_MISSING_ID},
        {"{\"message_id\":7,\"status\":\"SENT\"}", RCPT_REJECT_INVALID_ID},
        {"{\"message_id\":\"m-00001\"}", RCPT_REJECT_MISSING_STATUS},
        {"{\"message_id\":\"m-00001\",\"status\":\"NONSENSE\"}", RCPT_REJECT_UNKNOWN_STATUS},
        {"{\"message_id\":\"m-00001\",\"status\":\"SENT\",\"at\":\"soon\"}",
         RCPT_REJECT_INVALID_TIME},
        {"17", RCPT_REJECT_NOT_AN_EVENT},
    };
    const uint32_t count = sizeof(bad) / sizeof(bad[0]);
    put(writer, "%s", bad[kind % count].text);
    item->message = SIM_NO_MESSAGE;
    item->reason = (uint8_t)bad[kind % count].reason;
}

/* ---- one record ---- */

static struct sim_item *add_item(struct sim *sim, struct sim_record *record, int32_t index)
{
    struct sim_traffic *traffic = &sim->traffic;
    RCPT_ASSERT(traffic->item_count < traffic->item_capacity);
    struct sim_item *item = &traffic->items[traffic->item_count++];
    *item = (struct sim_item){.record = (uint32_t)(record - traffic->records),
                              .message = SIM_NO_MESSAGE,
                              .next_of_message = NOTHING,
                              .index = index};
    record->item_count++;
    return item;
}

static void set_lane(const struct sim *sim, const struct sim_record *record, struct sim_item *item)
{
    uint64_t hash;
    if (item->message == SIM_NO_MESSAGE) {
        hash = rcpt_hash_position(sim_topic_name(record->part), sim_partition(record->part),
                                  record->offset, (uint32_t)item->index);
    } else {
        const struct sim_message *message = &sim->traffic.messages[item->message];
        hash = rcpt_hash_text_extended(message->id, message->id_size, 0);
    }
    item->lane = (uint8_t)(hash & (sim->plan.engine.lanes - 1));
}

/* A record that cannot be decoded at all. */
static void fill_undecodable(struct sim *sim, struct sim_record *record, struct writer *writer)
{
    static const struct {
        const char *text; /* NULL: tombstone */
        enum rcpt_reject_reason reason;
    } whole[] = {
        {NULL, RCPT_REJECT_EMPTY_RECORD},
        {"", RCPT_REJECT_EMPTY_RECORD},
        {"{\"message_id\":\"m-0", RCPT_REJECT_INVALID_JSON},
        {"[{\"message_id\":\"m-00001\",\"status\":\"SENT\"}] x", RCPT_REJECT_INVALID_JSON},
        {"\"text\"", RCPT_REJECT_NOT_AN_EVENT},
    };
    uint32_t kind = sim_random_below(&sim->traffic_random, sizeof(whole) / sizeof(whole[0]));
    struct sim_item *item = add_item(sim, record, -1);
    item->reason = (uint8_t)whole[kind].reason;
    put(writer, "%s", whole[kind].text != NULL ? whole[kind].text : "");
    record->size = whole[kind].text != NULL ? (uint32_t)writer->used : NOTHING;
}

static void fill_events(struct sim *sim, struct sim_record *record, struct writer *writer)
{
    struct sim_random *random = &sim->traffic_random;
    uint32_t count = (uint32_t)sim_random_between(random, 1, sim->plan.events_per_record);
    uint32_t form = count > 1 ? 1 + sim_random_below(random, 2) : sim_random_below(random, 3);
    int64_t timestamp_ms = SIM_FIRST_TIMESTAMP + (int64_t)(record - sim->traffic.records);
    put(writer, "%s", form == 1 ? "[" : form == 2 ? "{\"events\":[" : "");
    for (uint32_t index = 0; index < count; index++) {
        struct sim_item *item = add_item(sim, record, (int32_t)index);
        put(writer, "%s", index > 0 ? "," : "");
        item->text = (uint32_t)writer->used;
        /* Alone and without brackets a scalar is no record of one event, but no event at all. */
        bool bad = form != 0 && sim_random_chance(random, sim->plan.reject_percent);
        if (bad)
            put_bad(writer, item, sim_random_below(random, 100));
        else
            put_good(sim, writer, item, timestamp_ms);
        item->text_size = (uint32_t)writer->used - item->text;
    }
    put(writer, "%s", form == 1 ? "]" : form == 2 ? "]}" : "");
    record->size = (uint32_t)writer->used;
}

static void append(struct sim_log *log, uint32_t record)
{
    if (log->high == log->capacity) {
        log->capacity = log->capacity * 2 + 64;
        log->records = rcpt_realloc(log->records, (size_t)log->capacity * sizeof(*log->records));
    }
    log->records[log->high++] = record;
}

void sim_traffic_produce(struct sim *sim, uint32_t part)
{
    struct sim_traffic *traffic = &sim->traffic;
    struct sim_log *log = &traffic->logs[part];
    struct sim_random *random = &sim->traffic_random;
    struct writer writer = {.used = 0};
    /* At an offset where an earlier incarnation had a record there is one again: else its anchor
     * has nothing to compare. */
    if (log->incarnation == 0 && sim_random_chance(random, sim->plan.gap_percent)) {
        append(log, NOTHING);
        return;
    }
    if (traffic->record_count == traffic->record_capacity)
        return;
    struct sim_record *record = &traffic->records[traffic->record_count++];
    *record = (struct sim_record){.offset = log->high,
                                  .part = part,
                                  .first_item = traffic->item_count,
                                  .incarnation = log->incarnation};
    if (sim_random_chance(random, sim->plan.reject_percent))
        fill_undecodable(sim, record, &writer);
    else
        fill_events(sim, record, &writer);
    if (record->size == NOTHING) {
        record->size = 0;
    } else {
        record->value = rcpt_malloc(record->size + 1);
        memcpy(record->value, writer.text, record->size);
    }
    for (uint32_t at = 0; at < record->item_count; at++)
        set_lane(sim, record, &traffic->items[record->first_item + at]);
    append(log, (uint32_t)(record - traffic->records));
}

void sim_traffic_recreate(struct sim *sim, uint32_t part)
{
    struct sim_log *log = &sim->traffic.logs[part];
    log->low = log->high = 0;
    log->incarnation++;
    log->made_anew++;
}

const struct sim_record *sim_traffic_at(const struct sim *sim, uint32_t part, int64_t offset)
{
    const struct sim_log *log = &sim->traffic.logs[part];
    if (offset < 0 || offset >= log->high || log->records[offset] == NOTHING)
        return NULL;
    return &sim->traffic.records[log->records[offset]];
}

const struct sim_record *sim_traffic_next(const struct sim *sim, uint32_t part, int64_t offset)
{
    const struct sim_log *log = &sim->traffic.logs[part];
    for (int64_t at = offset > log->low ? offset : log->low; at < log->high; at++) {
        if (log->records[at] != NOTHING)
            return &sim->traffic.records[log->records[at]];
    }
    return NULL;
}
