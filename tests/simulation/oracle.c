/* The ledger: judges every commit and the end of a schedule by the log alone, written without the
 * code of src/core. Called by the simulated database and by play.c.
 */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

#include "instance.h"
#include "ledger.h"
#include "postgres/decided.h"
#include "traffic.h"

#define RECOUNT_EVERY 64

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
    for (uint32_t at = 0; at < request->item_count && request->batch == RCPT_BATCH_WAKE; at++)
        if (sim->traffic.items[request->items[at]].fate != FATE_PARKED)
            sim_anomaly(sim, "woken", "a receipt that is not parked is woken");
    for (uint32_t at = 0; at < request->fold_count && request->batch == RCPT_BATCH_WAKE; at++)
        if (request->folds[at].fate != RCPT_FATE_KNOWN)
            sim_anomaly(sim, "overtaken", "a wake writes what it has found no message for");
    if (request->in_flights)
        sim_ledger_check(sim, request);
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
        if (item->fate != FATE_APPLIED || item->life != message->life)
            continue;
        status = entry->top > status ? entry->top : status;
        flags |= entry->mask;
    }
    if (message->exists && (status != message->status || flags != message->flags))
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
        if (item->fate == FATE_APPLIED && item->counted != COUNTED_AS_COPY)
            counters[sim->traffic.messages[item->message].campaign][item->entry].events++;
    }
    for (uint32_t campaign = 0; campaign < SIM_CAMPAIGNS; campaign++)
        for (uint32_t entry = 0; entry < SIM_ENTRIES; entry++)
            counters[campaign][entry].messages += sim->database->retired[campaign][entry];
    sim_ledger_check_keys(sim);
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
        legal |= lowest_row(sim, part) < log->low || sim->database->records_gone[part] ||
                 lowest_row(sim, part) == INT64_MAX; /* a fail-over took the rows back, too */
    if (legal &&
        strcmp(why, "retention") == 0) /* a partition that stands still does not ask again */
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
    return !message->exists && !message->retired && message->insert_at_us < 0 &&
           sim->plan.parked_max_age_ms > 1000000;
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

/* Of a log that was made again: an instance noticed, or it is so short that it cannot be distinguished from the old one's
 * end yet. */
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
            return "a topic that was made again is taken for the old one";
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
        return (message->exists || message->was_deleted) &&
               (!message->poison || (entry->top == 0 && entry->mask == 0));
    }
    switch (item->letter_reason) {
    case RCPT_REJECT_DATABASE:
        return message->poison;
    case RCPT_REJECT_AGED_OUT:
        return message->insert_at_us != 0 || message->was_deleted;
    case RCPT_REJECT_RETIRED_MESSAGE:
        return message->was_deleted;
    case RCPT_REJECT_UNKNOWN_MESSAGE:
        return (message->insert_at_us != 0 || message->was_deleted) &&
               sim->plan.unknown == UNKNOWN_DEAD_LETTER;
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
