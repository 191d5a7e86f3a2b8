/* Plays one seed from start to end: makes the world, runs the clock, lets the ledger judge, and
 * reports. Called by campaign.c.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "database.h"
#include "faults.h"
#include "instance.h"
#include "oracle.h"
#include "simulation.h"
#include "traffic.h"

#define SETTLE_US INT64_C(240000000) /* after the faults everything is done within this */
#define CHECK_US  500000             /* and is checked for this often */
#define MAX_STEPS 20000000

/* An assertion of the core aborts; here it ends the schedule and is reported as an anomaly. */
static sigjmp_buf aborted;

static void on_abort(int number)
{
    siglongjmp(aborted, number);
}

void sim_trace(struct sim *sim, uint64_t what)
{
    sim->trace = (sim->trace ^ what) * UINT64_C(0x100000001b3);
    sim->trace ^= sim->trace >> 29;
}

void sim_say(struct sim *sim, const char *format, ...)
{
    va_list arguments;
    if (sim->log == NULL)
        return;
    fprintf(sim->log, "%10.3f ", (double)sim->clock.now_us / 1000);
    va_start(arguments, format);
    vfprintf(sim->log, format, arguments);
    va_end(arguments);
    fprintf(sim->log, "\n");
}

void sim_anomaly(struct sim *sim, const char *name, const char *format, ...)
{
    va_list arguments;
    if (sim->anomaly != NULL)
        return;
    va_start(arguments, format);
    vsnprintf(sim->detail, sizeof(sim->detail), format, arguments);
    va_end(arguments);
    sim->anomaly = name;
    sim_say(sim, "ANOMALY %s: %s", name, sim->detail);
}

void sim_cover(struct sim *sim, enum sim_fault fault, const struct sim_instance *instance,
               uint32_t connection)
{
    if (!instance->alive)
        return;
    uint32_t phases = instance->held != 0 ? 1u << PHASE_HELD : 0;
    if (sim_connections_between_flights(sim, instance, connection))
        phases |= 1u << PHASE_BETWEEN;
    for (uint32_t lane = 0; lane < sim->plan.engine.lanes; lane++) {
        if (connection >= instance->control || lane % instance->control == connection)
            phases |= sim_phases_of_lane(instance->engine, lane);
    }
    /* The control connection serves no lane. A fault of it counts only for what the instance does:
     * reading positions of an assignment. */
    if (connection == instance->control)
        phases &= 1u << PHASE_HELD;
    for (uint32_t phase = 0; phase < PHASE__COUNT; phase++)
        sim->coverage->hits[fault][phase] += phases >> phase & 1;
}

/* ---- production ---- */

static void on_produce(struct sim *sim, const struct sim_task *task)
{
    sim_traffic_produce(sim, task->a);
    sim_consumer_on_append(sim, task->a);
}

static void schedule_production(struct sim *sim)
{
    struct sim_random *random = &sim->traffic_random;
    for (uint32_t record = 0; record < sim->plan.records; record++) {
        uint32_t topic = sim_random_below(random, sim->plan.topics);
        uint32_t number = sim_random_below(random, sim->plan.partitions);
        sim_after(sim, sim_random_between(random, 0, sim->plan.load_ms * 1000), on_produce,
                  topic * SIM_TOPIC_PARTS + number, 0, 0);
    }
}

/* ---- the course ---- */

static void run_until(struct sim *sim, int64_t until_us)
{
    struct sim_task task;
    while (sim->anomaly == NULL && sim_clock_take(&sim->clock, until_us, &task)) {
        sim_trace(sim, (uint64_t)task.at_us * 8 + task.instance);
        if (task.instance != 0)
            sim_instance_run(sim, &task);
        else
            task.run(sim, &task);
        if (++sim->steps > MAX_STEPS)
            sim_anomaly(sim, "busy", "no end after %d steps", MAX_STEPS);
    }
}

static void start(struct sim *sim)
{
    uint64_t seed = sim->plan.seed;
    sim->traffic_random.state = seed * 4 + 1;
    sim->kafka_random.state = (seed * 4 + 2) * UINT64_C(0x9e3779b97f4a7c15);
    sim->server_random.state = (seed * 4 + 3) * UINT64_C(0xd1342543de82ef95);
    sim->fault_random.state = (seed * 4 + 4) * UINT64_C(0xaf251af3b0f025b5);
    sim_traffic_init(sim);
    sim_database_init(sim);
    sim_group_init(sim);
    sim_instances_init(sim);
    sim_platform_start(sim);
    schedule_production(sim);
    sim_faults_start(sim);
}

static void finish(struct sim *sim)
{
    sim_instances_fini(sim);
    sim_group_fini(sim);
    sim_database_fini(sim);
    sim_traffic_fini(sim);
    sim_clock_fini(&sim->clock);
}

static void settle(struct sim *sim)
{
    int64_t until_us = sim->clock.now_us + SETTLE_US;
    sim_faults_stop(sim);
    while (sim->anomaly == NULL && sim->clock.now_us < until_us) {
        run_until(sim, sim->clock.now_us + CHECK_US);
        /* Some time must pass: instances come back, the group settles. */
        if (sim->clock.now_us > until_us - SETTLE_US + 20000000 &&
            sim_oracle_unfinished(sim) == NULL)
            break;
    }
    const char *open = sim_oracle_unfinished(sim);
    if (sim->anomaly == NULL && open != NULL)
        sim_anomaly(sim, "stuck", "%lld s after the last fault %s",
                    (long long)(SETTLE_US / 1000000), open);
    if (sim->anomaly == NULL)
        sim_oracle_check_end(sim);
}

static void play(struct sim *sim)
{
    start(sim);
    run_until(sim, sim->plan.load_ms * 1000);
    settle(sim);
}

static void report(const struct sim *sim, struct sim_outcome *outcome)
{
    outcome->trace = sim->trace;
    outcome->receipts = sim->traffic.receipts;
    outcome->virtual_ms = sim_now_ms(sim);
    if (sim->anomaly == NULL)
        return;
    snprintf(outcome->anomaly, sizeof(outcome->anomaly), "%s", sim->anomaly);
    memcpy(outcome->detail, sim->detail, sizeof(outcome->detail));
}

void sim_play(uint64_t seed, const struct sim_limits *limits, struct sim_coverage *coverage,
              FILE *log, struct sim_outcome *outcome)
{
    struct sim *sim = rcpt_calloc(1, sizeof(*sim));
    static const int ends[] = {SIGABRT, SIGSEGV, SIGBUS};
    struct sigaction action = {.sa_handler = on_abort}, before[3];
    memset(outcome, 0, sizeof(*outcome));
    sim_plan_draw(&sim->plan, seed, limits);
    sim->coverage = coverage;
    sim->log = log;
    sigemptyset(&action.sa_mask);
    for (size_t at = 0; at < sizeof(ends) / sizeof(ends[0]); at++)
        sigaction(ends[at], &action, &before[at]);
    if (sigsetjmp(aborted, 1) == 0) {
        play(sim);
        report(sim, outcome);
        finish(sim);
    } else { /* what was allocated is given up */
        sim_anomaly(sim, "assertion", "an assertion of the core failed, see above");
        report(sim, outcome);
    }
    for (size_t at = 0; at < sizeof(ends) / sizeof(ends[0]); at++)
        sigaction(ends[at], &before[at], NULL);
    free(sim);
}
