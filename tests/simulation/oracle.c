/* The ledger: checks each batch, each commit, each halt and the end of a schedule against the log.
 * Called by the parts in which these happen, and by play.c. */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

#include "instance.h"
#include "traffic.h"

#define RECOUNT_EVERY 64

/* ---- the content of a batch, when it is submitted ---- */

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

/* The fold is computed again, from the ladder and the events alone. */
static void check_fold(struct sim *sim, const struct rcpt_batch *batch, uint32_t index,
                       const struct sim_fold *fold, const struct sim_request *request)
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

/* ---- commits ---- */

static void check_covered(struct sim *sim, const struct sim_request *request, uint32_t number)
{
    const struct sim_item *item = &sim->traffic.items[number];
    const struct sim_record *record = &sim->traffic.records[item->record];
    if (item->fate != FATE_NONE)
        sim_anomaly(sim, "duplicate", "part %u offset %lld index %d is handled again", record->part,
                    (long long)record->offset, item->index);
    if (record->incarnation > 0)
        sim_anomaly(sim, "made-anew", "part %u offset %lld of the new topic is handled",
                    record->part, (long long)record->offset);
    for (uint32_t index = 0; index < request->move_count; index++) {
        const struct sim_move *move = &request->moves[index];
        if (move->part == record->part && record->offset >= move->is.expected &&
            record->offset < move->is.next)
            return;
    }
    sim_anomaly(sim, "uncovered", "part %u offset %lld is not what the positions move over",
                record->part, (long long)record->offset);
}

void sim_oracle_before_commit(struct sim *sim, const struct sim_request *request)
{
    for (uint32_t at = 0; at < request->item_count && request->batch == RCPT_BATCH_APPLY; at++)
        check_covered(sim, request, request->items[at]);
    for (uint32_t at = 0; at < request->letter_count; at++)
        check_covered(sim, request, request->letters[at]);
    for (uint32_t at = 0; at < request->item_count && request->batch == RCPT_BATCH_DISCARD; at++) {
        const struct sim_item *item = &sim->traffic.items[request->items[at]];
        if (!sim->traffic.messages[item->message].poison)
            sim_anomaly(sim, "discarded", "a good parked receipt of message %u is thrown away",
                        item->message);
    }
    if (request->instance < SIM_INSTANCES && sim->plan.engine.lanes <= request->lane)
        sim_anomaly(sim, "lane", "lane %u does not exist", request->lane);
}

/* Retention has deleted the record, and by the configuration consuming goes on behind it. */
static bool may_skip(const struct sim *sim, uint32_t part, int64_t offset)
{
    return sim->plan.skip_gaps && offset < sim->traffic.logs[part].low;
}

static void check_range(struct sim *sim, const struct sim_request *request,
                        const struct sim_move *move)
{
    for (int64_t offset = move->is.expected; offset < move->is.next; offset++) {
        const struct sim_record *record = sim_traffic_at(sim, move->part, offset);
        if (record == NULL || record->incarnation > 0)
            continue;
        for (uint32_t at = 0; at < record->item_count; at++) {
            uint32_t number = record->first_item + at;
            const struct sim_item *item = &sim->traffic.items[number];
            if (item->lane != request->lane || item->fate != FATE_NONE)
                continue;
            if (may_skip(sim, move->part, offset))
                sim_set_fate(sim, number, FATE_SKIPPED, 0);
            else
                sim_anomaly(sim, "lost",
                            "part %u offset %lld index %d: the position of lane %u "
                            "moves over it to %lld",
                            move->part, (long long)offset, item->index, request->lane,
                            (long long)move->is.next);
        }
    }
}

static void check_message(struct sim *sim, uint32_t number)
{
    const struct sim_message *message = &sim->traffic.messages[number];
    int16_t status = 0;
    uint32_t flags = 0;
    for (uint32_t at = message->first_item; at != UINT32_MAX;
         at = sim->traffic.items[at].next_of_message) {
        const struct sim_item *item = &sim->traffic.items[at];
        const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(sim->traffic.ladder, item->entry);
        if (item->fate != FATE_APPLIED)
            continue;
        status = entry->top > status ? entry->top : status;
        flags |= entry->mask;
    }
    if (status != message->status || flags != message->flags)
        sim_anomaly(sim, "status", "message %u has %d/%x, its receipts say %d/%x", number,
                    message->status, message->flags, status, flags);
}

