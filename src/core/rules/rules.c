/* The rules of a batch (rules.h): hands each row and receipt to those that are on. Called by
 * postgres/flights.c. A new rule is a file, a line in the list below, and a flag of the settings.
 */
#include "receiptd/core/rules/rules.h"
#include "receiptd/base/error.h"

#include <stdlib.h>
#include <string.h>

#include "rule.h"

#define MINUTE_US INT64_C(60000000)

/* Results do not depend on this order. */
static const struct rcpt_rule *const all[] = {
    &rcpt_rule_funnel,      &rcpt_rule_series,   &rcpt_rule_dimensions, &rcpt_rule_dedup,
    &rcpt_rule_reasons,     &rcpt_rule_gateways, &rcpt_rule_times,      &rcpt_rule_groups,
    &rcpt_rule_folds,       &rcpt_rule_stream,   &rcpt_rule_links,      &rcpt_rule_costs,
    &rcpt_rule_suppression,
};
#define RULES RCPT_COUNT_OF(all)

struct rcpt_rules {
    struct rcpt_rule_state state;
    const struct rcpt_rule *on[RULES];
    size_t first_columns[RULES]; /* of those that are on */
    size_t on_count;
    struct rcpt_rule_columns columns;
    uint8_t *echoes; /* by receipt */
    /* Steps of the last change: most rows of a batch change alike. */
    struct rcpt_step steps[RCPT_PATHS_MOST_STEPS];
    uint32_t step_count, gained;
    int16_t was, now;
};

/* ---- settings ---- */

/* The columns of all rules form one list, and each rule is handed its own part of it. A rule that
 * is off wants none, so it costs nothing. */
static void switch_on(struct rcpt_rules *rules, const struct rcpt_rule *rule)
{
    rules->first_columns[rules->on_count] = rules->columns.count;
    rules->on[rules->on_count++] = rule;
    if (rule->want != NULL)
        rule->want(&rules->state.settings, &rules->columns);
}

struct rcpt_rules *rcpt_rules_new(const struct rcpt_rules_settings *settings)
{
    struct rcpt_rules *rules = rcpt_calloc(1, sizeof(*rules));
    RCPT_ASSERT(settings->dimension_count <= RCPT_RULES_DIMENSIONS);
    RCPT_ASSERT(settings->group_count <= RCPT_RULES_GROUPS);
    rules->state.settings = *settings;
    for (size_t index = 0; index < RULES; index++)
        if (all[index]->is_on(settings))
            switch_on(rules, all[index]);
    rcpt_arena_init(&rules->state.arena, 256 * 1024);
    rules->state.words = rcpt_words_new();
    rules->state.tally = rcpt_tally_new();
    return rules;
}

void rcpt_rules_free(struct rcpt_rules *rules)
{
    if (rules == NULL)
        return;
    for (size_t index = 0; index < rules->columns.count; index++)
        free(rules->columns.list[index].changed);
    rcpt_tally_free(rules->state.tally);
    rcpt_words_free(rules->state.words);
    rcpt_table_free(&rules->state.fold_table);
    rcpt_arena_fini(&rules->state.arena);
    free(rules);
}

bool rcpt_rules_read_payloads(const struct rcpt_rules_settings *settings)
{
    return settings->links || settings->costs;
}

bool rcpt_rules_are_on(const struct rcpt_rules *rules)
{
    return rules->on_count > 0;
}

const struct rcpt_rules_column *rcpt_rules_columns(const struct rcpt_rules *rules, size_t *count)
{
    *count = rules->columns.count;
    return rules->columns.list;
}

bool rcpt_rules_count_funnel(const struct rcpt_rules *rules)
{
    return rules->state.settings.series;
}

/* ---- a batch ---- */

/* Arenas and tables keep their memory, so a steady load allocates nothing. */
static void forget(struct rcpt_rule_state *state)
{
    const struct rcpt_rule_list empty = {0};
    state->fold_rows = state->folds = state->change_rows = state->changes = empty;
    state->suppressions = empty;
    for (size_t group = 0; group < RCPT_RULES_GROUPS; group++)
        state->group_rows[group] = state->members[group] = empty;
    rcpt_table_clear(&state->fold_table);
    memset(state->words_of, 0, sizeof(state->words_of));
    rcpt_words_begin(state->words);
    rcpt_tally_begin(state->tally);
    rcpt_arena_reset(&state->arena, SIZE_MAX);
}

