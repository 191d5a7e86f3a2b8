/* Rule: how long messages took from SENT to DELIVERED and from DELIVERED to OPENED, per campaign
 * and gateway.
 *
 * The deciding statement keeps a message's first times in its row, so neither the order of receipts
 * nor copies change them. It returns the buckets in which the message counts now and in which it
 * counted before. Only messages with a delivered status have a time to deliver: one that is
 * returned later leaves its bucket. Where a message's place is new, that place gains the message
 * and the one before loses it. Few messages of a batch share a place, so the roll-up, which sees
 * many batches, makes cells of the buckets.
 */
#include "rule.h"

enum { DELIVER, OPEN, GATEWAY, BEFORE };

static bool is_on(const struct rcpt_rules_settings *settings)
{
    return settings->times;
}

static void want(const struct rcpt_rules_settings *settings, struct rcpt_rule_columns *columns)
{
    (void)settings;
    rcpt_rule_want(columns, "time_bucket(", "first_sent_at", ", m.first_delivered_at)::text",
                   false);
    rcpt_rule_want(columns, "time_bucket(", "first_delivered_at", ", m.first_opened_at)::text",
                   false);
    rcpt_rule_want(columns, "", "first_gateway", "", false);
    rcpt_rule_want(columns, "", "prev_times", "", false);
}

/* deliver/open/gateway, as time_place() in SQL writes it; '': the message is in no bucket. */
static struct rcpt_text place_now(struct rcpt_rule_state *state, const struct rcpt_text *columns,
                                  bool is_delivered)
{
    struct rcpt_text deliver = is_delivered ? columns[DELIVER] : RCPT_TEXT("");
    if (deliver.size == 0 && columns[OPEN].size == 0)
        return RCPT_TEXT("");
    return RCPT_TEXT_JOIN(&state->arena, rcpt_text_or_empty(deliver), RCPT_TEXT("/"),
                          rcpt_text_or_empty(columns[OPEN]), RCPT_TEXT("/"),
                          rcpt_text_or_empty(columns[GATEWAY]));
}

static struct rcpt_text place_before(struct rcpt_text place, bool was_delivered)
{
    if (was_delivered || place.size == 0)
        return rcpt_text_or_empty(place);
    size_t slash = rcpt_text_find(place, "/");
    struct rcpt_text rest = rcpt_text_part(place, slash, place.size - slash);
    return rcpt_text_begins(rest, "//") ? RCPT_TEXT("") : rest;
}

static void add(struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                struct rcpt_text place, int64_t messages)
{
    if (place.size == 0)
        return;
    rcpt_tally_add(state->tally,
                   (struct rcpt_tally_place){.kind = RCPT_COUNT_TIME_PLACE,
                                             .campaign = row->campaign,
                                             .key = rcpt_words_find(state->words, place),
                                             .minute = RCPT_TALLY_NO_TIME},
                   messages, 0);
}

static void on_row(struct rcpt_rule_state *state, const struct rcpt_rule_row *row)
{
    if (!row->given->changed)
        return;
    bool is_delivered = rcpt_paths_pass(&state->paths, row->given->now, state->delivered);
    bool was_delivered = rcpt_paths_pass(&state->paths, row->given->was, state->delivered);
    struct rcpt_text now = place_now(state, row->columns, is_delivered);
    struct rcpt_text before = place_before(row->columns[BEFORE], was_delivered);
    if (rcpt_text_equal(now, before))
        return;
    add(state, row, now, 1);
    add(state, row, before, -1);
}

const struct rcpt_rule rcpt_rule_times = {.is_on = is_on, .want = want, .row = on_row};
