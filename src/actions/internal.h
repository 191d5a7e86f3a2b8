/* The actions of `pipelines`, as this instance carries them out, between their files.
 *
 * actions.c  the set of running actions: its states, shards, pipelines in the database
 * begin.c    makes the runs that transactions of lanes have begun
 * topic.c    records of topics begin runs
 * api.c      requests over HTTP begin runs
 * claim.c    claims of due actions
 * call.c     claimed actions become webhooks and records
 * results.c  results of actions to the database
 * upkeep.c   retention and metrics, by the timer
 */
#ifndef RECEIPTD_ACTIONS_INTERNAL_H
#define RECEIPTD_ACTIONS_INTERNAL_H

#include "breaker.h"
#include "receiptd/actions/actions.h"
#include "receiptd/config/pipelines.h"
#include "receiptd/http/webhook.h"
#include "receiptd/kafka/consumer.h"
#include "receiptd/kafka/producer.h"
#include "receiptd/postgres/ask.h"

#define ACTIONS_SHARDS     16u
#define ACTIONS_TICK_MS    10
#define ACTIONS_PER_CLAIM  128u
#define ACTIONS_PER_FINISH 500u
#define ACTIONS_READ_MIN   128u /* due rows that a claim reads */
#define ACTIONS_READ_MAX   2048u
#define ACTIONS_BEGIN_MIN  1u /* rows of run_intent that become runs in one transaction */
#define ACTIONS_BEGIN_MAX  256u

/* The states of a set of actions. Its asks show what else is in flight: each is one statement. */
enum actions_state {
    ACTIONS_STORING,  /* awaits that its pipelines are stored: on_stored */
    ACTIONS_RUNNING,  /* begins, claims and calls, until a reload or the end */
    ACTIONS_STOPPING, /* awaits the results of its last calls, and that its shards are given away */
    ACTIONS_LEFT,     /* awaits the results; other instances have the shards */
    ACTIONS_CLOSING,  /* awaits connections, clients and timer; then it is freed */
    ACTIONS_STATE__COUNT,
};

struct actions_endpoint {
    char *name;
    struct rcpt_webhook_endpoint *endpoint;
    struct rcpt_breaker breaker;
    unsigned in_flight;
};

enum actions_result { ACTIONS_DONE, ACTIONS_RETRY, ACTIONS_DEAD, ACTIONS_BACK };

/* A claimed action, from the claim until its result is in the database. */
struct actions_item {
    struct app_actions *actions;
    struct actions_item *next; /* in the queue of results */
    int64_t id, token, run_id, age_ms, wait_ms;
    uint64_t closes_ns; /* no call begins from then on, by uv_hrtime */
    int attempt;
    bool is_webhook;
    char *target, *key, *body;
    enum actions_result result;
    int64_t retry_ms;
    char class[24];
    int status;
    char *answer; /* NULL: none */
};

/* The statement that makes runs, and the number of rows that it may take. */
struct actions_beginning {
    struct rcpt_ask ask;
    unsigned rows; /* of run_intent that it may take */
    int64_t at_ms; /* the next time to ask */
    uint64_t sent_ns;
    uint64_t changed; /* the module's count when it was sent last */
    char last[256];   /* the large organisation that had the last turn */
};

/* Lives as long as the process; a reload exchanges the set that runs. */
struct actions {
    struct host_context *context;
    struct receipts *receipts;
    struct transition_subscriber subscriber;
    struct app_actions *running; /* NULL: no pipelines, or they have been stopped */
    unsigned open;               /* sets of actions that are not freed yet */
    uint64_t changed;            /* messages, by batches with the block of actions */
};

