/* Counts the effects of receipts and of their transactions when the answer of a batch comes: an
 * observer of the lanes, registered by measure.c. Answers come in groups (core/outcome.h), so the
 * work does not grow with the receipts. */
#include "measure_receipts.h"

#include <stdio.h>

#include "receiptd/base/document.h"
#include "receiptd/base/error.h"
#include "receiptd/core/outcome.h"

#define NS_PER_SECOND      1e9
#define LETTER_ARENA_BYTES 4096u

/* Labels of metrics: a changed word breaks dashboards and alerts (docs/metrics.md). */
static const char *const outcome_names[RCPT_ENGINE__COUNT] = {
    [RCPT_ENGINE_COMMITTED] = "committed", [RCPT_ENGINE_FENCED] = "fenced",
    [RCPT_ENGINE_RETRY] = "retry",         [RCPT_ENGINE_DATA] = "refused",
    [RCPT_ENGINE_PROBED] = "probed",       [RCPT_ENGINE_UNKNOWN] = "unknown",
};
static const char *const kind_names[RCPT_BATCH_KIND__COUNT] = {
    [RCPT_BATCH_APPLY] = "apply",   [RCPT_BATCH_PROBE] = "probe",
    [RCPT_BATCH_WAKE] = "wake",     [RCPT_BATCH_DISCARD] = "discard",
    [RCPT_BATCH_EXPIRE] = "expire", [RCPT_BATCH_RANGES] = "ranges",
};

/* Zeros create no series. */
static void add(struct measure_receipts *measured, enum rcpt_metric metric, uint64_t value)
{
    if (value > 0)
        rcpt_metrics_add(measured->context->metrics, metric, RCPT_NO_LABELS, (double)value);
}

/* By reason and gateway, by which an operator sorts dead letters. */
static void add_dead(struct measure_receipts *measured, enum rcpt_reject_reason reason,
                     const char *gateway, uint64_t events)
{
    rcpt_metrics_add(measured->context->metrics, RCPT_METRIC_EVENTS_DEAD,
                     RCPT_LABELS(rcpt_reject_name(reason), gateway), (double)events);
}

/* Prometheus sees no increase in a series that begins with its first burst: it begins at 0. */
void measure_expect_gateway(struct measure_receipts *measured, const char *gateway)
{
    for (int reason = 0; reason < RCPT_REJECT_REASON__COUNT; reason++)
        add_dead(measured, (enum rcpt_reject_reason)reason, gateway, 0);
    for (enum rcpt_metric metric = RCPT_METRIC_EVENTS_PARKED; metric <= RCPT_METRIC_EVENTS_WOKEN;
         metric++)
        rcpt_metrics_add(measured->context->metrics, metric, RCPT_LABELS(gateway), 0);
}

/* The name comes from the receipts: one per index for the life of the process. */
const char *measure_gateway_name(const struct measure_receipts *measured, uint32_t gateway)
{
    const char *name = receipts_gateway(measured->receipts, gateway);
    return name != NULL && name[0] != '\0' ? name : "none";
}

/* ---- transactions ---- */

/* Labels a dead letter with the gateway that its element names, if it is an object. A whole record
 * (index below 0) is not parsed. */
/* By the gateway that the event names, whatever is wrong with the rest of it. */
static void count_refused(struct measure_receipts *measured, const struct rcpt_batch_letter *letter,
                          const struct rcpt_node *event, uint64_t receipts)
{
    char name[RCPT_RECORD_MAX_GATEWAY_BYTES + 1] = "none";
    struct rcpt_text gateway = rcpt_node_text_of(event, "gateway");
    if (gateway.size >= sizeof(name))
        snprintf(name, sizeof(name), "other");
    else if (gateway.size > 0)
        snprintf(name, sizeof(name), "%.*s", (int)gateway.size, gateway.at);
    add_dead(measured, letter->reason, name, receipts);
}

