/* The files of `receiptd positions`: standing.c reads, positions.c shows, change.c moves, proof.c
 * compares records, accept.c and cluster.c accept. Private to this folder. */
#ifndef RECEIPTD_COMMANDS_POSITIONS_POSITIONS_H
#define RECEIPTD_COMMANDS_POSITIONS_POSITIONS_H

#include "../command.h"
#include "receiptd/kafka/survey.h"
#include "receiptd/postgres/lineage.h"

/* How a position fits the log. All but the first stop the daemon; only `show` uses LOG_UNREAD. */
enum log_fit {
    LOG_FITS,
    LOG_MISSING, /* rows of lanes were deleted */
    LOG_GAP,     /* retention has deleted what is next */
    LOG_ENDS,    /* it ends below the position: truncated, or made again */
    LOG_OTHER,   /* the record below the position is another one: made again */
    LOG_CLUSTER, /* it is in another cluster */
    LOG_UNREAD,  /* fits by its ends, but its records could not be compared */
};

struct positions {
    const struct command_call *call;
    struct command_context context;
    const char *reader, *topic;
    struct rcpt_kafka_property *properties;
    struct rcpt_kafka_survey survey;
    struct rcpt_pg_server server; /* that we are connected to; of show */
};

struct standing {                         /* of one partition */
    const struct rcpt_kafka_place *place; /* NULL: Kafka does not have it */
    int32_t partition;
    int64_t position, missing; /* position -1: no row */
    const char *cluster_id;    /* that its log is in; NULL: not noted, or not kept */
    char *positions;
    struct {
        int64_t offset, timestamp_ms, crc; /* offset -1: none */
    } anchor;
    enum log_fit fit;
};

/* In words; by enum log_fit. */
extern const char *const positions_fit_texts[];

/* ---- standing.c ---- */
/* Asks Kafka about the topics for the reader's group, and fills `survey`. Finds the first record of
 * the time `at_ms`, unless it is negative. */
RCPT_MUST_CHECK bool positions_survey(struct positions *positions, const char *const *topics,
                                      size_t count, int64_t at_ms);
/* Rows of positions_read.sql; partition NULL: all. */
RCPT_MUST_CHECK struct rcpt_session_rows *positions_read(struct positions *positions,
                                                         const char *partition);
/* Compares a row with the survey. */
struct standing positions_standing(const struct positions *positions,
                                   const struct rcpt_session_rows *rows, size_t row);

/* A file of sql/ without parameters. The caller frees the rows; NULL: the error is set. */
RCPT_MUST_CHECK struct rcpt_session_rows *positions_query(struct positions *positions,
                                                          const char *file);
/* system_identifier and timeline of a row. */
struct rcpt_pg_server positions_server_in(const struct rcpt_session_rows *rows, size_t row);

/* ---- proof.c ---- */
/* Reads the record just below each position, as the daemon does at each assignment. A record that
 * differs from the consumed one gives LOG_OTHER. All standings are of this topic. */
RCPT_MUST_CHECK bool positions_prove(struct positions *positions, const char *topic,
                                     struct standing *standings, size_t count);

/* ---- change.c ---- */
struct positions_target {
    const char *offset; /* as it was typed; NULL: by time */
    int64_t at_ms;
};

/* set; `target` NULL: skip-gap. `partition`: a number or "all". Returns the exit code. */
int positions_change(struct positions *positions, const char *partition,
                     const struct positions_target *target);

/* ---- cluster.c ---- */
/* accept-cluster. Returns the exit code. */
int positions_accept_cluster(struct positions *positions);

/* ---- accept.c ---- */
/* accept-database. Returns the exit code. */
int positions_accept(struct positions *positions);

#endif
