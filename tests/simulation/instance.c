/* One instance of the daemon: the real engine and assignment machine, with ports into the simulated
 * world; its start, its crash, its end. Called by play.c and faults.c.
 */
#include "instance.h"

#include <stdlib.h>
#include <string.h>

#include "oracle.h"

#define TICK_US       50000
#define EVICT_US      1000000
#define BLOCKED_MS    1500
#define STOP_DEADLINE 5000000

int64_t sim_now_ms(const struct sim *sim)
{
    return sim->clock.now_us / 1000;
}

uint32_t sim_slot(struct sim_instance *instance, uint32_t part)
{
    return rcpt_engine_slot(instance->engine, sim_topic_name(part), sim_partition(part));
}

uint32_t sim_part(const struct sim_instance *instance, uint32_t slot)
{
    const char *topic = rcpt_engine_slot_topic(instance->engine, slot);
    uint32_t number = (uint32_t)rcpt_engine_slot_partition(instance->engine, slot);
    return number + (strcmp(topic, sim_topic_name(0)) == 0 ? 0 : SIM_TOPIC_PARTS);
}

uint32_t sim_assigned_parts(struct sim_instance *instance)
{
    uint32_t parts = 0;
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(instance->engine); slot++) {
        if (rcpt_engine_is_assigned(instance->engine, slot))
            parts |= 1u << sim_part(instance, slot);
    }
    return parts;
}

void sim_instance_after(struct sim *sim, const struct sim_instance *instance, int64_t delay_us,
                        void (*run)(struct sim *, const struct sim_task *), uint32_t a, uint32_t b)
{
    sim_clock_add(
        &sim->clock, sim->clock.now_us + delay_us,
        (struct sim_task){
            .run = run, .instance = instance->number + 1, .life = instance->life, .a = a, .b = b});
}

/* ---- ports that are no requests ---- */

static void port_rewind(void *context, uint32_t slot, int64_t offset)
{
    const struct sim_instance *instance = context;
    rcpt_assignment_rewind(instance->assignment, slot, offset);
}

static void port_reassign(void *context, uint32_t slot, int64_t offset)
{
    const struct sim_instance *instance = context;
    rcpt_assignment_reassign(instance->assignment, slot, offset);
}

static void port_refresh(void *context, uint32_t slot)
{
    const struct sim_instance *instance = context;
    rcpt_assignment_refresh(instance->assignment, slot, sim_now_ms(instance->sim));
}

static void port_halt(void *context, const struct rcpt_error *error)
{
    struct sim_instance *instance = context;
    instance->halted_for_good = true;
    /* The text names topic and partition; the rows of every partition it can mean are requested. */
    for (uint32_t part = 0; part < SIM_PARTS; part++) {
        char name[64];
        snprintf(name, sizeof(name), "topic %s partition %d ", sim_topic_name(part),
                 sim_partition(part));
        if (strstr(error->text, name) != NULL)
            sim_oracle_on_halt(instance->sim, part,
                               strstr(error->text, "no row") != NULL ? "no-row" : "anchor");
    }
}

/* ---- timers, as in receipts.c and parking.c ---- */

static void on_tick(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    rcpt_engine_tick(instance->engine, sim_now_ms(sim));
    rcpt_assignment_tick(instance->assignment, sim_now_ms(sim));
    sim_instance_check_drain(sim, instance);
    if (instance->alive)
        sim_instance_after(sim, instance, TICK_US, on_tick, 0, 0);
}

static void on_parked_timer(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    if (sim_connection_is_up(instance, instance->control) && !instance->stopping &&
        !instance->probing) {
        struct sim_request *request = sim_request_new(REQUEST_PROBE, instance->number);
        request->parts = sim_assigned_parts(instance);
        instance->probing = true;
        sim_connection_send(sim, instance, instance->control, request);
    }
    sim_instance_after(sim, instance, sim->plan.parked_poll_ms * 1000, on_parked_timer, 0, 0);
}

static void on_evict_timer(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    uint32_t own[SIM_LANES], count = 0;
    for (uint32_t connection = 0; connection < instance->control; connection++) {
        const struct sim_connection *one = &instance->connections[connection];
        if (one->up && one->pending != NULL &&
            sim_now_ms(sim) - one->pending->arrives_us / 1000 > BLOCKED_MS)
            own[count++] = one->backend;
    }
    if (count > 0 && sim_connection_is_up(instance, instance->control) && !instance->stopping)
        sim_server_evict(sim, own, count);
    sim_instance_after(sim, instance, EVICT_US, on_evict_timer, 0, 0);
}

/* ---- life ---- */

static void on_joined(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    sim_positions_learn(sim, instance);
    sim_group_join(sim, instance->number);
}

