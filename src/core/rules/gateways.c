/* Rule: how clean a gateway's receipts are, by the hour in which they were applied.
 *
 * - Receipts by status, and duplicates, one for each copy.
 * - Receipts out of order: of a stage that the message had passed before the batch.
 * - Contradictions: receipts of another branch than the message's. The larger code wins.
 * - Receipts of unknown messages.
 * - Delays from the event time until now. Bucket b ends at 2^(b/2) ms.
 * - Messages that were sent, and how many of these got a final status. One that leaves it again is
 *   taken off, so it counts once.
 */
#include <math.h>

#include "rule.h"

#define BUCKETS 80 /* of delays */

static bool is_on(const struct rcpt_rules_settings *settings)
{
    return settings->gateways;
}

static void add(struct rcpt_rule_state *state, enum rcpt_count_of kind,
                const struct rcpt_word *gateway, int16_t status, int64_t messages, int64_t events)
{
    rcpt_tally_add(state->tally,
                   (struct rcpt_tally_place){.kind = (uint8_t)kind,
                                             .campaign = state->none,
                                             .key = gateway,
                                             .minute = state->hour,
                                             .status = status},
                   messages, events);
}

/* ---- receipts ---- */

/* As delay_bucket() in SQL. A time in the future has no delay. */
static int16_t bucket_of(int64_t delay_us)
{
    double ms = (double)delay_us / 1000;
    double bucket = ms > 1 ? ceil(log(ms) * (2 / log(2))) : 0;
    return (int16_t)(bucket < BUCKETS - 1 ? bucket : BUCKETS - 1);
}

/* Flags have no place on a path. */
static void add_disorder(struct rcpt_rule_state *state, const struct rcpt_word *gateway,
                         int16_t old, int16_t code)
{
    if (code >= RCPT_LADDER_FIRST_FLAG_CODE || code == old ||
        rcpt_paths_pass(&state->paths, code, old))
        return;
    bool is_late = code < old && rcpt_paths_pass(&state->paths, old, code);
    enum rcpt_count_of contradiction =
        code > old ? RCPT_COUNT_GATEWAY_WON : RCPT_COUNT_GATEWAY_LOST;
    add(state, is_late ? RCPT_COUNT_GATEWAY_DISORDER : contradiction, gateway, code, 0, 1);
}

static void on_receipt(struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                       const struct rcpt_rule_receipt *receipt)
{
    int16_t code = receipt->raw->code;
    int64_t delay_us = state->now_us - receipt->raw->event->at_us;
    add(state, RCPT_COUNT_GATEWAY, receipt->gateway, code, 0, 1);
    add(state, RCPT_COUNT_GATEWAY_DELAY, receipt->gateway, bucket_of(delay_us), 0, 1);
    add_disorder(state, receipt->gateway, row->given->was, code);
}

static void on_echo(struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                    const struct rcpt_rule_receipt *receipt)
{
    (void)row;
    add(state, RCPT_COUNT_GATEWAY_DUPLICATE, receipt->gateway, receipt->raw->code, 0, 1);
}

static void on_missed(struct rcpt_rule_state *state, const struct rcpt_rule_receipt *receipt)
{
    add(state, RCPT_COUNT_GATEWAY_UNKNOWN, receipt->gateway, 0, 0, 1);
}

/* ---- messages ---- */

/* The gateway with the lowest name among those that the message's receipts name. */
static const struct rcpt_word *first_gateway(struct rcpt_rule_state *state, uint32_t message)
{
    const struct rcpt_word *first = state->none;
    for (uint32_t at = state->batch->messages[message].first_event;
         at < rcpt_batch_end(state->batch, message); at++) {
        const struct rcpt_word *gateway =
            rcpt_rule_name(state, RCPT_FACET_GATEWAY, state->batch->events[at].event->gateway);
        if (gateway != first && gateway != state->none &&
            (first == state->none || rcpt_text_compare(gateway->text, first->text) < 0))
            first = gateway;
    }
    return first;
}

static bool is_sent(const struct rcpt_rule_state *state, int16_t code)
{
    return rcpt_paths_pass(&state->paths, code, state->sent);
}

static bool is_final(const struct rcpt_rule_state *state, int16_t code)
{
    return is_sent(state, code) && (rcpt_paths_pass(&state->paths, code, state->delivered) ||
                                    rcpt_paths_pass_terminal(&state->paths, code));
}

/* A status that the ladder does not have is no stage of a message. */
static void on_row(struct rcpt_rule_state *state, const struct rcpt_rule_row *row)
{
    int16_t was = row->given->was, now = row->given->now;
    if (was == now || !rcpt_paths_pass(&state->paths, was, was) ||
        !rcpt_paths_pass(&state->paths, now, now))
        return;
    int sent = is_sent(state, now) - is_sent(state, was);
    int final = is_final(state, now) - is_final(state, was);
    if (sent == 0 && final == 0)
        return;
    const struct rcpt_word *gateway = first_gateway(state, row->given->message);
    add(state, RCPT_COUNT_GATEWAY_SENT, gateway, 0, sent, 0);
    add(state, RCPT_COUNT_GATEWAY_FINAL, gateway, 0, final, 0);
}

const struct rcpt_rule rcpt_rule_gateways = {
    .is_on = is_on, .row = on_row, .receipt = on_receipt, .echo = on_echo, .missed = on_missed};
