/* The effects of a committed batch, for the observer of the lane's sender (metrics). Figures
 * identify kinds by the batch's signatures. Called by flights.c.
 */
#include "flights_internal.h"

/* Receipts that are not counted, by the signature of their message. */
struct sums {
    struct rcpt_lane_unknown of[RCPT_LANE_MOST_EFFECTS];
    uint32_t count;
};

/* A batch that is more diverse than a report has room for loses figures, never counters. */
static void add_sum(struct sums *sums, int32_t signature, uint32_t events)
{
    uint32_t at = 0;
    while (at < sums->count && sums->of[at].signature != signature)
        at++;
    if (at == RCPT_LANE_MOST_EFFECTS)
        return;
    if (at == sums->count)
        sums->of[sums->count++] = (struct rcpt_lane_unknown){.signature = signature};
    sums->of[at].events += events;
}

/* In most batches all messages are known, and then no message is looked at. */
static void sum_uncounted(const struct flights *flights, struct sums *unknown, struct sums *refused,
                          struct sums *retired)
{
    const struct rcpt_batch *batch = flights->batch;
    bool all_known = flights->result.messages_known == batch->message_count;
    unknown->count = refused->count = retired->count = 0;
    for (uint32_t number = 0; !all_known && number < batch->message_count; number++) {
        const struct rcpt_batch_message *message = &batch->messages[number];
        uint32_t events = rcpt_batch_end(batch, number) - message->first_event;
        enum rcpt_fate fate = flights->decided.messages[number].fate;
        if (fate == RCPT_FATE_REFUSED)
            add_sum(refused, message->signature, events);
        else if (fate == RCPT_FATE_DELETED || fate == RCPT_FATE_ERASED)
            add_sum(retired, message->signature, events);
        else if (fate != RCPT_FATE_KNOWN)
            add_sum(unknown, message->signature, events);
    }
}

/* A wake's kinds are merged if they differ only in their signatures, which the observer does not
 * need. */
static uint32_t list_effects(const struct flights *flights, struct rcpt_lane_effect *effects)
{
    uint32_t size, count = 0;
    const struct rcpt_count_kind *kinds = rcpt_count_kinds(flights->sender->count, &size);
    bool woken = flights->woken != NULL;
    for (uint32_t index = 0; index < size; index++) {
        const struct rcpt_count_kind *kind = &kinds[index];
        struct rcpt_lane_effect *last = count > 0 ? &effects[count - 1] : NULL;
        if (woken && last != NULL && last->old == kind->old && last->new == kind->new &&
            last->gained == kind->gained)
            last->messages += kind->messages;
        else if (count < RCPT_LANE_MOST_EFFECTS)
            effects[count++] = (struct rcpt_lane_effect){.old = kind->old,
                                                         .new = kind->new,
                                                         .gained = kind->gained,
                                                         .signature = woken ? -1 : kind->signature,
                                                         .messages = kind->messages};
    }
    return count;
}

/* Gateways of a wake come from its rows, which may be of another process, so they are not in the
 * signatures. */
static void report_wake(const struct flights *flights)
{
    const struct rcpt_lane_sender *sender = flights->sender;
    const struct rcpt_woken_batch *woken = flights->woken;
    struct rcpt_lane_effect effects[RCPT_LANE_MOST_EFFECTS];
    struct rcpt_lane_effects report = {.rows = effects,
                                       .events_handled = woken->applied.events,
                                       .gateways = woken->applied.all,
                                       .gateway_count = woken->applied.count,
                                       .events_refused = woken->refused.events,
                                       .refused_gateways = woken->refused.all,
                                       .refused_gateway_count = woken->refused.count};
    if (woken->batch.message_count > 0) {
        report.count = list_effects(flights, effects);
        report.suppressions = rcpt_rules_suppressions(sender->rules, &report.suppression_count);
    }
    sender->on_effects(sender->effects_context, flights->lane, &report);
}

static void report_batch(const struct flights *flights)
{
    const struct rcpt_lane_sender *sender = flights->sender;
    const struct rcpt_uncounted *uncounted = &flights->uncounted;
    struct rcpt_lane_effect effects[RCPT_LANE_MOST_EFFECTS];
    struct sums unknown, refused, retired;
    sum_uncounted(flights, &unknown, &refused, &retired);
    struct rcpt_lane_effects report = {.rows = effects,
                                       .count = list_effects(flights, effects),
                                       .events_counted = rcpt_count_events(sender->count),
                                       .events_parked = uncounted->parked_count,
                                       .events_dead = uncounted->dead,
                                       .unknown = unknown.of,
                                       .unknown_count = unknown.count,
                                       .refused = refused.of,
                                       .refused_count = refused.count,
                                       .events_refused = uncounted->refused,
                                       .retired = retired.of,
                                       .retired_count = retired.count,
                                       .events_retired = uncounted->retired};
    report.suppressions = rcpt_rules_suppressions(sender->rules, &report.suppression_count);
    sender->on_effects(sender->effects_context, flights->lane, &report);
}

void flights_report(const struct flights *flights)
{
    if (flights->sender->on_effects == NULL)
        return;
    if (flights->woken != NULL)
        report_wake(flights);
    else
        report_batch(flights);
}
