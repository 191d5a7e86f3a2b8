/* A set of actions as a whole: its life from a start or reload to the next, the pipelines in the
 * database, its shards. The states are enum actions_state; enter() is their only setter. One
 * connection serves all statements, each of them one at a time (postgres/ask.h). actions_step()
 * sends those that can be sent; the timer calls it, and so does every answer. Called by run.c and
 * reload.c. */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "receiptd/base/states.h"
#include "receiptd/postgres/sql.h"

/* At most this long between two renewals of the shards' lease. */
#define OWN_MS         2000
#define STORE_MS       1000  /* after a failure */
#define STORE_AGAIN_MS 30000 /* after a refusal */
#define AGAIN_MS       200   /* after a failure that may come at once */

static int64_t now_of(const struct app_actions *actions)
{
    return host_now(actions->context);
}

/* ---- states ---- */

static void enter(struct app_actions *actions, enum actions_state state, const char *reason)
{
    static const char *const names[ACTIONS_STATE__COUNT] = {
        [ACTIONS_STORING] = "STORING",   [ACTIONS_RUNNING] = "RUNNING",
        [ACTIONS_STOPPING] = "STOPPING", [ACTIONS_LEFT] = "LEFT",
        [ACTIONS_CLOSING] = "CLOSING",
    };
    static const unsigned successors[ACTIONS_STATE__COUNT] = {
        [ACTIONS_STORING] = RCPT_TO(ACTIONS_RUNNING) | RCPT_TO(ACTIONS_STOPPING),
        [ACTIONS_RUNNING] = RCPT_TO(ACTIONS_STOPPING),
        [ACTIONS_STOPPING] = RCPT_TO(ACTIONS_LEFT) | RCPT_TO(ACTIONS_CLOSING),
        [ACTIONS_LEFT] = RCPT_TO(ACTIONS_CLOSING),
    };
    RCPT_ASSERT_FOLLOWS(successors, actions->state, state);
    rcpt_log_debug("actions", "actions %s: %s -> %s: %s", actions->me, names[actions->state],
                   names[state], reason);
    actions->state = state;
}

static bool is_stopping(const struct app_actions *actions)
{
    return actions->state >= ACTIONS_STOPPING;
}

/* ---- shards, pipelines, housekeeping ---- */

/* The shards are ours for the time of the lease, counted from when the statement was sent.
 * PostgreSQL counts from later. */
static void on_owned(void *context, const struct rcpt_pg_rows *rows)
{
    struct app_actions *actions = context;
    actions->owned_until_ms =
        actions->own.sent_ms + actions->context->config->actions.lane_lease_ms;
    for (size_t shard = 0; shard < ACTIONS_SHARDS; shard++)
        actions->owned[shard] = false;
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++) {
        uint64_t shard = (uint64_t)rcpt_pg_rows_int(rows, row, 0);
        if (shard < ACTIONS_SHARDS)
            actions->owned[shard] = true;
    }
}

/* Renews the lease at least five times within it; the answer holds the fair share of this instance,
 * which changes when instances come and go. */
static void own_shards(struct app_actions *actions)
{
    int64_t lease = actions->context->config->actions.lane_lease_ms;
    struct rcpt_pg_encoder *encoder = is_stopping(actions) ? NULL : rcpt_ask_begin(&actions->own);
    if (encoder == NULL)
        return;
    rcpt_pg_add_text(encoder, actions->me);
    rcpt_pg_add_int8(encoder, lease);
    actions->own.every_ms = lease / 5 < OWN_MS ? lease / 5 : OWN_MS;
    rcpt_ask_send(&actions->own);
}

/* A missing column would be empty in every run, and once_per would let a single run begin. Without
 * its zone every claim would fail. At a start this is fatal. After a reload the old pipelines stay
 * in effect, and no action begins. `unknown` NULL: it is the zone. */
static void refuse_names(struct app_actions *actions, const char *unknown)
{
    struct rcpt_error error;
    if (unknown != NULL) {
        rcpt_error_fatal(&error, EX_CONFIG, "pipelines: the inbox has no such column: %s", unknown);
        rcpt_error_hint(&error, "org, subject and once_per name columns of message_inbox; where "
                                "its table has just got the column, run receiptd migrate");
    } else {
        rcpt_error_fatal(&error, EX_CONFIG, "actions.zone: PostgreSQL knows no zone %s",
                         actions->context->config->actions.zone);
        rcpt_error_hint(&error, "pg_timezone_names lists the zones");
    }
    actions->store.at_ms = now_of(actions) + STORE_AGAIN_MS;
    if (actions->known)
        rcpt_log_error("actions",
                       "%s; no action begins until that is mended; HINT: %s, then reload",
                       error.text, error.hint);
    else
        host_fail(actions->context, &error);
}

