/* The log's lines about batches: what PostgreSQL answered, and after how long. Called by lanes.c
 * for each answer, while the batch still exists.
 */
#include <string.h>

#include "internal.h"

/* Logs one line for each cause, however many lanes meet it. */
static void log_refusal(struct receipts *receipts, uint32_t lane, struct lane_flight *flight,
                        const struct rcpt_log_fields *fields, const struct rcpt_error *error)
{
    if (!rcpt_outage_note(&receipts->refusals, &flight->is_refused, host_now(receipts->context),
                          error))
        return;
    rcpt_log_with(RCPT_LOG_WARN, "receipts", fields,
                  "lane %u: rolled back, will be tried again: %s (%s)%s%s", lane, error->text,
                  error->code, error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
}

/* An operator finds a batch's lines by its number, and by the trace of its first record. */
static void log_outcome(struct receipts *receipts, uint32_t lane, struct lane_flight *flight,
                        const struct rcpt_engine_result *result, const struct rcpt_error *error)
{
    const struct rcpt_batch *batch = flight->batch;
    const struct rcpt_log_fields fields = {
        .batch = batch->number,
        .trace = batch->record_count > 0 ? batch->records[0]->traceparent : NULL,
    };
    switch (result->outcome) {
    case RCPT_ENGINE_COMMITTED:
        rcpt_outage_end(&receipts->refusals, &flight->is_refused, host_now(receipts->context),
                        "receipts", "no lane is rolled back now");
        break;
    case RCPT_ENGINE_PROBED:
    case RCPT_ENGINE_UNKNOWN: /* the connection logs it for all its lanes */
        break;
    case RCPT_ENGINE_FENCED:
        rcpt_log_with(RCPT_LOG_INFO, "receipts", &fields,
                      "lane %u: %s; reading its positions again", lane, error->text);
        break;
    case RCPT_ENGINE_DATA:
        rcpt_log_with(RCPT_LOG_WARN, "receipts", &fields,
                      "lane %u: a row is refused (%s); searching for it", lane, error->code);
        break;
    default:
        log_refusal(receipts, lane, flight, &fields, error);
        break;
    }
}

/* The response time of a batch is from its submission, so the wait behind others on the connection
 * counts. */
static void log_response(uint32_t lane, const struct lane_flight *flight)
{
    rcpt_log_debug("receipts", "lane %u: batch %llu of %u messages, %u events answered in %llu us",
                   lane, (unsigned long long)flight->number, flight->messages, flight->events,
                   (unsigned long long)(uv_hrtime() - flight->sent_ns) / 1000);
}

void lane_log_answer(struct receipts *receipts, uint32_t lane, struct lane_flight *flight,
                     const struct rcpt_engine_result *result, const struct rcpt_error *error)
{
    log_outcome(receipts, lane, flight, result, error);
    if (rcpt_log_enabled(RCPT_LOG_DEBUG))
        log_response(lane, flight);
}
