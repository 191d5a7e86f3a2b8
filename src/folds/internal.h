/* Folds in the running daemon, between their files.
 *
 * folds.c        the connection, the rules, totals, start and end
 * folds_lane.c   a lane of the publisher: claim, publish
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
#include "kafka/consumer.h"
#include "kafka/transactor.h"
#include "pending.h"
#include "postgres/ask.h"

#define FOLDS_LANES 2u /* as sql/tables/001_folds.sql has them */

enum folds_state {
    FOLDS_IDLE,       /* until the next tick */
    FOLDS_LOOKING,    /* is there anything to do? */
    FOLDS_OPENING,    /* for Kafka: the fence, the mark */
    FOLDS_TAKING,     /* for PostgreSQL: the epoch */
    FOLDS_GATHERING,  /* appended rows into groups, due groups into the outbox */
    FOLDS_READING,    /* the outbox */
    FOLDS_PUBLISHING, /* for Kafka */
    FOLDS_MARKING,    /* the outbox is emptied */
};

struct folds_gatherer {
    struct rcpt_fold_pending *pending;
    struct rcpt_arena arena; /* what is read, until it is taken in */
    int64_t *rows;           /* that the sums stem from */
    size_t row_count, row_capacity;
    int64_t now_us;   /* of the database, when it was looked: what is read is all that was there */
    bool complete;    /* it is */
    bool topics, due; /* was there any, any group? */
    bool quiet;       /* is there a group with a sum that is? */
    size_t gather_index, keep_index; /* of the transaction under way; 0: not in it */
    bool handing_over;               /* sums, in it */
    bool current;                    /* what is left in memory makes no group due */
    int64_t took_ms;                 /* to hand over all of them */
};

struct folds_lane {
    struct app_folds *folds;
    uint32_t index;
    enum folds_state state;
    struct rcpt_transactor *transactor;
    struct rcpt_backoff backoff;
    int64_t retry_at_ms;  /* not before */
    int64_t look_at_ms;   /* nor before this one: there is nothing new */
    int64_t gathering_ms; /* when it began */
    int64_t gather_at_ms; /* not before */
    int64_t epoch;        /* 0: not taken on this connection */
    int64_t mark;         /* Kafka has everything below */
    int64_t next_mark;    /* of the transaction under way */
    int64_t forget_at_ms;
    struct folds_gatherer gatherer; /* of lane 0 */
};

enum folds_reader_state {
    READER_WAITING, /* for an assignment, or until retry_at_ms */
    READER_READING, /* for its positions */
    READER_READY,
};

struct folds_partition {
    char *topic;
    int32_t number;
    int64_t expected;      /* the database's */
    int64_t sent, read;    /* behind the batch in flight; behind what is in memory */
    int64_t delivered;     /* behind what came last from the consumer, taken or not */
    int64_t rewound_from;  /* what is not below is not taken for its turn; 0: nothing */
    int64_t rewound_at_ms; /* 10 s without a record: once more, then it is a gap */
    unsigned rewinds;
    bool fetched; /* assigned once: another position means a rewind */
};

struct folds_letter;

struct folds_letters { /* to be written with the positions behind them */
    struct folds_letter *list;
    size_t count, capacity, bytes;
};

struct folds_out { /* a column of the groups to be appended */
    FILE *stream;
    size_t *ends;
};

struct folds_reader {
    struct app_folds *folds;
    struct rcpt_pg *pg; /* asynchronous commit: positions cover all that it writes */
    struct rcpt_pg_encoder *encoder;
    struct rcpt_kafka *kafka; /* NULL: no rule reads a topic */
    struct rcpt_arena arena;  /* rules */
    const char **topics;
    size_t topic_count;
    struct rcpt_fold_collector *collector;
    struct folds_partition *partitions; /* sorted by topic and number */
    size_t partition_count;
    enum folds_reader_state state;
    uint64_t serial; /* of the assignment or resync: answers of an older one are ignored */
    uint64_t flight_serial;
    size_t events;
    struct folds_letters letters;
    struct folds_out out[3];
    int64_t *counts;
    size_t out_count;
    int64_t retry_at_ms, sent_at_ms, commit_at_ms, log_at_ms;
    bool up, flying, read_after_flight, starved, subscribed, assigned, leaving, closing;
};

struct folds_endpoint; /* folds_calls.c */

