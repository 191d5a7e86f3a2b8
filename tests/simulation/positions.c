/* From an assignment of the group to offsets to start at, as src/app/positions.c does it. */
#include "instance.h"

#define RETRY_US 1000000

static void retry_later(struct sim *sim, struct sim_instance *instance, int64_t delay_us)
{
    instance->assignment.retry_at_us = sim->clock.now_us + delay_us;
    instance->assignment.state = ASSIGNMENT_WAITING;
}

void sim_positions_step(struct sim *sim, struct sim_instance *instance)
{
    struct sim_assignment *assignment = &instance->assignment;
    if (assignment->state != ASSIGNMENT_WAITING || instance->stopping ||
        !sim_connection_is_up(instance, instance->control) ||
        sim->clock.now_us < assignment->retry_at_us)
        return;
    struct sim_request *request = sim_request_new(REQUEST_PINS, instance->number);
    request->serial = assignment->serial;
    assignment->state = ASSIGNMENT_READING;
    sim_connection_send(sim, instance, instance->control, request);
}

void sim_positions_start(struct sim *sim, struct sim_instance *instance, uint32_t parts,
                         bool refresh)
{
    struct sim_assignment *assignment = &instance->assignment;
    assignment->serial++;
    assignment->parts = parts;
    assignment->refresh = refresh;
    retry_later(sim, instance, 0);
    sim_positions_step(sim, instance);
}

void sim_positions_withdraw(struct sim_instance *instance)
{
    instance->assignment.serial++;
    instance->assignment.parts = 0;
    instance->assignment.state = ASSIGNMENT_NONE;
}

/* ---- rows for partitions that are new ---- */

static void on_lows(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    struct sim_assignment *assignment = &instance->assignment;
    if (task->a != assignment->serial || instance->stopping)
        return;
    if (!sim_connection_is_up(instance, instance->control)) {
        retry_later(sim, instance, 0);
        return;
    }
    struct sim_request *request = sim_request_new(REQUEST_BOOTSTRAP, instance->number);
    request->serial = assignment->serial;
    request->topic = assignment->new_topic;
    request->from = assignment->new_from;
    request->to = assignment->new_to;
    for (uint32_t number = request->from; number < request->to; number++)
        request->lows[number - request->from] =
            sim->traffic.logs[request->topic * SIM_TOPIC_PARTS + number].low;
    assignment->state = ASSIGNMENT_INSERTING;
    sim_connection_send(sim, instance, instance->control, request);
}

static uint32_t needed_partitions(const struct sim_instance *instance, uint32_t topic)
{
    uint32_t needed = instance->topic_parts[topic];
    for (uint32_t number = needed; number < SIM_TOPIC_PARTS; number++) {
        if (instance->assignment.parts >> (topic * SIM_TOPIC_PARTS + number) & 1)
            needed = number + 1;
    }
    return needed;
}

static bool pins_are_good(struct sim *sim, struct sim_instance *instance,
                          const struct sim_request *request)
{
    struct sim_assignment *assignment = &instance->assignment;
    for (uint32_t part = 0; part < SIM_PARTS; part++) {
        uint32_t topic = part / SIM_TOPIC_PARTS;
        if (!(assignment->parts >> part & 1))
            continue;
        uint32_t have = request->pins[topic].exists ? request->pins[topic].partitions : 0;
        uint32_t needed = needed_partitions(instance, topic);
        if (have >= needed)
            continue;
        assignment->new_topic = topic;
        assignment->new_from = have;
        assignment->new_to = needed;
        assignment->state = ASSIGNMENT_QUERYING;
        sim_instance_after(sim, instance, sim_random_delay(&sim->kafka_random, 200000), on_lows,
                           assignment->serial, 0);
        return false;
    }
    return true;
}

/* ---- rows ---- */

struct found {
    int64_t next[SIM_LANES], generation;
    struct rcpt_engine_anchor anchor; /* of the lane that is furthest behind */
    uint32_t count;
};

static struct found collect(const struct sim *sim, const struct sim_row *rows)
{
    struct found found = {.anchor = {.offset = -1}};
    int64_t lowest = INT64_MAX;
    for (uint32_t lane = 0; lane < sim->plan.engine.lanes; lane++) {
        if (!rows[lane].exists)
            continue;
        found.next[lane] = rows[lane].next;
        found.generation = rows[lane].generation;
        found.count++;
        if (rows[lane].next >= lowest)
            continue;
        lowest = rows[lane].next;
        found.anchor = (struct rcpt_engine_anchor){
            rows[lane].anchor_offset, rows[lane].anchor_timestamp_ms, rows[lane].anchor_crc};
    }
    return found;
}

/* Nothing of an assignment is consumed where rows are missing. */
static bool rows_are_there(struct sim *sim, struct sim_instance *instance,
                           const struct sim_request *request)
{
    for (uint32_t part = 0; part < SIM_PARTS; part++) {
        if (!(instance->assignment.parts >> part & 1) ||
            collect(sim, request->rows[part]).count == sim->plan.engine.lanes)
            continue;
        instance->halted |= instance->assignment.parts;
        sim_instance_halt(sim, instance, part, "no-row");
        return false;
    }
    return true;
}

static void give_position(struct sim *sim, struct sim_instance *instance, uint32_t part,
                          const struct sim_row *rows)
{
    struct found found = collect(sim, rows);
    int64_t start = rcpt_engine_assign(instance->engine, sim_slot(instance, part), found.generation,
                                       found.next, &found.anchor, sim_now_ms(sim));
    if (instance->assignment.refresh)
        sim_consumer_reassign(sim, instance, part, start);
    else
        sim_consumer_assign(sim, instance, part, start);
}

static void give_positions(struct sim *sim, struct sim_instance *instance,
                           const struct sim_request *request)
{
    const struct sim_assignment *assignment = &instance->assignment;
    if (!rows_are_there(sim, instance, request))
        return;
    for (uint32_t part = 0; part < SIM_PARTS; part++) {
        if (assignment->parts >> part & 1)
            give_position(sim, instance, part, request->rows[part]);
    }
    if (!assignment->refresh)
        instance->held = 0;
    sim_positions_withdraw(instance);
    rcpt_engine_tick(instance->engine, sim_now_ms(sim));
    sim_group_step(sim, instance);
}

void sim_positions_on_answer(struct sim *sim, struct sim_instance *instance,
                             const struct sim_request *request, bool lost)
{
    if (request->serial != instance->assignment.serial || instance->stopping)
        return;
    if (lost) {
        retry_later(sim, instance, RETRY_US);
    } else if (request->kind == REQUEST_BOOTSTRAP) {
        retry_later(sim, instance, 0);
        sim_positions_step(sim, instance);
    } else if (pins_are_good(sim, instance, request)) {
        give_positions(sim, instance, request);
    }
}
