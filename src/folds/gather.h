/* Shared by gather.c and flush.c: the sums that are in memory and the rows that they stem from. */
#ifndef RECEIPTD_FOLDS_GATHER_H
#define RECEIPTD_FOLDS_GATHER_H

#include "internal.h"
#include "receiptd/postgres/array_text.h"

#define GATHER_MOST_READ 20000 /* entries that are read at once: the loop waits for it */

struct folds_gatherer {
    struct rcpt_fold_pending *pending;
    struct rcpt_arena arena; /* texts of what is being read */
    int64_t *rows;           /* ids of the rows that the sums stem from */
    size_t row_count, row_capacity;
    int64_t now_us;   /* the database's time when the shard polled */
    bool complete;    /* everything that was there at that time has been read */
    bool topics, due; /* there were events of topics; a group that is due for the database */
    bool idle;        /* a group with a sum is idle */
    size_t gather_index, keep_index; /* statements of the transaction in flight; 0: not in it */
    bool flushing;                   /* it holds sums */
    bool current;                    /* the sums that stay in memory make no group due */
    int64_t took_ms;                 /* to flush all sums, the last time */
};

/* ---- flush.c ---- */
/* Writes all sums into groups, and claims groups that are due. */
void folds_flush_all(struct folds_shard *shard);
/* Writes sums of idle groups; `due`: groups that the database takes for due. The sums of other
 * groups may stay in memory. */
void folds_flush_idle(struct folds_shard *shard, const struct rcpt_pg_rows *due);
/* Gathers events of topics; all sums stay in memory. */
void folds_flush_topics(struct folds_shard *shard);
/* Postpones groups that only the database takes for due. */
void folds_postpone(struct folds_shard *shard, const struct rcpt_pg_rows *due);
/* How many groups of `due` only the database takes for due: their last transitions are in memory.
 */
size_t folds_count_recent(const struct folds_shard *shard, const struct rcpt_pg_rows *due);
/* Adds the parameters of `gather` for new entries, whose groups it returns. */
void folds_add_question(const struct rcpt_fold_list *list, struct rcpt_pg_encoder *encoder);
/* Reads the groups of the entries from an answer of `gather`. */
void folds_learn(struct folds_gatherer *gatherer, const struct rcpt_pg_rows *rows);
/* A parameter with the ids of the first `count` rows. */
void folds_add_rows(struct rcpt_pg_encoder *encoder, const struct folds_gatherer *gatherer,
                    size_t count);

#endif
