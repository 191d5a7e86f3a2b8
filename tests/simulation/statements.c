/* What the statements of a transaction do, from docs/semantics.md and the contracts of the batch.
 */
#include <stdlib.h>

#include "database.h"
#include "instance.h"
#include "postgres/decided.h"

bool sim_fence_holds(const struct sim *sim, const struct sim_request *request, uint32_t index)
{
    const struct sim_move *move = &request->moves[index];
    const struct sim_row *row = &sim->database->rows[move->part][request->lane];
    return row->exists && row->next == move->is.expected && row->generation == move->is.generation;
}

/* ---- parked rows ---- */

/* Would PostgreSQL refuse to apply this one receipt now? */
static bool is_refused(const struct sim *sim, const struct sim_item *item)
{
    const struct sim_message *message = &sim->traffic.messages[item->message];
    const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(sim->traffic.ladder, item->entry);
    return message->poison &&
           (entry->top > message->status || (entry->mask & ~message->flags) != 0);
}

/* A discard tries again whether the row is refused: others may have become applicable since the
 * wake that failed. */
static bool takes(const struct sim *sim, const struct sim_request *request,
                  const struct sim_item *item)
{
    if (item->fate != FATE_PARKED || item->lane != request->lane)
        return false;
    bool known = sim->traffic.messages[item->message].exists;
    if (request->batch == RCPT_BATCH_DISCARD)
        return known && is_refused(sim, item);
    if (request->batch == RCPT_BATCH_WAKE)
        return known;
    return !known && (sim->traffic.messages[item->message].retired ||
                      item->parked_at_us < sim->clock.now_us - sim->plan.parked_max_age_ms * 1000);
}

static void pick_record(struct sim *sim, struct sim_request *request,
                        const struct sim_record *record)
{
    for (uint32_t at = 0; at < record->item_count && request->item_count < request->wake_limit;
         at++) {
        uint32_t number = record->first_item + at;
        const struct sim_item *item = &sim->traffic.items[number];
        if (item->message == SIM_NO_MESSAGE || !takes(sim, request, item))
            continue;
        if ((request->item_count & (request->item_count - 1)) == 0) {
            uint32_t capacity = request->item_count > 0 ? request->item_count * 2 : 1;
            request->items = rcpt_realloc(request->items, capacity * sizeof(*request->items));
        }
        request->items[request->item_count++] = number;
    }
}

void sim_statement_pick_parked(struct sim *sim, struct sim_request *request)
{
    for (uint32_t index = 0; index < request->move_count; index++) {
        uint32_t part = request->moves[index].part;
        if (sim->database->parked[part][request->lane] == 0)
            continue;
        /* Records of an earlier incarnation may still have parked rows: all records, in the order
         * of production, which is the order of their offsets. */
        for (uint32_t record = 0; record < sim->traffic.record_count; record++) {
            if (sim->traffic.records[record].part == part)
                pick_record(sim, request, &sim->traffic.records[record]);
        }
    }
}

/* ---- writes ---- */

static void move_positions(struct sim *sim, const struct sim_request *request)
{
    struct sim_database *database = sim->database;
    for (uint32_t index = 0; index < request->move_count; index++) {
        const struct rcpt_batch_move *move = &request->moves[index].is;
        struct sim_row *row = &database->rows[request->moves[index].part][request->lane];
        sim_undo_save(database, row, sizeof(*row));
        row->next = move->next;
        if (move->anchor_offset == -1)
            continue;
        row->anchor_offset = move->anchor_offset;
        row->anchor_timestamp_ms = move->anchor_timestamp_ms;
        row->anchor_crc = move->anchor_crc;
    }
}

static void handle_unknown(struct sim *sim, struct sim_request *request,
                           const struct sim_fold *fold)
{
    for (uint32_t at = fold->first; at < fold->first + fold->count; at++) {
        if (fold->fate == RCPT_FATE_DELETED)
            sim_set_fate(sim, request->items[at], FATE_LETTER, RCPT_REJECT_RETIRED_MESSAGE);
        else if (sim->plan.unknown == UNKNOWN_DEAD_LETTER)
            sim_set_fate(sim, request->items[at], FATE_LETTER, RCPT_REJECT_UNKNOWN_MESSAGE);
        else
            sim_set_fate(sim, request->items[at], FATE_PARKED, 0);
    }
    const struct sim_message *message = &sim->traffic.messages[fold->message];
    if (sim->plan.unknown == UNKNOWN_INSERT && fold->fate == RCPT_FATE_ABSENT && !message->retired)
        sim_insert_message(sim, fold->message);
}

static void set_counted(struct sim *sim, const struct sim_request *request, uint32_t at,
                        const struct sim_fold *fold)
{
    struct sim_item *item = &sim->traffic.items[request->items[at]];
    enum sim_counted counted = COUNTED_WITHOUT_KEY;
    if (request->echoes != NULL && request->echoes[at])
        counted = COUNTED_AS_COPY;
    else if (sim->plan.dedup && sim_key_is_inside(request, item->at_us))
        counted = COUNTED_WITH_KEY;
    SIM_SET(sim->database, item->counted, (uint8_t)counted);
    SIM_SET(sim->database, item->life, fold->life);
}

static void change_row(struct sim *sim, const struct sim_fold *fold)
{
    struct sim_database *database = sim->database;
    struct sim_message *message = &sim->traffic.messages[fold->message];
    if (fold->top > message->status)
        SIM_SET(database, message->status, fold->top);
    SIM_SET(database, message->flags, message->flags | fold->mask);
    SIM_SET(database, message->times, fold->times);
}

