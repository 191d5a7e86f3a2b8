/* Judges what a batch adds to counters (ledger.h). Called by oracle.c. */
#include "ledger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"
#include "postgres/decided.h"

#define MINUTE_US INT64_C(60000000)

struct judged { /* a message of a batch */
    struct sim *sim;
    const struct sim_request *request;
    const struct sim_fold *fold;
    const struct sim_message *message;
    uint8_t campaign;
    int16_t was, now;
    uint32_t gained;
    struct sim_cells *cells;
};

/* ---- places ---- */

static int64_t minute_of(const struct judged *judged, int64_t at_us)
{
    int64_t last = judged->request->now_us / MINUTE_US + 60;
    return at_us / MINUTE_US < last ? at_us / MINUTE_US : last;
}

/* Minutes are counted from 1. */
static uint32_t series_minute(const struct judged *judged, int64_t at_us)
{
    return judged->sim->plan.series ? (uint32_t)minute_of(judged, at_us) + 1 : 0;
}

static uint32_t hour_of(const struct judged *judged)
{
    return (uint32_t)(judged->request->now_us / (60 * MINUTE_US) * 60 + 1);
}

static int16_t code_of(const struct sim *sim, uint32_t entry)
{
    return rcpt_ladder_entry(sim->traffic.ladder, entry)->code;
}

static bool passes(const struct sim *sim, int16_t status, int16_t passed)
{
    const struct sim_database *database = sim->database;
    return database->path[database->entry_of[status]] >> database->entry_of[passed] & 1;
}

static int16_t named(const struct sim *sim, const char *name)
{
    uint32_t entry = 0;
    while (strcmp(rcpt_ladder_entry(sim->traffic.ladder, entry)->name, name) != 0)
        entry++;
    return code_of(sim, entry);
}

static bool passes_terminal(const struct sim *sim, int16_t status)
{
    for (uint32_t entry = 0; entry < sim->traffic.entry_count; entry++)
        if (rcpt_ladder_entry(sim->traffic.ladder, entry)->terminal &&
            !rcpt_ladder_entry(sim->traffic.ladder, entry)->is_flag &&
            passes(sim, status, code_of(sim, entry)))
            return true;
    return false;
}

/* ---- messages ---- */

static void add(const struct judged *judged, struct sim_cell_key key, int64_t messages,
                int64_t events)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): no plan has more dimensions than values */
    sim_cells_add(judged->cells, key, messages, events);
}

static bool is_click(const struct sim *sim, int16_t code)
{
    return code == named(sim, "CLICKED") || code == named(sim, "BOT_CLICK");
}

/* The earliest click of this kind in the batch tells the link; of two at one time the lesser link. */
static uint8_t first_link(const struct judged *judged, int16_t click)
{
    const struct sim_item *first = NULL;
    for (uint32_t at = judged->fold->first; at < judged->fold->first + judged->fold->count; at++) {
        const struct sim_item *item = &judged->sim->traffic.items[judged->request->items[at]];
        if (code_of(judged->sim, item->entry) == click &&
            (first == NULL || item->at_us < first->at_us ||
             (item->at_us == first->at_us && item->link < first->link)))
            first = item;
    }
    return first != NULL ? first->link : 0;
}

/* One step of the change, in every counter by steps. */
static void add_step(const struct judged *judged, int16_t code, int64_t by)
{
    const struct sim_plan *plan = &judged->sim->plan;
    uint32_t message = judged->fold->message;
    const uint8_t values[] = {(uint8_t)sim_channel(message), (uint8_t)sim_region(message)};
    RCPT_ASSERT(plan->dimensions <= sizeof(values));
    add(judged,
        (struct sim_cell_key){.kind = RCPT_COUNT_FUNNEL,
                              .campaign = judged->campaign,
                              .status = code,
                              .minute = series_minute(judged, judged->fold->at_us)},
        by, 0);
    if (plan->links && is_click(judged->sim, code))
        add(judged,
            (struct sim_cell_key){.kind = RCPT_COUNT_LINK,
                                  .campaign = judged->campaign,
                                  .key = by > 0 ? first_link(judged, code) : 0,
                                  .status = code},
            by, 0);
    for (uint32_t at = 0; at < plan->dimensions; at++)
        add(judged,
            (struct sim_cell_key){.kind = (uint8_t)(RCPT_COUNT_BY + at),
                                  .campaign = judged->campaign,
                                  .key = values[at],
                                  .status = code},
            by, 0);
}

