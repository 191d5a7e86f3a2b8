/* Lane 0 of the publisher gathers for all lanes. Rows of transitions are read as they come and
 * summed up in memory (fold_pending); they stay in the database until their sums are in groups, in
 * one transaction, so whoever comes next reads them again. What a rule makes of a transition costs
 * the same for one as for a thousand: sums are handed over when a group may have gone quiet, and
 * otherwise as seldom as the last time was long. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "postgres/array_text.h"

#define MOST_ROWS       500    /* appended rows of one statement */
#define MOST_ENTRIES    250000 /* of groups of topics in them, a second of work */
#define MOST_READ       20000  /* entries that are taken in at once: the loop waits for it */
#define MOST_KEPT_ROWS  4000
#define MOST_KEPT_BYTES ((size_t)16 * 1024 * 1024)
#define MOST_CANDIDATES 2000
#define MOST_STATEMENTS 5
#define LIE_FACTOR      50 /* sums lie for so many times as long as handing over took, */
#define LEAST_LIE_MS    500
#define LOOK_MS         200 /* while sums lie */
#define MOST_LIE_MS     30000
#define FEW_EVENTS      10000 /* or not at all, where a rule has a smaller max_events; */
#define FULL_SHARE      4     /* nor behind a sum that is such a part of the smallest one */
#define US_PER_MS       1000

static void read_events(struct folds_lane *lane);

void folds_gather_init(struct folds_gatherer *gatherer)
{
    *gatherer = (struct folds_gatherer){.pending = rcpt_fold_pending_new()};
    rcpt_arena_init(&gatherer->arena, MOST_READ);
}

void folds_gather_fini(struct folds_gatherer *gatherer)
{
    rcpt_fold_pending_free(gatherer->pending);
    rcpt_arena_fini(&gatherer->arena);
    free(gatherer->rows);
}

void folds_gather_forget(struct folds_gatherer *gatherer)
{
    rcpt_fold_pending_forget(gatherer->pending);
    gatherer->row_count = 0;
}

void folds_gather_rules_changed(struct folds_gatherer *gatherer)
{
    rcpt_fold_pending_unlearn(gatherer->pending);
}

/* ---- how long sums may lie ---- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The shortest of the rules over transitions; where there is none, rows are those of removed ones.
 */
static int64_t least_window_us(const struct app_folds *folds)
{
    const struct rcpt_config *config = folds->context->config;
    int64_t least = MOST_LIE_MS;
    for (size_t index = 0; index < config->folds_count; index++)
        if (config->folds[index].source == RCPT_FOLD_TRANSITIONS)
            least = smaller(least, config->folds[index].window_ms);
    return least * US_PER_MS;
}

static int64_t patience_us(const struct folds_lane *lane)
{
    const struct rcpt_config *config = lane->folds->context->config;
    int64_t most = lane->gatherer.took_ms * LIE_FACTOR;
    most = smaller(most < LEAST_LIE_MS ? LEAST_LIE_MS : most, MOST_LIE_MS);
    for (size_t index = 0; index < config->folds_count; index++) {
        const struct rcpt_fold_config *fold = &config->folds[index];
        if (fold->source == RCPT_FOLD_TRANSITIONS)
            most = fold->max_events < FEW_EVENTS ? 0 : smaller(most, fold->max_hold_ms);
    }
    return most * US_PER_MS;
}

static int64_t least_max_events(const struct app_folds *folds)
{
    const struct rcpt_config *config = folds->context->config;
    int64_t least = INT64_MAX;
    for (size_t index = 0; index < config->folds_count; index++)
        if (config->folds[index].source == RCPT_FOLD_TRANSITIONS)
            least = smaller(least, (int64_t)config->folds[index].max_events);
    return least;
}

static bool is_full(const struct folds_gatherer *gatherer)
{
    return gatherer->row_count >= MOST_KEPT_ROWS ||
           rcpt_fold_pending_bytes(gatherer->pending) >= MOST_KEPT_BYTES;
}

/* All sums have to go. */
static bool has_to_go(const struct folds_gatherer *gatherer, const struct folds_lane *lane)
{
    return gatherer->row_count > 0 &&
           (rcpt_fold_pending_largest(gatherer->pending) >=
                least_max_events(lane->folds) / FULL_SHARE ||
            gatherer->now_us - rcpt_fold_pending_since_us(gatherer->pending) >= patience_us(lane));
}

/* ---- handing over ---- */

