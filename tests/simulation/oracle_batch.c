/* The content of a batch, when it is submitted: made of records of the log and folded right. Written
 * without the code of src/core. Called by connections.c and flights.c.
 */
#include <stdlib.h>
#include <string.h>

#include "oracle.h"
#include "traffic.h"

static uint32_t part_of(const char *topic, int32_t partition)
{
    uint32_t base = strcmp(topic, sim_topic_name(0)) == 0 ? 0 : SIM_TOPIC_PARTS;
    return base + (uint32_t)partition;
}

/* The record of the log that this one was decoded from: the timestamp is its number. */
static const struct sim_record *find_record(struct sim *sim, const struct rcpt_record *record,
                                            const char *topic, int32_t partition)
{
    int64_t number = record->timestamp_ms - SIM_FIRST_TIMESTAMP;
    if (number >= 0 && number < sim->traffic.record_count) {
        const struct sim_record *found = &sim->traffic.records[number];
        if (found->offset == record->offset && found->part == part_of(topic, partition))
            return found;
    }
    sim_anomaly(sim, "phantom", "a record at offset %lld that was never produced there",
                (long long)record->offset);
    return NULL;
}

static uint32_t find_item(struct sim *sim, const struct sim_record *record, int32_t index)
{
    uint32_t number = record->first_item + (index > 0 ? (uint32_t)index : 0);
    if (number < record->first_item + record->item_count &&
        sim->traffic.items[number].index == index)
        return number;
    sim_anomaly(sim, "phantom", "index %d of offset %lld was never produced", index,
                (long long)record->offset);
    return UINT32_MAX;
}

static bool take_moves(struct sim *sim, const struct rcpt_batch *batch, struct sim_request *request)
{
    for (uint32_t index = 0; index < batch->move_count; index++) {
        const struct rcpt_batch_move *move = &batch->moves[index];
        uint32_t part = part_of(move->topic, move->partition);
        request->moves[request->move_count++] = (struct sim_move){part, *move};
        if (index > 0 && request->moves[index - 1].part >= part)
            sim_anomaly(sim, "order", "moves are not sorted");
        if (move->next < move->expected ||
            (batch->kind != RCPT_BATCH_APPLY && move->next != move->expected))
            sim_anomaly(sim, "move", "part %u from %lld to %lld", part, (long long)move->expected,
                        (long long)move->next);
        if (move->anchor_offset >= move->next)
            sim_anomaly(sim, "anchor", "part %u: anchor %lld of a position %lld", part,
                        (long long)move->anchor_offset, (long long)move->next);
    }
    return sim->anomaly == NULL;
}

/* Copies have one key, and so have all readings of one record. */
static bool take_key(struct sim *sim, uint32_t number, uint64_t key)
{
    struct sim_item *item = &sim->traffic.items[number];
    struct sim_item *twin = &sim->traffic.items[item->twin];
    if ((key != 0) != sim->plan.dedup || (twin->key != 0 && twin->key != key))
        sim_anomaly(sim, "event-key", "two copies of a receipt of message %u have two keys",
                    item->message);
    item->key = twin->key = key;
    return sim->anomaly == NULL;
}

static bool take_event(struct sim *sim, const struct rcpt_batch *batch, uint32_t index,
                       uint32_t message, struct sim_request *request)
{
    const struct rcpt_batch_event *event = &batch->events[index];
    const struct sim_record *record =
        find_record(sim, event->record, batch->record_topics[event->record_index],
                    batch->record_partitions[event->record_index]);
    uint32_t number =
        record != NULL ? find_item(sim, record, (int32_t)event->event->index) : UINT32_MAX;
    if (number == UINT32_MAX)
        return false;
    const struct sim_item *item = &sim->traffic.items[number];
    if (item->message != message || item->lane != batch->lane ||
        item->at_us != event->event->at_us ||
        rcpt_ladder_entry(sim->traffic.ladder, item->entry)->code != event->code) {
        sim_anomaly(sim, "content", "event %d of offset %lld is not what was produced", item->index,
                    (long long)record->offset);
        return false;
    }
    if (!take_key(sim, number, rcpt_record_event_key(event->record, event->event)))
        return false;
    request->items[request->item_count++] = number;
    return true;
}

