/* The coordinator of the consumer group. More hostile than Kafka's: it never waits for a member to
 * give a partition back, so that late revokes make two owners. */
#include <stdlib.h>

#include "instance.h"

struct sim_group {
    bool joined[SIM_INSTANCES];
    uint32_t joins[SIM_INSTANCES];
    uint32_t owned[SIM_INSTANCES]; /* masks of partitions */
    int64_t told_us[SIM_INSTANCES];
};

void sim_group_init(struct sim *sim)
{
    sim->group = rcpt_calloc(1, sizeof(*sim->group));
}

void sim_group_fini(struct sim *sim)
{
    free(sim->group);
}

uint32_t sim_group_owned(const struct sim *sim, uint32_t number)
{
    return sim->group->owned[number];
}

/* ---- the member's side ---- */

static size_t slots_of(struct sim_instance *instance, uint32_t parts, uint32_t slots[SIM_PARTS])
{
    size_t count = 0;
    for (uint32_t part = 0; part < SIM_PARTS; part++) {
        if (parts >> part & 1)
            slots[count++] = sim_slot(instance, part);
    }
    return count;
}

static void revoke(struct sim *sim, struct sim_instance *instance, uint32_t parts)
{
    uint32_t slots[SIM_PARTS];
    size_t count = slots_of(instance, parts, slots);
    instance->held &= ~parts;
    for (uint32_t part = 0; part < SIM_PARTS; part++) {
        if (parts >> part & 1)
            sim_consumer_remove(instance, part);
    }
    rcpt_assignment_revoke(instance->assignment, slots, count, sim_now_ms(sim));
}

static bool is_taken(const struct sim_instance *instance, uint32_t part)
{
    return instance->sessions[part].assigned || (instance->held >> part & 1);
}

static uint32_t taken_parts(const struct sim_instance *instance)
{
    uint32_t parts = 0;
    for (uint32_t part = 0; part < SIM_PARTS; part++)
        parts |= is_taken(instance, part) ? 1u << part : 0;
    return parts;
}

static void handle(struct sim *sim, struct sim_instance *instance, struct sim_group_event event)
{
    uint32_t taken = taken_parts(instance);
    if (event.kind == GROUP_ASSIGN) {
        event.parts &= ~taken;
        if (event.parts == 0 || instance->stopping)
            return;
        uint32_t slots[SIM_PARTS];
        size_t count = slots_of(instance, event.parts, slots);
        instance->held = event.parts;
        sim_positions_learn(sim, instance);
        rcpt_assignment_start(instance->assignment, slots, count, sim_now_ms(sim));
        return;
    }
    uint32_t parts = event.kind == GROUP_LOST ? taken : event.parts & taken;
    if (parts != 0)
        revoke(sim, instance, parts);
}

/* A held assignment must be answered first, or revoked as a whole. */
static bool may_go_on(const struct sim_instance *instance)
{
    const struct sim_group_event *next = &instance->events[0];
    return instance->held == 0 ||
           (next->kind == GROUP_REVOKE && (instance->held & ~next->parts) == 0);
}

void sim_group_step(struct sim *sim, struct sim_instance *instance)
{
    while (instance->event_count > 0 && may_go_on(instance)) {
        struct sim_group_event event = instance->events[0];
        instance->event_count--;
        for (uint32_t at = 0; at < instance->event_count; at++)
            instance->events[at] = instance->events[at + 1];
        handle(sim, instance, event);
    }
}

static void on_told(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    struct sim_group_event event = {(enum sim_group_kind)(task->a & 0xff), task->b};
    /* Messages to the member from before it joined again are void. */
    if (task->a >> 8 != sim->group->joins[instance->number])
        return;
    if (event.kind == GROUP_LOST) { /* does not wait for anything; earlier messages are void */
        instance->event_count = 0;
        handle(sim, instance, event);
        return;
    }
    if (instance->event_count ==
        SIM_GROUP_EVENTS) { /* too long without an answer: it is expelled */
        sim_group_lose(sim, instance->number);
        return;
    }
    instance->events[instance->event_count++] = event;
    sim_group_step(sim, instance);
}

/* ---- the coordinator ---- */

