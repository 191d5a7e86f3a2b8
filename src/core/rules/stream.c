/* Rule: every transition of a message, for the status stream. One result a transition, with the
 * receipt that made it: the one that gives the new status, or the earliest that brings a new flag.
 * A message without such a receipt (an expiry) has the time of its change alone.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rule.h"

#include "receiptd/base/error.h"

struct change {
    struct rcpt_rules_change result;
    uint32_t message; /* of the batch, which is sorted by id */
};

static bool is_on(const struct rcpt_rules_settings *settings)
{
    return settings->stream;
}

/* The names are identifiers, so nothing in them is quoted. A column that the inbox lacks is found
 * one query further out, where all are NULL: a wrong name must not stop receipts. */
static char *columns_text(const struct rcpt_rules_settings *settings)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    fputs("(SELECT s.columns FROM (SELECT ", out);
    for (size_t index = 0; index < settings->stream_column_count; index++)
        fprintf(out, "%sNULL::text AS \"%s\"", index > 0 ? ", " : "",
                settings->stream_columns[index]);
    fputs(") n, LATERAL (SELECT jsonb_build_object(", out);
    for (size_t index = 0; index < settings->stream_column_count; index++)
        fprintf(out, "%s'%s', left(to_jsonb(\"%s\") #>> '{}', 1000)", index > 0 ? ", " : "",
                settings->stream_columns[index], settings->stream_columns[index]);
    fputs(")::text AS columns FROM (SELECT m.*) t) s)", out);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

/* The time comes first: microseconds since 1970, as text. */
static void want(const struct rcpt_rules_settings *settings, struct rcpt_rule_columns *columns)
{
    if (settings->stream_state)
        rcpt_rule_want(columns, "(extract(epoch FROM ", "status_at", ") * 1000000)::int8::text",
                       false);
    if (settings->stream_column_count > 0)
        rcpt_rule_want_text(columns, columns_text(settings));
}

/* ---- the receipt of a transition ---- */

static bool brings(const struct rcpt_batch_event *event, uint32_t flags)
{
    uint32_t own = event->code < RCPT_LADDER_FIRST_FLAG_CODE
                       ? 0
                       : UINT32_C(1) << (event->code - RCPT_LADDER_FIRST_FLAG_CODE);
    return ((own | event->event->flags) & flags) != 0;
}

/* Whether this receipt says more of the transition than `best`. The message has the time of the
 * receipt that gives its status; a flag may imply the status. */
static bool is_better(const struct rcpt_rule_state *state, const struct rcpt_rules_row *row,
                      const struct rcpt_batch_event *event, const struct rcpt_batch_event *best)
{
    const struct rcpt_ladder *ladder = state->settings.ladder;
    if (row->now == row->was)
        return brings(event, row->gained) &&
               (best == NULL || event->event->at_us < best->event->at_us);
    if (event->event->at_us != state->batch->messages[row->message].at_us)
        return false;
    return best == NULL || (rcpt_ladder_entry(ladder, event->event->entry)->top == row->now &&
                            rcpt_ladder_entry(ladder, best->event->entry)->top != row->now);
}

/* NULL: no receipt made it. */
static const struct rcpt_batch_event *receipt_of(const struct rcpt_rule_state *state,
                                                 const struct rcpt_rules_row *row)
{
    const struct rcpt_batch *batch = state->batch;
    const struct rcpt_batch_event *best = NULL;
    for (uint32_t at = batch->messages[row->message].first_event;
         at < rcpt_batch_end(batch, row->message); at++)
        if (is_better(state, row, &batch->events[at], best))
            best = &batch->events[at];
    return best;
}

static void describe(struct rcpt_rule_state *state, const struct rcpt_batch_event *event,
                     struct rcpt_rules_change *change)
{
    change->gateway = rcpt_rule_name(state, RCPT_FACET_GATEWAY, event->event->gateway)->text;
    change->reason = rcpt_rule_name(state, RCPT_FACET_REASON, event->event->reason)->text;
    if (event->record->traceparent != NULL)
        change->trace = rcpt_text_of(event->record->traceparent);
}

/* The time of the status, or of the receipt that brought the flag. */
static int64_t time_of(const struct rcpt_rule_row *row, const struct rcpt_batch_event *event,
                       struct rcpt_text status_at)
{
    if (row->given->now != row->given->was || event == NULL)
        return row->message->at_us;
    return status_at.size > 0 ? strtoll(status_at.at, NULL, 10) : event->event->at_us;
}

/* ---- results ---- */

/* Texts of the row are borrowed for the call. */
static void on_row(struct rcpt_rule_state *state, const struct rcpt_rule_row *row)
{
    const struct rcpt_rules_row *given = row->given;
    const struct rcpt_rules_settings *settings = &state->settings;
    if (!row->is_transition)
        return;
    const struct rcpt_batch_event *event = receipt_of(state, given);
    struct rcpt_text status_at = {NULL, 0};
    struct change *change = rcpt_rule_append(state, &state->change_rows, sizeof(*change));
    if (settings->stream_state)
        status_at = row->columns[0];
    change->message = given->message;
    change->result =
        (struct rcpt_rules_change){.id = {row->message->id, row->message->id_size},
                                   .org = rcpt_words_find(state->words, given->org)->text,
                                   .campaign = row->campaign->text,
                                   .at_us = time_of(row, event, status_at),
                                   .old = given->was,
                                   .new = given->now,
                                   .flags = (int32_t)given->flags,
                                   .gained = (int32_t)given->gained};
    if (settings->stream_column_count > 0)
        change->result.columns =
            rcpt_text_copy(&state->arena, row->columns[settings->stream_state ? 1 : 0]);
    if (event != NULL)
        describe(state, event, &change->result);
}

/* Two rows of one id differ in what follows, or are the same. */
static int by_message(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    int sign = rcpt_rule_order(a->message, b->message);
    sign = sign != 0 ? sign : rcpt_text_compare(a->result.campaign, b->result.campaign);
    sign = sign != 0 ? sign : rcpt_text_compare(a->result.columns, b->result.columns);
    sign = sign != 0 ? sign : rcpt_rule_order(a->result.old, b->result.old);
    return sign != 0 ? sign : rcpt_rule_order(a->result.flags, b->result.flags);
}

static void on_finish(struct rcpt_rule_state *state)
{
    struct change *changes = state->change_rows.items;
    rcpt_rule_sort(&state->change_rows, sizeof(*changes), by_message);
    for (uint32_t index = 0; index < state->change_rows.count; index++)
        *(struct rcpt_rules_change *)rcpt_rule_append(
            state, &state->changes, sizeof(struct rcpt_rules_change)) = changes[index].result;
}

const struct rcpt_rule rcpt_rule_stream = {
    .is_on = is_on, .want = want, .row = on_row, .finish = on_finish};
