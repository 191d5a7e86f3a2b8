/* Rule: which links were clicked, by campaign: CLICKED, and BOT_CLICK apart from it.
 *
 * Events are receipts. Messages are first clicks: those that came to CLICKED, or gained BOT_CLICK,
 * by a receipt of this link. A message that came to it without a link counts under '', and one that
 * leaves CLICKED is taken off there. So the sums over all links are the funnel's.
 */
#include "rule.h"

#define MOST_BYTES 200u
#define CUT        "…" /* ends a link that was longer */

static bool is_on(const struct rcpt_rules_settings *settings)
{
    return settings->links;
}

/* The link without query and fragment: these often name the person, and then each click would be a
 * link of its own. A long link is cut between two characters. */
static const struct rcpt_word *link_of(struct rcpt_rule_state *state,
                                       const struct rcpt_batch_event *raw)
{
    struct rcpt_text link = rcpt_rule_origin(state, raw, "\"link\"").link;
    link.size = rcpt_text_find(link, "#");
    link.size = rcpt_text_find(link, "?");
    if (link.size <= MOST_BYTES)
        return rcpt_words_find(state->words, link);
    link.size = MOST_BYTES - strlen(CUT);
    while ((link.at[link.size] & 0xc0) == 0x80)
        link.size--;
    return rcpt_words_find(state->words, RCPT_TEXT_JOIN(&state->arena, link, RCPT_TEXT(CUT)));
}

/* The clicks that the receipt names: a person's, a machine's, both, or none. */
static uint32_t clicks_of(const struct rcpt_rule_state *state, const struct rcpt_batch_event *raw,
                          int16_t clicks[static RCPT_RECORD_MOST_BESIDE + 1])
{
    uint32_t count = rcpt_event_beside(raw->event, clicks), kept = 0;
    clicks[count++] = raw->code;
    for (uint32_t at = 0; at < count; at++)
        if (clicks[at] == state->clicked || clicks[at] == state->bot_clicked)
            clicks[kept++] = clicks[at];
    return kept;
}

static void add(struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                const struct rcpt_word *link, int16_t click, int64_t messages, int64_t events)
{
    rcpt_tally_add(state->tally,
                   (struct rcpt_tally_place){.kind = RCPT_COUNT_LINK,
                                             .campaign = row->campaign,
                                             .key = link,
                                             .minute = RCPT_TALLY_NO_TIME,
                                             .status = click},
                   messages, events);
}

/* The link of the earliest of the message's receipts that name this click; of equal times the least
 * link. A copy has the link of its original. */
static const struct rcpt_word *first_link(struct rcpt_rule_state *state, uint32_t message,
                                          int16_t click)
{
    const struct rcpt_batch *batch = state->batch;
    const struct rcpt_word *first = state->none;
    int64_t first_us = INT64_MAX;
    for (uint32_t at = batch->messages[message].first_event; at < rcpt_batch_end(batch, message);
         at++) {
        const struct rcpt_batch_event *raw = &batch->events[at];
        int16_t clicks[RCPT_RECORD_MOST_BESIDE + 1];
        bool named = false;
        for (uint32_t count = clicks_of(state, raw, clicks); count > 0; count--)
            named |= clicks[count - 1] == click;
        if (!named || raw->event->at_us > first_us)
            continue;
        const struct rcpt_word *link = link_of(state, raw);
        if (raw->event->at_us < first_us || rcpt_text_compare(link->text, first->text) < 0)
            first = link;
        first_us = raw->event->at_us;
    }
    return first;
}

static void on_row(struct rcpt_rule_state *state, const struct rcpt_rule_row *row)
{
    for (uint32_t index = 0; index < row->step_count; index++) {
        const struct rcpt_step step = row->steps[index];
        if (step.code != state->clicked && step.code != state->bot_clicked)
            continue;
        add(state, row,
            step.delta > 0 ? first_link(state, row->given->message, step.code) : state->none,
            step.code, step.delta, 0);
    }
}

static void on_receipt(struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                       const struct rcpt_rule_receipt *receipt)
{
    int16_t clicks[RCPT_RECORD_MOST_BESIDE + 1];
    uint32_t count = clicks_of(state, receipt->raw, clicks);
    const struct rcpt_word *link = count > 0 ? link_of(state, receipt->raw) : NULL;
    for (uint32_t at = 0; at < count; at++)
        add(state, row, link, clicks[at], 0, 1);
}

const struct rcpt_rule rcpt_rule_links = {.is_on = is_on, .row = on_row, .receipt = on_receipt};
