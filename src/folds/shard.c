/* A shard of the publisher: fences off earlier owners, gathers, claims due groups, and publishes
 * the outbox by transactions of Kafka. The states are enum folds_state; enter() is their only
 * setter. Every step begins in IDLE and returns to it, so one thing is in flight at a time. The
 * instance with the partition of the shard's share of receipts works on it. If two instances
 * believe so, the epoch in PostgreSQL and the producer's fence in Kafka let only one through.
 * Called by folds.c and, for shard 0, by gather.c. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "receiptd/base/log.h"
#include "receiptd/postgres/sqlstate.h"

#define MOST_GROUPS   2000 /* due groups of one claim */
#define MOST_RECORDS  1000 /* publications of one transaction */
#define RETRY_MIN_MS  200
#define RETRY_MAX_MS  10000
#define PAUSE_FACTOR  4   /* a gathering is followed by a pause of so many times its length, */
#define MOST_PAUSE_MS 500 /* but no longer: what is due is published within a second */
#define POLL_MS       300 /* of shards whose groups are gathered by shard 0 */
#define FORGET_MS     (60 * 1000)
#define REMEMBER_MS   (7LL * 24 * 3600 * 1000)
#define FORGET_GROUPS 5000

static int64_t now_of(const struct folds_shard *shard)
{
    return host_now(shard->folds->context);
}

/* ---- states ---- */

static void enter(struct folds_shard *shard, enum folds_state state, const char *reason)
{
    static const char *const names[FOLDS_STATE__COUNT] = {
        [FOLDS_IDLE] = "IDLE",
        [FOLDS_POLLING] = "POLLING",
        [FOLDS_OPENING] = "OPENING",
        [FOLDS_FENCING] = "FENCING",
        [FOLDS_GATHERING] = "GATHERING",
        [FOLDS_READING] = "READING",
        [FOLDS_PUBLISHING] = "PUBLISHING",
        [FOLDS_EMPTYING] = "EMPTYING",
    };
    /* From IDLE to every other state, and from these to IDLE. */
    RCPT_ASSERT((state == FOLDS_IDLE) != (shard->state == FOLDS_IDLE));
    rcpt_log_debug("folds", "folds: shard %u %s -> %s: %s", shard->index, names[shard->state],
                   names[state], reason);
    shard->state = state;
}

/* The drain waits for this: nothing in flight in PostgreSQL, no producer in Kafka. */
bool folds_shard_is_settled(const struct folds_shard *shard)
{
    return shard->state == FOLDS_IDLE && rcpt_transactor_is_settled(shard->transactor);
}

/* Shard i belongs to the owner of partition i of the first topic, modulo their number. */
static bool is_owned(const struct folds_shard *shard)
{
    return receipts_own_share(shard->folds->receipts, shard->index);
}

static bool is_stream(const struct folds_shard *shard)
{
    return shard->index == FOLDS_STREAM;
}

static bool is_ready(const struct folds_shard *shard)
{
    return rcpt_asker_is_ready(&shard->folds->asker);
}

/* An epoch of this connection: writes of earlier owners would raise RD001. */
static bool is_fenced(const struct folds_shard *shard)
{
    return is_ready(shard) && shard->epoch != 0;
}

/* ---- failures ---- */

/* The next try waits. No work is lost, since every step begins from the database's state. */
static void back_off(struct folds_shard *shard, const char *what, const struct rcpt_error *error)
{
    struct app_folds *folds = shard->folds;
    int64_t pause = rcpt_backoff_next_ms(&shard->backoff);
    shard->retry_at_ms = now_of(shard) + pause;
    if (error->code[0] == '\0' && !folds->asker.up)
        return; /* the connection is gone: on_down logs it */
    if (rcpt_outage_note(&folds->asker.outage, &shard->is_refused, now_of(shard), error))
        rcpt_log_failure(RCPT_LOG_WARN, "folds", error,
                         "folds: shard %u: %s failed, again in %lld ms", shard->index, what,
                         (long long)pause);
}

