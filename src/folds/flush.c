/* Sums of transitions on their way from memory into groups of the database, in the transaction that
 * also gathers events of topics and claims the groups that are due. Rows stay in fold_event until
 * their sums are in groups; rows whose sums stay in memory are merged into one (keep.sql). Called
 * by gather.c. */
#include <stdlib.h>

#include "gather.h"

#define MOST_ROWS       500    /* appended rows of topics in one statement */
#define MOST_ENTRIES    250000 /* groups of topics in them: a second of work */
#define MOST_KEPT_BYTES ((size_t)8 * 1024 * 1024)

/* ---- answers ---- */

/* Columns of sql/fold/gather. */
enum {
    GATHERED_ROWS,
    GATHERED_REST,
    GATHERED_ENTRIES,
    GATHERED_RULES,
    GATHERED_KEYS,
    GATHERED_WINDOWS
};

void folds_learn(struct folds_gatherer *gatherer, const struct rcpt_pg_rows *rows)
{
    struct rcpt_array_reader entries, rules, keys, windows;
    struct rcpt_text rule, key;
    int64_t entry, window;
    rcpt_array_reader_init(&entries, rcpt_pg_rows_text(rows, 0, GATHERED_ENTRIES));
    rcpt_array_reader_init(&rules, rcpt_pg_rows_text(rows, 0, GATHERED_RULES));
    rcpt_array_reader_init(&keys, rcpt_pg_rows_text(rows, 0, GATHERED_KEYS));
    rcpt_array_reader_init(&windows, rcpt_pg_rows_text(rows, 0, GATHERED_WINDOWS));
    while (rcpt_array_reader_next_int(&entries, &entry)) {
        bool all = rcpt_array_reader_next(&rules, &gatherer->arena, &rule) &&
                   rcpt_array_reader_next(&keys, &gatherer->arena, &key) &&
                   rcpt_array_reader_next_int(&windows, &window);
        RCPT_ASSERT(all);
        rcpt_fold_pending_learn(gatherer->pending, (size_t)entry - 1, rule, key, window);
    }
    rcpt_fold_pending_learnt(gatherer->pending);
    rcpt_arena_reset(&gatherer->arena, GATHER_MOST_READ);
}

/* The row that holds the kept sums replaces the rows that are gone. The sums have not grown since,
 * because reading and flushing never overlap. */
static void on_flushed(struct folds_shard *shard, struct rcpt_pg_rows *const *rows)
{
    struct folds_gatherer *gatherer = shard->gatherer;
    gatherer->row_count = 0;
    if (gatherer->keep_index > 0)
        gatherer->rows[gatherer->row_count++] = rcpt_pg_rows_int(rows[gatherer->keep_index], 0, 0);
    rcpt_fold_pending_flushed(gatherer->pending);
    folds_learn(gatherer, rows[gatherer->gather_index]);
    if (gatherer->row_count > 0)
        return;
    gatherer->took_ms = host_now(shard->folds->context) - shard->sent_ms;
    if (rcpt_fold_pending_bytes(gatherer->pending) >= MOST_KEPT_BYTES)
        rcpt_fold_pending_forget(gatherer->pending);
}

/* took_ms of a flush of all sums sets how long the next may wait. */
static void on_gathered(struct folds_shard *shard, struct rcpt_pg_rows *const *rows, size_t count)
{
    struct folds_gatherer *gatherer = shard->gatherer;
    bool rest = rcpt_pg_rows_bool(rows[gatherer->gather_index], 0, GATHERED_REST);
    if (gatherer->flushing)
        on_flushed(shard, rows);
    folds_shards_poll_soon(shard->folds); /* other shards may have groups to claim now */
    folds_shard_claimed(shard, rows[count - 1], rest || !gatherer->complete);
}

/* ---- parameters ---- */

/* `gather` deletes these rows; `events` leaves them out of its answer. */
void folds_add_rows(struct rcpt_pg_encoder *encoder, const struct folds_gatherer *gatherer,
                    size_t count)
{
    rcpt_pg_begin_int8_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int8(encoder, gatherer->rows[index]);
}