void sim_oracle_after_commit(struct sim *sim, const struct sim_request *request)
{
    for (uint32_t index = 0; index < request->move_count; index++)
        check_range(sim, request, &request->moves[index]);
    for (uint32_t index = 0; index < request->fold_count; index++)
        check_message(sim, request->folds[index].message);
    sim_trace(sim, request->item_count * 7u + request->move_count);
    if (sim->database->commits % RECOUNT_EVERY == 0)
        sim_oracle_recount(sim);
}

static void count_message(const struct sim *sim, const struct sim_message *message,
                          struct sim_counter counters[][SIM_ENTRIES])
{
    struct sim_counter *own = counters[message->campaign];
    uint64_t path = sim->database->path[sim->database->entry_of[message->status]];
    for (uint32_t entry = 0; entry < sim->traffic.entry_count; entry++) {
        const struct rcpt_ladder_entry *is = rcpt_ladder_entry(sim->traffic.ladder, entry);
        own[entry].messages +=
            is->is_flag ? (message->flags & is->mask) != 0 : (path >> entry & 1) != 0;
    }
}

void sim_oracle_recount(struct sim *sim)
{
    struct sim_counter counters[SIM_CAMPAIGNS][SIM_ENTRIES];
    memset(counters, 0, sizeof(counters));
    for (uint32_t number = 0; number < sim->traffic.message_count; number++) {
        if (sim->traffic.messages[number].exists)
            count_message(sim, &sim->traffic.messages[number], counters);
    }
    for (uint32_t number = 0; number < sim->traffic.item_count; number++) {
        const struct sim_item *item = &sim->traffic.items[number];
        if (item->fate == FATE_APPLIED)
            counters[sim->traffic.messages[item->message].campaign][item->entry].events++;
    }
    if (memcmp(counters, sim->database->counters, sizeof(counters)) != 0)
        sim_anomaly(sim, "drift", "the counters differ from a recount");
}

/* ---- halts ---- */

static int64_t lowest_row(const struct sim *sim, uint32_t part)
{
    int64_t lowest = INT64_MAX;
    for (uint32_t lane = 0; lane < sim->plan.engine.lanes; lane++) {
        const struct sim_row *row = &sim->database->rows[part][lane];
        if (row->exists && row->next < lowest)
            lowest = row->next;
    }
    return lowest;
}

void sim_oracle_on_halt(struct sim *sim, uint32_t part, const char *why)
{
    const struct sim_log *log = &sim->traffic.logs[part];
    bool legal = log->made_anew > 0;
    if (strcmp(why, "no-row") == 0)
        legal = sim->database->row_deleted[part];
    else if (strcmp(why, "retention") == 0)
        legal |= lowest_row(sim, part) < log->low || sim->database->records_gone[part];
    if (legal && strcmp(why, "retention") == 0) /* a stopped partition is not polled again */
        sim->database->records_gone[part] = true;
    if (!legal)
        sim_anomaly(sim, "halted", "part %u stands still without reason: %s", part, why);
}

static bool is_halted(const struct sim *sim, uint32_t part)
{
    for (uint32_t number = 0; number < sim->plan.instances; number++) {
        const struct sim_instance *instance = sim->instances[number];
        if (instance->alive && (sim_group_owned(sim, number) >> part & 1))
            return instance->halted_for_good || (instance->halted >> part & 1) ||
                   (instance->halted != 0 && instance->held != 0);
    }
    return false;
}

void sim_oracle_after_going_back(struct sim *sim)
{
    for (uint32_t part = 0; part < SIM_PARTS; part++) {
        int64_t lowest = lowest_row(sim, part);
        if (lowest < sim->traffic.logs[part].low)
            sim->database->records_gone[part] = true;
    }
}

/* ---- the end ---- */

static int64_t log_end(const struct sim *sim, uint32_t part)
{
    const struct sim_log *log = &sim->traffic.logs[part];
    int64_t end = log->high; /* a consumer does not learn of offsets without records at the end */
    while (end > log->low && sim_traffic_at(sim, part, end - 1) == NULL)
        end--;
    return end;
}

static bool is_at_end(const struct sim *sim, uint32_t part)
{
    int64_t end = log_end(sim, part);
    if (end == sim->traffic.logs[part].low)
        return true; /* an empty log */
    for (uint32_t lane = 0; lane < sim->plan.engine.lanes; lane++) {
        const struct sim_row *row = &sim->database->rows[part][lane];
        if (!row->exists || row->next < end)
            return false;
    }
    return true;
}

