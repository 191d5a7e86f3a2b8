/* Rule: copies of receipts, by campaign and gateway. A copy counts one duplicate, under its own
 * status or flag, no matter how many flags it names beside that.
 */
#include "rule.h"

static bool is_on(const struct rcpt_rules_settings *settings)
{
    return settings->dedup;
}

static void on_echo(struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                    const struct rcpt_rule_receipt *receipt)
{
    rcpt_tally_add(state->tally,
                   (struct rcpt_tally_place){.kind = RCPT_COUNT_DUPLICATE,
                                             .campaign = row->campaign,
                                             .key = receipt->gateway,
                                             .minute = RCPT_TALLY_NO_TIME,
                                             .status = receipt->raw->code},
                   0, 1);
}

const struct rcpt_rule rcpt_rule_dedup = {.is_on = is_on, .echo = on_echo};