static void on_failed(struct folds_shard *shard, const struct rcpt_error *error)
{
    if (strcmp(error->code, RCPT_SQLSTATE_FENCED) == 0)
        shard->epoch = 0; /* another instance has it: to get it back, Kafka's fence comes first */
    if (shard->epoch == 0 && !rcpt_transactor_is_busy(shard->transactor))
        rcpt_transactor_drop(shard->transactor);
    back_off(shard, shard->step, error);
    if (error->decision == RCPT_DECISION_RECONNECT && error->code[0] != '\0')
        rcpt_pg_reconnect(shard->folds->asker.pg, error);
}

/* The database may have gone back by the next connection; then it is compared with Kafka's mark. */
void folds_shard_down(struct folds_shard *shard)
{
    shard->epoch = 0;
    folds_gather_forget(shard->gatherer);
}

/* ---- transactions ---- */

struct rcpt_pg_encoder *folds_add(struct folds_transaction *transaction, const char *statement)
{
    RCPT_ASSERT(transaction->count < FOLDS_MOST_STATEMENTS);
    transaction->statements[transaction->count] = statement;
    transaction->encoders[transaction->count] = rcpt_pg_encoder_new();
    return transaction->encoders[transaction->count++];
}

/* Most statements have the number of the shard as their first parameter. */
static struct rcpt_pg_encoder *add_own(struct folds_transaction *transaction,
                                       const struct folds_shard *shard, const char *statement)
{
    struct rcpt_pg_encoder *encoder = folds_add(transaction, statement);
    rcpt_pg_add_int4(encoder, (int32_t)shard->index);
    return encoder;
}

/* The first statement of every transaction that writes: raises RD001 if the epoch is another. */
void folds_add_fence(struct folds_transaction *transaction, const struct folds_shard *shard)
{
    rcpt_pg_add_int8(add_own(transaction, shard, "fence"), shard->epoch);
}

void folds_add_claim(struct folds_transaction *transaction, const struct folds_shard *shard)
{
    if (is_stream(shard))
        folds_stream_encode_claim(shard, add_own(transaction, shard, "stream_claim"));
    else
        rcpt_pg_add_int4(add_own(transaction, shard, "claim"), MOST_GROUPS);
}

/* Rows that a gathering had in memory are read again: they may be gone, or another instance's. */
static void on_result(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    struct folds_shard *shard = context;
    bool was_gathering = shard->state == FOLDS_GATHERING;
    enter(shard, FOLDS_IDLE, error == NULL ? "answered" : "failed");
    if (error == NULL) {
        shard->on_rows(shard, rows, row_count);
        return;
    }
    on_failed(shard, error);
    if (was_gathering)
        folds_gather_forget(shard->gatherer);
}

/* rcpt_pg_submit copies the parameters: the encoders are freed here. */
void folds_shard_submit(struct folds_shard *shard, enum folds_state state, const char *step,
                        struct folds_transaction *transaction, folds_on_rows on_rows)
{
    struct rcpt_pg_query queries[FOLDS_MOST_STATEMENTS];
    for (size_t index = 0; index < transaction->count; index++) {
        queries[index] = (struct rcpt_pg_query){.statement = transaction->statements[index]};
        rcpt_pg_encoder_params(transaction->encoders[index], &queries[index].params);
    }
    enter(shard, state, step);
    shard->step = step;
    shard->on_rows = on_rows;
    shard->sent_ms = now_of(shard);
    rcpt_pg_submit(shard->folds->asker.pg, queries, transaction->count, on_result, shard);
    for (size_t index = 0; index < transaction->count; index++)
        rcpt_pg_encoder_free(transaction->encoders[index]);
}

/* ---- fencing off earlier owners ---- */

/* Columns of sql/fold/take. */
enum { TAKE_EPOCH, TAKE_LOST };

/* `lost` counts publications above the database that Kafka has: a failover lost their claims. */
static void on_fenced(struct folds_shard *shard, struct rcpt_pg_rows *const *rows, size_t count)
{
    RCPT_ASSERT(count == 1 && rcpt_pg_rows_count(rows[0]) == 1);
    shard->epoch = rcpt_pg_rows_int(rows[0], 0, TAKE_EPOCH);
    int64_t lost = rcpt_pg_rows_int(rows[0], 0, TAKE_LOST);
    if (lost > 0)
        rcpt_log_error("folds",
                       "folds: shard %u: the database has forgotten %lld publications that Kafka "
                       "has: their changes may be published again, under the same ids",
                       shard->index, (long long)lost);
    folds_shard_poll(shard);
}

