/* Folds raw events into a batch: one entry per message, sorted by id, with the multiset of statuses
 * that were named.
 *
 * Private to src/core. The builder is scratch memory that one engine reuses for all its lanes.
 */
#ifndef RECEIPTD_CORE_BATCH_BUILD_H
#define RECEIPTD_CORE_BATCH_BUILD_H

#include "receiptd/core/batch.h"

struct rcpt_batch_builder;

/* Chunk size of a batch's own arena and of the builder's. */
#define RCPT_BATCH_CHUNK_BYTES (256u * 1024)
#define RCPT_BATCH_KEEP_BYTES  (2u * 1024 * 1024)

struct rcpt_batch_source {
    struct rcpt_record *record;
    const char *topic;
    int32_t partition;
};

/* `seed`: senders, who choose ids, must not know it. It decides only where messages are looked up,
 * and never a batch's content. */
struct rcpt_batch_builder *rcpt_batch_builder_new(const struct rcpt_ladder *ladder, uint64_t seed);
void rcpt_batch_builder_free(struct rcpt_batch_builder *builder);

void rcpt_batch_init(struct rcpt_batch *batch, uint32_t lane);
void rcpt_batch_fini(struct rcpt_batch *batch);
/* Forgets the content, keeps the memory; lane stays. */
void rcpt_batch_reset(struct rcpt_batch *batch, enum rcpt_batch_kind kind);

/* The events to fold, counted without refused ones: from `first` (from 0) to the one before `end`.
 */
struct rcpt_batch_range {
    uint32_t first, end;
};

#define RCPT_BATCH_ALL ((struct rcpt_batch_range){0, UINT32_MAX})

/* Fills messages, events, signatures and letters with the lane's part of the sources, in their
 * order. Events that are not refused are taken only if they lie in the range. The caller adds the
 * moves. */
void rcpt_batch_fold(struct rcpt_batch_builder *builder, struct rcpt_batch *batch,
                     const struct rcpt_batch_source *sources, uint32_t source_count,
                     struct rcpt_batch_range range);

/* How many messages have been compared while events were folded, for tests. */
uint64_t rcpt_batch_builder_compared(const struct rcpt_batch_builder *builder);

/* batch_rejects.c: add the letter of an event that PostgreSQL refuses, and the lane's part of a
 * record's rejects. There is room for both. */
void rcpt_batch_add_refused(struct rcpt_batch *batch, const struct rcpt_batch_source *source,
                            const struct rcpt_event *event);
void rcpt_batch_add_rejects(const struct rcpt_ladder *ladder, struct rcpt_batch *batch,
                            const struct rcpt_batch_source *source);

/* The event_index-th (from 0) event of the lane in the sources that is not refused. */
struct rcpt_event *rcpt_batch_find_event(const struct rcpt_batch_source *sources,
                                         uint32_t source_count, uint32_t lane,
                                         uint32_t event_index);

#endif