static uint32_t find_message(struct sim *sim, const struct rcpt_batch_message *message)
{
    uint32_t number = 0;
    for (uint32_t at = 2; at < 7 && at < message->id_size; at++) /* m-00000 */
        number = number * 10 + (uint32_t)(message->id[at] - '0');
    if (number < sim->traffic.message_count &&
        sim->traffic.messages[number].id_size == message->id_size &&
        memcmp(sim->traffic.messages[number].id, message->id, message->id_size) == 0)
        return number;
    sim_anomaly(sim, "content", "a message id that was never produced");
    return UINT32_MAX;
}

/* Of receipts that name one of four statuses: the least times, and the first gateway. */
static void read_times(const struct sim *sim, const struct sim_request *request,
                       struct sim_fold *fold)
{
    static const char *const names[SIM_TIMES] = {"SENT", "DELIVERED", "OPENED", "CLICKED"};
    struct sim_times *least = &fold->least;
    *least = (struct sim_times){{INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}, 0};
    for (uint32_t at = fold->first; at < fold->first + fold->count; at++) {
        const struct sim_item *item = &sim->traffic.items[request->items[at]];
        const char *name = rcpt_ladder_entry(sim->traffic.ladder, item->entry)->name;
        int place = 0;
        while (place < SIM_TIMES && strcmp(names[place], name) != 0)
            place++;
        if (place == SIM_TIMES)
            continue;
        if (item->at_us < least->at_us[place])
            least->at_us[place] = item->at_us;
        if (item->gateway != 0 && (least->gateway == 0 || item->gateway < least->gateway))
            least->gateway = item->gateway;
    }
}

/* The fold is computed again, from the ladder and the events alone. */
static void check_fold(struct sim *sim, const struct rcpt_batch *batch, uint32_t index,
                       struct sim_fold *fold, const struct sim_request *request)
{
    const struct rcpt_batch_message *message = &batch->messages[index];
    const struct rcpt_batch_signature *signature = &batch->signatures[message->signature];
    int32_t counts[SIM_ENTRIES] = {0};
    int16_t top = -1;
    int64_t at_us = INT64_MAX;
    uint32_t mask = 0;
    for (uint32_t at = fold->first; at < fold->first + fold->count; at++) {
        const struct sim_item *item = &sim->traffic.items[request->items[at]];
        const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(sim->traffic.ladder, item->entry);
        counts[item->entry]++;
        mask |= entry->mask;
        if (entry->top > top || (entry->top == top && item->at_us < at_us))
            at_us = item->at_us;
        top = entry->top > top ? entry->top : top;
    }
    fold->at_us = at_us;
    read_times(sim, request, fold);
    bool right = top == message->top && mask == message->mask && at_us == message->at_us;
    for (uint32_t at = signature->first; at < signature->first + signature->size; at++)
        counts[sim->database->entry_of[batch->signature_codes[at]]] -= batch->signature_counts[at];
    for (uint32_t entry = 0; entry < SIM_ENTRIES; entry++)
        right &= counts[entry] == 0;
    if (!right)
        sim_anomaly(sim, "fold", "message %u of a batch is folded wrong", fold->message);
}