/* Takes the next epoch, and tells the database the mark below which Kafka has everything. */
static void take_epoch(struct folds_shard *shard)
{
    struct folds_transaction transaction = {.count = 0};
    if (!is_ready(shard))
        return;
    rcpt_pg_add_int8(add_own(&transaction, shard, "take"), shard->mark);
    folds_shard_submit(shard, FOLDS_FENCING, "taking it over", &transaction, on_fenced);
}

/* Opening fences off the producer of an earlier owner and settles the transaction that it had
 * begun. */
static void on_opened(void *context, int64_t mark, const struct rcpt_error *error)
{
    struct folds_shard *shard = context;
    enter(shard, FOLDS_IDLE, error == NULL ? "the producer is open" : "the producer has failed");
    if (error != NULL) {
        back_off(shard, "opening its producer", error);
        return;
    }
    shard->mark = mark;
    rcpt_log_debug("folds", "folds: shard %u: everything below %lld is published", shard->index,
                   (long long)mark);
    take_epoch(shard);
}

/* Kafka's fence comes before PostgreSQL's: the mark shows what the last owner has published. */
static void take_over(struct folds_shard *shard)
{
    if (rcpt_transactor_is_open(shard->transactor)) {
        take_epoch(shard);
        return;
    }
    enter(shard, FOLDS_OPENING, "there is something to do");
    shard->epoch = 0;
    rcpt_transactor_open(shard->transactor);
}

/* ---- publishing ---- */

/* A whole cycle has succeeded: the back-off begins from its shortest again. */
static void on_emptied(struct folds_shard *shard, struct rcpt_pg_rows *const *rows, size_t count)
{
    (void)rows, (void)count;
    rcpt_backoff_reset(&shard->backoff);
    rcpt_outage_end(&shard->folds->asker.outage, &shard->is_refused, now_of(shard), "folds",
                    "folds: shards publish again");
    if (is_stream(shard))
        shard->poll_at_ms = now_of(shard) + folds_stream_pause_ms(shard);
    if (now_of(shard) >= shard->poll_at_ms)
        folds_shard_poll(shard);
}

/* Deletes the rows below the mark, which are published. */
static void empty_outbox(struct folds_shard *shard)
{
    struct folds_transaction transaction = {.count = 0};
    rcpt_pg_add_int8(add_own(&transaction, shard, "done"), shard->mark);
    folds_shard_submit(shard, FOLDS_EMPTYING, "emptying its outbox", &transaction, on_emptied);
}

/* A transaction that may have been committed (RECONNECT) is settled by taking over. */
static void on_published(void *context, const struct rcpt_error *error)
{
    struct folds_shard *shard = context;
    enter(shard, FOLDS_IDLE, error == NULL ? "published" : "failed");
    if (is_stream(shard))
        folds_stream_published(shard, error);
    if (error != NULL) {
        if (error->decision != RCPT_DECISION_RETRY)
            shard->epoch = 0;
        back_off(shard, "publishing", error);
        return;
    }
    shard->mark = shard->next_mark;
    if (is_fenced(shard)) /* otherwise taking over finds what is published */
        empty_outbox(shard);
}

/* First column of sql/fold/read and stream_read. */
enum { READ_SEQ };

/* One Kafka transaction holds the records and the mark behind them. */
static void publish(struct folds_shard *shard, const struct rcpt_pg_rows *rows, size_t count)
{
    shard->next_mark = rcpt_pg_rows_int(rows, count - 1, READ_SEQ) + 1;
    enter(shard, FOLDS_PUBLISHING, "the outbox is read");
    if (is_stream(shard))
        folds_stream_publish(shard, rows, count);
    else
        folds_publish_groups(shard, rows, count);
}

/* The shard may have been given up while the rows were on their way. */
static void on_read(struct folds_shard *shard, struct rcpt_pg_rows *const *rows, size_t count)
{
    RCPT_ASSERT(count == 1);
    size_t publications = rcpt_pg_rows_count(rows[0]);
    if (shard->epoch == 0 || !rcpt_transactor_is_open(shard->transactor))
        return;
    if (publications > 0)
        publish(shard, rows[0], publications);
    else /* all of it is published, and emptying it has failed */
        empty_outbox(shard);
}

