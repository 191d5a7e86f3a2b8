/* Folds in the running daemon. Private to src/app.
 *
 * folds.c        the connection, the rules, totals, start and end
 * folds_lane.c   a lane of the publisher: gather, claim, publish
 * folds_rules.c  rules as the database gets them
 */
#ifndef RECEIPTD_SRC_APP_FOLDS_H
#define RECEIPTD_SRC_APP_FOLDS_H

#include "app.h"
#include "receiptd/core/backoff.h"
#include "receiptd/kafka/transactor.h"

#define FOLDS_LANES 2u /* as sql/migrate/004_folds.sql has them */

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

struct folds_lane {
    struct app_folds *folds;
    uint32_t index;
    enum folds_state state;
    struct rcpt_transactor *transactor;
    struct rcpt_backoff backoff;
    int64_t retry_at_ms; /* not before */
    int64_t gathering_ms;
    int64_t epoch;     /* 0: not taken on this connection */
    int64_t mark;      /* Kafka has everything below */
    int64_t next_mark; /* of the transaction under way */
    int64_t forget_at_ms;
};

struct app_folds {
    struct app *app;
    struct rcpt_pg *pg;
    struct rcpt_pg_encoder *encoder;
    uv_timer_t tick;
    struct folds_lane lanes[FOLDS_LANES];
    bool up, rules_stored, rules_flying, rules_again, totals_flying, stopping;
    int64_t totals_at_ms;
    unsigned closing;
};

/* folds_lane.c */
void folds_lane_init(struct app_folds *folds, uint32_t index);
void folds_lane_tick(struct folds_lane *lane);
void folds_lane_down(struct folds_lane *lane); /* the connection is gone */
bool folds_lane_is_settled(const struct folds_lane *lane);

/* folds_rules.c */
char *folds_rules_text(const struct rcpt_config *config); /* JSON; the caller frees it */
const char *folds_kind_name(enum rcpt_fold_kind kind);

#endif
