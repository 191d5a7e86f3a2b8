/* Rule: how long messages took from SENT to DELIVERED and from DELIVERED to OPENED, per campaign
 * and gateway.
 *
 * The deciding statement keeps a message's first times in its row, so neither the order of receipts
 * nor copies change them. It says in which buckets the message counts now, and what it counted as
 * before. Time to deliver is only of messages whose status says that they are delivered: one that
 * is returned later leaves its bucket. Here the messages whose place is new are listed; the roll-up
 * makes cells of them.
 */
#include "rule.h"

enum { DELIVER, OPEN, GATEWAY, BEFORE };

struct placed {
    const struct rcpt_word *campaign, *gateway, *left; /* left: '': none */
    int16_t deliver, open;
};

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

/* ---- places ---- */

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

/* At most two digits, or −1. */
static int16_t bucket_of(struct rcpt_text text)
{
    unsigned bucket;
    if (text.size == 0)
        return RCPT_NO_BUCKET;
    return rcpt_text_number(text, &bucket) ? (int16_t)bucket : -1;
}

static void on_row(struct rcpt_rule_state *state, const struct rcpt_rule_row *row)
{
    const struct rcpt_text *columns = row->columns;
    if (!row->given->changed)
        return;
    bool is_delivered = rcpt_paths_pass(&state->paths, row->given->now, state->delivered);
    bool was_delivered = rcpt_paths_pass(&state->paths, row->given->was, state->delivered);
    struct rcpt_text left = place_before(columns[BEFORE], was_delivered);
    if (rcpt_text_equal(place_now(state, columns, is_delivered), left))
        return;
    struct placed *placed = rcpt_rule_append(state, &state->time_rows, sizeof(*placed));
    *placed =
        (struct placed){.campaign = row->campaign,
                        .gateway = rcpt_words_find(state->words, columns[GATEWAY]),
                        .left = rcpt_words_find(state->words, left),
                        .deliver = is_delivered ? bucket_of(columns[DELIVER]) : RCPT_NO_BUCKET,
                        .open = bucket_of(columns[OPEN])};
}

/* ---- results ---- */

static int by_place(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    int sign = rcpt_rule_order(a->campaign->rank, b->campaign->rank);
    sign = sign != 0 ? sign : rcpt_rule_order(a->gateway->rank, b->gateway->rank);
    sign = sign != 0 ? sign : rcpt_rule_order(a->deliver, b->deliver);
    sign = sign != 0 ? sign : rcpt_rule_order(a->open, b->open);
    return sign != 0 ? sign : rcpt_rule_order(a->left->rank, b->left->rank);
}

static void on_finish(struct rcpt_rule_state *state)
{
    struct placed *rows = state->time_rows.items;
    rcpt_rule_sort(&state->time_rows, sizeof(*rows), by_place);
    for (uint32_t index = 0; index < state->time_rows.count; index++) {
        struct rcpt_rules_time *time = rcpt_rule_append(state, &state->times, sizeof(*time));
        *time = (struct rcpt_rules_time){.campaign = rows[index].campaign->text,
                                         .gateway = rows[index].gateway->text,
                                         .deliver = rows[index].deliver,
                                         .open = rows[index].open};
        if (rows[index].left != state->none)
            time->left = rows[index].left->text;
    }
}

const struct rcpt_rule rcpt_rule_times = {
    .is_on = is_on, .want = want, .row = on_row, .finish = on_finish};