/* Times more than an hour ahead of PostgreSQL's clock count in that hour. Gateways are counted by
 * the hour of now. */
static void read_clock(struct rcpt_rule_state *state, int64_t now_us)
{
    int64_t minute = now_us / MINUTE_US;
    state->now_us = now_us;
    state->last_minute = rcpt_tally_minute(minute + 60);
    state->hour = rcpt_tally_minute(minute / 60 * 60);
}

void rcpt_rules_begin(struct rcpt_rules *rules, const struct rcpt_batch *batch, int64_t now_us,
                      const struct rcpt_lane_names *names)
{
    struct rcpt_rule_state *state = &rules->state;
    forget(state);
    rcpt_paths_read(&state->paths, state->settings.ladder);
    state->batch = batch;
    state->names = names;
    state->none = rcpt_words_find(state->words, RCPT_TEXT(""));
    state->sent = rcpt_paths_code(&state->paths, "SENT");
    state->delivered = rcpt_paths_code(&state->paths, "DELIVERED");
    state->clicked = rcpt_paths_code(&state->paths, "CLICKED");
    state->bot_clicked = rcpt_paths_code(&state->paths, "BOT_CLICK");
    read_clock(state, now_us);
    rules->echoes = rcpt_arena_alloc(&state->arena, (size_t)batch->event_count + 1);
    memset(rules->echoes, 0, batch->event_count);
    rules->was = rules->now = 0;
    rules->gained = rules->step_count = 0;
}

void rcpt_rules_echo(struct rcpt_rules *rules, uint32_t event)
{
    RCPT_ASSERT(event < rules->state.batch->event_count);
    rules->echoes[event] = 1;
}

/* ---- rows ---- */

/* Neighbours mostly change alike, so the steps of the last row are kept. */
static void read_steps(struct rcpt_rules *rules, const struct rcpt_rules_row *row)
{
    if (rules->was == row->was && rules->now == row->now && rules->gained == row->gained)
        return;
    rules->was = row->was;
    rules->now = row->now;
    rules->gained = row->gained;
    rules->step_count =
        rcpt_paths_steps(&rules->state.paths, row->was, row->now, row->gained, rules->steps);
}

static struct rcpt_rule_receipt receipt_at(struct rcpt_rules *rules, uint32_t event)
{
    const struct rcpt_batch_event *raw = &rules->state.batch->events[event];
    return (struct rcpt_rule_receipt){
        raw, rcpt_rule_name(&rules->state, RCPT_FACET_GATEWAY, raw->event->gateway)};
}

/* An echo is an echo for every rule: rules that count receipts never see it. */
static void add_receipt(struct rcpt_rules *rules, const struct rcpt_rule_row *row, uint32_t event)
{
    const struct rcpt_rule_receipt receipt = receipt_at(rules, event);
    for (size_t index = 0; index < rules->on_count; index++) {
        const struct rcpt_rule *rule = rules->on[index];
        if (rules->echoes[event] == 0 && rule->receipt != NULL)
            rule->receipt(&rules->state, row, &receipt);
        if (rules->echoes[event] != 0 && rule->echo != NULL)
            rule->echo(&rules->state, row, &receipt);
    }
}

/* Hands out the row first, then its receipts: a rule may keep something of the row for them, as
 * dimensions do. If an id stands in two rows, its receipts count in both. */
void rcpt_rules_add(struct rcpt_rules *rules, const struct rcpt_rules_row *given)
{
    const struct rcpt_batch *batch = rules->state.batch;
    RCPT_ASSERT(given->message < batch->message_count);
    RCPT_ASSERT(given->changed || (given->was == given->now && given->gained == 0));
    read_steps(rules, given);
    struct rcpt_rule_row row = {.given = given,
                                .message = &batch->messages[given->message],
                                .steps = rules->steps,
                                .step_count = rules->step_count,
                                .campaign = rcpt_words_find(rules->state.words, given->campaign),
                                .is_transition = given->was != given->now || given->gained != 0};
    for (size_t index = 0; index < rules->on_count; index++) {
        row.columns = given->columns == NULL ? NULL : given->columns + rules->first_columns[index];
        if (rules->on[index]->row != NULL)
            rules->on[index]->row(&rules->state, &row);
    }
    for (uint32_t event = row.message->first_event; event < rcpt_batch_end(batch, given->message);
         event++)
        add_receipt(rules, &row, event);
}

/* Hands out all receipts of the message, copies too: their keys are removed again, and the receipts
 * come once more. */
