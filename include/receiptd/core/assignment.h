/* From partitions that the consumer group gives to offsets at which they are consumed.
 *
 * PostgreSQL holds the positions. So an assignment waits until its pins (what every instance must
 * agree on) and its rows have been read; rows of partitions that are new are made first, at the
 * low watermarks. All of this happens again when a generation was raised, and when the log lacks
 * the offset to start at: another instance may have moved the rows in between.
 *
 * Pure, as the engine: time comes in with each call, effects go out through ports, answers come
 * back with the serial of their question. The daemon (src/receipts/positions.c, consume.c) and the
 * simulator (tests/simulation/positions.c) drive the same code. One thread.
 */
#ifndef RECEIPTD_CORE_ASSIGNMENT_H
#define RECEIPTD_CORE_ASSIGNMENT_H

#include "receiptd/core/engine.h"

struct rcpt_assignment;

/* The states of an assignment.
 *
 *  state      awaits                      woken by             bounded by
 *  IDLE       an assignment, a reason     start, refresh       nothing
 *             to read the rows again
 *  WAITING    may_ask, and retry_at_ms    tick                 the control connection's attempts.
 *  READING    pins and rows               on_read, on_failed   the connection's time-outs.
 *  QUERYING   low watermarks              on_lows, on_failed   the time-out of the query.
 *  INSERTING  rows of new partitions      on_inserted, …       the connection's time-outs.
 *  REFUSED    an operator                 start, revoke        nothing.
 */
enum rcpt_assignment_state {
    RCPT_ASSIGNMENT_IDLE,
    RCPT_ASSIGNMENT_WAITING,
    RCPT_ASSIGNMENT_READING,
    RCPT_ASSIGNMENT_QUERYING,
    RCPT_ASSIGNMENT_INSERTING,
    RCPT_ASSIGNMENT_REFUSED,
    RCPT_ASSIGNMENT_STATE__COUNT,
};

struct rcpt_assignment_settings {
    int64_t hash_version; /* of the lane hash */
    bool skip_gaps;       /* go on behind what retention has deleted, instead of stopping */
    /* How long a transaction of the previous owner may still commit. Until that time is over,
     * nothing counts as deleted by retention. */
    int64_t patience_ms;
};

struct rcpt_assignment_pin { /* a row of consumer_topic; texts are borrowed for the call */
    const char *topic;
    const char *cluster_id, *ladder;
    int64_t lanes, hash_version;
    int32_t partitions; /* that have rows */
};

struct rcpt_assignment_row { /* a row of consumer_progress */
    uint32_t slot, lane;
    int64_t next_offset, generation;
    struct rcpt_engine_anchor anchor;
};

struct rcpt_assignment_answer { /* to `read`; what has no row is left out */
    const char *ladder;         /* hash of the ladder that the database holds */
    const struct rcpt_assignment_pin *pins;
    size_t pin_count;
    const struct rcpt_assignment_row *rows;
    size_t row_count;
};

struct rcpt_assignment_start { /* where a partition is consumed from */
    uint32_t slot;
    int64_t offset;
};

struct rcpt_assignment_new { /* rows that are to be made: partitions from … to − 1 */
    const char *topic;
    int32_t from, to;
    const int64_t *lows; /* low watermark of each; NULL where they are being asked for */
};

enum rcpt_assignment_refusal {
    RCPT_REFUSED_PINS,      /* this instance is configured otherwise: the process has to end */
    RCPT_REFUSED_ROWS,      /* rows are missing: nothing of this assignment is consumed */
    RCPT_REFUSED_RETENTION, /* unapplied records were deleted: the partition stands still */
    RCPT_REFUSED_LOG_END,   /* the log ends below its position: the partition stands still */
};

enum rcpt_assignment_event {                        /*        first … last */
                             RCPT_NOTE_LOW_UNKNOWN, /* the partition's low watermark could not be
                                                       read */
                             RCPT_NOTE_ROWS_MADE,   /* partitions of the topic that have rows now */
                             RCPT_NOTE_CONSUMING,   /* number of partitions */
                             RCPT_NOTE_REFRESH,  /* the partition's rows are of another generation,
                                                    or gone */
                             RCPT_NOTE_SKIPPED,  /* offsets that retention deleted before they were
                                                    applied */
                             RCPT_NOTE_REWIND,   /* the partition is read again from `first` */
                             RCPT_NOTE_REASSIGN, /* the same by un-assigning and assigning */
                             RCPT_NOTE_WENT_ON,  /* what a refusal had stopped; topic NULL: all */
};

struct rcpt_assignment_note { /* worth a line in the log */
    enum rcpt_assignment_event event;
    const char *topic;
    int32_t partition;
    int64_t first, last;
};

