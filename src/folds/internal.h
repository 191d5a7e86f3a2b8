/* Shared by the files of the folds.
 *
 * folds.c    the connection, rules, totals, start and end
 * shard.c    a shard of the publisher: its states, claims, publishing
 * gather.c   rows of lanes and topics into groups: decides the next step
 * flush.c    sums from memory into groups
 * sums.c     sums of transitions as parameters and as rows
 * pending.c, pending_groups.c    sums in memory; pure
 * topic.c    events of topics
 * collect.c, collect_values.c    events of topics into groups in memory; pure
 * letters.c  dead letters of events
 * calls.c    publications by webhook
 * publish.c  publications of groups as records
 * stream.c   the status stream: what its shard claims and publishes
 * stream_records.c    a transition as a record; pure
 * rules.c    rules in the form for PostgreSQL
 * plan.c     publications of a rule with other windows; pure, for `receiptd fold-plan`
 * text.c     JSON into a growing text
 */
#ifndef RECEIPTD_FOLDS_INTERNAL_H
#define RECEIPTD_FOLDS_INTERNAL_H

#include "collect.h"
#include "pending.h"
#include "receiptd/base/arena.h"
#include "receiptd/base/backoff.h"
#include "receiptd/folds/folds.h"
#include "receiptd/http/webhook.h"
#include "receiptd/kafka/transactor.h"
#include "receiptd/postgres/ask.h"
#include "receiptd/topics/topics.h"

#define FOLDS_SHARDS      3u  /* as sql/tables/folds.sql has them */
#define FOLDS_STREAM      2u  /* the shard of the status stream; the others share groups */
#define FOLDS_STREAM_ROWS 500 /* of one claim of the stream */
/* A claimed call is leased for so long. The configuration allows no time-out above 60 s, so the
 * lease of a call cannot end while its attempt still runs. */
#define FOLDS_CALL_LEASE_MS 65000

/* The states of a shard, with what each awaits and the callback that ends it.
 *
 * IDLE        the next tick; not before retry_at_ms and poll_at_ms.
 * POLLING     PostgreSQL: is there anything to do? (on_polled)
 * OPENING     Kafka: a producer that fences off older ones, and the mark (on_opened).
 * FENCING     PostgreSQL: an epoch that fences off older owners (on_fenced).
 * GATHERING   PostgreSQL: rows into groups, due groups into the outbox, clean-up.
 * READING     PostgreSQL: the outbox (on_read).
 * PUBLISHING  Kafka: one transaction with the mark (on_published).
 * EMPTYING    PostgreSQL: the outbox below the mark is deleted (on_emptied).
 */
enum folds_state {
    FOLDS_IDLE,
    FOLDS_POLLING,
    FOLDS_OPENING,
    FOLDS_FENCING,
    FOLDS_GATHERING,
    FOLDS_READING,
    FOLDS_PUBLISHING,
    FOLDS_EMPTYING,
    FOLDS_STATE__COUNT,
};

struct app_folds;
struct folds_gatherer; /* gather.h */
struct folds_shard;

#define FOLDS_MOST_STATEMENTS 5u

/* A transaction of a shard. */
struct folds_transaction {
    const char *statements[FOLDS_MOST_STATEMENTS];
    struct rcpt_pg_encoder *encoders[FOLDS_MOST_STATEMENTS];
    size_t count;
};

/* Rows of each statement; the shard is in IDLE. */
typedef void (*folds_on_rows)(struct folds_shard *shard, struct rcpt_pg_rows *const *rows,
                              size_t count);

struct folds_shard {
    struct app_folds *folds;
    uint32_t index;
    enum folds_state state;
    const char *step;      /* in flight in PostgreSQL: what it does, for the log */
    folds_on_rows on_rows; /* takes its answer */
    int64_t sent_ms;       /* when it was sent */
    struct rcpt_transactor *transactor;
    struct rcpt_backoff backoff;
    bool is_refused;      /* a member of the asker's outage */
    int64_t retry_at_ms;  /* after a failure, not before */
    int64_t poll_at_ms;   /* nor before this time: there is nothing new */
    int64_t gather_at_ms; /* gatherings, not before */
    int64_t forget_at_ms;
    int64_t epoch;                   /* 0: not taken on this connection */
    int64_t mark;                    /* Kafka has everything below */
    int64_t next_mark;               /* of the transaction of Kafka in flight */
    struct folds_gatherer *gatherer; /* empty but in shard 0 */
};

struct folds_letter;

/* Dead letters that are not sent yet; they go with the positions that pass their events. */
struct folds_letters {
    struct folds_letter *list;
    size_t count, capacity, bytes;
};

struct folds_topics { /* events of topics */
    struct app_folds *folds;
    struct topics_reader *reader;
    struct rcpt_arena arena; /* rules of the open consumer */
    struct rcpt_fold_collector *collector;
    size_t events; /* in memory */
    struct folds_letters letters;
    int64_t sent_at_ms, log_at_ms;
};

struct folds_endpoint;

struct folds_calls {
    struct app_folds *folds;
    struct rcpt_webhooks *clients[2]; /* by allow_private; NULL: none needs it yet */
    struct folds_endpoint *endpoints; /* of a rule the newest comes first */
    struct rcpt_ask claim;
    int64_t due_ms[FOLDS_SHARDS]; /* the next claim of a shard's calls */
    unsigned closing;
    void (*on_closed)(void *context);
};

struct folds_stream {
    char *topic; /* that was configured last; NULL: never in this process */
    struct rcpt_ask lag;
    double lag_seconds;
    size_t in_flight;            /* records of the transaction of Kafka */
    uint64_t published, refused; /* records; transactions */
    bool is_full;                /* the last claim left rows … */
    int64_t begun_ms;            /* … and was sent then */
    bool is_told;                /* columns that the inbox lacks are logged */
};