static void add_steps(const struct judged *judged)
{
    const struct sim *sim = judged->sim;
    const struct sim_database *database = sim->database;
    uint64_t before = database->path[database->entry_of[judged->was]];
    uint64_t after = database->path[database->entry_of[judged->now]];
    for (uint32_t entry = 0; entry < sim->traffic.entry_count; entry++)
        if ((before ^ after) >> entry & 1)
            add_step(judged, code_of(sim, entry), after >> entry & 1 ? 1 : -1);
    for (uint32_t bit = 0; judged->gained >> bit != 0; bit++)
        if (judged->gained >> bit & 1)
            add_step(judged, (int16_t)(RCPT_LADDER_FIRST_FLAG_CODE + bit), 1);
}

static void add_members_and_folds(const struct judged *judged)
{
    uint32_t message = judged->fold->message;
    const uint32_t values[] = {sim_customer(message), sim_attempt_of(message) != 0
                                                          ? sim_attempt_of(message)
                                                          : 100 + message};
    const struct sim_cell_key key = {.campaign = judged->campaign,
                                     .status = judged->was,
                                     .other = judged->now,
                                     .gained = judged->gained};
    RCPT_ASSERT(judged->sim->plan.groups <= sizeof(values) / sizeof(values[0]));
    for (uint32_t group = 0; group < judged->sim->plan.groups; group++) {
        struct sim_cell_key member = key;
        member.kind = (uint8_t)(CELL_MEMBER + group);
        member.minute = values[group];
        if (values[group] != 0)
            add(judged, member, 1, 0);
    }
    struct sim_cell_key fold = key;
    fold.kind = CELL_FOLD;
    fold.key = (uint8_t)sim_fold_columns(message);
    fold.more = (uint8_t)sim_org(message);
    if (!judged->sim->plan.folds)
        return;
    add(judged, fold, 1, 0);
    fold.kind = CELL_CHANGE;
    fold.minute = message;
    fold.gained |= (judged->fold->had | judged->gained) << 16;
    add(judged, fold, 1, 0);
}

/* The first one by name, among the message's receipts in this batch. */
static uint8_t first_gateway(const struct judged *judged)
{
    uint8_t first = 0;
    for (uint32_t at = judged->fold->first; at < judged->fold->first + judged->fold->count; at++) {
        const struct sim_item *item = &judged->sim->traffic.items[judged->request->items[at]];
        if (item->gateway != 0 && (first == 0 || item->gateway < first))
            first = item->gateway;
    }
    return first;
}

static void add_stages(const struct judged *judged)
{
    const struct sim *sim = judged->sim;
    int16_t sent = named(sim, "SENT"), delivered = named(sim, "DELIVERED");
    int is_sent[2], is_final[2];
    for (int at = 0; at < 2; at++) {
        int16_t status = at == 0 ? judged->was : judged->now;
        is_sent[at] = passes(sim, status, sent);
        is_final[at] =
            is_sent[at] && (passes(sim, status, delivered) || passes_terminal(sim, status));
    }
    struct sim_cell_key key = {
        .kind = RCPT_COUNT_GATEWAY_SENT, .key = first_gateway(judged), .minute = hour_of(judged)};
    add(judged, key, is_sent[1] - is_sent[0], 0);
    key.kind = RCPT_COUNT_GATEWAY_FINAL;
    add(judged, key, is_final[1] - is_final[0], 0);
}

/* ---- first times ---- */