struct folds_calls {
    struct app_folds *folds;
    struct rcpt_webhooks *clients[2]; /* by allow_private; NULL: not needed yet */
    struct folds_endpoint *endpoints; /* the newest of a rule first */
    int64_t due_ms[FOLDS_LANES];
    bool flying;
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
    struct folds_lane lanes[FOLDS_LANES];
    struct folds_reader reader;
    struct folds_calls calls;
    bool rules_stored, rules_again;
    unsigned closing;
};

/* folds_lane.c */
void folds_lane_init(struct app_folds *folds, uint32_t index);
void folds_lane_tick(struct folds_lane *lane);
void folds_lane_down(struct folds_lane *lane); /* the connection is gone */
bool folds_lane_is_settled(const struct folds_lane *lane);

/* folds_lane.c, for folds_gather.c */
void folds_lane_look(struct folds_lane *lane); /* is there anything to do? */
bool folds_lane_can_go_on(const struct folds_lane *lane);
/* True: there was an error, and it has been seen to. */
bool folds_lane_failed(struct folds_lane *lane, const char *what, const struct rcpt_error *error);
/* With the parameters in the encoder of all. */
void folds_lane_submit(struct folds_lane *lane, enum folds_state state, const char *statement,
                       rcpt_pg_on_result on_result);
/* Parameters of the first and the last statement of a transaction; the caller frees them. */
struct rcpt_pg_encoder *folds_lane_fence(const struct folds_lane *lane);
struct rcpt_pg_encoder *folds_lane_claim(const struct folds_lane *lane);
/* The answer to the last one. `more`: not everything that could be gathered has been. */
void folds_lane_claimed(struct folds_lane *lane, const struct rcpt_pg_rows *rows, bool more);
/* The other lanes may claim what they could not before. */
void folds_lanes_look_soon(struct app_folds *folds);

/* folds_gather.c */
void folds_gather_init(struct folds_gatherer *gatherer);
void folds_gather_fini(struct folds_gatherer *gatherer);
void folds_gather_forget(struct folds_gatherer *gatherer); /* what is in memory */
void folds_gather_rules_changed(struct folds_gatherer *gatherer);
/* There is something of these. `now_us`: of the database. */
void folds_gather(struct folds_lane *lane, bool transitions, bool topics, bool due, int64_t now_us);

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
void folds_calls_configure(struct folds_calls *calls);
void folds_calls_tick(struct folds_calls *calls, uint32_t lane); /* of a lane that is ours */
void folds_calls_close(struct folds_calls *calls, void (*on_closed)(void *context));

/* folds_topic.c */
bool folds_topic_wants(void *context, const char *topic, int32_t number, void *tag);
void folds_topic_on_message(void *context, void *tag, const struct rcpt_kafka_message *message);
void folds_topic_on_round(void *context);
void folds_topic_append(struct folds_reader *reader);   /* if there is anything, and it may */
void folds_topic_continue(struct folds_reader *reader); /* to take in */
void folds_topic_forget(struct folds_reader *reader);   /* what is in memory */

/* folds_positions.c */
void folds_positions_forget(struct folds_reader *reader); /* the partitions themselves */
/* Everything in memory goes: it is read again from where the database says. */
void folds_positions_discard(struct folds_reader *reader);
void folds_positions_resync(struct folds_reader *reader); /* that, and asks the database */
void folds_positions_read(struct folds_reader *reader);
void folds_positions_assign(struct folds_reader *reader);
void folds_positions_tick(struct folds_reader *reader);
void folds_positions_on_out_of_range(void *context, void *tag, const char *topic, int32_t number,
                                     int64_t wanted, int64_t low, int64_t high);

/* folds_letters.c */
void folds_letters_add(struct folds_letters *letters, const struct rcpt_kafka_message *message,
                       const struct rcpt_fold_refusal *refusal);
void folds_letters_encode(const struct folds_letters *letters, struct rcpt_pg_encoder *encoder);
void folds_letters_reset(struct folds_letters *letters);
void folds_letters_fini(struct folds_letters *letters);

/* folds_reader.c */
void folds_reader_start(struct folds_reader *reader);
void folds_reader_tick(struct folds_reader *reader);
void folds_reader_up(struct folds_reader *reader); /* connected (again) */
void folds_reader_reload(struct folds_reader *reader);
void folds_reader_stop(struct folds_reader *reader);
bool folds_reader_is_settled(const struct folds_reader *reader);

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
