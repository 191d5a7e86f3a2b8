/* The world of one schedule: a clock, a Kafka, a PostgreSQL, instances of the daemon's core, and a
 * ledger over all of it.
 *
 * One thread, virtual time in microseconds, everything a function of the plan. The parts call each
 * other directly; everything that takes time goes through the clock. A part that finds an anomaly
 * calls sim_anomaly: the schedule ends there.
 */
#ifndef SIMULATION_WORLD_H
#define SIMULATION_WORLD_H

#include "clock.h"
#include "coverage.h"
#include "plan.h"
#include "random.h"

#define SIM_TOPICS      2u
#define SIM_TOPIC_PARTS 4u
#define SIM_PARTS       (SIM_TOPICS * SIM_TOPIC_PARTS) /* part = topic * 4 + partition */
#define SIM_INSTANCES   4u
#define SIM_LANES       8u
#define SIM_CAMPAIGNS   3u
#define SIM_ENTRIES     40u
#define SIM_GATEWAYS    5u
#define SIM_REASONS     3u
#define SIM_LINKS       3
#define SIM_NO_MESSAGE  UINT32_MAX
#define SIM_FIRST_TIMESTAMP                                                                        \
    INT64_C(1700000000000) /* of record 0; each record has a millisecond of its own */

/* ---- produced records: the truth that everything is compared with ---- */

enum sim_fate { FATE_NONE, FATE_APPLIED, FATE_PARKED, FATE_LETTER, FATE_SKIPPED };

struct sim_item { /* an event of a record, or its part that becomes a dead letter */
    int64_t at_us;
    uint32_t record, message; /* message SIM_NO_MESSAGE: cannot be understood */
    uint32_t next_of_message; /* chain over the message's items; UINT32_MAX ends it */
    int32_t index;            /* in the record, -1: the whole of it */
    uint8_t entry;            /* of the ladder */
    uint8_t lane;
    uint8_t reason;           /* rcpt_reject_reason, where it cannot be understood */
    uint8_t gateway, why;     /* g0 … as 1 …, class of the reason r1 …; 0: none */
    uint8_t link;             /* l1 … as 1 …; 0: none */
    uint8_t currency;         /* last letter of that in which it names a cost; 0: it names none */
    uint32_t price;           /* thousandths of that */
    uint32_t text, text_size; /* its own JSON in the record's value */
    uint32_t event_id;        /* 0: none */
    uint32_t twin; /* the first item that is the same event of the message, perhaps itself */
    uint64_t key;  /* of the event, as the decoder has made it; 0: not seen yet */
    /* What the database says; goes back with it. */
    uint8_t fate; /* enum sim_fate */
    uint8_t letter_reason;
    int64_t parked_at_us;
    uint32_t life;      /* of its message, when it was applied */
    uint8_t counted;    /* enum sim_counted */
    bool key_stored;    /* of a twin: receipt_counted has the key */
    uint32_t key_owner; /* of a twin: lock; 0: free */
};

enum sim_counted { COUNTED_NOT, COUNTED_WITH_KEY, COUNTED_WITHOUT_KEY, COUNTED_AS_COPY };

struct sim_record {
    int64_t offset;
    uint32_t part, first_item, item_count, incarnation;
    char *value; /* NULL: tombstone */
    uint32_t size;
};

/* First times of a message (counters.times): INT64_MAX: none. */
enum { SIM_SENT, SIM_DELIVERED, SIM_OPENED, SIM_CLICKED, SIM_TIMES };
struct sim_times {
    int64_t at_us[SIM_TIMES];
    uint8_t gateway; /* the first one by name; 0: none */
};

struct sim_message {
    char id[40];
    uint32_t id_size, campaign, first_item;
    bool poison;          /* PostgreSQL refuses to change the row */
    int64_t insert_at_us; /* when the platform makes the row; -1: never */
    /* The row; goes back with the database. */
    bool exists, retired; /* retired: its id is remembered */
    int16_t status;
    uint32_t flags;
    uint32_t life; /* changes when the row is deleted */
    struct sim_times times;
    bool was_deleted; /* ever: stays when the database goes back */
    uint32_t owner;   /* lock; 0: free */
};

/* What messages are counted by, as numbers of texts; 0: none. */
static inline uint32_t sim_channel(uint32_t message)
{
    return message % 3;
}
static inline uint32_t sim_region(uint32_t message)
{
    return message / 3 % 4;
}
static inline uint32_t sim_customer(uint32_t message)
{
    return message / 2 % 6;
}
static inline uint32_t sim_attempt_of(uint32_t message)
{
    return message / 4 % 5;
}
static inline uint32_t sim_org(uint32_t message)
{
    return message / 5 % 3;
}
static inline uint32_t sim_fold_columns(uint32_t message)
{
    return message / 7 % 3;
}

struct sim_log {       /* of one partition */
    uint32_t *records; /* by offset; UINT32_MAX: nothing there */
    int64_t low, high, capacity;
    uint32_t incarnation;
    bool exists;
    uint32_t made_anew; /* how often */
};

struct sim_traffic {
    struct rcpt_ladder *ladder;
    struct sim_record *records;
    uint32_t record_count, record_capacity;
    struct sim_item *items;
    uint32_t item_count, item_capacity;
    struct sim_message *messages;
    uint32_t message_count;
    uint32_t entry_count;
    uint64_t receipts; /* valid events produced */
    struct sim_log logs[SIM_PARTS];
    uint32_t topic_parts[SIM_TOPICS];
};

/* ---- parts with files of their own ---- */
struct sim_database;
struct sim_instance;
struct sim_group;

struct sim {
    struct sim_plan plan;
    struct sim_clock clock;
    struct sim_random traffic_random, kafka_random, server_random, fault_random;
    struct sim_traffic traffic;
    struct sim_database *database;
    struct sim_instance *instances[SIM_INSTANCES];
    struct sim_group *group;
    struct sim_coverage *coverage;
    uint64_t trace; /* hash over everything that happened */
    uint64_t steps;
    bool calm;           /* faults have stopped */
    const char *anomaly; /* name of the first one, NULL: none */
    char detail[300];
    FILE *log; /* NULL: silent */
};

const char *sim_topic_name(uint32_t part);
int32_t sim_partition(uint32_t part);

/* Ends the schedule; only the first one counts. */
void sim_anomaly(struct sim *sim, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void sim_trace(struct sim *sim, uint64_t what);
void sim_say(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A fault happens to an instance (all lanes) or to one of its connections. */
void sim_cover(struct sim *sim, enum sim_fault fault, const struct sim_instance *instance,
               uint32_t connection);

#endif
