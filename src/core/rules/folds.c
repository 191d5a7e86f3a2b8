/* Rule: messages that changed, for folds of source transitions. One entry stands for all messages
 * that changed alike and share organisation, campaign and columns of the inbox. The publisher finds
 * the rules that want it.
 */
#include <string.h>

#include "rule.h"

#include "receiptd/base/error.h"

struct fold {
    const struct rcpt_word *org, *campaign, *columns;
    struct rcpt_rules_fold result;
};

static bool is_on(const struct rcpt_rules_settings *settings)
{
    return settings->folds;
}

/* fold_columns() reads the rules of folds in the statement's own snapshot. */
static void want(const struct rcpt_rules_settings *settings, struct rcpt_rule_columns *columns)
{
    if (settings->fold_columns)
        rcpt_rule_want(columns, "(SELECT f.columns FROM fold_columns(", "message_id", ") f)",
                       false);
}

/* ---- grouping ---- */

/* Each factor is odd and near 2^64 divided by the golden ratio. */
static uint64_t hash_of(const struct fold *fold)
{
    const uint64_t values[] = {fold->org->number,          fold->campaign->number,
                               fold->columns->number,      (uint16_t)fold->result.old,
                               (uint16_t)fold->result.new, fold->result.gained};
    uint64_t hash = 0;
    for (size_t index = 0; index < RCPT_COUNT_OF(values); index++)
        hash = ((hash ^ values[index]) * UINT64_C(0x9e3779b97f4a7c15)) ^ hash >> 32;
    return hash ^ hash >> 32;
}

static bool is_same(const struct fold *left, const struct fold *right)
{
    return left->org == right->org && left->campaign == right->campaign &&
           left->columns == right->columns && left->result.old == right->result.old &&
           left->result.new == right->result.new && left->result.gained == right->result.gained;
}

/* The traceparent of the record that brought the message's first receipt; NULL: the message has no
 * receipt, or the record has none. */
static const char *link_of(const struct rcpt_rule_state *state, uint32_t message)
{
    const uint32_t first = state->batch->messages[message].first_event;
    if (first == rcpt_batch_end(state->batch, message))
        return NULL;
    const char *link = state->batch->events[first].record->traceparent;
    return link != NULL && link[0] != '\0' ? link : NULL;
}

static void merge(struct rcpt_rules_fold *result, const char *link)
{
    result->messages++;
    if (link != NULL && (result->link == NULL || strcmp(link, result->link) < 0))
        result->link = link;
}

static void on_row(struct rcpt_rule_state *state, const struct rcpt_rule_row *row)
{
    if (!row->is_transition)
        return;
    struct fold wanted = {
        .org = rcpt_words_find(state->words, row->given->org),
        .campaign = row->campaign,
        .columns = state->settings.fold_columns ? rcpt_words_find(state->words, row->columns[0])
                                                : state->none,
        .result = {.old = row->given->was, .new = row->given->now, .gained = row->given->gained}};
    uint64_t hash = hash_of(&wanted);
    size_t probes = 0;
    struct fold *fold = rcpt_table_next(&state->fold_table, hash, &probes);
    while (fold != NULL && !is_same(fold, &wanted))
        fold = rcpt_table_next(&state->fold_table, hash, &probes);
    if (fold == NULL) {
        fold = rcpt_arena_alloc(&state->arena, sizeof(*fold));
        *fold = wanted;
        rcpt_table_add(&state->fold_table, hash, fold);
        *(struct fold **)rcpt_rule_append(state, &state->fold_rows, sizeof(struct fold *)) = fold;
    }
    merge(&fold->result, link_of(state, row->given->message));
}

/* ---- results ---- */

static int by_fold(const void *left, const void *right)
{
    const struct fold *a = *(struct fold *const *)left, *b = *(struct fold *const *)right;
    int sign = rcpt_rule_order(a->org->rank, b->org->rank);
    sign = sign != 0 ? sign : rcpt_rule_order(a->campaign->rank, b->campaign->rank);
    sign = sign != 0 ? sign : rcpt_rule_order(a->columns->rank, b->columns->rank);
    sign = sign != 0 ? sign : rcpt_rule_order(a->result.old, b->result.old);
    sign = sign != 0 ? sign : rcpt_rule_order(a->result.new, b->result.new);
    return sign != 0 ? sign : rcpt_rule_order(a->result.gained, b->result.gained);
}

static void on_finish(struct rcpt_rule_state *state)
{
    struct fold **folds = state->fold_rows.items;
    rcpt_rule_sort(&state->fold_rows, sizeof(*folds), by_fold);
    for (uint32_t index = 0; index < state->fold_rows.count; index++) {
        struct rcpt_rules_fold *result = rcpt_rule_append(state, &state->folds, sizeof(*result));
        *result = folds[index]->result;
        result->org = folds[index]->org->text;
        result->campaign = folds[index]->campaign->text;
        result->columns = folds[index]->columns->text;
    }
}

const struct rcpt_rule rcpt_rule_folds = {
    .is_on = is_on, .want = want, .row = on_row, .finish = on_finish};