/* The payload of a letter for many receipts is an array of them. */
static void count_letter(struct measure_receipts *measured, const struct rcpt_batch_letter *letter)
{
    const char *reason;
    struct rcpt_arena arena;
    rcpt_arena_init(&arena, LETTER_ARENA_BYTES);
    const struct rcpt_text payload = {letter->payload, letter->payload_size};
    const struct rcpt_node *node = NULL;
    if (letter->index >= 0 && letter->reason != RCPT_REJECT_INVALID_UTF8) /* labels are UTF-8 */
        node = rcpt_document_parse(payload, &arena, &reason);
    if (letter->receipts == 1 || node == NULL)
        count_refused(measured, letter, node, letter->receipts);
    else
        for (const struct rcpt_node *event = node->first; event != NULL; event = event->next)
            count_refused(measured, letter, event, 1);
    rcpt_arena_fini(&arena);
}

/* One line for each dead letter: they are rare, and an operator needs to find them. */
static void count_letters(struct measure_receipts *measured, const struct rcpt_batch *batch)
{
    for (uint32_t index = 0; index < batch->letter_count; index++) {
        const struct rcpt_batch_letter *letter = &batch->letters[index];
        const struct rcpt_log_fields fields = {.batch = batch->number,
                                               .trace = letter->record->traceparent};
        count_letter(measured, letter);
        rcpt_log_with(RCPT_LOG_INFO, "operate", &fields,
                      "dead letter: topic %s partition %d offset %lld event %d: %s%s",
                      letter->topic, letter->partition, (long long)letter->record->offset,
                      letter->index, rcpt_reject_name(letter->reason),
                      letter->receipts > 1 ? ", and others of the record" : "");
    }
}

/* Only batches of new receipts have letters. */
static void count_commit(struct measure_receipts *measured, const struct rcpt_batch *batch,
                         const struct rcpt_engine_result *result)
{
    measured->last_commit_ms = host_wall_ms();
    add(measured, RCPT_METRIC_EVENTS_ALIASED, result->moved);
    if (batch->kind == RCPT_BATCH_RANGES)
        add(measured, RCPT_METRIC_RANGES_IDLE, result->ranges_idle);
    if (batch->kind != RCPT_BATCH_APPLY)
        return; /* measure_effects has counted woken and discarded receipts */
    if (batch->event_count > 0)
        rcpt_metrics_observe(measured->context->metrics, RCPT_METRIC_BATCH_EVENTS, RCPT_NO_LABELS,
                             batch->event_count);
    count_letters(measured, batch);
}

/* Transactions are counted by kind and outcome; receipts of one that was rolled back come again. */
void measure_result(void *context, const struct lane_flight *flight,
                    const struct rcpt_engine_result *result)
{
    struct measure_receipts *measured = context;
    const struct rcpt_batch *batch = flight->batch;
    struct rcpt_metrics *metrics = measured->context->metrics;
    rcpt_metrics_add(metrics, RCPT_METRIC_TRANSACTIONS,
                     RCPT_LABELS(kind_names[batch->kind], outcome_names[result->outcome]), 1);
    rcpt_metrics_observe(metrics, RCPT_METRIC_TRANSACTION_SECONDS, RCPT_NO_LABELS,
                         (double)(uv_hrtime() - flight->sent_ns) / NS_PER_SECOND);
    if (result->outcome == RCPT_ENGINE_COMMITTED)
        count_commit(measured, batch, result);
}

/* ---- outcomes ---- */

/* Per gateway, for one batch, on the stack. */
struct outcome_sums {
    struct rcpt_outcome_counts gateways[RCPT_RECORD_MAX_GATEWAYS];
    bool used[RCPT_RECORD_MAX_GATEWAYS];
    uint64_t classified;
};

/* Adds a group of messages with equal receipts, status before and status after. */
static void sum_effect(const struct measure_receipts *measured, const struct rcpt_batch *batch,
                       const struct rcpt_lane_effect *effect, struct outcome_sums *sums)
{
    if (effect->signature < 0 || (uint32_t)effect->signature >= batch->signature_count)
        return;
    const struct rcpt_batch_signature *signature = &batch->signatures[effect->signature];
    const int32_t *counts = batch->signature_counts + signature->first;
    sums->used[signature->gateway] = true;
    const struct rcpt_outcome_group group = {.old = effect->old,
                                             .new = effect->new,
                                             .gained = effect->gained,
                                             .messages = effect->messages,
                                             .codes = batch->signature_codes + signature->first,
                                             .counts = counts,
                                             .size = signature->size};
    rcpt_outcome_count(&sums->gateways[signature->gateway], measured->context->config->ladder,
                       &group);
    for (uint32_t index = 0; index < signature->size; index++)
        sums->classified += (uint64_t)counts[index] * effect->messages;
}