/* Columns of sql/actions/store. */
enum { STORE_UNKNOWN, STORE_HAS_ZONE };

/* The answer names a column that the inbox lacks, or nothing. */
static void on_stored(void *context, const struct rcpt_pg_rows *rows)
{
    struct app_actions *actions = context;
    const char *unknown = rcpt_pg_rows_text(rows, 0, STORE_UNKNOWN);
    if (unknown != NULL || strcmp(rcpt_pg_rows_text(rows, 0, STORE_HAS_ZONE), "t") != 0) {
        refuse_names(actions, unknown);
        return;
    }
    actions->known = true;
    actions->lookups.is_read = false;
    if (actions->state == ACTIONS_STORING)
        enter(actions, ACTIONS_RUNNING, "the pipelines are stored");
    receipts_on_prepared(actions->module->receipts);
    rcpt_log_info("actions", "%zu pipelines are in effect", actions->pipelines->count);
}

/* No action is begun or claimed until they are stored: the database would not know their steps. */
static void store_pipelines(struct app_actions *actions)
{
    struct rcpt_pg_encoder *encoder =
        actions->state == ACTIONS_STORING ? rcpt_ask_begin(&actions->store) : NULL;
    if (encoder == NULL)
        return;
    char *settings = actions_settings(actions->context->config);
    rcpt_pg_add_text(encoder, actions->pipelines->definitions);
    rcpt_pg_add_text(encoder, settings);
    free(settings);
    rcpt_ask_send(&actions->store);
}

/* Statuses have codes below the first flag; flags are kept as a bit set. */
static void on_subscription(void *context, const struct rcpt_pg_rows *rows)
{
    const struct app_actions *actions = context;
    struct rcpt_lane_subscription *subscription = rcpt_calloc(1, sizeof(*subscription));
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++) {
        int64_t code = rcpt_pg_rows_int(rows, row, 0);
        if (code >= RCPT_LADDER_FIRST_FLAG_CODE)
            subscription->flags |= UINT32_C(1) << (code - RCPT_LADDER_FIRST_FLAG_CODE);
        else
            subscription->tops[code] = true;
    }
    if (!is_stopping(actions))
        receipts_set_subscription(actions->module->receipts, subscription);
    free(subscription);
}

/* Reads the statuses to which the pipelines in the database subscribe: batches that reach none of
 * them are sent without the block of actions. PostgreSQL notices when other instances change the
 * pipelines meanwhile (RD003). After a failure the next connection asks again. */
static void subscribe(struct app_actions *actions)
{
    if (actions->subscribed || actions->state != ACTIONS_RUNNING ||
        rcpt_ask_begin(&actions->subscribe) == NULL)
        return;
    actions->subscribed = true;
    rcpt_ask_send(&actions->subscribe);
}

/* ---- the end ---- */

/* Connection, webhooks, producer, topics and timer close by themselves; the last one frees the set.
 * */
static void on_part_closed(void *context)
{
    struct app_actions *actions = context;
    struct actions *module = actions->module;
    if (--actions->open > 0)
        return;
    actions_call_fini(actions);
    actions_results_fini(actions);
    actions_lookup_fini(actions);
    rcpt_pg_encoder_free(actions->asker.encoder);
    pipelines_free(actions->pipelines);
    free(actions);
    module->open--;
    host_check_drain(module->context);
}

/* The timer is one of the parts that count in `open`. */
static void on_timer_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

/* Every open part counts in `open`, and calls on_part_closed when it is closed. */
static void close_all(struct app_actions *actions)
{
    enter(actions, ACTIONS_CLOSING, "nothing is in flight");
    actions->asker.closed = true;
    actions->open++; /* until this returns: everything may close at once */
    uv_close((uv_handle_t *)&actions->timer, on_timer_closed);
    if (actions->asker.pg != NULL)
        rcpt_pg_close(actions->asker.pg, on_part_closed, actions);
    actions_lookup_close(actions, on_part_closed);
    actions_call_close(actions, on_part_closed);
    if (actions->topic != NULL)
        actions_topic_stop(actions->topic, on_part_closed);
    actions->topic = NULL;
    on_part_closed(actions);
}

/* From here on other instances may claim from the shards. */
static void on_left(void *context, const struct rcpt_pg_rows *rows)
{
    struct app_actions *actions = context;
    (void)rows;
    enter(actions, ACTIONS_LEFT, "the shards are given away");
}

