/* Rule: the funnel as a series. Its cells say in which minute they count; the roll-up makes hours
 * and minutes of them, and the funnel is their sum.
 *
 * A receipt counts in the minute of its event time, whatever the order. A change of a message
 * counts in the minute of the receipt that made it. A time more than an hour ahead of PostgreSQL's
 * clock counts in that hour. So a clock that is wrong makes no cells up to the year 9999.
 */
#include "rule.h"

static bool is_on(const struct rcpt_rules_settings *settings)
{
    return settings->series;
}

static struct rcpt_tally_place place_of(const struct rcpt_rule_state *state,
                                        const struct rcpt_rule_row *row, int64_t at_us)
{
    return (struct rcpt_tally_place){.kind = RCPT_COUNT_FUNNEL,
                                     .campaign = row->campaign,
                                     .key = state->none,
                                     .minute = rcpt_rule_minute(state, at_us)};
}

static void on_row(struct rcpt_rule_state *state, const struct rcpt_rule_row *row)
{
    rcpt_rule_add_steps(state, place_of(state, row, row->message->at_us), row);
}

static void on_receipt(struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                       const struct rcpt_rule_receipt *receipt)
{
    rcpt_rule_add_codes(state, place_of(state, row, receipt->raw->event->at_us), receipt->raw, 1);
}

const struct rcpt_rule rcpt_rule_series = {.is_on = is_on, .row = on_row, .receipt = on_receipt};