static void store_keys(struct sim *sim, const struct sim_request *request)
{
    for (uint32_t at = 0; at < request->key_count; at++) {
        const struct sim_key *key = &request->keys[at];
        struct sim_item *twin = &sim->traffic.items[key->twin];
        if (key->undone) /* whoever has stored it */
            SIM_SET(sim->database, twin->key_stored, false);
        else if (key->fate == RCPT_KEY_STORED)
            SIM_SET(sim->database, twin->key_stored, true);
    }
}

/* The rows of decide, and what the second flight writes: as the client says. */
static void apply(struct sim *sim, struct sim_request *request)
{
    for (uint32_t index = 0; index < request->fold_count; index++) {
        const struct sim_fold *fold = &request->folds[index];
        if (fold->changed)
            change_row(sim, fold);
        if (fold->fate != RCPT_FATE_KNOWN) {
            handle_unknown(sim, request, fold);
            continue;
        }
        for (uint32_t at = fold->first; at < fold->first + fold->count; at++) {
            sim_set_fate(sim, request->items[at], FATE_APPLIED, 0);
            set_counted(sim, request, at, fold);
        }
    }
    sim_add_cells(sim, &request->cells);
    store_keys(sim, request);
    for (uint32_t index = 0; index < request->letter_count; index++)
        sim_set_fate(sim, request->letters[index], FATE_LETTER,
                     (enum rcpt_reject_reason)request->letter_reasons[index]);
}

/* Discard and expire: one statement each. */
static void handle_parked(struct sim *sim, struct sim_request *request)
{
    for (uint32_t at = 0; at < request->item_count; at++) {
        const struct sim_item *item = &sim->traffic.items[request->items[at]];
        if (item->fate != FATE_PARKED)
            continue; /* another transaction was first: DELETE does not return it */
        enum rcpt_reject_reason reason = RCPT_REJECT_DATABASE;
        if (request->batch == RCPT_BATCH_EXPIRE)
            reason = sim->traffic.messages[item->message].retired ? RCPT_REJECT_RETIRED_MESSAGE
                                                                  : RCPT_REJECT_AGED_OUT;
        request->result.woken++;
        sim_set_fate(sim, request->items[at], FATE_LETTER, reason);
    }
}

void sim_statement_commit(struct sim *sim, struct sim_request *request)
{
    move_positions(sim, request);
    if (request->batch == RCPT_BATCH_APPLY || request->batch == RCPT_BATCH_WAKE)
        apply(sim, request);
    else
        handle_parked(sim, request);
}

/* ---- reads, and rows of new partitions ---- */

static void copy_rows(struct sim *sim, struct sim_request *request)
{
    request->rows = rcpt_malloc(sizeof(sim->database->rows));
    for (uint32_t part = 0; part < SIM_PARTS; part++) {
        for (uint32_t lane = 0; lane < SIM_LANES; lane++)
            request->rows[part][lane] = sim->database->rows[part][lane];
    }
    for (uint32_t topic = 0; topic < SIM_TOPICS; topic++)
        request->pins[topic] = sim->database->pins[topic];
}

static void bootstrap(struct sim *sim, const struct sim_request *request)
{
    struct sim_database *database = sim->database;
    struct sim_pin *pin = &database->pins[request->topic];
    sim_transaction_begin(database);
    if (!pin->exists) {
        sim_undo_save(database, pin, sizeof(*pin));
        *pin = (struct sim_pin){.exists = true, .generation = 1};
    }
    for (uint32_t number = request->from; pin->partitions == request->from && number < request->to;
         number++) {
        for (uint32_t lane = 0; lane < sim->plan.engine.lanes; lane++) {
            struct sim_row *row = &database->rows[request->topic * SIM_TOPIC_PARTS + number][lane];
            sim_undo_save(database, row, sizeof(*row));
            *row = (struct sim_row){.exists = true,
                                    .next = request->lows[number - request->from],
                                    .generation = pin->generation,
                                    .anchor_offset = -1};
        }
    }
    if (pin->partitions == request->from)
        SIM_SET(database, pin->partitions, request->to);
    sim_transaction_end(sim, true);
}

static void probe(struct sim *sim, struct sim_request *request)
{
    int64_t old_us = sim->clock.now_us - sim->plan.parked_max_age_ms * 1000;
    uint32_t left = 0;
    for (uint32_t part = 0; part < SIM_PARTS; part++) {
        for (uint32_t lane = 0; lane < sim->plan.engine.lanes && request->parts >> part & 1; lane++)
            left += sim->database->parked[part][lane];
    }
    for (uint32_t number = 0; number < sim->traffic.item_count && left > 0; number++) {
        const struct sim_item *item = &sim->traffic.items[number];
        uint32_t part = sim->traffic.records[item->record].part;
        if (item->fate != FATE_PARKED || !(request->parts >> part & 1))
            continue;
        left--;
        request->parked++;
        if (sim->traffic.messages[item->message].exists)
            request->applicable |= 1u << item->lane;
        else if (item->parked_at_us < old_us || sim->traffic.messages[item->message].retired)
            request->expired |= 1u << item->lane;
    }
}

void sim_statement_read(struct sim *sim, struct sim_request *request)
{
    switch (request->kind) {
    case REQUEST_POSITIONS:
    case REQUEST_PINS:
        copy_rows(sim, request);
        break;
    case REQUEST_BOOTSTRAP:
        bootstrap(sim, request);
        break;
    default:
        probe(sim, request);
        break;
    }
}
