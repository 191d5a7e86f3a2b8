/* Rule: the funnel without copies. core/count.c counts every receipt of a known message, since most
 * batches have no copy; this rule subtracts the statuses and flags of copies again. With the series
 * there is nothing to subtract.
 */
#include "rule.h"

static bool is_on(const struct rcpt_rules_settings *settings)
{
    return settings->dedup && !settings->series;
}

static void on_echo(struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                    const struct rcpt_rule_receipt *receipt)
{
    struct rcpt_tally_place place = {.kind = RCPT_COUNT_FUNNEL,
                                     .campaign = row->campaign,
                                     .key = state->none,
                                     .minute = RCPT_TALLY_NO_TIME};
    rcpt_rule_add_codes(state, place, receipt->raw, -1);
}

const struct rcpt_rule rcpt_rule_funnel = {.is_on = is_on, .echo = on_echo};
