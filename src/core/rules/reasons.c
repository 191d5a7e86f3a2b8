/* Rule: why messages failed: receipts that name a class of reason, by campaign, and by gateway,
 * with the campaign ''. */
#include "rule.h"

static bool is_on(const struct rcpt_rules_settings *settings)
{
    return settings->reasons;
}

static void add(struct rcpt_rule_state *state, enum rcpt_count_of kind,
                const struct rcpt_word *campaign, const struct rcpt_word *key, int16_t code)
{
    rcpt_tally_add(state->tally,
                   (struct rcpt_tally_place){.kind = (uint8_t)kind,
                                             .campaign = campaign,
                                             .key = key,
                                             .minute = RCPT_TALLY_NO_TIME,
                                             .status = code},
                   0, 1);
}

static void on_receipt(struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                       const struct rcpt_rule_receipt *receipt)
{
    const struct rcpt_word *reason =
        rcpt_rule_name(state, RCPT_FACET_REASON, receipt->raw->event->reason);
    if (reason == state->none)
        return;
    struct rcpt_text both = RCPT_TEXT_JOIN(
        &state->arena, rcpt_text_or_empty(receipt->gateway->text), RCPT_TEXT("/"), reason->text);
    add(state, RCPT_COUNT_REASON, row->campaign, reason, receipt->raw->code);
    add(state, RCPT_COUNT_GATEWAY_REASON, state->none, rcpt_words_find(state->words, both),
        receipt->raw->code);
}

const struct rcpt_rule rcpt_rule_reasons = {.is_on = is_on, .receipt = on_receipt};