/* No rows to delete, limits of 0 and no time: `gather` then changes nothing and only answers. */
void folds_add_question(const struct rcpt_fold_list *list, struct rcpt_pg_encoder *encoder)
{
    rcpt_pg_begin_int8_array(encoder, 0);
    folds_sums_add(encoder, list->entries, list->count, true);
    rcpt_pg_add_int4(encoder, 1);
    rcpt_pg_add_int4(encoder, 0);
    rcpt_pg_add_int8(encoder, 0);
    rcpt_pg_add_text(encoder, NULL);
}

/* `now_us` lets the database call groups idle: only if everything until then is gathered. */
static void add_gather(struct folds_transaction *transaction, struct folds_gatherer *gatherer,
                       const struct rcpt_fold_list *list)
{
    gatherer->gather_index = transaction->count;
    struct rcpt_pg_encoder *encoder = folds_add(transaction, "gather");
    folds_add_rows(encoder, gatherer, gatherer->flushing ? gatherer->row_count : 0);
    folds_sums_add(encoder, list->entries, list->count, false);
    rcpt_pg_add_int4(encoder, (int32_t)list->known + 1);
    rcpt_pg_add_int4(encoder, MOST_ROWS);
    rcpt_pg_add_int8(encoder, MOST_ENTRIES);
    if (gatherer->complete && gatherer->current)
        rcpt_pg_add_int8(encoder, gatherer->now_us);
    else
        rcpt_pg_add_text(encoder, NULL);
}

/* Sums that stay in memory go into one new row, since the rows they stem from are deleted. */
static void add_keep(struct folds_transaction *transaction, struct folds_gatherer *gatherer,
                     const struct rcpt_fold_list *list)
{
    gatherer->keep_index = transaction->count;
    folds_sums_add(folds_add(transaction, "keep"), list->others, list->other_count, false);
}

/* ---- groups that only the database takes for due ---- */

/* Columns of sql/fold/due. */
enum { DUE_RULE, DUE_KEY, DUE_WINDOW, DUE_SURE };

static struct rcpt_fold_recency recency_of(const struct folds_shard *shard,
                                           const struct rcpt_pg_rows *due, size_t row)
{
    return rcpt_fold_pending_recency(shard->gatherer->pending,
                                     rcpt_text_of(rcpt_pg_rows_text(due, row, DUE_RULE)),
                                     rcpt_text_of(rcpt_pg_rows_text(due, row, DUE_KEY)));
}

/* Transitions in memory are newer than the window: only the database takes the group for due. */
static bool is_recent(const struct folds_shard *shard, const struct rcpt_pg_rows *due, size_t row)
{
    struct rcpt_fold_recency recency = recency_of(shard, due, row);
    return !rcpt_pg_rows_bool(due, row, DUE_SURE) && recency.last_us != INT64_MIN &&
           recency.last_us + rcpt_pg_rows_int(due, row, DUE_WINDOW) > shard->gatherer->now_us;
}

size_t folds_count_recent(const struct folds_shard *shard, const struct rcpt_pg_rows *due)
{
    size_t count = 0;
    for (size_t row = 0; row < rcpt_pg_rows_count(due); row++)
        count += is_recent(shard, due, row);
    return count;
}

static void add_due_texts(struct rcpt_pg_encoder *encoder, const struct folds_shard *shard,
                          const struct rcpt_pg_rows *due, size_t count, int column)
{
    rcpt_pg_begin_text_array(encoder, count);
    for (size_t row = 0; row < rcpt_pg_rows_count(due); row++)
        if (is_recent(shard, due, row)) {
            struct rcpt_text text = rcpt_text_of(rcpt_pg_rows_text(due, row, column));
            rcpt_pg_put_bytes(encoder, text.at, text.size);
        }
}

/* Groups with unflushed sums get NULL, since the flush sets their due time; the others get last
 * transition + window. */
