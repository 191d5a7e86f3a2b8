/* Rule: persons whom a transition suppresses (`suppression`): one result for each status of the
 * list that the message's path enters, and for each flag of it that is gained. A message without a
 * person suppresses nobody. A status that the message leaves later takes nothing back.
 */
#include <string.h>

#include "rule.h"

static bool is_on(const struct rcpt_rules_settings *settings)
{
    return settings->person != NULL;
}

static void want(const struct rcpt_rules_settings *settings, struct rcpt_rule_columns *columns)
{
    rcpt_rule_want(columns, "", settings->person, "::text", false);
}

/* Of the earliest receipt that brings the flag. Statuses have the time of their message, as an
 * expiry does. */
static int64_t time_of(const struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                       int16_t code)
{
    const struct rcpt_batch *batch = state->batch;
    int64_t at_us = INT64_MAX;
    for (uint32_t at = row->message->first_event; at < rcpt_batch_end(batch, row->given->message);
         at++) {
        const struct rcpt_batch_event *event = &batch->events[at];
        bool brings = event->code == code ||
                      (code >= RCPT_LADDER_FIRST_FLAG_CODE &&
                       (event->event->flags >> (code - RCPT_LADDER_FIRST_FLAG_CODE) & 1) != 0);
        if (brings && event->event->at_us < at_us)
            at_us = event->event->at_us;
    }
    return at_us != INT64_MAX ? at_us : row->message->at_us;
}

static void add(struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                const struct rcpt_rules_suppressing *suppressing)
{
    const struct rcpt_rules_settings *settings = &state->settings;
    int entry = rcpt_ladder_find_code(settings->ladder, suppressing->code, NULL, 0);
    *(struct rcpt_rules_suppression *)rcpt_rule_append(state, &state->suppressions,
                                                       sizeof(struct rcpt_rules_suppression)) =
        (struct rcpt_rules_suppression){
            .id = {row->message->id, row->message->id_size},
            .org = rcpt_words_find(state->words, row->given->org)->text,
            .person = rcpt_text_copy(&state->arena, row->columns[0]),
            .class = rcpt_ladder_entry(settings->ladder, (size_t)entry)->name,
            .at_us = time_of(state, row, suppressing->code),
            .within_ms = settings->soft_within_ms,
            .message = row->given->message,
            .soft_count = suppressing->is_soft ? settings->soft_count : 0};
}

/* Rarely does a change enter one of the list, so the person is copied for those alone. */
static void on_row(struct rcpt_rule_state *state, const struct rcpt_rule_row *row)
{
    if (row->columns[0].size == 0)
        return;
    for (uint32_t step = 0; step < row->step_count; step++)
        for (size_t at = 0; at < state->settings.suppressing_count; at++)
            if (row->steps[step].delta > 0 &&
                row->steps[step].code == state->settings.suppressing[at].code)
                add(state, row, &state->settings.suppressing[at]);
}

/* Two rows of one id differ in their person, or are the same. */
static int by_message(const void *left, const void *right)
{
    const struct rcpt_rules_suppression *a = left, *b = right;
    int sign = rcpt_rule_order(a->message, b->message);
    sign = sign != 0 ? sign : rcpt_text_compare(a->person, b->person);
    return sign != 0 ? sign : strcmp(a->class, b->class);
}

static void on_finish(struct rcpt_rule_state *state)
{
    rcpt_rule_sort(&state->suppressions, sizeof(struct rcpt_rules_suppression), by_message);
}

const struct rcpt_rule rcpt_rule_suppression = {
    .is_on = is_on, .want = want, .row = on_row, .finish = on_finish};
