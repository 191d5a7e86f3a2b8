/* The log's lines about batches: what PostgreSQL answered, and after how long. Called by lanes.c
 * for each answer, while the batch still exists.
 */
#include "internal.h"

/* An operator finds a batch's lines by its number, and by the trace of its first record. */
static void log_outcome(uint32_t lane, const struct rcpt_batch *batch,
                        const struct rcpt_engine_result *result, const struct rcpt_error *error)
{
    const struct rcpt_log_fields fields = {
        .batch = batch->number,
        .trace = batch->record_count > 0 ? batch->records[0]->traceparent : NULL,
    };
    switch (result->outcome) {
    case RCPT_ENGINE_COMMITTED:
    case RCPT_ENGINE_PROBED:
    case RCPT_ENGINE_UNKNOWN: /* on_down says it for the whole connection */
        break;
    case RCPT_ENGINE_FENCED:
        rcpt_log_with(RCPT_LOG_INFO, "receipts", &fields,
                      "lane %u: %s; reading its positions again", lane, error->text);
        break;
    case RCPT_ENGINE_DATA:
        rcpt_log_with(RCPT_LOG_WARN, "receipts", &fields,
                      "lane %u: a row is refused (%s); searching for it", lane, error->code);
        break;
    case RCPT_ENGINE_AGAIN:
        rcpt_log_with(RCPT_LOG_DEBUG, "receipts", &fields,
                      "lane %u: rolled back, goes again: %s (%s)", lane, error->text, error->code);
        break;
    default:
        rcpt_log_with(RCPT_LOG_WARN, "receipts", &fields,
                      "lane %u: rolled back, will be tried again: %s (%s)%s%s", lane, error->text,
                      error->code, error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
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

void lane_log_answer(uint32_t lane, const struct lane_flight *flight,
                     const struct rcpt_engine_result *result, const struct rcpt_error *error)
{
    log_outcome(lane, flight->batch, result, error);
    if (rcpt_log_enabled(RCPT_LOG_DEBUG))
        log_response(lane, flight);
}
