/* The transitions of a batch as parameters of sql/lane/stream. Mostly all messages share campaign,
 * statuses and gateway: then one element stands for all, which spares the server's log. Called by
 * flights_write.c.
 */
#include "encode_counts.h"

#include "receiptd/base/text.h"

/* Changes of which each field becomes a parameter. `offset` is that of the field. */
struct fields {
    struct rcpt_pg_encoder *encoder;
    const struct rcpt_rules_change *changes;
    uint32_t count;
};

static const void *field_of(const struct fields *of, uint32_t index, size_t offset)
{
    return (const char *)&of->changes[index] + offset;
}

static struct rcpt_text text_of(const struct fields *of, uint32_t index, size_t offset)
{
    return *(const struct rcpt_text *)field_of(of, index, offset);
}

static int32_t number_of(const struct fields *of, uint32_t index, size_t offset)
{
    return *(const int32_t *)field_of(of, index, offset);
}

/* 0: no message has one. 1: all have the same. */
static uint32_t texts_needed(const struct fields *of, size_t offset)
{
    struct rcpt_text first = text_of(of, 0, offset);
    for (uint32_t index = 1; index < of->count; index++)
        if (!rcpt_text_equal(text_of(of, index, offset), first))
            return of->count;
    return first.size > 0 ? 1 : 0;
}

static void add_texts(const struct fields *of, size_t offset)
{
    uint32_t needed = texts_needed(of, offset);
    rcpt_pg_begin_text_array(of->encoder, needed);
    for (uint32_t index = 0; index < needed; index++) {
        struct rcpt_text text = text_of(of, index, offset);
        if (text.size > 0)
            rcpt_pg_put_bytes(of->encoder, text.at, text.size);
        else
            rcpt_pg_put_null(of->encoder);
    }
}

static uint32_t numbers_needed(const struct fields *of, size_t offset)
{
    for (uint32_t index = 1; index < of->count; index++)
        if (number_of(of, index, offset) != number_of(of, 0, offset))
            return of->count;
    return 1;
}

static void add_statuses(const struct fields *of, size_t offset)
{
    uint32_t needed = numbers_needed(of, offset);
    rcpt_pg_begin_int2_array(of->encoder, needed);
    for (uint32_t index = 0; index < needed; index++)
        rcpt_pg_put_int2(of->encoder, (int16_t)number_of(of, index, offset));
}

static void add_flags(const struct fields *of, size_t offset)
{
    uint32_t needed = numbers_needed(of, offset);
    rcpt_pg_begin_int4_array(of->encoder, needed);
    for (uint32_t index = 0; index < needed; index++)
        rcpt_pg_put_int4(of->encoder, number_of(of, index, offset));
}

/* Every message has its id and its time. */
static void add_ids(const struct fields *of)
{
    rcpt_pg_begin_text_array(of->encoder, of->count);
    for (uint32_t index = 0; index < of->count; index++)
        rcpt_pg_put_bytes(of->encoder, of->changes[index].id.at, of->changes[index].id.size);
}

static void add_times(const struct fields *of)
{
    rcpt_pg_begin_timestamp_array(of->encoder, of->count);
    for (uint32_t index = 0; index < of->count; index++)
        rcpt_pg_put_timestamp(of->encoder, of->changes[index].at_us);
}

#define FIELD(name) offsetof(struct rcpt_rules_change, name)

bool rcpt_encode_stream(struct rcpt_pg_encoder *encoder, const struct rcpt_rules *rules)
{
    struct fields fields = {.encoder = encoder}, *of = &fields;
    fields.changes = rcpt_rules_changes(rules, &fields.count);
    rcpt_pg_encoder_reset(encoder);
    if (fields.count == 0)
        return false;
    add_ids(of);
    add_texts(of, FIELD(org));
    add_texts(of, FIELD(campaign));
    add_statuses(of, FIELD(old));
    add_statuses(of, FIELD(new));
    add_flags(of, FIELD(flags));
    add_flags(of, FIELD(gained));
    add_times(of);
    add_texts(of, FIELD(gateway));
    add_texts(of, FIELD(reason));
    add_texts(of, FIELD(columns));
    add_texts(of, FIELD(trace));
    return true;
}
