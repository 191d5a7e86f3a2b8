/* A lane of the publisher. Whoever owns the partition that the lane goes by works on it; that two
 * may believe so is harmless: the epoch in PostgreSQL and the fence in Kafka let one through. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MOST_GROUPS   2000 /* due groups of one claim */
#define MOST_RECORDS  1000 /* publications of one transaction */
#define RETRY_MIN_MS  200
#define RETRY_MAX_MS  10000
#define ROOM          4   /* times as long as a gathering took, until the next one */
#define MOST_WAIT_MS  500 /* but no longer: what is due is published within a second */
#define LOOK_MS       300 /* of lanes whose groups are gathered by another one */
#define FORGET_MS     (60 * 1000)
#define REMEMBER_MS   (7LL * 24 * 3600 * 1000)
#define FORGET_GROUPS 5000

static void claim(struct folds_lane *lane);
static void read_outbox(struct folds_lane *lane);

bool folds_lane_is_settled(const struct folds_lane *lane)
{
    return lane->state == FOLDS_IDLE && rcpt_transactor_is_settled(lane->transactor);
}

static bool is_owned(const struct folds_lane *lane)
{
    return receipts_own_share(lane->folds->receipts, lane->index);
}

bool folds_lane_can_go_on(const struct folds_lane *lane)
{
    return rcpt_asker_is_ready(&lane->folds->asker);
}

/* ---- failures ---- */

static void back_off(struct folds_lane *lane, const char *what, const struct rcpt_error *error)
{
    struct app_folds *folds = lane->folds;
    int64_t wait = rcpt_backoff_next_ms(&lane->backoff);
    lane->state = FOLDS_IDLE;
    lane->retry_at_ms = app_now(folds->context) + wait;
    if (error->code[0] == '\0' && !folds->asker.up)
        return; /* the connection is gone: on_down says it */
    rcpt_log_failure(RCPT_LOG_WARN, "folds", error, "folds: lane %u: %s failed, again in %lld ms",
                     lane->index, what, (long long)wait);
}

bool folds_lane_failed(struct folds_lane *lane, const char *what, const struct rcpt_error *error)
{
    struct app_folds *folds = lane->folds;
    if (error == NULL)
        return false;
    if (strcmp(error->code, RCPT_SQLSTATE_FENCED) == 0)
        lane->epoch = 0; /* somebody else has it: if it is still ours, Kafka's fence comes first */
    if (lane->epoch == 0 && !rcpt_transactor_is_busy(lane->transactor))
        rcpt_transactor_drop(lane->transactor);
    back_off(lane, what, error);
    if (error->decision == RCPT_DECISION_RECONNECT && error->code[0] != '\0')
        rcpt_pg_reconnect(folds->asker.pg, error);
    return true;
}

void folds_lane_down(struct folds_lane *lane)
{
    lane->epoch = 0; /* the next one may know less: what Kafka has is compared with it */
    folds_gather_forget(&lane->gatherer);
}

/* ---- statements ---- */

static struct rcpt_pg_query query_of(struct folds_lane *lane, const char *statement)
{
    struct rcpt_pg_query query = {.statement = statement};
    rcpt_pg_encoder_params(lane->folds->asker.encoder, &query.params);
    return query;
}

static struct rcpt_pg_encoder *begin(struct folds_lane *lane)
{
    struct rcpt_pg_encoder *encoder = lane->folds->asker.encoder;
    rcpt_pg_encoder_reset(encoder);
    rcpt_pg_add_int4(encoder, (int32_t)lane->index);
    return encoder;
}

void folds_lane_submit(struct folds_lane *lane, enum folds_state state, const char *statement,
                       rcpt_pg_on_result on_result)
{
    struct rcpt_pg_query query = query_of(lane, statement);
    lane->state = state;
    rcpt_pg_submit(lane->folds->asker.pg, &query, 1, on_result, lane);
}

/* ---- taking the lane over ---- */