/* Gives the shards away first, so that other instances take over while the last calls here are in
 * flight. Without a connection results cannot be written: leases end, and others call again. Called
 * with every step while stopping, until nothing is in flight. */
static void wind_up(struct app_actions *actions)
{
    bool busy = actions->asker.in_flight > (actions->finish.in_flight ? 1u : 0u) ||
                actions->api_in_flight > 0;
    bool left = actions->state == ACTIONS_LEFT;
    if (!busy && !left && rcpt_asker_is_ready(&actions->asker)) {
        struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&actions->leave);
        if (encoder == NULL)
            return;
        rcpt_pg_add_text(encoder, actions->me);
        rcpt_ask_send(&actions->leave);
        return;
    }
    bool settled = actions->in_flight == 0 && actions_results_are_written(actions);
    if (!busy && !actions->finish.in_flight && ((settled && left) || !actions->asker.up))
        close_all(actions);
}

/* Order matters: results free capacity, which the claim below may promise again. */
void actions_step(struct app_actions *actions)
{
    if (actions->asker.closed)
        return;
    actions_results_write(actions);
    store_pipelines(actions);
    subscribe(actions);
    /* an old primary may still list work as due that was done since */
    if (actions->context->recalled) {
        own_shards(actions);
        actions_begin_some(actions);
        actions_claim_some(actions);
    }
    if (is_stopping(actions))
        wind_up(actions);
}

static void on_settled(void *owner)
{
    actions_step(owner);
}

static void on_tick(uv_timer_t *timer)
{
    struct app_actions *actions = timer->data;
    if (actions->asker.closed)
        return;
    actions_upkeep_tick(actions);
    actions_topic_tick(actions->topic);
    actions_lookup_step(actions);
    actions_step(actions);
}

/* ---- start ---- */

/* The lanes' knowledge of subscriptions may be out of date. */
static void on_ready(void *context, struct rcpt_pg *pg)
{
    struct app_actions *actions = context;
    (void)pg;
    actions->asker.up = true;
    actions->own.at_ms = 0;
    actions->subscribed = false;
    actions_step(actions);
}

/* Results of calls still arrive; they are written over the next connection. */
static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct app_actions *actions = context;
    (void)pg;
    host_count_lost(actions->context, "actions", actions->asker.up);
    actions->asker.up = false;
    (void)error; /* logged by the connection */
    actions_step(actions);
}

/* One connection: claims, results and runs of a set follow each other. */
static void connect_database(struct app_actions *actions)
{
    struct rcpt_pg_settings settings = host_pg_settings(actions->context, "actions");
    settings.synchronous_commit = true; /* a claim precedes an effect outside PostgreSQL */
    settings.context = actions;
    settings.on_ready = on_ready;
    settings.on_down = on_down;
    settings.statements = rcpt_action_statements(&settings.statement_count);
    actions->asker.pg = rcpt_pg_new(&settings);
    actions->open++;
    rcpt_pg_start(actions->asker.pg);
}

static void make_asks(struct app_actions *actions)
{
    actions->asker = (struct rcpt_asker){.loop = actions->context->loop,
                                         .component = "actions",
                                         .prefix = "",
                                         .encoder = rcpt_pg_encoder_new(),
                                         .on_settled = on_settled,
                                         .owner = actions};
    actions->store = actions_ask(actions, "store", "storing the pipelines", on_stored);
    actions->store.retry_ms = STORE_MS;
    actions->subscribe = actions_ask(actions, "subscriptions",
                                     "reading the subscriptions of pipelines", on_subscription);
    actions->own = actions_ask(actions, "own", "sharing out shards of actions", on_owned);
    actions_upkeep_init(actions);
    actions->leave = actions_ask(actions, "leave", "giving shards of actions away", on_left);
    actions->leave.retry_ms = AGAIN_MS;
    actions_results_init(actions);
    actions_begin_init(actions);
    actions_claim_init(actions);
    actions_lookup_init(actions);
}

/* The name of a set is unique over restarts, so that its leases are never taken for those of
 * another. */
static struct app_actions *make(struct actions *module, struct pipelines *pipelines_taken)
{
    struct app_actions *actions = rcpt_calloc(1, sizeof(*actions));
    actions->module = module;
    actions->context = module->context;
    actions->pipelines = pipelines_taken;
    actions->random = uv_hrtime() ^ ((uint64_t)getpid() << 32);
    snprintf(actions->me, sizeof(actions->me), "%s-%08" PRIx64, module->context->instance,
             rcpt_random_next(&actions->random) >> 32);
    make_asks(actions);
    uv_timer_init(module->context->loop, &actions->timer);
    actions->timer.data = actions;
    actions->open = 1;
    return actions;
}