static void tell(struct sim *sim, uint32_t number, enum sim_group_kind kind, uint32_t parts)
{
    struct sim_group *group = sim->group;
    int64_t delay_us = sim_random_delay(&sim->kafka_random, 200000);
    bool late = sim->plan.fault_ms[FAULT_LATE_REVOKE] > 0 && !sim->calm && kind == GROUP_REVOKE;
    if (late && sim_random_chance(&sim->kafka_random, 50)) {
        sim_cover(sim, FAULT_LATE_REVOKE, sim->instances[number], UINT32_MAX);
        delay_us += sim_random_between(&sim->kafka_random, 300000, 3000000);
    }
    int64_t at_us = sim->clock.now_us + delay_us;
    if (at_us <= group->told_us[number])
        at_us = group->told_us[number] + 1;
    group->told_us[number] = at_us;
    sim_clock_add(&sim->clock, at_us,
                  (struct sim_task){.run = on_told,
                                    .instance = number + 1,
                                    .life = sim->instances[number]->life,
                                    .a = (uint32_t)kind | group->joins[number] << 8,
                                    .b = parts});
}

static uint32_t pick_member(struct sim *sim, uint32_t part)
{
    const struct sim_group *group = sim->group;
    uint32_t joined = 0, choice;
    for (uint32_t number = 0; number < sim->plan.instances; number++) {
        if (group->joined[number] && (group->owned[number] >> part & 1) &&
            sim_random_chance(&sim->kafka_random, 60))
            return number;
        joined += group->joined[number];
    }
    choice = sim_random_below(&sim->kafka_random, joined);
    for (uint32_t number = 0;; number++) {
        if (group->joined[number] && choice-- == 0)
            return number;
    }
}

static bool has_members(const struct sim *sim)
{
    for (uint32_t number = 0; number < sim->plan.instances; number++) {
        if (sim->group->joined[number])
            return true;
    }
    return false;
}

void sim_group_rebalance(struct sim *sim)
{
    struct sim_group *group = sim->group;
    uint32_t target[SIM_INSTANCES] = {0};
    for (uint32_t part = 0; part < SIM_PARTS && has_members(sim); part++) {
        if (sim->traffic.logs[part].exists)
            target[pick_member(sim, part)] |= 1u << part;
    }
    for (uint32_t number = 0; number < sim->plan.instances; number++) {
        uint32_t owned = group->owned[number];
        uint32_t away = sim->plan.cooperative ? owned & ~target[number] : owned;
        uint32_t given = sim->plan.cooperative ? target[number] & ~owned : target[number];
        group->owned[number] = target[number];
        if (!group->joined[number])
            continue;
        if (away != 0)
            tell(sim, number, GROUP_REVOKE, away);
        if (given != 0)
            tell(sim, number, GROUP_ASSIGN, given);
    }
}

void sim_group_forget(struct sim *sim, uint32_t number)
{
    sim->group->joined[number] = false;
    sim->group->owned[number] = 0;
}

void sim_group_join(struct sim *sim, uint32_t number)
{
    sim->group->joined[number] = true;
    sim->group->joins[number]++;
    sim->group->owned[number] = 0;
    sim->group->told_us[number] = 0;
    sim_group_rebalance(sim);
}

static void on_left(struct sim *sim, const struct sim_task *task)
{
    const struct sim_instance *instance = sim->instances[task->a];
    if (instance->life != task->b && sim->group->joined[task->a])
        return; /* it has joined again */
    sim->group->joined[task->a] = false;
    sim->group->owned[task->a] = 0;
    sim_group_rebalance(sim);
    /* A member that was only silent finds out with its next request, and joins again. */
    if (instance->alive && instance->life == task->b)
        sim_group_lose(sim, task->a);
}

void sim_group_leave(struct sim *sim, uint32_t number, int64_t after_us)
{
    sim_after(sim, after_us, on_left, number, sim->instances[number]->life, 0);
}

static void on_rejoin(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    if (!instance->stopping && !sim->group->joined[instance->number])
        sim_group_join(sim, instance->number);
}

void sim_group_lose(struct sim *sim, uint32_t number)
{
    struct sim_instance *instance = sim->instances[number];
    if (!instance->alive)
        return;
    sim->group->joined[number] = false;
    sim->group->owned[number] = 0;
    tell(sim, number, GROUP_LOST, 0);
    sim_instance_after(sim, instance, sim->group->told_us[number] - sim->clock.now_us + 1000,
                       on_rejoin, 0, 0);
    sim_group_rebalance(sim);
}
