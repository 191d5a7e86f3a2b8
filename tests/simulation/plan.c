/* Draws what one seed plays: sizes, settings, and which kinds of faults happen how often. A pure
 * function of the seed and the limits.
 */
#include "plan.h"

#include <string.h>

#include "random.h"

static const char *const names[FAULT__COUNT] = {
    [FAULT_KILL] = "kill",
    [FAULT_PAUSE] = "pause",
    [FAULT_LEAVE] = "leave",
    [FAULT_REBALANCE] = "rebalance",
    [FAULT_LATE_REVOKE] = "late-revoke",
    [FAULT_LOST] = "lost",
    [FAULT_OLDER] = "older",
    [FAULT_SEEK_LATE] = "seek-late",
    [FAULT_SEEK_LOST] = "seek-lost",
    [FAULT_RANGE] = "range",
    [FAULT_RETENTION] = "retention",
    [FAULT_GAP] = "gap",
    [FAULT_RECREATE] = "recreate",
    [FAULT_PARTITIONS] = "partitions",
    [FAULT_CUT_BEFORE] = "cut-before",
    [FAULT_CUT_HALF] = "cut-half",
    [FAULT_CUT_AFTER] = "cut-after",
    [FAULT_CUT_LATE] = "cut-late",
    [FAULT_CRASH] = "crash",
    [FAULT_POOLED_CRASH] = "pooled-crash",
    [FAULT_FAILOVER] = "failover",
    [FAULT_DEADLOCK] = "deadlock",
    [FAULT_LOCKER] = "locker",
    [FAULT_SLOW] = "slow",
    [FAULT_GENERATION] = "generation",
    [FAULT_ROW_DELETED] = "row-deleted",
    [FAULT_DELETE] = "delete",
};

const char *sim_fault_name(enum sim_fault fault)
{
    return names[fault];
}

static int64_t pick(struct sim_random *random, const int64_t *values, uint32_t count)
{
    return values[sim_random_below(random, count)];
}