static void add_rows(struct rcpt_pg_encoder *encoder, const struct folds_gatherer *gatherer,
                     size_t count)
{
    rcpt_pg_begin_int8_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int8(encoder, gatherer->rows[index]);
}

enum { ROWS_COUNT, ROWS_REST, ROWS_ENTRIES, ROWS_RULES, ROWS_KEYS, ROWS_WINDOWS };

/* Which groups the entries belong to that were new. */
static void learn(struct folds_gatherer *gatherer, const struct rcpt_pg_rows *rows)
{
    struct rcpt_array_reader entries, rules, keys, windows;
    struct rcpt_text rule, key;
    int64_t entry, window;
    rcpt_array_reader_init(&entries, rcpt_pg_rows_text(rows, 0, ROWS_ENTRIES));
    rcpt_array_reader_init(&rules, rcpt_pg_rows_text(rows, 0, ROWS_RULES));
    rcpt_array_reader_init(&keys, rcpt_pg_rows_text(rows, 0, ROWS_KEYS));
    rcpt_array_reader_init(&windows, rcpt_pg_rows_text(rows, 0, ROWS_WINDOWS));
    while (rcpt_array_reader_next_int(&entries, &entry)) {
        bool all = rcpt_array_reader_next(&rules, &gatherer->arena, &rule) &&
                   rcpt_array_reader_next(&keys, &gatherer->arena, &key) &&
                   rcpt_array_reader_next_int(&windows, &window);
        RCPT_ASSERT(all);
        rcpt_fold_pending_learn(gatherer->pending, (size_t)entry - 1, rule, key, window);
    }
    rcpt_fold_pending_learnt(gatherer->pending);
    rcpt_arena_reset(&gatherer->arena, MOST_READ);
}

/* The row in which what was not handed over lies now takes the place of those that are gone. */
static void keep_rows(struct folds_gatherer *gatherer, struct rcpt_pg_rows *const *rows)
{
    gatherer->row_count = 0;
    if (gatherer->keep_index > 0)
        gatherer->rows[gatherer->row_count++] = rcpt_pg_rows_int(rows[gatherer->keep_index], 0, 0);
}

static void on_gathered(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                        const struct rcpt_error *error)
{
    struct folds_lane *lane = context;
    struct folds_gatherer *gatherer = &lane->gatherer;
    if (folds_lane_failed(lane, "gathering", error)) {
        folds_gather_forget(gatherer); /* and read again: rows may be gone, or somebody else's */
        return;
    }
    const struct rcpt_pg_rows *gathered = rows[gatherer->gather_index];
    bool rest = rcpt_pg_rows_bool(gathered, 0, ROWS_REST) || !gatherer->complete;
    if (gatherer->handing_over) {
        keep_rows(gatherer, rows);
        rcpt_fold_pending_flushed(gatherer->pending);
        learn(gatherer, gathered);
        if (gatherer->row_count == 0)
            gatherer->took_ms = app_now(lane->folds->context) - lane->gathering_ms;
        if (gatherer->row_count == 0 &&
            rcpt_fold_pending_bytes(gatherer->pending) >= MOST_KEPT_BYTES / 2)
            rcpt_fold_pending_forget(gatherer->pending);
    }
    folds_lanes_look_soon(lane->folds);
    folds_lane_claimed(lane, rows[row_count - 1], rest);
}

/* ---- transactions of this lane ---- */

struct transaction {
    struct rcpt_pg_query queries[MOST_STATEMENTS];
    struct rcpt_pg_encoder *encoders[MOST_STATEMENTS];
    size_t count;
};

/* Its number. */
static size_t add_statement(struct transaction *transaction, const char *name,
                            struct rcpt_pg_encoder *encoder)
{
    struct rcpt_pg_query *query = &transaction->queries[transaction->count];
    *query = (struct rcpt_pg_query){.statement = name};
    rcpt_pg_encoder_params(encoder, &query->params);
    transaction->encoders[transaction->count] = encoder;
    return transaction->count++;
}

static void submit(struct folds_lane *lane, struct transaction *transaction,
                   rcpt_pg_on_result on_result)
{
    lane->gathering_ms = app_now(lane->folds->context);
    lane->state = FOLDS_GATHERING;
    rcpt_pg_submit(lane->folds->asker.pg, transaction->queries, transaction->count, on_result,
                   lane);
    for (size_t index = 0; index < transaction->count; index++)
        rcpt_pg_encoder_free(transaction->encoders[index]);
}