static int16_t bucket_of(int64_t earlier_us, int64_t later_us)
{
    if (earlier_us == INT64_MAX || later_us == INT64_MAX)
        return SIM_NO_BUCKET;
    if (later_us < earlier_us)
        return -1;
    int16_t bucket = 0; /* the first that ends at 2^(bucket / 2) ms or later */
    double ms = (double)(later_us - earlier_us) / 1000;
    while (bucket < 79 && ceil(log(ms > 1 ? ms : 1) * (2 / log(2.0))) > bucket)
        bucket++;
    return bucket;
}

static struct sim_cell_key place_of(const struct judged *judged, const struct sim_times *times,
                                    int16_t status)
{
    bool delivered = passes(judged->sim, status, named(judged->sim, "DELIVERED"));
    return (struct sim_cell_key){
        .kind = RCPT_COUNT_TIME_PLACE,
        .campaign = judged->campaign,
        .key = times->gateway,
        .status = delivered ? bucket_of(times->at_us[SIM_SENT], times->at_us[SIM_DELIVERED])
                            : SIM_NO_BUCKET,
        .other = bucket_of(times->at_us[SIM_DELIVERED], times->at_us[SIM_OPENED])};
}

static bool is_nowhere(const struct sim_cell_key *place)
{
    return place->status == SIM_NO_BUCKET && place->other == SIM_NO_BUCKET;
}

static void add_times(const struct judged *judged)
{
    struct sim_cell_key now = place_of(judged, &judged->fold->times, judged->now);
    struct sim_cell_key before = place_of(judged, &judged->fold->before, judged->was);
    if (!is_nowhere(&now))
        add(judged, now, 1, 0);
    if (!is_nowhere(&before))
        add(judged, before, -1, 0);
}

/* ---- receipts ---- */

static void add_disorder(const struct judged *judged, const struct sim_item *item,
                         struct sim_cell_key key)
{
    const struct rcpt_ladder_entry *entry =
        rcpt_ladder_entry(judged->sim->traffic.ladder, item->entry);
    if (entry->is_flag || entry->code == judged->was ||
        passes(judged->sim, entry->code, judged->was))
        return;
    key.kind = RCPT_COUNT_GATEWAY_WON;
    if (passes(judged->sim, judged->was, entry->code))
        key.kind = RCPT_COUNT_GATEWAY_DISORDER;
    else if (entry->code < judged->was)
        key.kind = RCPT_COUNT_GATEWAY_LOST;
    add(judged, key, 0, 1);
}

static void add_to_gateway(const struct judged *judged, const struct sim_item *item)
{
    int64_t delay_us = judged->request->now_us - item->at_us;
    struct sim_cell_key key = {.kind = RCPT_COUNT_GATEWAY,
                               .key = item->gateway,
                               .minute = hour_of(judged),
                               .status = code_of(judged->sim, item->entry)};
    add(judged, key, 0, 1);
    add_disorder(judged, item, key);
    key.kind = RCPT_COUNT_GATEWAY_DELAY;
    key.status = bucket_of(0, delay_us > 0 ? delay_us : 0);
    add(judged, key, 0, 1);
}

static void add_reason(const struct judged *judged, const struct sim_item *item)
{
    struct sim_cell_key key = {.kind = RCPT_COUNT_REASON,
                               .campaign = judged->campaign,
                               .key = item->why,
                               .status = code_of(judged->sim, item->entry)};
    add(judged, key, 0, 1);
    key.kind = RCPT_COUNT_GATEWAY_REASON;
    key.campaign = 0;
    key.key = (uint8_t)(item->gateway << 4 | item->why);
    add(judged, key, 0, 1);
}

static void add_cost(const struct judged *judged, const struct sim_item *item)
{
    struct sim_cell_key key = {.kind = RCPT_COUNT_COST,
                               .campaign = judged->campaign,
                               .key = (uint8_t)(item->currency - '0'),
                               .status = code_of(judged->sim, item->entry)};
    add(judged, key, 0, 1);
    key.kind = RCPT_COUNT_COST_AMOUNT;
    add(judged, key, item->price / 1000, (int64_t)(item->price % 1000) * 1000000);
}

