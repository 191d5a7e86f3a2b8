/* What one seed plays: sizes, settings of the engine, and which kinds of faults happen how often
 * ("swarm": every seed leaves many kinds out, so that each also meets a calm world). Pure: a
 * function of the seed and of what the caller switches off. */
#ifndef SIMULATION_PLAN_H
#define SIMULATION_PLAN_H

#include <stdint.h>
#include <stdio.h>

#include "receiptd/core/engine.h"

enum sim_fault {
    FAULT_KILL,      /* kill -9 of an instance; its transactions in flight live on at the server */
    FAULT_PAUSE,     /* an instance is stopped and wakes later; others own its partitions then */
    FAULT_LEAVE,     /* an instance drains and leaves; it comes back later */
    FAULT_REBALANCE, /* partitions change owners */
    FAULT_LATE_REVOKE,  /* … and the old owner learns of it late */
    FAULT_LOST,         /* an instance loses its whole assignment */
    FAULT_OLDER,        /* Kafka delivers from an older offset on */
    FAULT_SEEK_LATE,    /* records fetched before a seek come after it */
    FAULT_SEEK_LOST,    /* a seek has no effect */
    FAULT_RANGE,        /* a broker says "out of range" although the offset is there */
    FAULT_RETENTION,    /* the log's beginning goes, up to what was applied */
    FAULT_GAP,          /* the log's beginning goes, unapplied records too */
    FAULT_RECREATE,     /* a topic is deleted and made again */
    FAULT_PARTITIONS,   /* a topic gets more partitions */
    FAULT_CUT_BEFORE,   /* a connection breaks before the server got anything */
    FAULT_CUT_HALF,     /* … when it has half of the pipeline and holds locks */
    FAULT_CUT_AFTER,    /* … when it has everything: the answer is lost */
    FAULT_CUT_LATE,     /* … and the orphan commits much later */
    FAULT_CRASH,        /* the server restarts and has lost what was not flushed */
    FAULT_POOLED_CRASH, /* the same behind a pooler that keeps idle connections open */
    FAULT_FAILOVER,     /* a replica that lags takes over */
    FAULT_DEADLOCK,     /* a transaction is chosen as victim */
    FAULT_LOCKER,       /* another session holds rows of messages for a while */
    FAULT_SLOW,         /* the server is slow for a while */
    FAULT_GENERATION,   /* an operator raises the generation */
    FAULT_ROW_DELETED,  /* an operator deletes a row of consumer_progress */
    FAULT_DELETE,       /* the platform deletes messages, and inserts some of them again */
    FAULT__COUNT,
};

enum sim_unknown { UNKNOWN_PARK, UNKNOWN_INSERT, UNKNOWN_DEAD_LETTER };

struct sim_limits {   /* what shrinking removes; 0 or empty: nothing */
    uint32_t without; /* bit mask of faults */
    uint32_t instances, topics, partitions, records, lanes;
    int64_t load_ms;
};

struct sim_plan {
    uint64_t seed;
    struct rcpt_engine_settings engine;
    uint32_t instances;
    uint32_t topics, partitions; /* of each topic, at first */
    uint32_t records;            /* that are produced in all */
    uint32_t events_per_record;  /* at most */
    uint32_t messages, campaigns;
    uint32_t copy_percent;   /* of receipts that came before */
    uint32_t reject_percent; /* of events and records that cannot be understood */
    uint32_t gap_percent;    /* offsets without a record */
    uint32_t poison_percent; /* messages whose row PostgreSQL refuses to change */
    uint32_t late_percent;   /* messages whose row comes after their receipts, or never */
    enum sim_unknown unknown;
    bool skip_gaps; /* kafka.on_retention_gap: skip */
    bool cooperative;
    bool platform_synchronous;
    int64_t parked_max_age_ms, parked_poll_ms;
    uint32_t parked_max_rows;
    int64_t lock_timeout_ms, zombie_timeout_ms, session_timeout_ms;
    int64_t idle_timeout_ms; /* of a session that is idle in its transaction */
    bool dedup, series, reasons, gateways, times, folds, links, costs;
    uint32_t dimensions, groups;    /* how many */
    int64_t network_us, hold_us;    /* bounds of delays */
    int64_t load_ms;                /* faults and production end here */
    int64_t fault_ms[FAULT__COUNT]; /* mean distance; 0: never */
};

void sim_plan_draw(struct sim_plan *plan, uint64_t seed, const struct sim_limits *limits);
const char *sim_fault_name(enum sim_fault fault);
/* One line of what the seed plays, for a failure's report. */
void sim_plan_print(const struct sim_plan *plan, FILE *out);

#endif
