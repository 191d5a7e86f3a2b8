/* Folds in the running daemon, between their files.
 *
 * folds.c        the connection, the rules, totals, start and end
 * folds_shard.c   a shard of the publisher: claim, publish
 * folds_gather.c what lanes of receipts and the reader of topics have appended, into groups
 * folds_sums.c   sums of transitions, to the database and from it
 * folds_calls.c  webhooks
 * folds_reader.c the consumer of folded topics: its group, its life
 * folds_topic.c  events of topics into groups, in the transaction that moves positions
 * folds_positions.c where that stands
 * folds_letters.c   dead letters of folded topics
 * folds_rules.c  rules as the database gets them
 */
#ifndef RECEIPTD_FOLDS_INTERNAL_H
#define RECEIPTD_FOLDS_INTERNAL_H

#include "base/arena.h"
#include "base/backoff.h"
#include "collect.h"
#include "folds.h"
#include "http/webhook.h"
#include "kafka/transactor.h"
#include "pending.h"
#include "postgres/ask.h"
#include "topics/topics.h"

#define FOLDS_SHARDS 2u /* as sql/tables/001_folds.sql has them */

enum folds_state {                /* what a shard awaits; by what it ends */
                   FOLDS_IDLE,    /* the next tick; not before retry_at_ms and poll_at_ms */
                   FOLDS_POLLING, /* PostgreSQL: is there anything to do? on_polled */
                   FOLDS_OPENING, /* Kafka: a producer that fences off older ones, and the mark; on_opened */
                   FOLDS_FENCING, /* PostgreSQL: an epoch that fences off older owners; on_fenced */
                   FOLDS_GATHERING, /* PostgreSQL: rows into groups, due groups into the outbox, clean-up */
                   FOLDS_READING,    /* PostgreSQL: the outbox; on_read */
                   FOLDS_PUBLISHING, /* Kafka: one transaction with the mark; on_published */
                   FOLDS_EMPTYING, /* PostgreSQL: the outbox below the mark is deleted; on_emptied */
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

struct folds_letters { /* to be written with the positions behind them */
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

struct folds_endpoint; /* folds_calls.c */

struct folds_calls {
    struct app_folds *folds;
    struct rcpt_webhooks *clients[2]; /* by allow_private; NULL: not needed yet */
    struct folds_endpoint *endpoints; /* the newest of a rule first */
    struct rcpt_ask claim;
    int64_t due_ms[FOLDS_SHARDS]; /* the next claim of a shard's calls */
    unsigned closing;
    void (*on_closed)(void *context);
};

struct app_folds { /* running */
    struct folds *folds;
    struct app_context *context;
    const struct receipts *receipts; /* which shares are ours */
    struct rcpt_asker asker;
    struct rcpt_ask rules, totals;
    uv_timer_t tick;
    struct folds_shard shards[FOLDS_SHARDS];
    struct folds_topics topics;
    struct folds_calls calls;
    bool rules_stored, rules_again;
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
/* There is something of these. `now_us`: the database's time. */
void folds_gather(struct folds_shard *shard, bool transitions, bool topics, bool due,
                  int64_t now_us);

/* folds_sums.c */
/* Ten parameters. `only_asked`: with counts of 0, which only asks for groups. */
void folds_sums_add(struct rcpt_pg_encoder *encoder,
                    const struct rcpt_fold_transition *const *entries, size_t count,
                    bool only_asked);
/* Adds a row of events.sql; returns how many entries it had. The arena is for texts that have to be
 * unescaped. */
int64_t folds_sums_read(struct rcpt_fold_pending *pending, struct rcpt_arena *arena,
                        const struct rcpt_pg_rows *rows, size_t row, int64_t *id);

/* folds_calls.c */
void folds_calls_init(struct folds_calls *calls, struct app_folds *folds);
void folds_calls_configure(struct folds_calls *calls);            /* the rules have changed */
void folds_calls_tick(struct folds_calls *calls, uint32_t shard); /* a shard that is ours */
void folds_calls_close(struct folds_calls *calls, void (*on_closed)(void *context));

/* folds_letters.c */
void folds_letters_add(struct folds_letters *letters, const struct rcpt_kafka_message *message,
                       const struct rcpt_fold_refusal *refusal);
void folds_letters_encode(const struct folds_letters *letters, struct rcpt_pg_encoder *encoder);
void folds_letters_reset(struct folds_letters *letters);
void folds_letters_fini(struct folds_letters *letters);

/* ---- topic.c ---- */
void folds_topics_start(struct folds_topics *topics);
void folds_topics_stop(struct folds_topics *topics);
void folds_topics_reload(struct folds_topics *topics); /* the rules have changed */

/* folds_rules.c */
/* A copy in the arena. */
struct rcpt_fold_spec folds_spec(const struct rcpt_fold_config *fold, struct rcpt_arena *arena);
/* Columns of the inbox that a rule over transitions looks at: how many fields name one, and where
 * `put` is given, each of them, perhaps more than once. */
typedef void (*folds_put_column)(void *context, const char *column);
size_t folds_columns(const struct rcpt_fold_config *fold, folds_put_column put, void *context);
char *folds_rules_text(const struct rcpt_config *config); /* JSON; the caller frees it */
const char *folds_kind_name(enum rcpt_fold_kind kind);

#endif
