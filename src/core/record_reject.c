/* Refused receipts and records: the decoder's list of them, and the names of the reasons in
 * metrics, in the table dead_letter and for `receiptd dead-letters --reason`.
 */
#include <string.h>

#include "record_internal.h"

struct rcpt_reject *rcpt_record_add_reject(struct rcpt_decoder *decoder,
                                           enum rcpt_reject_reason reason, int32_t index,
                                           size_t payload, size_t payload_size)
{
    if (decoder->reject_count == decoder->reject_capacity) {
        RCPT_GROW(decoder->rejects, decoder->reject_capacity, 16);
    }
    struct rcpt_reject *reject = &decoder->rejects[decoder->reject_count++];
    memset(reject, 0, sizeof(*reject));
    reject->reason = reason;
    reject->index = index;
    reject->receipts = 1;
    reject->payload = (uint32_t)payload;
    reject->payload_size = reject->full_size = (uint32_t)payload_size;
    return reject;
}

void rcpt_record_forget(struct rcpt_decoder *decoder)
{
    decoder->event_count = decoder->ignored_count = 0;
    decoder->reject_count = 0;
    memset(decoder->machines, 0, sizeof(decoder->machines));
}

/* Replaces everything found by one reject; its letter holds the first bytes of the value. */
struct rcpt_reject *rcpt_record_refuse(struct rcpt_decoder *decoder, enum rcpt_reject_reason reason)
{
    size_t size = decoder->input.value_size;
    rcpt_record_forget(decoder);
    struct rcpt_reject *reject = rcpt_record_add_reject(decoder, reason, -1, 0, size);
    if (size > RCPT_RECORD_MAX_LETTER_BYTES)
        reject->payload_size = RCPT_RECORD_MAX_LETTER_BYTES;
    return reject;
}

/* Each reason has its own name; one without a name would be NULL in the table. */
const char *rcpt_reject_name(enum rcpt_reject_reason reason)
{
    static const char *const names[RCPT_REJECT_REASON__COUNT] = {
        [RCPT_REJECT_EMPTY_RECORD] = "empty_record",
        [RCPT_REJECT_INVALID_JSON] = "invalid_json",
        [RCPT_REJECT_INVALID_UTF8] = "invalid_utf8",
        [RCPT_REJECT_NOT_AN_EVENT] = "not_an_event",
        [RCPT_REJECT_TOO_MANY_EVENTS] = "too_many_events",
        [RCPT_REJECT_RECORD_TOO_LARGE] = "record_too_large",
        [RCPT_REJECT_MISSING_ID] = "missing_id",
        [RCPT_REJECT_INVALID_ID] = "invalid_id",
        [RCPT_REJECT_ID_TOO_LONG] = "id_too_long",
        [RCPT_REJECT_MISSING_STATUS] = "missing_status",
        [RCPT_REJECT_UNKNOWN_STATUS] = "unknown_status",
        [RCPT_REJECT_INVALID_FLAGS] = "invalid_flags",
        [RCPT_REJECT_INVALID_TIME] = "invalid_time",
        [RCPT_REJECT_INVALID_PART] = "invalid_part",
        [RCPT_REJECT_INVALID_RANGE] = "invalid_range",
        [RCPT_REJECT_RANGE_OFF] = "range_off",
        [RCPT_REJECT_UNKNOWN_MESSAGE] = "unknown_message",
        [RCPT_REJECT_OTHER_ORGANISATION] = "other_organisation",
        [RCPT_REJECT_RETIRED_MESSAGE] = "retired_message",
        [RCPT_REJECT_AGED_OUT] = "aged_out",
        [RCPT_REJECT_DATABASE] = "database",
        [RCPT_REJECT_NO_GROUP_KEY] = "no_group_key",
        [RCPT_REJECT_NOT_A_MESSAGE] = "not_a_message",
        [RCPT_REJECT_ANNOUNCED_DIFFERENTLY] = "announced_differently",
    };
    RCPT_ASSERT(reason < RCPT_REJECT_REASON__COUNT);
    return names[reason];
}

/* Checks a name that a person wrote: in a command's option or a request's body. */
bool rcpt_reject_is_name(const char *name)
{
    for (int reason = 0; reason < RCPT_REJECT_REASON__COUNT; reason++)
        if (strcmp(rcpt_reject_name((enum rcpt_reject_reason)reason), name) == 0)
            return true;
    return false;
}