#define PICK(random, ...)                                                                          \
    pick(random, (const int64_t[]){__VA_ARGS__},                                                   \
         sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void draw_engine(struct rcpt_engine_settings *engine, struct sim_random *random)
{
    engine->lanes = (uint32_t)PICK(random, 1, 2, 2, 4, 4, 8);
    engine->connections = (uint32_t)sim_random_between(random, 1, engine->lanes);
    engine->depth = 1; /* as src/receipts/receipts.c has it */
    engine->batch_max_events = (uint32_t)PICK(random, 1, 5, 20, 100, 5000);
    engine->batch_max_bytes = (uint32_t)PICK(random, 500, 5000, 1000000);
    engine->budget_bytes = (uint64_t)PICK(random, 3000, 20000, 200000, 100000000);
    engine->linger_ms = PICK(random, 0, 0, 0, 20, 100);
    engine->idle_advance_ms = PICK(random, 0, 100, 500, 1000);
    engine->verify_interval_ms = PICK(random, 300, 1000, 2000, 5000);
    engine->rewind_timeout_ms = PICK(random, 200, 1000, 3000);
    engine->retry_min_ms = PICK(random, 5, 50);
    engine->retry_max_ms = PICK(random, 200, 1000);
    engine->wake_limit = (uint32_t)PICK(random, 1, 3, 20, 1000);
    engine->seed = sim_random_next(random);
}

static void draw_traffic(struct sim_plan *plan, struct sim_random *random)
{
    plan->topics = (uint32_t)PICK(random, 1, 1, 2);
    plan->partitions = (uint32_t)PICK(random, 1, 2, 3);
    plan->records = (uint32_t)sim_random_between(random, 10, PICK(random, 60, 200, 400));
    plan->events_per_record = (uint32_t)PICK(random, 1, 5, 20, 20);
    plan->messages = (uint32_t)PICK(random, 5, 30, 150, 600);
    plan->campaigns = (uint32_t)PICK(random, 1, 3);
    plan->copy_percent = (uint32_t)PICK(random, 0, 10, 40);
    plan->reject_percent = (uint32_t)PICK(random, 0, 2, 10);
    plan->gap_percent = (uint32_t)PICK(random, 0, 5, 25);
    plan->poison_percent = (uint32_t)PICK(random, 0, 0, 1, 5);
    if (plan->messages < 30) /* with one of five receipts refused a schedule takes too long */
        plan->poison_percent = 0;
    plan->late_percent = (uint32_t)PICK(random, 0, 10, 40);
    plan->load_ms = PICK(random, 2000, 6000, 15000);
}

static void draw_platform(struct sim_plan *plan, struct sim_random *random)
{
    plan->unknown = (enum sim_unknown)PICK(random, UNKNOWN_PARK, UNKNOWN_PARK, UNKNOWN_PARK,
                                           UNKNOWN_INSERT, UNKNOWN_DEAD_LETTER);
    plan->skip_gaps = sim_random_chance(random, 50);
    plan->cooperative = sim_random_chance(random, 50);
    plan->platform_synchronous = sim_random_chance(random, 30);
    plan->parked_max_age_ms = PICK(random, 1000, 5000, 3600000);
    plan->parked_poll_ms = PICK(random, 100, 300, 1000);
    plan->parked_max_rows = (uint32_t)PICK(random, 20, 1000000, 1000000);
    if (plan->parked_max_age_ms >
        60000) /* a full backlog that never ages stops the instance for good, as it should */
        plan->parked_max_rows = 1000000;
    plan->lock_timeout_ms = PICK(random, 500, 2000);
    plan->zombie_timeout_ms = PICK(random, 2000, 4000);
    plan->session_timeout_ms = PICK(random, 500, 2000);
    plan->idle_timeout_ms = PICK(random, 300, 1000, 5000);
    plan->network_us = PICK(random, 500, 3000, 30000);
    plan->hold_us = PICK(random, 500, 5000, 50000);
}

/* Every rule in most schedules: what one counts must not depend on the others. */
static void draw_rules(struct sim_plan *plan, struct sim_random *random)
{
    uint32_t share = (uint32_t)PICK(random, 100, 100, 50, 0);
    plan->dedup = sim_random_chance(random, share);
    plan->series = sim_random_chance(random, share / 2 + share % 2);
    plan->reasons = sim_random_chance(random, share);
    plan->gateways = sim_random_chance(random, share);
    plan->times = sim_random_chance(random, share);
    plan->folds = sim_random_chance(random, share);
    plan->dimensions = sim_random_chance(random, share) ? 2 : 0;
    plan->groups = sim_random_chance(random, share) ? 2 : 0;
    plan->links = sim_random_chance(random, share);
    plan->costs = sim_random_chance(random, share);
}

/* Ends that need an operator come seldom, and at most one kind in a schedule: they end liveness. */
static void draw_ends(struct sim_plan *plan, struct sim_random *random)
{
    static const enum sim_fault ends[] = {FAULT_RECREATE, FAULT_ROW_DELETED, FAULT_GAP};
    for (uint32_t index = 0; index < sizeof(ends) / sizeof(ends[0]); index++)
        plan->fault_ms[ends[index]] = 0;
    if (sim_random_chance(random, 15))
        plan->fault_ms[ends[sim_random_below(random, 3)]] = plan->load_ms / 2;
}

static void draw_faults(struct sim_plan *plan, struct sim_random *random)
{
    uint32_t share = (uint32_t)PICK(random, 0, 10, 30, 60);
    for (int fault = 0; fault < FAULT__COUNT; fault++) {
        int64_t mean_ms = PICK(random, 200, 1000, 4000);
        plan->fault_ms[fault] = sim_random_chance(random, share) ? mean_ms : 0;
    }
    draw_ends(plan, random);
    /* Without periodic verification only a new connection shows that the database went back. So
     * verification stays on where a pooler hides the crash, or a row was deleted. */
    bool hidden = plan->fault_ms[FAULT_POOLED_CRASH] > 0 || plan->fault_ms[FAULT_ROW_DELETED] > 0;
    if (!hidden && sim_random_chance(random, 40))
        plan->engine.verify_interval_ms = INT64_MAX / 4;
}

static void limit(uint32_t *value, uint32_t most)
{
    if (most > 0 && *value > most)
        *value = most;
}

static void apply_limits(struct sim_plan *plan, const struct sim_limits *limits)
{
    limit(&plan->instances, limits->instances);
    limit(&plan->topics, limits->topics);
    limit(&plan->partitions, limits->partitions);
    limit(&plan->records, limits->records);
    limit(&plan->engine.lanes, limits->lanes);
    limit(&plan->engine.connections, plan->engine.lanes);
    if (limits->load_ms > 0 && plan->load_ms > limits->load_ms)
        plan->load_ms = limits->load_ms;
    for (int fault = 0; fault < FAULT__COUNT; fault++) {
        if (limits->without & (1u << fault))
            plan->fault_ms[fault] = 0;
    }
}

void sim_plan_draw(struct sim_plan *plan, uint64_t seed, const struct sim_limits *limits)
{
    struct sim_random random = {seed * UINT64_C(0x2545f4914f6cdd1d) + 1};
    memset(plan, 0, sizeof(*plan));
    plan->seed = seed;
    plan->instances = (uint32_t)PICK(&random, 1, 2, 2, 3, 4);
    draw_engine(&plan->engine, &random);
    draw_traffic(plan, &random);
    draw_platform(plan, &random);
    draw_rules(plan, &random);
    draw_faults(plan, &random);
    apply_limits(plan, limits);
}

void sim_plan_print(const struct sim_plan *plan, FILE *out)
{
    const struct rcpt_engine_settings *engine = &plan->engine;
    fprintf(out,
            "%u instances, %u topics x %u partitions, %u records, %u messages, %u lanes on %u "
            "connections, depth %u, batch %u, faults:",
            plan->instances, plan->topics, plan->partitions, plan->records, plan->messages,
            engine->lanes, engine->connections, engine->depth, engine->batch_max_events);
    for (int fault = 0; fault < FAULT__COUNT; fault++) {
        if (plan->fault_ms[fault] > 0)
            fprintf(out, " %s", names[fault]);
    }
    fprintf(out, "\n");
}
