/* Rule: the funnel by the values of columns of the message (counters.by), by the same steps as the
 * funnel, so that the sum over all keys is the funnel.
 *
 * A value that is NULL counts under '', and one that is longer than a key may be under 'other':
 * dimension_key() says so, before it travels.
 */
#include "rule.h"

static bool is_on(const struct rcpt_rules_settings *settings)
{
    return settings->dimension_count > 0;
}

/* Receipts count by the value, even if they change nothing. */
static void want(const struct rcpt_rules_settings *settings, struct rcpt_rule_columns *columns)
{
    for (size_t index = 0; index < settings->dimension_count; index++)
        rcpt_rule_want(columns, "dimension_key(", settings->dimensions[index].column,
                       "::text COLLATE \"C\")", true);
}

static struct rcpt_tally_place place_of(const struct rcpt_rule_state *state, size_t dimension,
                                        const struct rcpt_rule_row *row)
{
    return (struct rcpt_tally_place){.kind = (uint8_t)(RCPT_COUNT_BY + dimension),
                                     .campaign = row->campaign,
                                     .key = state->dimension_keys[dimension],
                                     .minute = RCPT_TALLY_NO_TIME};
}

static void on_row(struct rcpt_rule_state *state, const struct rcpt_rule_row *row)
{
    for (size_t index = 0; index < state->settings.dimension_count; index++) {
        state->dimension_keys[index] = rcpt_words_find(state->words, row->columns[index]);
        rcpt_rule_add_steps(state, place_of(state, index, row), row);
    }
}

static void on_receipt(struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                       const struct rcpt_rule_receipt *receipt)
{
    for (size_t index = 0; index < state->settings.dimension_count; index++)
        rcpt_rule_add_codes(state, place_of(state, index, row), receipt->raw, 1);
}

const struct rcpt_rule rcpt_rule_dimensions = {
    .is_on = is_on, .want = want, .row = on_row, .receipt = on_receipt};