struct app_actions {
    struct actions *module;
    struct host_context *context;
    struct pipelines *pipelines;
    struct rcpt_asker asker;
    struct rcpt_ask store, subscribe, own, claim, finish, tidy, counts, leave;
    struct rcpt_webhooks *webhooks;
    struct actions_endpoint *endpoints;
    size_t endpoint_count;
    struct rcpt_producer *producer; /* NULL: nothing is produced */
    struct actions_topic *topic;    /* NULL: no topic begins runs */
    uv_timer_t timer;
    char me[120]; /* unique over restarts */
    bool owned[ACTIONS_SHARDS];
    int64_t owned_until_ms;
    unsigned read_rows;  /* due rows that the next claim reads */
    unsigned claiming;   /* shards of the claim in flight */
    uint64_t claimed_ns; /* when that claim was sent, or the last one */
    enum actions_state state;
    char kafka_reason[HOST_REASON_BYTES]; /* of the producer; "": it works */
    bool known;                           /* some version of the pipelines is in the database */
    bool subscribed; /* the question to which statuses they subscribe has been sent */
    struct actions_beginning begin;
    struct actions_item *results, **results_end;
    struct actions_item *in_finish; /* results of the finish in flight */
    unsigned in_flight;             /* claimed, without a result */
    unsigned api_in_flight;         /* requests that wait for their commit */
    int64_t held, dead;             /* in the database, over all instances */
    uint64_t random;
    unsigned open;
    void (*on_part_closed)(void *context);
};

/* A statement whose context is the set of actions. */
static inline struct rcpt_ask actions_ask(struct app_actions *actions, const char *statement,
                                          const char *what, rcpt_ask_on_answer on_answer)
{
    return (struct rcpt_ask){.asker = &actions->asker,
                             .statement = statement,
                             .what = what,
                             .context = actions,
                             .on_answer = on_answer};
}

/* ---- actions.c ---- */
/* Sends every statement that can be sent now. */
void actions_step(struct app_actions *actions);

/* ---- upkeep.c ---- */
void actions_upkeep_init(struct app_actions *actions);
void actions_upkeep_tick(struct app_actions *actions);

/* ---- results.c ---- */
void actions_results_init(struct app_actions *actions);
void actions_results_fini(struct app_actions *actions);
/* Queues the result of a claimed action for the database. */
void actions_settle(struct actions_item *item, enum actions_result result, const char *class);
void actions_results_write(struct app_actions *actions); /* some of them, if that can be now */
bool actions_results_are_written(const struct app_actions *actions);

/* ---- begin.c ---- */
void actions_begin_init(struct app_actions *actions);
void actions_begin_some(struct app_actions *actions);
/* How long to leave PostgreSQL to queued receipts after a transaction that made runs. */
int64_t actions_begin_pause_ms(const struct app_actions *actions, uint64_t sent_ns);

/* ---- topic.c ---- */
struct actions_topic *actions_topic_start(struct app_actions *actions); /* NULL: no topics */
void actions_topic_tick(struct actions_topic *topic);                   /* NULL is fine */
void actions_topic_apply_config(struct actions_topic *topic);           /* NULL is fine */
/* topics_reason; NULL is fine. */
const char *actions_topic_reason(const struct actions_topic *topic);
/* Calls on_stopped with the actions when it has been freed. */
void actions_topic_stop(struct actions_topic *topic, void (*on_stopped)(void *context));

/* ---- claim.c ---- */
void actions_claim_init(struct app_actions *actions);
void actions_claim_some(struct app_actions *actions);
/* Brings the next claim forward. */
void actions_claim_soon(struct app_actions *actions);

/* ---- call.c ---- */
RCPT_MUST_CHECK bool actions_call_start(struct app_actions *actions, struct rcpt_error *error);
void actions_call_close(struct app_actions *actions, void (*on_closed)(void *context));
void actions_call_fini(struct app_actions *actions);
/* Exactly one actions_settle follows, perhaps before it returns. */
void actions_call(struct actions_item *item);
/* Three parameters of a claim: endpoints with an open breaker; targets, and their capacity. */
void actions_call_put_capacity(struct app_actions *actions, struct rcpt_pg_encoder *encoder);
unsigned actions_call_disabled(const struct app_actions *actions);
void actions_call_enable(struct app_actions *actions);

#endif