/* Lanes send every batch with the block of actions until the subscription is known. */
bool actions_start(struct actions *module, struct rcpt_error *error)
{
    struct pipelines *pipelines = pipelines_take(module->context->config);
    if (pipelines == NULL || pipelines->count == 0) {
        pipelines_free(pipelines);
        return true;
    }
    struct app_actions *actions = make(module, pipelines);
    module->open++;
    module->running = actions;
    receipts_set_subscription(module->receipts, NULL);
    if (!actions_call_start(actions, error)) {
        actions_stop(module);
        return false;
    }
    connect_database(actions);
    actions->topic = actions_topic_start(actions);
    actions->open += actions->topic != NULL;
    uv_timer_start(&actions->timer, on_tick, ACTIONS_TICK_MS, ACTIONS_TICK_MS);
    return true;
}

/* The set lives on until its calls have ended; actions_are_settled counts it. */
void actions_stop(struct actions *module)
{
    struct app_actions *actions = module->running;
    module->running = NULL;
    if (actions == NULL)
        return;
    enter(actions, ACTIONS_STOPPING, "a reload or the end");
    if (actions->asker.pg == NULL)
        close_all(actions);
    else
        actions_step(actions);
}

/* ---- for the life of the process ---- */

bool actions_want(const struct rcpt_config *config)
{
    return strcmp(config->pipelines, "[]") != 0;
}

static void want(const void *context, struct transition_wants *wants)
{
    const struct actions *module = context;
    wants->actions |= actions_want(module->context->config);
}

/* Lanes may be prepared without pipelines, or once any version of pipelines is in the database. */
static bool is_prepared(const void *context)
{
    const struct actions *module = context;
    return module->running == NULL || module->running->known;
}

static void on_committed(void *context, uint32_t messages_changed)
{
    struct actions *module = context;
    module->changed += messages_changed;
}

/* PostgreSQL has found a version of the pipelines that the lanes do not know. */
static void on_outdated(void *context)
{
    const struct actions *module = context;
    if (module->running != NULL)
        module->running->subscribed = false; /* the next tick asks */
}

struct actions *actions_new(struct host_context *context, struct receipts *receipts)
{
    struct actions *module = rcpt_calloc(1, sizeof(*module));
    *module = (struct actions){.context = context,
                               .receipts = receipts,
                               .subscriber = {.context = module,
                                              .want = want,
                                              .selective = true,
                                              .is_prepared = is_prepared,
                                              .on_committed = on_committed,
                                              .on_outdated = on_outdated}};
    receipts_subscribe(receipts, &module->subscriber);
    return module;
}

/* The old set ends by itself while the new one begins: the database keeps their claims apart. */
bool actions_reload(struct actions *module, struct rcpt_error *error)
{
    bool known = is_prepared(module);
    actions_stop(module);
    if (!actions_start(module, error))
        return false;
    if (module->running != NULL)
        module->running->known = known; /* the old pipelines stay in effect until then */
    return true;
}

void actions_apply_config(struct actions *module)
{
    const struct rcpt_config *config = module->context->config;
    struct rcpt_kafka_credentials credentials;
    if (module->running == NULL)
        return;
    rcpt_pg_set_dsn(module->running->asker.pg, config->postgres.dsn);
    actions_lookup_apply_config(module->running);
    host_kafka_credentials(config, &credentials);
    if (module->running->producer != NULL)
        rcpt_producer_set_credentials(module->running->producer, &credentials);
    actions_topic_apply_config(module->running->topic);
    actions_call_enable(module->running);
}

/* Other instances may own all shards: then this one has no lease that could end. */
const char *actions_reason(const struct actions *module)
{
    const struct app_actions *running = module->running;
    if (running == NULL)
        return NULL;
    if (!running->asker.up)
        return "actions are not connected to PostgreSQL";
    if (running->state == ACTIONS_STORING)
        return "the pipelines are not stored yet";
    if (now_of(running) >= running->owned_until_ms)
        return "actions have no lease of their shards";
    return running->kafka_reason[0] != '\0' ? running->kafka_reason
                                            : actions_topic_reason(running->topic);
}

bool actions_are_settled(const struct actions *module)
{
    return module->open == 0;
}

void actions_free(struct actions *module)
{
    free(module);
}