static void add_gather(struct transaction *transaction, struct folds_gatherer *gatherer,
                       const struct rcpt_fold_list *list)
{
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    add_rows(encoder, gatherer, gatherer->handing_over ? gatherer->row_count : 0);
    folds_sums_add(encoder, list->entries, list->count, false);
    rcpt_pg_add_int4(encoder, (int32_t)list->known + 1);
    rcpt_pg_add_int4(encoder, MOST_ROWS);
    rcpt_pg_add_int8(encoder, MOST_ENTRIES);
    if (gatherer->complete && gatherer->current)
        rcpt_pg_add_int8(encoder, gatherer->now_us);
    else
        rcpt_pg_add_text(encoder, NULL);
    gatherer->gather_index = add_statement(transaction, "gather", encoder);
}

static void add_keep(struct transaction *transaction, struct folds_gatherer *gatherer,
                     const struct rcpt_fold_list *list)
{
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    folds_sums_add(encoder, list->others, list->other_count, false);
    gatherer->keep_index = add_statement(transaction, "keep", encoder);
}

static void add_put_off(struct transaction *transaction, const struct folds_lane *lane,
                        const struct rcpt_pg_rows *due);

/* Sums and events of topics into groups, groups that are due into the outbox. `due`: groups that
 * are only taken for due are put off first; needed where sums stay, or they would be claimed
 * without. */
static void hand_over(struct folds_lane *lane, const struct rcpt_fold_list *list,
                      const struct rcpt_pg_rows *due)
{
    struct folds_gatherer *gatherer = &lane->gatherer;
    struct transaction transaction = {.count = 0};
    gatherer->keep_index = 0;
    (void)add_statement(&transaction, "fence", folds_lane_fence(lane));
    if (due != NULL)
        add_put_off(&transaction, lane, due);
    add_gather(&transaction, gatherer, list);
    if (gatherer->handing_over && list->other_count > 0)
        add_keep(&transaction, gatherer, list);
    (void)add_statement(&transaction, "claim", folds_lane_claim(lane));
    submit(lane, &transaction, on_gathered);
}

static void hand_over_all(struct folds_lane *lane)
{
    struct rcpt_fold_list list = rcpt_fold_pending_list_all(lane->gatherer.pending);
    lane->gatherer.handing_over = lane->gatherer.current = true;
    hand_over(lane, &list, NULL);
}

/* Sums stay where they are. */
static void gather_topics(struct folds_lane *lane)
{
    static const struct rcpt_fold_list nothing;
    lane->gatherer.handing_over = false;
    lane->gatherer.current = lane->gatherer.row_count == 0;
    hand_over(lane, &nothing, NULL);
}

/* ---- groups that are not known ---- */

static void decide(struct folds_lane *lane);

static void on_asked(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                     const struct rcpt_error *error)
{
    struct folds_lane *lane = context;
    if (folds_lane_failed(lane, "asking which groups there are", error)) {
        folds_gather_forget(&lane->gatherer);
        return;
    }
    RCPT_ASSERT(row_count == 1);
    learn(&lane->gatherer, rows[0]);
    lane->state = FOLDS_IDLE;
    if (folds_lane_can_go_on(lane) && lane->epoch != 0)
        decide(lane);
}

/* Entries of kinds that are new: without knowing their groups nobody can tell whether these are
 * quiet. To hand over all there is for it would cost as much as all groups. */
static void ask_for_groups(struct folds_lane *lane)
{
    struct rcpt_fold_list list = rcpt_fold_pending_list_unknown(lane->gatherer.pending);
    struct transaction transaction = {.count = 0};
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    add_rows(encoder, &lane->gatherer, 0);
    folds_sums_add(encoder, list.entries, list.count, true);
    rcpt_pg_add_int4(encoder, 1);
    rcpt_pg_add_int4(encoder, 0);
    rcpt_pg_add_int8(encoder, 0);
    rcpt_pg_add_text(encoder, NULL);
    (void)add_statement(&transaction, "gather", encoder);
    submit(lane, &transaction, on_asked);
}

/* ---- groups that are due as far as the database knows ---- */

enum { DUE_RULE, DUE_KEY, DUE_WINDOW, DUE_SURE };

