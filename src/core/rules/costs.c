/* Rule: the sum of the costs that receipts name, by campaign, currency and the status or flag that
 * the receipt names.
 *
 * A sum is exact: its cell has whole units, and 10^-9 of them apart. An amount has at most nine
 * digits on either side of the point, so nine thousand million receipts fit into a cell. Any other
 * amount, or text, counts as a receipt under the currency `invalid`, without an amount.
 */
#include "receiptd/base/decimal.h"
#include "rule.h"

#define DIGITS  9u
#define BILLION INT64_C(1000000000) /* 10^DIGITS */

static bool is_on(const struct rcpt_rules_settings *settings)
{
    return settings->costs;
}

/* Some gateways write charges as negative numbers: the sign does not count. */
static bool read_amount(struct rcpt_text cost, int64_t *whole, int64_t *rest)
{
    struct rcpt_decimal amount;
    if (!rcpt_decimal_read(cost, &amount))
        return false;
    for (; amount.scale > DIGITS; amount.scale--, amount.units /= 10)
        if (amount.units % 10 != 0)
            return false;
    amount.units = amount.units < 0 ? -amount.units : amount.units;
    for (; amount.scale < DIGITS; amount.scale++)
        if (__builtin_mul_overflow(amount.units, 10, &amount.units))
            return false;
    *rest = (int64_t)(amount.units % BILLION);
    amount.units /= BILLION;
    *whole = amount.units < BILLION ? (int64_t)amount.units : 0;
    return amount.units < BILLION;
}

/* Three letters, as ISO 4217 writes them: this bounds the keys. */
static const struct rcpt_word *currency_of(struct rcpt_rule_state *state, struct rcpt_text name)
{
    char code[3];
    for (size_t at = 0; at < sizeof(code); at++) {
        char letter = at < name.size ? (char)(name.at[at] & ~' ') : '\0'; /* upper case */
        if (name.size != sizeof(code) || letter < 'A' || letter > 'Z')
            return rcpt_words_find(state->words, RCPT_TEXT("?"));
        code[at] = letter;
    }
    return rcpt_words_find(state->words, (struct rcpt_text){code, sizeof(code)});
}

static void on_receipt(struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                       const struct rcpt_rule_receipt *receipt)
{
    const struct rcpt_origin said = rcpt_rule_origin(state, receipt->raw, "\"cost\"");
    int64_t whole, rest;
    if (said.cost.size == 0)
        return;
    bool good = read_amount(said.cost, &whole, &rest);
    struct rcpt_tally_place place = {.kind = RCPT_COUNT_COST,
                                     .campaign = row->campaign,
                                     .key =
                                         good ? currency_of(state, said.currency)
                                              : rcpt_words_find(state->words, RCPT_TEXT("invalid")),
                                     .minute = RCPT_TALLY_NO_TIME,
                                     .status = receipt->raw->code};
    rcpt_tally_add(state->tally, place, 0, 1);
    place.kind = RCPT_COUNT_COST_AMOUNT;
    if (good)
        rcpt_tally_add(state->tally, place, whole, rest);
}

const struct rcpt_rule rcpt_rule_costs = {.is_on = is_on, .receipt = on_receipt};