static void on_taken(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                     const struct rcpt_error *error)
{
    struct folds_lane *lane = context;
    if (folds_lane_failed(lane, "taking it over", error))
        return;
    RCPT_ASSERT(row_count == 1 && rcpt_pg_rows_count(rows[0]) == 1);
    lane->epoch = rcpt_pg_rows_int(rows[0], 0, 0);
    int64_t lost = rcpt_pg_rows_int(rows[0], 0, 1);
    if (lost > 0)
        rcpt_log_error("folds",
                       "folds: lane %u: the database has forgotten %lld publications that Kafka "
                       "has: what they told may be told once more, under the same ids",
                       lane->index, (long long)lost);
    folds_lane_look(lane);
}

static void take(struct folds_lane *lane)
{
    if (!folds_lane_can_go_on(lane)) {
        lane->state = FOLDS_IDLE;
        return;
    }
    rcpt_pg_add_int8(begin(lane), lane->mark);
    folds_lane_submit(lane, FOLDS_TAKING, "take", on_taken);
}

static void on_opened(void *context, int64_t mark, const struct rcpt_error *error)
{
    struct folds_lane *lane = context;
    if (error != NULL) {
        back_off(lane, "opening its producer", error);
        return;
    }
    lane->mark = mark;
    rcpt_log_debug("folds", "folds: lane %u: everything below %lld is published", lane->index,
                   (long long)mark);
    take(lane);
}

/* There is something to do: the lane has to be ours for it. */
static void own(struct folds_lane *lane)
{
    if (rcpt_transactor_is_open(lane->transactor)) {
        take(lane);
        return;
    }
    lane->state = FOLDS_OPENING;
    lane->epoch = 0;
    rcpt_transactor_open(lane->transactor);
}

/* ---- publishing ---- */

static void on_marked(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    struct folds_lane *lane = context;
    (void)rows;
    (void)row_count;
    if (folds_lane_failed(lane, "emptying its outbox", error))
        return;
    rcpt_backoff_reset(&lane->backoff);
    folds_lane_look(lane);
}

static void mark(struct folds_lane *lane)
{
    rcpt_pg_add_int8(begin(lane), lane->mark);
    folds_lane_submit(lane, FOLDS_MARKING, "done", on_marked);
}

static void on_published(void *context, const struct rcpt_error *error)
{
    struct folds_lane *lane = context;
    if (error != NULL) {
        if (error->decision != RCPT_DECISION_RETRY)
            lane->epoch = 0;
        back_off(lane, "publishing", error);
        return;
    }
    lane->mark = lane->next_mark;
    if (!folds_lane_can_go_on(lane) || lane->epoch == 0) {
        lane->state = FOLDS_IDLE; /* the taking over will find what is published */
        return;
    }
    mark(lane);
}

enum { OUT_SEQ, OUT_ID, OUT_DESTINATION, OUT_KEY, OUT_PAYLOAD };

static void on_read(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                    const struct rcpt_error *error)
{
    struct folds_lane *lane = context;
    if (folds_lane_failed(lane, "reading its outbox", error))
        return;
    RCPT_ASSERT(row_count == 1);
    size_t count = rcpt_pg_rows_count(rows[0]);
    if (lane->epoch == 0 || !rcpt_transactor_is_open(lane->transactor)) {
        lane->state = FOLDS_IDLE;
        return;
    }
    if (count == 0) { /* what is in it is published: emptying it has failed */
        mark(lane);
        return;
    }
    struct rcpt_transactor_record *records = rcpt_calloc(count, sizeof(*records));
    for (size_t row = 0; row < count; row++)
        records[row] = (struct rcpt_transactor_record){
            .topic = rcpt_pg_rows_text(rows[0], row, OUT_DESTINATION),
            .key = rcpt_pg_rows_text(rows[0], row, OUT_KEY),
            .value = rcpt_pg_rows_text(rows[0], row, OUT_PAYLOAD),
            .id = rcpt_pg_rows_text(rows[0], row, OUT_ID),
        };
    lane->next_mark = rcpt_pg_rows_int(rows[0], count - 1, OUT_SEQ) + 1;
    lane->state = FOLDS_PUBLISHING;
    rcpt_transactor_publish(lane->transactor, records, count, lane->next_mark);
    free(records);
}

static void read_outbox(struct folds_lane *lane)
{
    struct rcpt_pg_encoder *encoder = begin(lane);
    rcpt_pg_add_int8(encoder, lane->mark);
    rcpt_pg_add_int4(encoder, MOST_RECORDS);
    folds_lane_submit(lane, FOLDS_READING, "read", on_read);
}