static void add_receipt(const struct judged *judged, const struct sim_item *item)
{
    const struct sim_plan *plan = &judged->sim->plan;
    uint32_t message = judged->fold->message;
    const uint8_t values[] = {(uint8_t)sim_channel(message), (uint8_t)sim_region(message)};
    RCPT_ASSERT(plan->dimensions <= sizeof(values));
    struct sim_cell_key key = {.kind = RCPT_COUNT_FUNNEL,
                               .campaign = judged->campaign,
                               .status = code_of(judged->sim, item->entry)};
    for (uint32_t at = 0; at < plan->dimensions; at++) {
        key.kind = (uint8_t)(RCPT_COUNT_BY + at);
        key.key = values[at];
        add(judged, key, 0, 1);
    }
    key.kind = RCPT_COUNT_FUNNEL;
    key.key = 0;
    key.minute = series_minute(judged, item->at_us);
    add(judged, key, 0, 1);
    if (plan->gateways)
        add_to_gateway(judged, item);
    if (plan->reasons && item->why != 0)
        add_reason(judged, item);
    key.kind = RCPT_COUNT_LINK;
    key.key = item->link;
    key.minute = 0;
    if (plan->links && is_click(judged->sim, key.status))
        add(judged, key, 0, 1);
    if (plan->costs && item->currency != 0)
        add_cost(judged, item);
}

static void add_copy(const struct judged *judged, const struct sim_item *item)
{
    struct sim_cell_key key = {.kind = RCPT_COUNT_DUPLICATE,
                               .campaign = judged->campaign,
                               .key = item->gateway,
                               .status = code_of(judged->sim, item->entry)};
    add(judged, key, 0, 1);
    key.kind = RCPT_COUNT_GATEWAY_DUPLICATE;
    key.campaign = 0;
    key.minute = hour_of(judged);
    if (judged->sim->plan.gateways)
        add(judged, key, 0, 1);
}

/* A copy of one that was applied before, or of an earlier one of this message's in the batch; of
 * equal times the first one. */
static bool is_copy(const struct judged *judged, uint32_t at)
{
    const struct sim_item *items = judged->sim->traffic.items;
    const struct sim_item *item = &items[judged->request->items[at]];
    if (!judged->sim->plan.dedup || !sim_key_is_inside(judged->request, item->at_us))
        return false;
    if (items[item->twin].key_stored)
        return true;
    for (uint32_t other = judged->fold->first; other < judged->fold->first + judged->fold->count;
         other++) {
        const struct sim_item *rival = &items[judged->request->items[other]];
        if (other != at && rival->twin == item->twin &&
            (rival->at_us < item->at_us || (rival->at_us == item->at_us && other < at)))
            return true;
    }
    return false;
}

static void judge_receipts(const struct judged *judged)
{
    const struct sim_request *request = judged->request;
    for (uint32_t at = judged->fold->first; at < judged->fold->first + judged->fold->count; at++) {
        const struct sim_item *item = &judged->sim->traffic.items[request->items[at]];
        bool copy = is_copy(judged, at);
        if (copy != (request->echoes[at] != 0))
            sim_anomaly(judged->sim, "copy", "a receipt of message %u is %s for a copy",
                        judged->fold->message, copy ? "not taken" : "taken");
        if (copy)
            add_copy(judged, item);
        else
            add_receipt(judged, item);
    }
}

/* ---- a message ---- */

static void judge_unknown(const struct judged *judged)
{
    for (uint32_t at = judged->fold->first; at < judged->fold->first + judged->fold->count; at++) {
        const struct sim_item *item = &judged->sim->traffic.items[judged->request->items[at]];
        if (judged->sim->plan.gateways && judged->fold->fate == RCPT_FATE_ABSENT)
            add(judged,
                (struct sim_cell_key){.kind = RCPT_COUNT_GATEWAY_UNKNOWN,
                                      .key = item->gateway,
                                      .minute = hour_of(judged)},
                0, 1);
    }
}

