/* Shard 0 of the publisher gathers for all shards. It reads rows of transitions as they come and
 * sums them up in memory (pending.h). Applying a rule costs the same for one transition as for a
 * sum of a thousand. So sums are flushed when a group may be idle. Otherwise the wait grows with
 * the duration of the last flush. Each step ends by a transaction of flush.c, or waits for the next
 * poll. Called by shard.c. */
#include "gather.h"

#include <stdlib.h>

/* Rows are bounded since their ids are a parameter of each reading, bytes since input drives
 * them. */
#define MOST_ROWS       500 /* appended rows of one statement */
#define MOST_KEPT_ROWS  4000
#define MOST_KEPT_BYTES ((size_t)16 * 1024 * 1024)
#define MOST_CANDIDATES 2000
#define STAY_FACTOR     50 /* sums stay for so many times as long as the last flush took, */
#define LEAST_STAY_MS   500
#define MOST_STAY_MS    30000
#define FEW_EVENTS      10000 /* or not at all, where a rule has a smaller max_events; */
#define FULL_SHARE      4     /* nor once a sum is such a part of the smallest max_events */
#define POLL_MS         200   /* while sums stay in memory */
#define US_PER_MS       1000

struct folds_gatherer *folds_gather_new(void)
{
    struct folds_gatherer *gatherer = rcpt_calloc(1, sizeof(*gatherer));
    gatherer->pending = rcpt_fold_pending_new();
    rcpt_arena_init(&gatherer->arena, GATHER_MOST_READ);
    return gatherer;
}

void folds_gather_free(struct folds_gatherer *gatherer)
{
    rcpt_fold_pending_free(gatherer->pending);
    rcpt_arena_fini(&gatherer->arena);
    free(gatherer->rows);
    free(gatherer);
}

/* The rows stay in the database, so forgetting costs reading them again. */
void folds_gather_forget(struct folds_gatherer *gatherer)
{
    rcpt_fold_pending_forget(gatherer->pending);
    gatherer->row_count = 0;
}

void folds_gather_rules_changed(struct folds_gatherer *gatherer)
{
    rcpt_fold_pending_unlearn(gatherer->pending);
}

/* ---- how long sums may stay in memory ---- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The tightest bounds of the rules over transitions. */
struct bounds {
    int64_t window_ms, hold_ms, events;
};

/* Without such a rule only rows of removed rules are left, which may wait. */
static struct bounds bounds_of(const struct folds_shard *shard)
{
    const struct rcpt_config *config = shard->folds->context->config;
    struct bounds least = {MOST_STAY_MS, MOST_STAY_MS, INT64_MAX};
    for (size_t index = 0; index < config->folds_count; index++) {
        const struct rcpt_fold_config *fold = &config->folds[index];
        if (fold->source != RCPT_FOLD_TRANSITIONS)
            continue;
        least.window_ms = smaller(least.window_ms, fold->window_ms);
        least.hold_ms = smaller(least.hold_ms, fold->max_hold_ms);
        least.events = smaller(least.events, (int64_t)fold->max_events);
    }
    return least;
}

/* Sums may stay STAY_FACTOR times as long as flushing all of them took. */
static int64_t patience_us(const struct folds_gatherer *gatherer, const struct bounds *least)
{
    int64_t most = gatherer->took_ms * STAY_FACTOR;
    if (least->events < FEW_EVENTS)
        return 0;
    if (most < LEAST_STAY_MS)
        most = LEAST_STAY_MS;
    return smaller(most, least->hold_ms) * US_PER_MS;
}

/* A hard limit: then sums are flushed even if a gathering has just ended. */
static bool is_full(const struct folds_gatherer *gatherer)
{
    return gatherer->row_count >= MOST_KEPT_ROWS ||
           rcpt_fold_pending_bytes(gatherer->pending) >= MOST_KEPT_BYTES;
}

/* A large sum may fill a group (max_events), an old one may hold it up (max_hold). */
static bool has_to_flush_all(const struct folds_gatherer *gatherer, const struct bounds *least)
{
    int64_t age_us = gatherer->now_us - rcpt_fold_pending_since_us(gatherer->pending);
    return gatherer->row_count > 0 &&
           (rcpt_fold_pending_largest(gatherer->pending) >= least->events / FULL_SHARE ||
            age_us >= patience_us(gatherer, least));
}

static bool may_go_on(const struct folds_shard *shard)
{
    return rcpt_asker_is_ready(&shard->folds->asker) && shard->epoch != 0;
}

/* ---- groups of new entries ---- */

static void decide(struct folds_shard *shard);

static void on_groups(struct folds_shard *shard, struct rcpt_pg_rows *const *rows, size_t count)
{
    RCPT_ASSERT(count == 1);
    folds_learn(shard->gatherer, rows[0]);
    if (may_go_on(shard))
        decide(shard);
}

/* Whether the groups of a new entry are idle is not known before they are. Flushing all
 * sums to learn them would cost as much as all groups. */