/* In the order of their numbers, from the mark on. */
static void read_outbox(struct folds_shard *shard)
{
    struct folds_transaction transaction = {.count = 0};
    struct rcpt_pg_encoder *encoder =
        add_own(&transaction, shard, is_stream(shard) ? "stream_read" : "read");
    rcpt_pg_add_int8(encoder, shard->mark);
    rcpt_pg_add_int4(encoder, is_stream(shard) ? FOLDS_STREAM_ROWS : MOST_RECORDS);
    folds_shard_submit(shard, FOLDS_READING, "reading its outbox", &transaction, on_read);
}

/* ---- claiming ---- */

/* Under load gatherings are rare: lanes of receipts go first, and the more events of a group meet
 * in a gathering, the less each of them costs. */
static void pause_gathering(struct folds_shard *shard)
{
    int64_t now = now_of(shard), pause = (now - shard->sent_ms) * PAUSE_FACTOR;
    shard->gather_at_ms = now + (pause < MOST_PAUSE_MS ? pause : MOST_PAUSE_MS);
}

static void claim(struct folds_shard *shard);

/* Columns of sql/fold/claim. */
enum { CLAIM_EXAMINED, CLAIM_CLAIMED };

/* More groups that are due are claimed at once, after the outbox has been emptied. */
void folds_shard_claimed(struct folds_shard *shard, const struct rcpt_pg_rows *rows, bool more)
{
    int64_t most = is_stream(shard) ? FOLDS_STREAM_ROWS : MOST_GROUPS;
    bool full = rcpt_pg_rows_int(rows, 0, CLAIM_EXAMINED) >= most;
    if (is_stream(shard))
        shard->folds->stream.is_full = full;
    if (!more)
        pause_gathering(shard);
    if (rcpt_pg_rows_int(rows, 0, CLAIM_CLAIMED) > 0 && is_ready(shard))
        read_outbox(shard);
    else if (full && is_fenced(shard))
        claim(shard);
    else if (more)
        folds_shard_poll(shard);
}

static void on_claimed(struct folds_shard *shard, struct rcpt_pg_rows *const *rows, size_t count)
{
    RCPT_ASSERT(count == 2);
    folds_shard_claimed(shard, rows[1], false);
}

/* Called with an empty outbox only, as gatherings are: nothing more is claimed while publications
 * cannot leave. */
static void claim(struct folds_shard *shard)
{
    struct folds_transaction transaction = {.count = 0};
    folds_add_fence(&transaction, shard);
    folds_add_claim(&transaction, shard);
    folds_shard_submit(shard, FOLDS_GATHERING, "claiming", &transaction, on_claimed);
}

/* ---- forgetting closed groups ---- */

static void on_forgotten(struct folds_shard *shard, struct rcpt_pg_rows *const *rows, size_t count)
{
    RCPT_ASSERT(count == 2);
    if (rcpt_pg_rows_int(rows[1], 0, 0) >= FORGET_GROUPS)
        shard->forget_at_ms = now_of(shard);
}

/* Once a minute, or again at the next tick while a portion was full. */
static void forget(struct folds_shard *shard)
{
    struct folds_transaction transaction = {.count = 0};
    shard->forget_at_ms = now_of(shard) + FORGET_MS;
    folds_add_fence(&transaction, shard);
    struct rcpt_pg_encoder *encoder = add_own(&transaction, shard, "forget");
    rcpt_pg_add_int8(encoder, REMEMBER_MS);
    rcpt_pg_add_int4(encoder, FORGET_GROUPS);
    folds_shard_submit(shard, FOLDS_GATHERING, "forgetting closed groups", &transaction,
                       on_forgotten);
}

/* ---- polling ---- */

/* Columns of sql/fold/poll. */
enum { WORK_TRANSITIONS, WORK_TOPICS, WORK_DUE, WORK_CLAIMED, WORK_NOW };