void rcpt_rules_missed(struct rcpt_rules *rules, uint32_t message)
{
    const struct rcpt_batch *batch = rules->state.batch;
    RCPT_ASSERT(message < batch->message_count);
    for (uint32_t event = batch->messages[message].first_event;
         event < rcpt_batch_end(batch, message); event++) {
        const struct rcpt_rule_receipt receipt = receipt_at(rules, event);
        for (size_t index = 0; index < rules->on_count; index++)
            if (rules->on[index]->missed != NULL)
                rules->on[index]->missed(&rules->state, &receipt);
    }
}

/* Ranks the words first, since cells and lists are sorted by the ranks of their texts. */
void rcpt_rules_finish(struct rcpt_rules *rules)
{
    rcpt_words_rank(rules->state.words);
    rcpt_tally_finish(rules->state.tally);
    for (size_t index = 0; index < rules->on_count; index++)
        if (rules->on[index]->finish != NULL)
            rules->on[index]->finish(&rules->state);
}

/* ---- results ---- */

/* Names are stored with the counts: a changed one begins a new count. */
const char *rcpt_rules_kind(const struct rcpt_rules *rules, enum rcpt_count_of kind)
{
    static const char *const names[RCPT_COUNT__COUNT] = {
        [RCPT_COUNT_FUNNEL] = "funnel",
        [RCPT_COUNT_DUPLICATE] = "duplicate",
        [RCPT_COUNT_REASON] = "reason",
        [RCPT_COUNT_GATEWAY] = "gateway",
        [RCPT_COUNT_GATEWAY_DELAY] = "gateway_delay",
        [RCPT_COUNT_GATEWAY_DISORDER] = "gateway_disorder",
        [RCPT_COUNT_GATEWAY_DUPLICATE] = "gateway_duplicate",
        [RCPT_COUNT_GATEWAY_FINAL] = "gateway_final",
        [RCPT_COUNT_GATEWAY_LOST] = "gateway_lost",
        [RCPT_COUNT_GATEWAY_REASON] = "gateway_reason",
        [RCPT_COUNT_GATEWAY_SENT] = "gateway_sent",
        [RCPT_COUNT_GATEWAY_UNKNOWN] = "gateway_unknown",
        [RCPT_COUNT_GATEWAY_WON] = "gateway_won",
        [RCPT_COUNT_TIME_PLACE] = "time_place",
        [RCPT_COUNT_LINK] = "by_link", /* bounded as dimensions are */
        [RCPT_COUNT_COST] = "cost",
        [RCPT_COUNT_COST_AMOUNT] = "cost_amount",
    };
    if (kind >= RCPT_COUNT_BY && kind < RCPT_COUNT_BY + RCPT_RULES_DIMENSIONS)
        return rules->state.settings.dimensions[kind - RCPT_COUNT_BY].kind;
    return names[kind];
}

const char *rcpt_rules_group(const struct rcpt_rules *rules, size_t group)
{
    RCPT_ASSERT(group < rules->state.settings.group_count);
    return rules->state.settings.groups[group].kind;
}

const struct rcpt_tally_cell *rcpt_rules_cells(const struct rcpt_rules *rules, uint32_t *count)
{
    return rcpt_tally_cells(rules->state.tally, count);
}

struct rcpt_tally_range rcpt_rules_range(const struct rcpt_rules *rules, enum rcpt_count_of kind)
{
    return rcpt_tally_range(rules->state.tally, (uint8_t)kind);
}

const struct rcpt_rules_member *rcpt_rules_members(const struct rcpt_rules *rules, size_t group,
                                                   uint32_t *count)
{
    RCPT_ASSERT(group < RCPT_RULES_GROUPS);
    *count = rules->state.members[group].count;
    return rules->state.members[group].items;
}

const struct rcpt_rules_fold *rcpt_rules_folds(const struct rcpt_rules *rules, uint32_t *count)
{
    *count = rules->state.folds.count;
    return rules->state.folds.items;
}

const struct rcpt_rules_change *rcpt_rules_changes(const struct rcpt_rules *rules, uint32_t *count)
{
    *count = rules->state.changes.count;
    return rules->state.changes.items;
}

const struct rcpt_rules_suppression *rcpt_rules_suppressions(const struct rcpt_rules *rules,
                                                             uint32_t *count)
{
    *count = rules->state.suppressions.count;
    return rules->state.suppressions.items;
}