static bool waits_for_good(const struct sim *sim, const struct sim_item *item)
{
    const struct sim_message *message = &sim->traffic.messages[item->message];
    return !message->exists && message->insert_at_us < 0 && sim->plan.parked_max_age_ms > 1000000;
}

/* The anchor's record does not exist yet. */
static bool waits_for_more(const struct sim *sim, uint32_t part, int64_t anchor_offset)
{
    const struct sim_log *log = &sim->traffic.logs[part];
    for (uint32_t number = 0; number < sim->plan.instances; number++) {
        const struct sim_instance *instance = sim->instances[number];
        const struct sim_session *session = &instance->sessions[part];
        if (instance->alive && session->assigned && session->incarnation == log->incarnation &&
            session->position == log->high && log->high <= anchor_offset)
            return true;
    }
    return false;
}

/* Of a re-created log: an instance noticed, or the log is still too short to differ from the old
 * one's end. */
static bool is_told(const struct sim *sim, uint32_t part)
{
    const struct sim_row *rows = sim->database->rows[part];
    uint32_t lowest = 0;
    for (uint32_t lane = 1; lane < sim->plan.engine.lanes; lane++)
        lowest = rows[lane].next < rows[lowest].next ? lane : lowest;
    return is_halted(sim, part) || sim->traffic.logs[part].high == rows[lowest].anchor_offset ||
           waits_for_more(sim, part, rows[lowest].anchor_offset);
}

const char *sim_oracle_unfinished(const struct sim *sim)
{
    bool halted = false;
    for (uint32_t part = 0; part < SIM_PARTS; part++) {
        if (!sim->traffic.logs[part].exists)
            continue;
        halted |= is_halted(sim, part);
        if (is_halted(sim, part))
            continue;
        if (sim->traffic.logs[part].made_anew > 0 && !is_told(sim, part))
            return "a topic made anew is taken for the old one";
        if (sim->traffic.logs[part].made_anew == 0 && !is_at_end(sim, part))
            return "a lane has not reached the end of a log";
    }
    for (uint32_t number = 0; number < sim->traffic.item_count && !halted; number++) {
        const struct sim_item *item = &sim->traffic.items[number];
        if (item->fate == FATE_PARKED && !waits_for_good(sim, item))
            return sim->traffic.messages[item->message].exists
                       ? "a parked receipt whose message exists has not been applied"
                       : "a parked receipt has not expired";
    }
    return NULL;
}

static bool is_legal_end(const struct sim *sim, const struct sim_item *item)
{
    const struct sim_record *record = &sim->traffic.records[item->record];
    if (item->fate == FATE_NONE || item->fate == FATE_SKIPPED)
        return record->incarnation > 0 || is_halted(sim, record->part) ||
               record->offset < sim->traffic.logs[record->part].low ||
               sim->traffic.logs[record->part].made_anew > 0;
    if (item->message == SIM_NO_MESSAGE)
        return item->fate == FATE_LETTER && item->letter_reason == item->reason;
    const struct sim_message *message = &sim->traffic.messages[item->message];
    if (item->fate == FATE_PARKED)
        return sim->plan.unknown != UNKNOWN_DEAD_LETTER;
    if (item->fate == FATE_APPLIED) {
        const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(sim->traffic.ladder, item->entry);
        return message->exists && (!message->poison || (entry->top == 0 && entry->mask == 0));
    }
    switch (item->letter_reason) {
    case RCPT_REJECT_DATABASE:
        return message->poison;
    case RCPT_REJECT_AGED_OUT:
        return message->insert_at_us != 0;
    case RCPT_REJECT_UNKNOWN_MESSAGE:
        return message->insert_at_us != 0 && sim->plan.unknown == UNKNOWN_DEAD_LETTER;
    default:
        return false;
    }
}

void sim_oracle_check_end(struct sim *sim)
{
    for (uint32_t number = 0; number < sim->traffic.item_count; number++) {
        const struct sim_item *item = &sim->traffic.items[number];
        const struct sim_record *record = &sim->traffic.records[item->record];
        if (!is_legal_end(sim, item))
            sim_anomaly(sim, "end", "part %u offset %lld index %d ends with fate %d, reason %d",
                        record->part, (long long)record->offset, item->index, item->fate,
                        item->letter_reason);
    }
    for (uint32_t number = 0; number < sim->traffic.message_count; number++)
        check_message(sim, number);
    sim_oracle_recount(sim);
}