/* ---- claiming ---- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What comes often is gathered seldom: the work for lanes of receipts goes first, and the more
 * events of a group meet in a gathering, the less each costs. */
static void leave_room(struct folds_lane *lane)
{
    int64_t now = app_now(lane->folds->context), wait = (now - lane->gathering_ms) * ROOM;
    lane->gather_at_ms = now + smaller(wait, MOST_WAIT_MS);
}

struct rcpt_pg_encoder *folds_lane_fence(const struct folds_lane *lane)
{
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    rcpt_pg_add_int4(encoder, (int32_t)lane->index);
    rcpt_pg_add_int8(encoder, lane->epoch);
    return encoder;
}

struct rcpt_pg_encoder *folds_lane_claim(const struct folds_lane *lane)
{
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    rcpt_pg_add_int4(encoder, (int32_t)lane->index);
    rcpt_pg_add_int4(encoder, MOST_GROUPS);
    return encoder;
}

/* More groups that are due are claimed at once, behind an outbox that is empty again. */
void folds_lane_claimed(struct folds_lane *lane, const struct rcpt_pg_rows *rows, bool more)
{
    bool full = rcpt_pg_rows_int(rows, 0, 0) >= MOST_GROUPS;
    if (!more)
        leave_room(lane);
    lane->state = FOLDS_IDLE;
    if (rcpt_pg_rows_int(rows, 0, 1) > 0 && folds_lane_can_go_on(lane))
        read_outbox(lane);
    else if (full && folds_lane_can_go_on(lane) && lane->epoch != 0)
        claim(lane);
    else if (more)
        folds_lane_look(lane);
}

static void on_claimed(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                       const struct rcpt_error *error)
{
    struct folds_lane *lane = context;
    if (folds_lane_failed(lane, "claiming", error))
        return;
    RCPT_ASSERT(row_count == 2);
    folds_lane_claimed(lane, rows[1], false);
}

/* Reached with an empty outbox only, like a gathering: nothing more is claimed while what was
 * claimed cannot be published. */
static void claim(struct folds_lane *lane)
{
    struct rcpt_pg_encoder *fence = folds_lane_fence(lane), *rest = folds_lane_claim(lane);
    struct rcpt_pg_query queries[] = {{.statement = "fence"}, {.statement = "claim"}};
    rcpt_pg_encoder_params(fence, &queries[0].params);
    rcpt_pg_encoder_params(rest, &queries[1].params);
    lane->gathering_ms = app_now(lane->folds->context);
    lane->state = FOLDS_GATHERING;
    rcpt_pg_submit(lane->folds->asker.pg, queries, 2, on_claimed, lane);
    rcpt_pg_encoder_free(fence);
    rcpt_pg_encoder_free(rest);
}

/* ---- forgetting closed groups ---- */

static void on_forgotten(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                         const struct rcpt_error *error)
{
    struct folds_lane *lane = context;
    if (folds_lane_failed(lane, "forgetting closed groups", error))
        return;
    RCPT_ASSERT(row_count == 2);
    if (rcpt_pg_rows_int(rows[1], 0, 0) >= FORGET_GROUPS)
        lane->forget_at_ms = app_now(lane->folds->context);
    lane->state = FOLDS_IDLE;
}

static void forget(struct folds_lane *lane)
{
    struct rcpt_pg_encoder *fence = folds_lane_fence(lane), *rest = rcpt_pg_encoder_new();
    struct rcpt_pg_query queries[] = {{.statement = "fence"}, {.statement = "forget"}};
    lane->forget_at_ms = app_now(lane->folds->context) + FORGET_MS;
    rcpt_pg_add_int4(rest, (int32_t)lane->index);
    rcpt_pg_add_int8(rest, REMEMBER_MS);
    rcpt_pg_add_int4(rest, FORGET_GROUPS);
    rcpt_pg_encoder_params(fence, &queries[0].params);
    rcpt_pg_encoder_params(rest, &queries[1].params);
    lane->state = FOLDS_GATHERING;
    rcpt_pg_submit(lane->folds->asker.pg, queries, 2, on_forgotten, lane);
    rcpt_pg_encoder_free(fence);
    rcpt_pg_encoder_free(rest);
}

/* ---- looking ---- */

