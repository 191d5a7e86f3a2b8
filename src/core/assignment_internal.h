/* Shared by assignment.c (states), assignment_rows.c (pins and rows) and assignment_range.c
 * (offsets that Kafka's log lacks). Private to src/core. */
#ifndef RECEIPTD_CORE_ASSIGNMENT_INTERNAL_H
#define RECEIPTD_CORE_ASSIGNMENT_INTERNAL_H

#include "receiptd/core/assignment.h"

/* Between a partition and its log:
 *
 *   state         awaits            woken by             bounded by
 *   FOLLOWED      records           Kafka                the engine's time-outs
 *   WAITING       the next reading  tick                 retry_at_ms
 *   STANDS_STILL  an operator       refresh, assignment  nothing
 */
enum range_state { RANGE_FOLLOWED, RANGE_WAITING, RANGE_STANDS_STILL, RANGE_STATE__COUNT };

struct range { /* of one partition, by slot */
    enum range_state state;
    int64_t retry_at_ms;
    int64_t asked_low; /* rows were read again because the log begins here; 0: they were not … */
    int64_t asked_at;  /* … above this position … */
    int64_t since_ms;  /* … which has not changed since */
    bool lacking;      /* the log lacked the position when it was asked last … */
    int64_t lacked_ms; /* … at this time */
};

struct topic {
    char *name;
    int32_t partitions; /* as the cluster says */
};

struct found_rows { /* of one partition */
    int64_t next[RCPT_ENGINE_MAX_LANES];
    int64_t generation;
    struct rcpt_engine_anchor anchor; /* of the lane that is furthest behind */
    uint32_t count;
};

struct rcpt_assignment {
    struct rcpt_assignment_settings settings;
    struct rcpt_assignment_ports ports;
    struct rcpt_engine *engine;
    char *cluster_id;
    struct topic *topics;
    size_t topic_count;

    enum rcpt_assignment_state state;
    uint32_t serial; /* of what is asked for now */
    bool refresh;    /* the partitions are consumed already, their positions are read again */
    uint32_t *slots; /* the partitions */
    size_t count;
    int64_t retry_at_ms;
    char *new_topic; /* whose rows are being made */
    int32_t new_from, new_to;
    struct found_rows found; /* scratch */

    struct range *ranges;
    uint32_t range_count;
};

/* ---- assignment.c ---- */
/* Reads the positions of the partition again, beside what is read already. False: an assignment of
 * the group is under way, which reads its own. */
bool assignment_refresh(struct rcpt_assignment *assignment, uint32_t slot, int64_t now_ms);

/* ---- assignment_rows.c ---- */
enum pins_verdict {
    PINS_GOOD,    /* every topic is pinned as we are, and its partitions have rows */
    PINS_LACKING, /* rows are to be made: new_topic, new_from, new_to */
    PINS_OTHER,   /* pinned otherwise: `error` */
};
enum pins_verdict assignment_judge_pins(struct rcpt_assignment *assignment,
                                        const struct rcpt_assignment_answer *answer,
                                        struct rcpt_error *error);
void assignment_collect_rows(struct rcpt_assignment *assignment,
                             const struct rcpt_assignment_answer *answer, uint32_t slot);
/* The first slot that lacks rows, with the reason; UINT32_MAX: none does. */
uint32_t assignment_find_lacking(struct rcpt_assignment *assignment,
                                 const struct rcpt_assignment_answer *answer,
                                 struct rcpt_error *error);

/* ---- assignment_range.c ---- */
/* A new assignment begins: answers of the rows during the one before are void. */
void range_forget_asked(struct rcpt_assignment *assignment);
/* The partition is assigned by the group, at the position that its rows name. */
void range_begin(struct rcpt_assignment *assignment, uint32_t slot);
/* The group takes the partition away. */
void range_end(struct rcpt_assignment *assignment, uint32_t slot);
/* The partition's rows have been read again: it goes on at `offset`. */
void range_go_on(struct rcpt_assignment *assignment, uint32_t slot, int64_t offset);
void range_tick(struct rcpt_assignment *assignment, int64_t now_ms);

#endif
