/* The parameters of sql/lane/letters.sql: the dead letters of a batch. Called by statements.c and
 * flights.c.
 */
#include <stdio.h>

#include "encode_batch.h"
#include "encode_parameters.h"

#define DETAIL_BYTES 1100u /* of the longest, and of the words about a cut */

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
    char text[DETAIL_BYTES];
    const char *detail = letter->detail != NULL ? letter->detail : "";
    uint32_t size =
        letter->full_size > letter->payload_size ? letter->full_size : letter->payload_size;
    if (size > kept_bytes(letter)) {
        snprintf(text, sizeof(text), "%.1000s%sthe first of %u bytes", detail,
                 detail[0] != '\0' ? "; " : "", size);
        put_text(encoder, text);
    } else {
        put_text_or_null(encoder, rcpt_text_of(detail));
    }
}

static void put_payload(struct rcpt_pg_encoder *encoder, const struct rcpt_batch_letter *letter)
{
    if (!letter->erased)
        rcpt_pg_put_bytes(encoder, letter->payload, kept_bytes(letter));
    else
        rcpt_pg_put_null(encoder);
}

static void add_positions(struct rcpt_pg_encoder *encoder, const struct rcpt_batch_letter *letters,
                          uint32_t count)
{
    COLUMN(text, put_text(encoder, letters[index].topic));
    COLUMN(int4, rcpt_pg_put_int4(encoder, letters[index].partition));
    COLUMN(int8, rcpt_pg_put_int8(encoder, letters[index].record->offset));
    COLUMN(int4, rcpt_pg_put_int4(encoder, letters[index].index));
}

void rcpt_encode_letters(struct rcpt_pg_encoder *encoder, uint32_t lane,
                         const struct rcpt_batch_letter *letters, uint32_t count)
{
    rcpt_pg_encoder_reset(encoder);
    add_positions(encoder, letters, count);
    rcpt_pg_add_int4(encoder, (int32_t)lane);
    COLUMN(text, put_text(encoder, rcpt_reject_name(letters[index].reason)));
    COLUMN(text, put_detail(encoder, &letters[index]));
    COLUMN(bytea, put_payload(encoder, &letters[index]));
    COLUMN(text, put_traceparent(encoder, letters[index].record));
    COLUMN(timestamp, rcpt_pg_put_timestamp(encoder, letters[index].at_us));
    COLUMN(text, put_text_or_null(encoder, rcpt_text_of(letters[index].indexes)));
}
