/* Counting of a batch between its two flights: hands the fates of its messages to the funnel, the
 * rules and the keys (decided.h). Called by flights.c and by the simulator.
 */
#include "decided.h"

static struct rcpt_rules_row row_of(const struct rcpt_batch *batch,
                                    const struct rcpt_count_row *row)
{
    const struct rcpt_batch_message *message = &batch->messages[row->message];
    bool raised = row->changed && message->top > row->was;
    return (struct rcpt_rules_row){.message = row->message,
                                   .was = row->was,
                                   .now = raised ? message->top : row->was,
                                   .gained = row->changed ? message->mask & ~row->had : 0,
                                   .flags = row->changed ? row->had | message->mask : row->had,
                                   .changed = row->changed,
                                   .campaign = row->campaign,
                                   .org = row->org,
                                   .columns = row->columns};
}

static void add_echoes(const struct rcpt_batch *batch, struct rcpt_rules *rules,
                       const struct rcpt_keys *keys)
{
    for (uint32_t event = 0; event < batch->event_count; event++)
        if (rcpt_keys_is_echo(keys, event))
            rcpt_rules_echo(rules, event);
}

static void add_unknown(const struct rcpt_decided *decided, struct rcpt_rules *rules,
                        struct rcpt_keys *keys)
{
    for (uint32_t number = 0; number < decided->batch->message_count; number++) {
        if (decided->messages[number].fate == RCPT_FATE_ABSENT)
            rcpt_rules_missed(rules, number);
        if (decided->messages[number].fate != RCPT_FATE_KNOWN && keys != NULL)
            rcpt_keys_missed(keys, number);
    }
}

void rcpt_decided_count(const struct rcpt_decided *decided,
                        const struct rcpt_decided_counters *counters,
                        const struct rcpt_ladder *ladder, int64_t now_us,
                        const struct rcpt_lane_names *names)
{
    const struct rcpt_batch *batch = decided->batch;
    rcpt_count_begin(counters->count, batch, ladder, decided->row_count);
    for (uint32_t row = 0; row < decided->row_count; row++)
        rcpt_count_add(counters->count, &decided->rows[row]);
    rcpt_count_finish(counters->count);
    if (!rcpt_rules_are_on(counters->rules))
        return;
    rcpt_rules_begin(counters->rules, batch, now_us, names);
    if (counters->keys != NULL)
        add_echoes(batch, counters->rules, counters->keys);
    for (uint32_t index = 0; index < decided->row_count; index++) {
        const struct rcpt_rules_row row = row_of(batch, &decided->rows[index]);
        rcpt_rules_add(counters->rules, &row);
    }
    add_unknown(decided, counters->rules, counters->keys);
    rcpt_rules_finish(counters->rules);
}
