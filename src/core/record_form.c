/* A record whose value an adapter has put into our form (gateways/topics.c): its JSON is parsed as
 * any, and the adapter's refusals are added. Called by record.c. */
#include "record_internal.h"

/* The events that an adapter has made are read as ours; then their places in the record are those
 * that it says. An event may still be refused here, so rejects have places, too. */
void rcpt_record_parse_form(struct rcpt_decoder *decoder, const struct rcpt_record_form *form)
{
    decoder->input.value = form->text;
    decoder->input.value_size = form->json_size;
    rcpt_record_parse(decoder);
    for (uint32_t at = 0; at < decoder->event_count; at++)
        decoder->events[at].index = form->indexes[decoder->events[at].index];
    for (uint32_t at = 0; at < decoder->reject_count; at++)
        if (decoder->rejects[at].index >= 0)
            decoder->rejects[at].index = (int32_t)form->indexes[decoder->rejects[at].index];
    decoder->input.value_size = form->text_size;
    for (size_t at = 0; at < form->refusal_count; at++) {
        const struct rcpt_record_refusal *from = &form->refusals[at];
        struct rcpt_reject *reject = rcpt_record_add_reject(decoder, from->reason, from->index,
                                                            from->payload, from->payload_size);
        reject->full_size = from->full_size;
        reject->hash = from->hash;
        reject->long_detail = from->detail;
    }
}
