/* The parameters of sql/lane/letters.sql: the dead letters of a batch. statements.c calls this for
 * each batch that has some.
 */
#include <stdio.h>
#include <string.h>

#include "encode_parameters.h"

ELEMENTS(add_letter_topics, text, batch->letter_count,
         put_text(encoder, batch->letters[index].topic))
NUMBERS(add_letter_partitions, int4, batch->letter_count, batch->letters[index].partition)
ELEMENTS(add_letter_offsets, int8, batch->letter_count,
         rcpt_pg_put_int8(encoder, batch->letters[index].record->offset))
NUMBERS(add_letter_indexes, int4, batch->letter_count, batch->letters[index].index)
ELEMENTS(add_letter_reasons, text, batch->letter_count,
         put_text(encoder, rcpt_reject_name(batch->letters[index].reason)))

/* A dead letter keeps at most 64 KiB of its payload; one for many receipts all, which are fewer
 * bytes than their record's. */
static uint32_t kept_bytes(const struct rcpt_batch_letter *letter)
{
    if (letter->receipts > 1)
        return letter->payload_size;
    return letter->payload_size < RCPT_RECORD_MAX_LETTER_BYTES ? letter->payload_size
                                                               : RCPT_RECORD_MAX_LETTER_BYTES;
}

/* dead_letters_for_redrive.sql recognises a cut letter by these words at the end. */
static void put_detail(struct rcpt_pg_encoder *encoder, const struct rcpt_batch_letter *letter)
{
    char text[512];
    const char *detail = letter->detail != NULL ? letter->detail : "";
    uint32_t size =
        letter->full_size > letter->payload_size ? letter->full_size : letter->payload_size;
    if (size > kept_bytes(letter)) {
        snprintf(text, sizeof(text), "%.400s%sthe first of %u bytes", detail,
                 detail[0] != '\0' ? "; " : "", size);
        put_text(encoder, text);
    } else if (detail[0] == '\0') {
        rcpt_pg_put_null(encoder);
    } else {
        put_text(encoder, detail);
    }
}

ELEMENTS(add_letter_details, text, batch->letter_count, put_detail(encoder, &batch->letters[index]))
ELEMENTS(add_letter_payloads, bytea, batch->letter_count,
         rcpt_pg_put_bytes(encoder, batch->letters[index].payload,
                           kept_bytes(&batch->letters[index])))
ELEMENTS(add_letter_traceparents, text, batch->letter_count,
         put_traceparent(encoder, batch->letters[index].record))
NUMBERS(add_letter_times, timestamp, batch->letter_count,
        batch->letters[index].record->timestamp_ms * 1000)

static void put_indexes(struct rcpt_pg_encoder *encoder, const struct rcpt_batch_letter *letter)
{
    if (letter->indexes == NULL)
        rcpt_pg_put_null(encoder);
    else
        put_text(encoder, letter->indexes);
}

ELEMENTS(add_letter_receipts, text, batch->letter_count,
         put_indexes(encoder, &batch->letters[index]))

static const add_parameter letter_parameters[] = {add_letter_topics,
                                                  add_letter_partitions,
                                                  add_letter_offsets,
                                                  add_letter_indexes,
                                                  add_lane,
                                                  add_letter_reasons,
                                                  add_letter_details,
                                                  add_letter_payloads,
                                                  add_letter_traceparents,
                                                  add_letter_times,
                                                  add_letter_receipts};

void rcpt_encode_letters(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    rcpt_pg_encoder_reset(encoder);
    ADD_ALL(encoder, &(struct content){.batch = batch}, letter_parameters);
}