static bool is_hot(const struct folds_lane *lane, const struct rcpt_pg_rows *rows, size_t row)
{
    struct rcpt_fold_heat heat = rcpt_fold_pending_heat(
        lane->gatherer.pending, rcpt_text_of(rcpt_pg_rows_text(rows, row, DUE_RULE)),
        rcpt_text_of(rcpt_pg_rows_text(rows, row, DUE_KEY)));
    return !rcpt_pg_rows_bool(rows, row, DUE_SURE) && heat.last_us != INT64_MIN &&
           heat.last_us + rcpt_pg_rows_int(rows, row, DUE_WINDOW) > lane->gatherer.now_us;
}

static size_t count_hot(const struct folds_lane *lane, const struct rcpt_pg_rows *rows)
{
    size_t count = 0;
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++)
        count += is_hot(lane, rows, row);
    return count;
}

static void add_due_texts(struct rcpt_pg_encoder *encoder, const struct folds_lane *lane,
                          const struct rcpt_pg_rows *due, size_t count, int column)
{
    rcpt_pg_begin_text_array(encoder, count);
    for (size_t row = 0; row < rcpt_pg_rows_count(due); row++)
        if (is_hot(lane, due, row)) {
            struct rcpt_text text = rcpt_text_of(rcpt_pg_rows_text(due, row, column));
            rcpt_pg_put_bytes(encoder, text.at, text.size);
        }
}

/* Of a group whose last events lie in memory handing these over says when it is due; of the others
 * it is known. */
static void add_put_off(struct transaction *transaction, const struct folds_lane *lane,
                        const struct rcpt_pg_rows *due)
{
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    size_t count = count_hot(lane, due);
    add_due_texts(encoder, lane, due, count, DUE_RULE);
    add_due_texts(encoder, lane, due, count, DUE_KEY);
    rcpt_pg_begin_timestamp_array(encoder, count);
    for (size_t row = 0; row < rcpt_pg_rows_count(due); row++) {
        if (!is_hot(lane, due, row))
            continue;
        struct rcpt_fold_heat heat = rcpt_fold_pending_heat(
            lane->gatherer.pending, rcpt_text_of(rcpt_pg_rows_text(due, row, DUE_RULE)),
            rcpt_text_of(rcpt_pg_rows_text(due, row, DUE_KEY)));
        if (heat.has_sum)
            rcpt_pg_put_null(encoder);
        else
            rcpt_pg_put_timestamp(encoder, heat.last_us + rcpt_pg_rows_int(due, row, DUE_WINDOW));
    }
    (void)add_statement(transaction, "put_off", encoder);
}

static void on_put_off(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                       const struct rcpt_error *error)
{
    struct folds_lane *lane = context;
    (void)rows;
    (void)row_count;
    if (folds_lane_failed(lane, "putting groups off", error))
        folds_gather_forget(&lane->gatherer);
    else
        folds_lane_look(lane);
}

static void put_off(struct folds_lane *lane, const struct rcpt_pg_rows *due)
{
    struct transaction transaction = {.count = 0};
    (void)add_statement(&transaction, "fence", folds_lane_fence(lane));
    add_put_off(&transaction, lane, due);
    submit(lane, &transaction, on_put_off);
}

/* Groups that went quiet, here or there; all that is known of others may stay where it is. */
static void hand_over_quiet(struct folds_lane *lane, const struct rcpt_pg_rows *due)
{
    struct folds_gatherer *gatherer = &lane->gatherer;
    for (size_t row = 0; row < rcpt_pg_rows_count(due); row++)
        if (!is_hot(lane, due, row))
            rcpt_fold_pending_want(gatherer->pending,
                                   rcpt_text_of(rcpt_pg_rows_text(due, row, DUE_RULE)),
                                   rcpt_text_of(rcpt_pg_rows_text(due, row, DUE_KEY)));
    struct rcpt_fold_list list = rcpt_fold_pending_list_quiet(gatherer->pending, gatherer->now_us);
    if (list.other_count <= list.count) {
        hand_over_all(lane);
        return;
    }
    gatherer->handing_over = list.count > 0;
    gatherer->current = true;
    hand_over(lane, &list, due);
}