void sim_instance_start(struct sim *sim, uint32_t number)
{
    struct sim_instance *instance = sim->instances[number];
    uint32_t life = instance->life + 1, capacity = instance->deferred_capacity;
    struct sim_task *deferred = instance->deferred;
    if (instance->alive)
        return;
    memset(instance, 0, sizeof(*instance));
    instance->number = number;
    instance->life = life;
    instance->alive = true;
    instance->deferred = deferred;
    instance->deferred_capacity = capacity;
    instance->control = sim->plan.engine.connections;
    instance->sim = sim;
    struct rcpt_engine_ports ports = {.context = instance,
                                      .submit = sim_port_submit,
                                      .read_positions = sim_port_read_positions,
                                      .rewind = port_rewind,
                                      .reassign = port_reassign,
                                      .refresh = port_refresh,
                                      .halt = port_halt};
    struct rcpt_engine_settings settings = sim->plan.engine;
    settings.seed += number * 1000 + life;
    instance->engine = rcpt_engine_new(&settings, sim->traffic.ladder, &ports);
    instance->decoder = rcpt_decoder_new(sim->traffic.ladder, settings.lanes);
    rcpt_decoder_set_rules(instance->decoder, sim->plan.dedup);
    sim_positions_start(sim, instance);
    sim_say(sim, "instance %u: starts, life %u", number, life);
    sim_group_forget(sim, number);
    sim_connections_start(sim, instance);
    sim_instance_after(sim, instance, sim_random_delay(&sim->kafka_random, 300000), on_joined, 0,
                       0);
    sim_instance_after(sim, instance, TICK_US, on_tick, 0, 0);
    sim_instance_after(sim, instance, sim->plan.parked_poll_ms * 1000, on_parked_timer, 0, 0);
    sim_instance_after(sim, instance, EVICT_US, on_evict_timer, 0, 0);
}

void sim_instance_kill(struct sim *sim, uint32_t number, enum sim_fault how)
{
    struct sim_instance *instance = sim->instances[number];
    if (!instance->alive)
        return;
    sim_say(sim, "instance %u: ends", number);
    instance->alive = instance->paused = false;
    instance->deferred_count = 0;
    sim_connections_fini(sim, instance, how);
    rcpt_assignment_free(instance->assignment);
    rcpt_engine_free(instance->engine);
    rcpt_decoder_free(instance->decoder);
    instance->engine = NULL;
    instance->assignment = NULL;
    instance->decoder = NULL;
}

void sim_instance_stop(struct sim *sim, uint32_t number)
{
    struct sim_instance *instance = sim->instances[number];
    if (!instance->alive || instance->stopping)
        return;
    instance->stopping = true;
    instance->stop_by_us = sim->clock.now_us + STOP_DEADLINE;
    rcpt_engine_stop(instance->engine);
}

void sim_instance_check_drain(struct sim *sim, struct sim_instance *instance)
{
    if (!instance->alive || !instance->stopping)
        return;
    bool settled = rcpt_engine_is_settled(instance->engine);
    if (!settled && sim->clock.now_us < instance->stop_by_us)
        return;
    sim_group_leave(sim, instance->number, 1000);
    sim_instance_kill(sim, instance->number, FAULT_CUT_AFTER);
}

/* ---- stopped (SIGSTOP) ---- */

static void on_resume(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->a];
    if (!instance->alive || instance->life != task->b || !instance->paused)
        return;
    instance->paused = false;
    sim_say(sim, "instance %u: goes on", instance->number);
    for (uint32_t connection = 0; connection <= instance->control; connection++) {
        if (sim_connection_is_up(instance, connection))
            sim_server_rest(sim, instance->connections[connection].backend);
    }
    /* In the order of arrival; a task may stop the instance again, or end it. */
    uint32_t done = 0;
    while (instance->alive && !instance->paused && done < instance->deferred_count) {
        struct sim_task next = instance->deferred[done++];
        sim_instance_run(sim, &next);
        if (sim->anomaly != NULL)
            return;
    }
    if (!instance->alive || done == 0)
        return;
    memmove(instance->deferred, instance->deferred + done,
            (instance->deferred_count - done) * sizeof(*instance->deferred));
    instance->deferred_count -= done;
}

void sim_instance_pause(struct sim *sim, uint32_t number, int64_t for_us)
{
    struct sim_instance *instance = sim->instances[number];
    if (!instance->alive || instance->paused)
        return;
    sim_say(sim, "instance %u: stands still for %lld ms", number, (long long)for_us / 1000);
    instance->paused = true;
    for (uint32_t connection = 0; connection < instance->control; connection++) {
        if (sim_connection_is_up(instance, connection) && sim_random_chance(&sim->fault_random, 50))
            sim_server_hold_back(sim, instance->connections[connection].backend);
    }
    sim_after(sim, for_us, on_resume, number, instance->life, 0);
}

static void defer(struct sim_instance *instance, const struct sim_task *task)
{
    if (instance->deferred_count == instance->deferred_capacity) {
        instance->deferred_capacity = instance->deferred_capacity * 2 + 32;
        instance->deferred = rcpt_realloc(instance->deferred, instance->deferred_capacity *
                                                                  sizeof(*instance->deferred));
    }
    instance->deferred[instance->deferred_count++] = *task;
}

void sim_instance_run(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    if (!instance->alive || instance->life != task->life)
        return;
    if (instance->paused) {
        defer(instance, task);
        return;
    }
    task->run(sim, task);
    /* Ticks that change nothing are many, and the check walks all queues. */
    bool skipped = task->run == on_tick && instance->checks++ % 8 != 0;
    if (instance->alive && !skipped)
        rcpt_engine_check(instance->engine);
}

void sim_instances_init(struct sim *sim)
{
    for (uint32_t number = 0; number < sim->plan.instances; number++) {
        sim->instances[number] = rcpt_calloc(1, sizeof(struct sim_instance));
        sim->instances[number]->number = number;
        sim_instance_start(sim, number);
    }
}

void sim_instances_fini(struct sim *sim)
{
    for (uint32_t number = 0; number < sim->plan.instances; number++) {
        sim_instance_kill(sim, number, FAULT_CUT_BEFORE);
        free(sim->instances[number]->deferred);
        free(sim->instances[number]);
    }
}
