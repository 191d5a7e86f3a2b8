/* The partitions that this instance has now, as the engine knows them. A leaf, for everything that
 * asks the database about them or shows them. */
#include <string.h>

#include "internal.h"

/* A slot stays when its partition is revoked, so slots are counted by their assignment. */
unsigned assigned_count(const struct rcpt_engine *engine)
{
    unsigned count = 0;
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(engine); slot++)
        count += rcpt_engine_is_assigned(engine, slot);
    return count;
}

bool assigned_has(const struct rcpt_engine *engine, const char *topic, int32_t partition)
{
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(engine); slot++)
        if (rcpt_engine_is_assigned(engine, slot) &&
            rcpt_engine_slot_partition(engine, slot) == partition &&
            strcmp(rcpt_engine_slot_topic(engine, slot), topic) == 0)
            return true;
    return false;
}

/* Topics and partitions in the same order, as the statements unnest them together. */
void assigned_put(const struct rcpt_engine *engine, struct rcpt_pg_encoder *encoder)
{
    uint32_t slots = rcpt_engine_slot_count(engine), assigned = assigned_count(engine);
    rcpt_pg_begin_text_array(encoder, assigned);
    for (uint32_t slot = 0; slot < slots; slot++) {
        const char *topic = rcpt_engine_slot_topic(engine, slot);
        if (rcpt_engine_is_assigned(engine, slot))
            rcpt_pg_put_bytes(encoder, topic, strlen(topic));
    }
    rcpt_pg_begin_int4_array(encoder, assigned);
    for (uint32_t slot = 0; slot < slots; slot++) {
        if (rcpt_engine_is_assigned(engine, slot))
            rcpt_pg_put_int4(encoder, rcpt_engine_slot_partition(engine, slot));
    }
}
