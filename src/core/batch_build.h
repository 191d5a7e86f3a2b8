/* Folds raw events into a batch: one entry per message, sorted by id, with the multiset of statuses
 * that were named.
 *
 * Private to src/core. The builder is scratch memory that one engine reuses for all its lanes.
 */
#ifndef RECEIPTD_CORE_BATCH_BUILD_H
#define RECEIPTD_CORE_BATCH_BUILD_H

#include "receiptd/core/batch.h"

struct rcpt_batch_builder;

struct rcpt_batch_source {
    struct rcpt_record *record;
    const char *topic;
    int32_t partition;
};

struct rcpt_batch_builder *rcpt_batch_builder_new(const struct rcpt_ladder *ladder);
void rcpt_batch_builder_free(struct rcpt_batch_builder *builder);

void rcpt_batch_init(struct rcpt_batch *batch, uint32_t lane);
void rcpt_batch_fini(struct rcpt_batch *batch);
/* Forgets the content, keeps the memory; lane stays. */
void rcpt_batch_reset(struct rcpt_batch *batch, enum rcpt_batch_kind kind);

/* Fills messages, events, signatures and letters with the lane's part of the sources, in their
 * order; at most `event_limit` events that are not refused (letters are left out where the limit
 * cuts). Moves are the caller's. */
void rcpt_batch_fold(struct rcpt_batch_builder *builder, struct rcpt_batch *batch,
                     const struct rcpt_batch_source *sources, uint32_t source_count,
                     uint32_t event_limit);

/* The event_index-th (from 0) event of the lane in the sources that is not refused. */
struct rcpt_event *rcpt_batch_find_event(const struct rcpt_batch_source *sources,
                                         uint32_t source_count, uint32_t lane,
                                         uint32_t event_index);

#endif