struct app_folds { /* running */
    struct folds *folds;
    struct host_context *context;
    const struct receipts *receipts; /* knows which shares this instance owns */
    struct rcpt_asker asker;
    struct rcpt_ask rules, totals;
    uv_timer_t tick;
    struct folds_shard shards[FOLDS_SHARDS];
    struct folds_topics topics;
    struct folds_calls calls;
    struct folds_stream stream;
    bool rules_stored; /* those of the configuration are in the database */
    bool rules_again;  /* they have changed while a statement was storing them */
    unsigned closing;
};

/* ---- shard.c ---- */
void folds_shard_init(struct app_folds *folds, uint32_t index);
void folds_shard_tick(struct folds_shard *shard);
void folds_shard_down(struct folds_shard *shard); /* the connection is gone */
bool folds_shard_is_settled(const struct folds_shard *shard);
/* Asks whether there is anything to do. Only in IDLE. */
void folds_shard_poll(struct folds_shard *shard);
/* Other shards may have work that they had not before. */
void folds_shards_poll_soon(struct app_folds *folds);

/* ---- shard.c, for transactions ---- */
/* Adds a statement; returns the encoder of its parameters. */
struct rcpt_pg_encoder *folds_add(struct folds_transaction *transaction, const char *statement);
void folds_add_fence(struct folds_transaction *transaction, const struct folds_shard *shard);
void folds_add_claim(struct folds_transaction *transaction, const struct folds_shard *shard);
/* Sends it, from IDLE only, and frees the encoders. A failure is logged as that of `step`, and the
 * shard backs off. */
void folds_shard_submit(struct folds_shard *shard, enum folds_state state, const char *step,
                        struct folds_transaction *transaction, folds_on_rows on_rows);
/* The rows of `claim`. `more`: not everything that could be gathered has been. */
void folds_shard_claimed(struct folds_shard *shard, const struct rcpt_pg_rows *rows, bool more);

/* ---- gather.c ---- */
struct folds_gatherer *folds_gather_new(void);
void folds_gather_free(struct folds_gatherer *gatherer);
void folds_gather_forget(struct folds_gatherer *gatherer); /* what is in memory */
void folds_gather_rules_changed(struct folds_gatherer *gatherer);
/* Gathers; the flags tell what there is. `now_us`: the database's time. */
void folds_gather(struct folds_shard *shard, bool transitions, bool topics, bool due,
                  int64_t now_us);

/* ---- sums.c ---- */
/* Adds the entries as ten parameters. `only_asked`: with counts of 0, which asks for their
 * groups. */
void folds_sums_add(struct rcpt_pg_encoder *encoder,
                    const struct rcpt_fold_transition *const *entries, size_t count,
                    bool only_asked);
/* Adds a row of events.sql to the sums; returns how many entries it had. Texts are unescaped in the
 * arena. */
int64_t folds_sums_read(struct rcpt_fold_pending *pending, struct rcpt_arena *arena,
                        const struct rcpt_pg_rows *rows, size_t row, int64_t *id);

/* ---- calls.c ---- */
void folds_calls_init(struct folds_calls *calls, struct app_folds *folds);
void folds_calls_configure(struct folds_calls *calls);            /* the rules have changed */
void folds_calls_tick(struct folds_calls *calls, uint32_t shard); /* a shard that is ours */
void folds_calls_close(struct folds_calls *calls, void (*on_closed)(void *context));

/* ---- publish.c ---- */
/* One transaction of Kafka with the rows of `read`, and next_mark behind them. */
void folds_publish_groups(struct folds_shard *shard, const struct rcpt_pg_rows *rows, size_t count);

/* ---- stream.c ---- */
void folds_stream_init(struct app_folds *folds);
void folds_stream_configure(struct app_folds *folds); /* the configuration has changed */
void folds_stream_tick(struct app_folds *folds);
void folds_stream_fini(struct app_folds *folds);
/* The parameters of stream_claim behind the shard. */
void folds_stream_encode_claim(const struct folds_shard *shard, struct rcpt_pg_encoder *encoder);
/* One transaction of Kafka with the rows of stream_read, and next_mark behind them. */
void folds_stream_publish(struct folds_shard *shard, const struct rcpt_pg_rows *rows, size_t count);
/* Its end, for the figures. */
void folds_stream_published(struct folds_shard *shard, const struct rcpt_error *error);
/* Until the next claim after a transaction. */
int64_t folds_stream_pause_ms(const struct folds_shard *shard);

/* ---- letters.c ---- */
void folds_letters_add(struct folds_letters *letters, const struct rcpt_kafka_message *message,
                       const struct rcpt_fold_refusal *refusal);
void folds_letters_encode(const struct folds_letters *letters, struct rcpt_pg_encoder *encoder);
void folds_letters_reset(struct folds_letters *letters);
void folds_letters_fini(struct folds_letters *letters);

/* ---- topic.c ---- */
void folds_topics_start(struct folds_topics *topics);
void folds_topics_stop(struct folds_topics *topics);
void folds_topics_reload(struct folds_topics *topics); /* the rules have changed */

/* ---- rules.c ---- */
/* The rule for a collector, copied into the arena. */
struct rcpt_fold_spec folds_spec(const struct rcpt_fold_config *fold, struct rcpt_arena *arena);
/* Columns of the inbox that a rule over transitions reads. Returns how many fields name one, and
 * gives each of them to `put` (NULL: none), perhaps more than once. */
typedef void (*folds_put_column)(void *context, const char *column);
size_t folds_columns(const struct rcpt_fold_config *fold, folds_put_column put, void *context);
const char *folds_kind_name(enum rcpt_fold_kind kind);

#endif