struct rcpt_assignment_ports {
    void *context;
    /* Can PostgreSQL be asked now? */
    bool (*may_ask)(void *context);
    /* Read the pins of the topics and the rows of these partitions → rcpt_assignment_on_read. */
    void (*read)(void *context, uint32_t serial, const uint32_t *slots, size_t count);
    /* Read low watermarks from Kafka → rcpt_assignment_on_lows. */
    void (*query_lows)(void *context, uint32_t serial, const struct rcpt_assignment_new *rows);
    /* Make pins and rows, committed synchronously; rows that another instance has made stay →
     * rcpt_assignment_on_inserted. */
    void (*insert)(void *context, uint32_t serial, const struct rcpt_assignment_new *rows);
    /* Answer the group: consume its partitions from these offsets. */
    void (*assign)(void *context, const struct rcpt_assignment_start *starts, size_t count);
    /* Deliver the partition from this offset on: `seek` by a seek, `reassign` by un-assigning and
     * assigning. */
    void (*seek)(void *context, uint32_t slot, int64_t offset);
    void (*reassign)(void *context, uint32_t slot, int64_t offset);
    /* The reason names what an operator has to check. */
    void (*refuse)(void *context, enum rcpt_assignment_refusal why, uint32_t slot,
                   const struct rcpt_error *error);
    void (*note)(void *context, const struct rcpt_assignment_note *note);
    /* The state has changed. */
    void (*changed)(void *context);
};

/* The engine is borrowed for the assignment's life. */
struct rcpt_assignment *rcpt_assignment_new(const struct rcpt_assignment_settings *settings,
                                            const struct rcpt_assignment_ports *ports,
                                            struct rcpt_engine *engine);
void rcpt_assignment_free(struct rcpt_assignment *assignment);

/* The cluster's id, and a topic's number of partitions. Both are known before the first assignment.
 */
void rcpt_assignment_set_cluster(struct rcpt_assignment *assignment, const char *cluster_id);
void rcpt_assignment_set_topic(struct rcpt_assignment *assignment, const char *name,
                               int32_t partitions);
/* 0: not known. */
int32_t rcpt_assignment_topic_partitions(const struct rcpt_assignment *assignment,
                                         const char *name);
const char *rcpt_assignment_cluster(const struct rcpt_assignment *assignment); /* NULL: not known */
enum rcpt_assignment_state rcpt_assignment_state(const struct rcpt_assignment *assignment);
/* Whether partitions wait for the positions at which they begin. Partitions that are consumed while
 * their positions are read again do not wait. */
bool rcpt_assignment_is_unread(const struct rcpt_assignment *assignment);
/* Whether the partition stands still until an operator has set its position; then refresh moves it
 * on. */
bool rcpt_assignment_stands_still(const struct rcpt_assignment *assignment, uint32_t slot);
/* Whether a partition waits because the log does not have its position. */
bool rcpt_assignment_waits_for_log(const struct rcpt_assignment *assignment);

/* ---- the group ---- */

/* The group gave these partitions. An assignment that is under way is given up. */
void rcpt_assignment_start(struct rcpt_assignment *assignment, const uint32_t *slots, size_t count,
                           int64_t now_ms);
/* The group takes these away; an assignment that was not answered goes with them. */
void rcpt_assignment_revoke(struct rcpt_assignment *assignment, const uint32_t *slots, size_t count,
                            int64_t now_ms);

/* ---- answers; those to an older serial change nothing ---- */

/* Whether the answer to this serial still matters. */
bool rcpt_assignment_awaits(const struct rcpt_assignment *assignment, uint32_t serial);
void rcpt_assignment_on_read(struct rcpt_assignment *assignment, uint32_t serial,
                             const struct rcpt_assignment_answer *answer, int64_t now_ms);
/* One low watermark for each partition that was asked for; negative: it could not be read. */
void rcpt_assignment_on_lows(struct rcpt_assignment *assignment, uint32_t serial,
                             const int64_t *lows, int64_t now_ms);
void rcpt_assignment_on_inserted(struct rcpt_assignment *assignment, uint32_t serial,
                                 int64_t now_ms);
/* Any question failed: it is asked again. False: the answer no longer matters. */
bool rcpt_assignment_on_failed(struct rcpt_assignment *assignment, uint32_t serial, int64_t now_ms);

/* ---- what the engine asks for: its ports of the same names ---- */

void rcpt_assignment_rewind(struct rcpt_assignment *assignment, uint32_t slot, int64_t offset);
void rcpt_assignment_reassign(struct rcpt_assignment *assignment, uint32_t slot, int64_t offset);
void rcpt_assignment_refresh(struct rcpt_assignment *assignment, uint32_t slot, int64_t now_ms);

/* ---- the log, time ---- */

/* The offset `requested` does not exist; low and high are the log's ends (-1: not known). The
 * partition stands still until `seek` or `reassign`. */
void rcpt_assignment_on_out_of_range(struct rcpt_assignment *assignment, uint32_t slot,
                                     int64_t requested, int64_t low, int64_t high, int64_t now_ms);
/* Time has passed, or may_ask has become true. Call at least every 100 ms. */
void rcpt_assignment_tick(struct rcpt_assignment *assignment, int64_t now_ms);

#endif