/* Claimed publications go out before anything more is claimed or gathered. */
static void on_polled(struct folds_shard *shard, struct rcpt_pg_rows *const *rows, size_t count)
{
    RCPT_ASSERT(count == 1);
    bool transitions = rcpt_pg_rows_bool(rows[0], 0, WORK_TRANSITIONS);
    bool topics = rcpt_pg_rows_bool(rows[0], 0, WORK_TOPICS);
    bool due = rcpt_pg_rows_bool(rows[0], 0, WORK_DUE);
    bool claimed = rcpt_pg_rows_bool(rows[0], 0, WORK_CLAIMED);
    if (is_stream(shard) && shard->folds->stream.topic == NULL)
        due = false; /* it is off, and this process knows no topic for the rows that are left */
    bool nothing = !transitions && !topics && !due && !claimed;
    if (nothing && shard->index > 0)
        shard->poll_at_ms = now_of(shard) + POLL_MS;
    if (nothing || !is_ready(shard) || !is_owned(shard))
        return;
    if (shard->epoch == 0)
        take_over(shard);
    else if (claimed)
        read_outbox(shard);
    else if (shard->index == 0)
        folds_gather(shard, transitions, topics, due, rcpt_pg_rows_int(rows[0], 0, WORK_NOW));
    else
        claim(shard);
}

/* A gathering may have made groups of other shards due. */
void folds_shards_poll_soon(struct app_folds *folds)
{
    for (uint32_t index = 0; index < FOLDS_SHARDS; index++)
        folds->shards[index].poll_at_ms = 0;
}

void folds_shard_poll(struct folds_shard *shard)
{
    struct folds_transaction transaction = {.count = 0};
    if (!is_ready(shard))
        return;
    (void)add_own(&transaction, shard, "poll");
    folds_shard_submit(shard, FOLDS_POLLING, "polling for work", &transaction, on_polled);
}

/* Another instance owns the shard now, and may change rows that are in memory here. */
static void give_up(struct folds_shard *shard)
{
    if (rcpt_transactor_is_open(shard->transactor))
        rcpt_transactor_drop(shard->transactor);
    shard->epoch = 0;
    folds_gather_forget(shard->gatherer);
}

/* Every 100 ms. Steps that follow from answers do not wait for it. */
void folds_shard_tick(struct folds_shard *shard)
{
    int64_t now = now_of(shard);
    bool may_work = shard->folds->rules_stored && is_ready(shard);
    rcpt_transactor_tick(shard->transactor);
    if (shard->folds->asker.closed && shard->state == FOLDS_IDLE)
        rcpt_transactor_drop(shard->transactor);
    if (may_work && !is_stream(shard) && is_owned(shard))
        folds_calls_tick(&shard->folds->calls, shard->index);
    if (shard->state != FOLDS_IDLE || !may_work || now < shard->retry_at_ms)
        return;
    if (!is_owned(shard))
        give_up(shard);
    else if (!is_stream(shard) && shard->epoch != 0 && now >= shard->forget_at_ms)
        forget(shard);
    else if (now >= shard->poll_at_ms)
        folds_shard_poll(shard);
}

/* ---- start ---- */

/* The transactional id is the same in all instances, so that Kafka fences off the earlier owner. */
static struct rcpt_transactor *make_transactor(struct folds_shard *shard)
{
    const struct rcpt_config *config = shard->folds->context->config;
    struct rcpt_kafka_property *properties = host_kafka_properties(config);
    char id[640];
    snprintf(id, sizeof(id), "%.250s.%.249s.folds.%u", config->kafka.group, config->kafka.topics[0],
             shard->index);
    struct rcpt_transactor_settings settings = {
        .loop = shard->folds->context->loop,
        .brokers = config->kafka.brokers,
        .properties = properties,
        .property_count = config->kafka.properties_count,
        .id = id,
        .mark_topic = config->kafka.topics[0],
        .context = shard,
        .on_opened = on_opened,
        .on_published = on_published,
    };
    struct rcpt_transactor *transactor = rcpt_transactor_new(&settings);
    free(properties);
    return transactor;
}

void folds_shard_init(struct app_folds *folds, uint32_t index)
{
    struct folds_shard *shard = &folds->shards[index];
    *shard = (struct folds_shard){.folds = folds, .index = index, .mark = -1};
    rcpt_backoff_init(&shard->backoff, RETRY_MIN_MS, RETRY_MAX_MS, uv_hrtime() + index);
    shard->transactor = make_transactor(shard);
    shard->gatherer = folds_gather_new();
}