/* One search for the series per gateway of the batch, not per group. */
static void add_outcomes(struct measure_receipts *measured, const struct outcome_sums *sums)
{
    static const struct {
        enum rcpt_metric metric;
        enum rcpt_outcome outcome;
    } plain[] = {{RCPT_METRIC_EVENTS_APPLIED, RCPT_OUTCOME_APPLIED},
                 {RCPT_METRIC_EVENTS_STALE, RCPT_OUTCOME_STALE},
                 {RCPT_METRIC_EVENTS_DUPLICATE, RCPT_OUTCOME_DUPLICATE}};
    struct rcpt_metrics *metrics = measured->context->metrics;
    for (uint32_t index = 0; index < RCPT_RECORD_MAX_GATEWAYS; index++) {
        const struct rcpt_outcome_counts *counts = &sums->gateways[index];
        const char *gateway = measure_gateway_name(measured, index);
        if (!sums->used[index])
            continue;
        for (size_t at = 0; at < RCPT_COUNT_OF(plain); at++)
            rcpt_metrics_add(metrics, plain[at].metric, RCPT_LABELS(gateway),
                             (double)counts->receipts[plain[at].outcome]);
        rcpt_metrics_add(metrics, RCPT_METRIC_EVENTS_CONTRADICTION, RCPT_LABELS(gateway, "won"),
                         (double)counts->corrections);
        rcpt_metrics_add(metrics, RCPT_METRIC_EVENTS_CONTRADICTION, RCPT_LABELS(gateway, "lost"),
                         (double)counts->receipts[RCPT_OUTCOME_LOST]);
    }
}

/* A status that a newer ladder has may be unknown here: its code stands for it. */
static const char *status_name(const struct measure_receipts *measured, int16_t code, char text[16])
{
    int index = rcpt_ladder_find_code(measured->context->config->ladder, code, NULL, 0);
    if (index >= 0)
        return rcpt_ladder_entry(measured->context->config->ladder, (size_t)index)->name;
    snprintf(text, 16, "%d", code);
    return text;
}

/* Neighbours in the answer often end in the same status, so few series are searched for many rows.
 */
static void add_transitions(struct measure_receipts *measured,
                            const struct rcpt_lane_effects *effects)
{
    char text[16];
    for (uint32_t index = 0; index < effects->count; index++) {
        const struct rcpt_lane_effect *effect = &effects->rows[index];
        if (effect->new != effect->old)
            rcpt_metrics_add(measured->context->metrics, RCPT_METRIC_TRANSITIONS,
                             RCPT_LABELS(status_name(measured, effect->new, text)),
                             effect->messages);
    }
}

/* Receipts that were not applied, by the signature of their message. The answer has a limit;
 * receipts beyond it count as of gateway "other". `reason` is the reason of dead letters;
 * RCPT_REJECT_REASON__COUNT stands for parked receipts. */
static void add_left(struct measure_receipts *measured, const struct rcpt_batch *batch,
                     const struct rcpt_lane_unknown *groups, uint32_t count, uint64_t left,
                     enum rcpt_reject_reason reason)
{
    for (uint32_t index = 0; index <= count && left > 0; index++) {
        bool named = index < count && groups[index].signature >= 0 &&
                     (uint32_t)groups[index].signature < batch->signature_count;
        uint64_t events = index < count ? groups[index].events : left;
        if (events > left || (index < count && !named))
            continue;
        const char *gateway =
            named
                ? measure_gateway_name(measured, batch->signatures[groups[index].signature].gateway)
                : "other";
        if (reason == RCPT_REJECT_REASON__COUNT)
            rcpt_metrics_add(measured->context->metrics, RCPT_METRIC_EVENTS_PARKED,
                             RCPT_LABELS(gateway), (double)events);
        else
            add_dead(measured, reason, gateway, events);
        left -= events;
    }
}

/* Receipts of unknown messages are parked, or dead where `unknown` is dead-letter; then only those
 * of messages whose receipts name several organisations are parked. */