static void judge_known(const struct judged *judged)
{
    const struct sim_plan *plan = &judged->sim->plan;
    add_steps(judged);
    if (judged->was != judged->now || judged->gained != 0)
        add_members_and_folds(judged);
    if (judged->was != judged->now && plan->gateways)
        add_stages(judged);
    if (plan->times && judged->fold->changed)
        add_times(judged);
    judge_receipts(judged);
}

/* PostgreSQL's word: the row was changed and is locked, was there with nothing to change, or was not
 * there. What is stale is neither. */
static enum rcpt_fate fate_of(const struct sim_fold *fold)
{
    if (fold->changed)
        return RCPT_FATE_KNOWN;
    if (!fold->known)
        return fold->retired ? RCPT_FATE_DELETED : RCPT_FATE_ABSENT;
    return fold->changes ? RCPT_FATE_STALE : RCPT_FATE_KNOWN;
}

static void judge(struct sim *sim, const struct sim_request *request, const struct sim_fold *fold,
                  struct sim_cells *cells)
{
    const struct sim_message *message = &sim->traffic.messages[fold->message];
    struct judged judged = {.sim = sim,
                            .request = request,
                            .fold = fold,
                            .message = message,
                            .campaign = (uint8_t)(message->campaign + 1),
                            .cells = cells};
    judged.was = judged.now = fold->changed ? message->status : fold->status;
    if (fold->fate != fate_of(fold))
        sim_anomaly(sim, "fate", "message %u is taken for %d, and PostgreSQL says %d",
                    fold->message, (int)fold->fate, (int)fate_of(fold));
    if (fold->changed && fold->top > message->status)
        judged.now = fold->top;
    if (fold->changed)
        judged.gained = fold->mask & ~message->flags;
    if (fold->fate == RCPT_FATE_KNOWN)
        judge_known(&judged);
    else
        judge_unknown(&judged);
}

void sim_ledger_check(struct sim *sim, const struct sim_request *request)
{
    struct sim_cells cells = {0};
    int64_t messages, events;
    for (uint32_t index = 0; index < request->fold_count && sim->anomaly == NULL; index++)
        judge(sim, request, &request->folds[index], &cells);
    const struct sim_cell *wrong =
        sim->anomaly == NULL ? sim_cells_difference(&request->cells, &cells, &messages, &events)
                             : NULL;
    if (wrong != NULL)
        sim_anomaly(sim, "cell",
                    "kind %u, campaign %u, key %u, status %d/%d, minute %u: %+lld messages, %+lld "
                    "events too many",
                    wrong->key.kind, wrong->key.campaign, wrong->key.key, wrong->key.status,
                    wrong->key.other, wrong->key.minute, (long long)messages, (long long)events);
    sim_cells_free(&cells);
}

void sim_ledger_check_keys(struct sim *sim)
{
    struct sim_traffic *traffic = &sim->traffic;
    uint8_t *counted = rcpt_calloc(traffic->item_count + 1, 1);
    for (uint32_t number = 0; number < traffic->item_count; number++) {
        const struct sim_item *item = &traffic->items[number];
        if (item->fate == FATE_APPLIED && item->counted == COUNTED_WITH_KEY &&
            counted[item->twin]++ > 0)
            sim_anomaly(sim, "twice", "two copies of a receipt of message %u have counted",
                        item->message);
    }
    for (uint32_t number = 0; number < traffic->item_count; number++)
        if (traffic->items[number].key_stored != (counted[number] != 0))
            sim_anomaly(sim, "key", "the key of a receipt of message %u is %s",
                        traffic->items[number].message,
                        counted[number] != 0 ? "not stored" : "stored, and nothing has counted");
    free(counted);
}
