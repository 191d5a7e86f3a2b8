/* The parts of a batch beside its messages: dead letters of events that could not be decoded or
 * that PostgreSQL refuses, and ranges, which name no message. Called by batch_build.c.
 */
#include "receiptd/core/batch_build.h"

/* The search has marked the event. Its letter gets PostgreSQL's text by search_name_refusals. */
void rcpt_batch_add_refused(struct rcpt_batch *batch, const struct rcpt_batch_source *source,
                            const struct rcpt_event *event)
{
    batch->letters[batch->letter_count++] = (struct rcpt_batch_letter){
        .record = source->record,
        .topic = source->topic,
        .partition = source->partition,
        .index = (int32_t)event->index,
        .reason = RCPT_REJECT_DATABASE,
        .detail = "PostgreSQL refuses this row",
        .at_us = source->record->timestamp_ms * 1000,
        .receipts = 1,
        .payload = source->record->value + event->payload,
        .payload_size = event->payload_size,
    };
}

/* The statement needs the code, which outlives the decoder's number of the entry. The rest it reads
 * from the record. */
static void add_range(const struct rcpt_ladder *ladder, struct rcpt_batch *batch,
                      const struct rcpt_batch_source *source, const struct rcpt_reject *reject)
{
    batch->ranges[batch->range_count++] = (struct rcpt_batch_range_receipt){
        .record = source->record,
        .reject = reject,
        .topic = source->topic,
        .partition = source->partition,
        .code = rcpt_ladder_entry(ladder, reject->range.entry)->code,
    };
}

/* Ranges, and events that could not be decoded: each belongs to a lane, so exactly one batch writes
 * it. */
void rcpt_batch_add_rejects(const struct rcpt_ladder *ladder, struct rcpt_batch *batch,
                            const struct rcpt_batch_source *source)
{
    const struct rcpt_record *record = source->record;
    for (uint32_t at = record->lane_rejects[batch->lane];
         at < record->lane_rejects[batch->lane + 1]; at++) {
        const struct rcpt_reject *reject = &record->rejects[at];
        if (reject->range.is_taken) {
            add_range(ladder, batch, source, reject);
            continue;
        }
        batch->letters[batch->letter_count++] = (struct rcpt_batch_letter){
            .record = record,
            .topic = source->topic,
            .partition = source->partition,
            .index = reject->index,
            .reason = reject->reason,
            .detail = rcpt_record_detail(record, reject),
            .at_us = record->timestamp_ms * 1000,
            .receipts = reject->receipts,
            .indexes = reject->receipts > 1 ? record->value + reject->indexes : NULL,
            .payload = record->value + reject->payload,
            .payload_size = reject->payload_size,
            .full_size = reject->full_size,
        };
    }
}