static void ask_for_groups(struct folds_shard *shard)
{
    struct rcpt_fold_list list = rcpt_fold_pending_list_unknown(shard->gatherer->pending);
    struct folds_transaction transaction = {.count = 0};
    folds_add_question(&list, folds_add(&transaction, "gather"));
    folds_shard_submit(shard, FOLDS_GATHERING, "asking which groups there are", &transaction,
                       on_groups);
}

/* ---- groups that the database takes for due ---- */

/* Groups with recent transitions in memory are due only in the database's view. A full answer may
 * hide groups that really are due; then all sums are flushed. */
static void on_due(struct folds_shard *shard, struct rcpt_pg_rows *const *rows, size_t count)
{
    RCPT_ASSERT(count == 1);
    const struct folds_gatherer *gatherer = shard->gatherer;
    size_t due = rcpt_pg_rows_count(rows[0]), recent = folds_count_recent(shard, rows[0]);
    bool is_all = due < MOST_CANDIDATES;
    if (!may_go_on(shard))
        return;
    if (recent > 0 && (!is_all || (recent == due && !gatherer->idle)))
        folds_postpone(shard, rows[0]); /* the next poll finds those that are left */
    else if (!is_all)
        folds_flush_all(shard);
    else if (recent < due || gatherer->idle)
        folds_flush_idle(shard, rows[0]);
}

static void ask_for_due(struct folds_shard *shard)
{
    struct folds_transaction transaction = {.count = 0};
    rcpt_pg_add_int4(folds_add(&transaction, "due"), MOST_CANDIDATES);
    folds_shard_submit(shard, FOLDS_GATHERING, "reading what is due", &transaction, on_due);
}

/* ---- decisions ---- */

/* Called when everything has been read, or memory is full. The order is that of urgency: memory,
 * age and size, unknown groups, due groups, topics. */
static void decide(struct folds_shard *shard)
{
    struct folds_gatherer *gatherer = shard->gatherer;
    struct bounds least = bounds_of(shard);
    enum rcpt_fold_idleness idleness = rcpt_fold_pending_idleness(
        gatherer->pending, gatherer->now_us, least.window_ms * US_PER_MS);
    int64_t now = host_now(shard->folds->context);
    bool early = now < shard->gather_at_ms;
    bool all = has_to_flush_all(gatherer, &least) || (gatherer->due && gatherer->row_count == 0);
    gatherer->idle = idleness == RCPT_FOLD_KNOWN_IDLE;
    if (is_full(gatherer) || (!early && all))
        folds_flush_all(shard);
    else if (!early && idleness == RCPT_FOLD_UNKNOWN_IDLE)
        ask_for_groups(shard);
    else if (!early && (gatherer->due || gatherer->idle))
        ask_for_due(shard);
    else if (!early && gatherer->topics)
        folds_flush_topics(shard);
    else
        shard->poll_at_ms = now + POLL_MS;
}

/* ---- reading ---- */

static void read_events(struct folds_shard *shard);

/* Returns how many entries the row has. Texts of the row are copied by pending; the arena is empty
 * again afterwards. */
static int64_t take_in(struct folds_gatherer *gatherer, const struct rcpt_pg_rows *rows, size_t row)
{
    int64_t id, count = folds_sums_read(gatherer->pending, &gatherer->arena, rows, row, &id);
    rcpt_arena_reset(&gatherer->arena, GATHER_MOST_READ);
    if (gatherer->row_count == gatherer->row_capacity) {
        RCPT_GROW(gatherer->rows, gatherer->row_capacity, MOST_ROWS);
    }
    gatherer->rows[gatherer->row_count++] = id;
    return count;
}

/* Reads on until the answer is short or memory is full; the loop turns in between. */
static void on_events(struct folds_shard *shard, struct rcpt_pg_rows *const *rows, size_t count)
{
    RCPT_ASSERT(count == 1);
    struct folds_gatherer *gatherer = shard->gatherer;
    size_t row_count = rcpt_pg_rows_count(rows[0]);
    int64_t entries = 0;
    if (!may_go_on(shard))
        return;
    for (size_t row = 0; row < row_count; row++)
        entries += take_in(gatherer, rows[0], row);
    gatherer->complete = row_count < MOST_ROWS && entries < GATHER_MOST_READ;
    if (!gatherer->complete && !is_full(gatherer))
        read_events(shard);
    else
        decide(shard);
}

/* Rows that are in memory already are excluded by their ids. */
static void read_events(struct folds_shard *shard)
{
    struct folds_transaction transaction = {.count = 0};
    struct rcpt_pg_encoder *encoder = folds_add(&transaction, "events");
    folds_add_rows(encoder, shard->gatherer, shard->gatherer->row_count);
    rcpt_pg_add_int4(encoder, MOST_ROWS);
    rcpt_pg_add_int8(encoder, GATHER_MOST_READ);
    folds_shard_submit(shard, FOLDS_GATHERING, "reading events", &transaction, on_events);
}

void folds_gather(struct folds_shard *shard, bool transitions, bool topics, bool due,
                  int64_t now_us)
{
    struct folds_gatherer *gatherer = shard->gatherer;
    gatherer->topics = topics;
    gatherer->due = due;
    gatherer->now_us = now_us;
    gatherer->complete = true;
    if (transitions)
        read_events(shard);
    else
        decide(shard);
}