static void add_unknown_effects(struct measure_receipts *measured, const struct rcpt_batch *batch,
                                const struct rcpt_lane_effects *effects)
{
    bool dead = effects->events_dead > 0;
    add_left(measured, batch, effects->unknown, dead ? effects->unknown_count : 0,
             effects->events_dead, RCPT_REJECT_UNKNOWN_MESSAGE);
    add_left(measured, batch, effects->unknown, dead ? 0 : effects->unknown_count,
             effects->events_parked, RCPT_REJECT_REASON__COUNT);
    add_left(measured, batch, effects->refused, effects->refused_count, effects->events_refused,
             RCPT_REJECT_OTHER_ORGANISATION);
    add_left(measured, batch, effects->retired, effects->retired_count, effects->events_retired,
             RCPT_REJECT_RETIRED_MESSAGE);
}

/* Discarded and expired receipts are dead letters as well. */
static void add_parked_end(struct measure_receipts *measured, enum rcpt_batch_kind kind,
                           const char *gateway, uint64_t events)
{
    struct rcpt_metrics *metrics = measured->context->metrics;
    if (events == 0)
        return;
    if (kind == RCPT_BATCH_DISCARD) {
        add_dead(measured, RCPT_REJECT_DATABASE, gateway, events);
    } else if (kind == RCPT_BATCH_EXPIRE) {
        add_dead(measured, RCPT_REJECT_AGED_OUT, gateway, events);
    } else {
        rcpt_metrics_add(metrics, RCPT_METRIC_EVENTS_WOKEN, RCPT_LABELS(gateway), (double)events);
    }
}

/* Parked receipts that a wake made dead letters, or whose message was deleted. */
static void add_refused(struct measure_receipts *measured, const struct rcpt_lane_effects *effects,
                        enum rcpt_reject_reason reason)
{
    uint64_t left = effects->events_refused;
    for (uint32_t index = 0; index < effects->refused_gateway_count; index++) {
        const struct rcpt_lane_gateway *gateway = &effects->refused_gateways[index];
        if (gateway->events > left)
            continue;
        add_dead(measured, reason, gateway->name, gateway->events);
        left -= gateway->events;
    }
    if (left > 0)
        add_dead(measured, reason, "none", left);
}

/* Parked receipts that were woken, discarded or expired. Receipts of gateways beyond the answer's
 * limit count as "none". */
static void add_handled(struct measure_receipts *measured, enum rcpt_batch_kind kind,
                        const struct rcpt_lane_effects *effects)
{
    uint64_t left = effects->events_handled;
    for (uint32_t index = 0; index < effects->gateway_count; index++) {
        const struct rcpt_lane_gateway *gateway = &effects->gateways[index];
        if (gateway->events > left)
            continue;
        add_parked_end(measured, kind, gateway->name, gateway->events);
        left -= gateway->events;
    }
    add_parked_end(measured, kind, "none", left);
    add_refused(measured, effects,
                kind == RCPT_BATCH_WAKE ? RCPT_REJECT_OTHER_ORGANISATION
                                        : RCPT_REJECT_RETIRED_MESSAGE);
}

static void add_suppressions(struct measure_receipts *measured,
                             const struct rcpt_lane_effects *effects)
{
    for (uint32_t index = 0; index < effects->suppression_count; index++)
        rcpt_metrics_add(measured->context->metrics, RCPT_METRIC_SUPPRESSIONS,
                         RCPT_LABELS(effects->suppressions[index].class), 1);
}

/* A diverse batch has more groups than its answer holds: the rest counts as unclassified. */
void measure_effects(void *context, const struct rcpt_batch *batch,
                     const struct rcpt_lane_effects *effects)
{
    struct measure_receipts *measured = context;
    struct outcome_sums sums = {0};
    add_transitions(measured, effects);
    add_suppressions(measured, effects);
    if (batch->kind != RCPT_BATCH_APPLY) {
        add_handled(measured, batch->kind, effects);
        return;
    }
    add_unknown_effects(measured, batch, effects);
    for (uint32_t index = 0; index < effects->count; index++)
        sum_effect(measured, batch, &effects->rows[index], &sums);
    add_outcomes(measured, &sums);
    if (effects->count == RCPT_LANE_MOST_EFFECTS && sums.classified < effects->events_counted)
        add(measured, RCPT_METRIC_EVENTS_UNCLASSIFIED, effects->events_counted - sums.classified);
}