enum { LOOKED_TRANSITIONS, LOOKED_TOPICS, LOOKED_DUE, LOOKED_CLAIMED, LOOKED_NOW };

static void on_looked(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    struct folds_lane *lane = context;
    if (folds_lane_failed(lane, "looking for work", error))
        return;
    RCPT_ASSERT(row_count == 1);
    bool transitions = rcpt_pg_rows_bool(rows[0], 0, LOOKED_TRANSITIONS);
    bool topics = rcpt_pg_rows_bool(rows[0], 0, LOOKED_TOPICS);
    bool due = rcpt_pg_rows_bool(rows[0], 0, LOOKED_DUE);
    bool claimed = rcpt_pg_rows_bool(rows[0], 0, LOOKED_CLAIMED);
    bool nothing = !transitions && !topics && !due && !claimed;
    lane->state = FOLDS_IDLE;
    if (nothing && lane->index > 0)
        lane->look_at_ms = app_now(lane->folds->context) + LOOK_MS;
    if (nothing || !folds_lane_can_go_on(lane) || !is_owned(lane))
        return;
    if (lane->epoch == 0)
        own(lane);
    else if (claimed)
        read_outbox(lane);
    else if (lane->index == 0)
        folds_gather(lane, transitions, topics, due, rcpt_pg_rows_int(rows[0], 0, LOOKED_NOW));
    else
        claim(lane);
}

void folds_lanes_look_soon(struct app_folds *folds)
{
    for (uint32_t index = 0; index < FOLDS_LANES; index++)
        folds->lanes[index].look_at_ms = 0;
}

void folds_lane_look(struct folds_lane *lane)
{
    lane->state = FOLDS_IDLE;
    if (!folds_lane_can_go_on(lane))
        return;
    begin(lane);
    folds_lane_submit(lane, FOLDS_LOOKING, "look", on_looked);
}

void folds_lane_tick(struct folds_lane *lane)
{
    int64_t now = app_now(lane->folds->context);
    rcpt_transactor_tick(lane->transactor);
    if (lane->folds->asker.closed && lane->state == FOLDS_IDLE)
        rcpt_transactor_drop(lane->transactor);
    if (lane->folds->rules_stored && folds_lane_can_go_on(lane) && is_owned(lane))
        folds_calls_tick(&lane->folds->calls, lane->index);
    if (lane->state != FOLDS_IDLE || !lane->folds->rules_stored || !folds_lane_can_go_on(lane) ||
        now < lane->retry_at_ms)
        return;
    if (!is_owned(lane)) {
        if (rcpt_transactor_is_open(lane->transactor))
            rcpt_transactor_drop(lane->transactor);
        lane->epoch = 0;
        folds_gather_forget(&lane->gatherer);
    } else if (lane->epoch != 0 && now >= lane->forget_at_ms) {
        forget(lane);
    } else if (now >= lane->look_at_ms) {
        folds_lane_look(lane);
    }
}

static struct rcpt_transactor *make_transactor(struct folds_lane *lane)
{
    const struct rcpt_config *config = lane->folds->context->config;
    struct rcpt_kafka_property *properties = app_kafka_properties(config);
    char id[640];
    snprintf(id, sizeof(id), "%.250s.%.249s.folds.%u", config->kafka.group, config->kafka.topics[0],
             lane->index);
    struct rcpt_transactor_settings settings = {
        .loop = lane->folds->context->loop,
        .brokers = config->kafka.brokers,
        .properties = properties,
        .property_count = config->kafka.properties_count,
        .id = id,
        .mark_topic = config->kafka.topics[0],
        .context = lane,
        .on_opened = on_opened,
        .on_published = on_published,
    };
    struct rcpt_transactor *transactor = rcpt_transactor_new(&settings);
    free(properties);
    return transactor;
}

void folds_lane_init(struct app_folds *folds, uint32_t index)
{
    struct folds_lane *lane = &folds->lanes[index];
    *lane = (struct folds_lane){.folds = folds, .index = index, .mark = -1};
    rcpt_backoff_init(&lane->backoff, RETRY_MIN_MS, RETRY_MAX_MS, uv_hrtime() + index);
    lane->transactor = make_transactor(lane);
    folds_gather_init(&lane->gatherer);
}