static void on_due(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                   const struct rcpt_error *error)
{
    struct folds_lane *lane = context;
    struct folds_gatherer *gatherer = &lane->gatherer;
    if (folds_lane_failed(lane, "looking for what is due", error)) {
        folds_gather_forget(gatherer);
        return;
    }
    RCPT_ASSERT(row_count == 1);
    size_t count = rcpt_pg_rows_count(rows[0]), hot = count_hot(lane, rows[0]);
    bool is_all = count < MOST_CANDIDATES;
    lane->state = FOLDS_IDLE;
    if (!folds_lane_can_go_on(lane) || lane->epoch == 0)
        return;
    if (hot > 0 && (!is_all || (hot == count && !gatherer->quiet)))
        put_off(lane, rows[0]); /* then it is looked again, at what is left */
    else if (!is_all)
        hand_over_all(lane);
    else if (hot < count || gatherer->quiet)
        hand_over_quiet(lane, rows[0]);
}

static void ask_for_due(struct folds_lane *lane)
{
    struct rcpt_pg_encoder *encoder = lane->folds->asker.encoder;
    rcpt_pg_encoder_reset(encoder);
    rcpt_pg_add_int4(encoder, MOST_CANDIDATES);
    folds_lane_submit(lane, FOLDS_GATHERING, "due", on_due);
}

/* Everything that could be read has been, unless there is too much of it. */
static void decide(struct folds_lane *lane)
{
    struct folds_gatherer *gatherer = &lane->gatherer;
    enum rcpt_fold_quiet quiet =
        rcpt_fold_pending_quiet(gatherer->pending, gatherer->now_us, least_window_us(lane->folds));
    bool early = app_now(lane->folds->context) < lane->gather_at_ms;
    bool all = has_to_go(gatherer, lane) || (gatherer->due && gatherer->row_count == 0);
    gatherer->quiet = quiet == RCPT_FOLD_QUIET;
    lane->state = FOLDS_IDLE;
    if (is_full(gatherer) || (!early && all))
        hand_over_all(lane);
    else if (!early && quiet == RCPT_FOLD_UNKNOWN_QUIET)
        ask_for_groups(lane);
    else if (!early && (gatherer->due || gatherer->quiet))
        ask_for_due(lane);
    else if (!early && gatherer->topics)
        gather_topics(lane);
    else
        lane->look_at_ms = app_now(lane->folds->context) + LOOK_MS;
}

/* ---- reading ---- */

/* How many entries there were. */
static int64_t take_in(struct folds_gatherer *gatherer, const struct rcpt_pg_rows *rows, size_t row)
{
    int64_t id, count = folds_sums_read(gatherer->pending, &gatherer->arena, rows, row, &id);
    rcpt_arena_reset(&gatherer->arena, MOST_READ);
    if (gatherer->row_count == gatherer->row_capacity) {
        gatherer->row_capacity =
            gatherer->row_capacity == 0 ? MOST_ROWS : 2 * gatherer->row_capacity;
        gatherer->rows =
            rcpt_realloc(gatherer->rows, gatherer->row_capacity * sizeof(*gatherer->rows));
    }
    gatherer->rows[gatherer->row_count++] = id;
    return count;
}

static void on_events(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    struct folds_lane *lane = context;
    struct folds_gatherer *gatherer = &lane->gatherer;
    int64_t entries = 0;
    if (folds_lane_failed(lane, "reading events", error)) {
        folds_gather_forget(gatherer);
        return;
    }
    RCPT_ASSERT(row_count == 1);
    size_t count = rcpt_pg_rows_count(rows[0]);
    lane->state = FOLDS_IDLE;
    if (!folds_lane_can_go_on(lane) || lane->epoch == 0)
        return;
    for (size_t row = 0; row < count; row++)
        entries += take_in(gatherer, rows[0], row);
    gatherer->complete = count < MOST_ROWS && entries < MOST_READ;
    if (!gatherer->complete && !is_full(gatherer))
        read_events(lane);
    else
        decide(lane);
}

static void read_events(struct folds_lane *lane)
{
    struct rcpt_pg_encoder *encoder = lane->folds->asker.encoder;
    rcpt_pg_encoder_reset(encoder);
    add_rows(encoder, &lane->gatherer, lane->gatherer.row_count);
    rcpt_pg_add_int4(encoder, MOST_ROWS);
    rcpt_pg_add_int8(encoder, MOST_READ);
    folds_lane_submit(lane, FOLDS_GATHERING, "events", on_events);
}

void folds_gather(struct folds_lane *lane, bool transitions, bool topics, bool due, int64_t now_us)
{
    struct folds_gatherer *gatherer = &lane->gatherer;
    gatherer->topics = topics;
    gatherer->due = due;
    gatherer->now_us = now_us;
    gatherer->complete = true;
    if (transitions)
        read_events(lane);
    else
        decide(lane);
}