static bool take_messages(struct sim *sim, const struct rcpt_batch *batch,
                          struct sim_request *request)
{
    request->folds = rcpt_malloc((batch->message_count + 1) * sizeof(*request->folds));
    request->items = rcpt_malloc((batch->event_count + 1) * sizeof(*request->items));
    for (uint32_t index = 0; index < batch->message_count; index++) {
        const struct rcpt_batch_message *message = &batch->messages[index];
        uint32_t first = message->first_event, number = find_message(sim, message);
        uint32_t end = index + 1 < batch->message_count ? batch->messages[index + 1].first_event
                                                        : batch->event_count;
        if (number == UINT32_MAX)
            return false;
        if (index > 0 && request->folds[index - 1].message >= number)
            sim_anomaly(sim, "order", "messages are not sorted");
        for (uint32_t at = first; at < end; at++) {
            if (!take_event(sim, batch, at, number, request))
                return false;
        }
        struct sim_fold *fold = &request->folds[request->fold_count++];
        *fold = (struct sim_fold){.message = number,
                                  .first = first,
                                  .count = end - first,
                                  .top = message->top,
                                  .mask = message->mask};
        check_fold(sim, batch, index, fold, request);
    }
    return sim->anomaly == NULL;
}

static bool take_letters(struct sim *sim, const struct rcpt_batch *batch,
                         struct sim_request *request)
{
    request->letters = rcpt_malloc((batch->letter_count + 1) * sizeof(*request->letters));
    request->letter_reasons = rcpt_malloc(batch->letter_count + 1);
    for (uint32_t index = 0; index < batch->letter_count; index++) {
        const struct rcpt_batch_letter *letter = &batch->letters[index];
        const struct sim_record *record =
            find_record(sim, letter->record, letter->topic, letter->partition);
        uint32_t number = record != NULL ? find_item(sim, record, letter->index) : UINT32_MAX;
        if (number == UINT32_MAX)
            return false;
        const struct sim_item *item = &sim->traffic.items[number];
        bool legal = item->message == SIM_NO_MESSAGE
                         ? (uint8_t)letter->reason == item->reason
                         : letter->reason == RCPT_REJECT_DATABASE &&
                               sim->traffic.messages[item->message].poison;
        if (!legal)
            sim_anomaly(sim, "letter", "index %d of offset %lld as %s", letter->index,
                        (long long)record->offset, rcpt_reject_name(letter->reason));
        request->letters[request->letter_count] = number;
        request->letter_reasons[request->letter_count++] = (uint8_t)letter->reason;
    }
    return sim->anomaly == NULL;
}

bool sim_oracle_take_batch(struct sim *sim, const struct rcpt_batch *batch,
                           struct sim_request *request)
{
    request->batch = batch->kind;
    request->lane = batch->lane;
    request->wake_limit = batch->wake_limit;
    return take_moves(sim, batch, request) && take_messages(sim, batch, request) &&
           take_letters(sim, batch, request);
}

/* Receipts come sorted by message: one entry for each. */
bool sim_oracle_take_woken(struct sim *sim, const struct rcpt_batch *batch,
                           struct sim_request *request)
{
    free(request->folds); /* a wake was submitted without messages */
    request->folds = rcpt_calloc(batch->message_count + 1, sizeof(*request->folds));
    RCPT_ASSERT(request->folds != NULL);
    for (uint32_t at = 0; at < request->item_count; at++) {
        const struct sim_item *item = &sim->traffic.items[request->items[at]];
        const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(sim->traffic.ladder, item->entry);
        struct sim_fold *fold =
            request->fold_count > 0 ? &request->folds[request->fold_count - 1] : NULL;
        if (fold == NULL || fold->message != item->message) {
            if (request->fold_count == batch->message_count)
                break;
            fold = &request->folds[request->fold_count++];
            *fold = (struct sim_fold){.message = item->message, .first = at, .top = -1};
        }
        fold->count++;
        fold->top = entry->top > fold->top ? entry->top : fold->top;
        fold->mask |= entry->mask;
    }
    if (request->fold_count != batch->message_count || batch->event_count != request->item_count)
        sim_anomaly(sim, "fold", "a wake of %u messages is folded to %u", request->fold_count,
                    batch->message_count);
    for (uint32_t index = 0; index < request->fold_count && sim->anomaly == NULL; index++)
        check_fold(sim, batch, index, &request->folds[index], request);
    return sim->anomaly == NULL;
}