static void add_postpone(struct folds_transaction *transaction, const struct folds_shard *shard,
                         const struct rcpt_pg_rows *due)
{
    struct rcpt_pg_encoder *encoder = folds_add(transaction, "put_off");
    size_t count = folds_count_recent(shard, due);
    add_due_texts(encoder, shard, due, count, DUE_RULE);
    add_due_texts(encoder, shard, due, count, DUE_KEY);
    rcpt_pg_begin_timestamp_array(encoder, count);
    for (size_t row = 0; row < rcpt_pg_rows_count(due); row++) {
        struct rcpt_fold_recency recency = recency_of(shard, due, row);
        if (!is_recent(shard, due, row))
            continue;
        if (recency.has_sum)
            rcpt_pg_put_null(encoder);
        else
            rcpt_pg_put_timestamp(encoder,
                                  recency.last_us + rcpt_pg_rows_int(due, row, DUE_WINDOW));
    }
}

static void on_postponed(struct folds_shard *shard, struct rcpt_pg_rows *const *rows, size_t count)
{
    (void)rows, (void)count;
    folds_shard_poll(shard);
}

void folds_postpone(struct folds_shard *shard, const struct rcpt_pg_rows *due)
{
    struct folds_transaction transaction = {.count = 0};
    folds_add_fence(&transaction, shard);
    add_postpone(&transaction, shard, due);
    folds_shard_submit(shard, FOLDS_GATHERING, "postponing groups", &transaction, on_postponed);
}

/* ---- transactions ---- */

/* Fence, then sums and events of topics into groups, then due groups into the outbox. Pass `due`
 * when some sums stay in memory: groups whose newest transitions are unflushed are postponed first.
 * One synchronous transaction: what a claim stems from is durable before it is published. */
static void flush(struct folds_shard *shard, const struct rcpt_fold_list *list,
                  const struct rcpt_pg_rows *due)
{
    struct folds_gatherer *gatherer = shard->gatherer;
    struct folds_transaction transaction = {.count = 0};
    gatherer->keep_index = 0;
    folds_add_fence(&transaction, shard);
    if (due != NULL)
        add_postpone(&transaction, shard, due);
    add_gather(&transaction, gatherer, list);
    if (gatherer->flushing && list->other_count > 0)
        add_keep(&transaction, gatherer, list);
    folds_add_claim(&transaction, shard);
    folds_shard_submit(shard, FOLDS_GATHERING, "gathering", &transaction, on_gathered);
}

/* Without `due`: after it nothing is in memory that the database does not know. */
void folds_flush_all(struct folds_shard *shard)
{
    struct rcpt_fold_list list = rcpt_fold_pending_list_all(shard->gatherer->pending);
    shard->gatherer->flushing = shard->gatherer->current = true;
    flush(shard, &list, NULL);
}

/* Groups may not be called idle while sums stay that could belong to them. */
void folds_flush_topics(struct folds_shard *shard)
{
    static const struct rcpt_fold_list nothing;
    shard->gatherer->flushing = false;
    shard->gatherer->current = shard->gatherer->row_count == 0;
    flush(shard, &nothing, NULL);
}

/* If at least half of the sums would be flushed, all are: keeping the rest costs as much. */
void folds_flush_idle(struct folds_shard *shard, const struct rcpt_pg_rows *due)
{
    struct folds_gatherer *gatherer = shard->gatherer;
    for (size_t row = 0; row < rcpt_pg_rows_count(due); row++)
        if (!is_recent(shard, due, row))
            rcpt_fold_pending_select(gatherer->pending,
                                     rcpt_text_of(rcpt_pg_rows_text(due, row, DUE_RULE)),
                                     rcpt_text_of(rcpt_pg_rows_text(due, row, DUE_KEY)));
    struct rcpt_fold_list list = rcpt_fold_pending_list_idle(gatherer->pending, gatherer->now_us);
    if (list.other_count <= list.count) {
        folds_flush_all(shard);
        return;
    }
    gatherer->flushing = list.count > 0;
    gatherer->current = true;
    flush(shard, &list, due);
}
