/* Ports of the core's assignment machine (core/assignment.h): its requests go to the simulated
 * PostgreSQL and Kafka. In place of src/receipts/positions.c and consume.c. */
#include <string.h>

#include "instance.h"
#include "oracle.h"

#define CLUSTER      "simulated"
#define LADDER       "simulated"
#define HASH_VERSION 1

static bool may_ask(void *context)
{
    const struct sim_instance *instance = context;
    return sim_connection_is_up(instance, instance->control);
}

static void read_database(void *context, uint32_t serial, const uint32_t *slots, size_t count)
{
    struct sim_instance *instance = context;
    struct sim_request *request = sim_request_new(REQUEST_PINS, instance->number);
    request->serial = serial;
    instance->asked = 0;
    for (size_t index = 0; index < count; index++)
        instance->asked |= 1u << sim_part(instance, slots[index]);
    sim_connection_send(instance->sim, instance, instance->control, request);
}

/* ---- rows for partitions that are new ---- */

static uint32_t topic_of(const char *name)
{
    uint32_t topic = 0;
    while (strcmp(sim_topic_name(topic * SIM_TOPIC_PARTS), name) != 0)
        topic++;
    return topic;
}

static void on_lows(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    int64_t lows[SIM_TOPIC_PARTS];
    uint32_t first = task->b & 0xff, count = task->b >> 8;
    for (uint32_t index = 0; index < count; index++)
        lows[index] = sim->traffic.logs[first + index].low;
    rcpt_assignment_on_lows(instance->assignment, task->a, lows, sim_now_ms(sim));
}

static void query_lows(void *context, uint32_t serial, const struct rcpt_assignment_new *rows)
{
    struct sim_instance *instance = context;
    uint32_t first = topic_of(rows->topic) * SIM_TOPIC_PARTS + (uint32_t)rows->from;
    uint32_t count = (uint32_t)(rows->to - rows->from);
    sim_instance_after(instance->sim, instance,
                       sim_random_delay(&instance->sim->kafka_random, 200000), on_lows, serial,
                       first | count << 8);
}

static void insert_rows(void *context, uint32_t serial, const struct rcpt_assignment_new *rows)
{
    struct sim_instance *instance = context;
    struct sim_request *request = sim_request_new(REQUEST_BOOTSTRAP, instance->number);
    request->serial = serial;
    request->topic = topic_of(rows->topic);
    request->from = (uint32_t)rows->from;
    request->to = (uint32_t)rows->to;
    for (int32_t number = rows->from; number < rows->to; number++)
        request->lows[number - rows->from] = rows->lows[number - rows->from];
    sim_connection_send(instance->sim, instance, instance->control, request);
}

/* ---- answers ---- */

static size_t list_pins(const struct sim *sim, const struct sim_request *request,
                        struct rcpt_assignment_pin *pins)
{
    size_t count = 0;
    for (uint32_t topic = 0; topic < SIM_TOPICS; topic++) {
        if (request->pins[topic].exists)
            pins[count++] = (struct rcpt_assignment_pin){
                .topic = sim_topic_name(topic * SIM_TOPIC_PARTS),
                .cluster_id = CLUSTER,
                .ladder = LADDER,
                .lanes = sim->plan.engine.lanes,
                .hash_version = HASH_VERSION,
                .partitions = (int32_t)request->pins[topic].partitions};
    }
    return count;
}

static size_t list_rows(const struct sim *sim, struct sim_instance *instance,
                        const struct sim_request *request, struct rcpt_assignment_row *rows)
{
    size_t count = 0;
    for (uint32_t part = 0; part < SIM_PARTS; part++) {
        for (uint32_t lane = 0; lane < sim->plan.engine.lanes; lane++) {
            const struct sim_row *row = &request->rows[part][lane];
            if (!(instance->asked >> part & 1) || !row->exists)
                continue;
            rows[count++] = (struct rcpt_assignment_row){
                .slot = sim_slot(instance, part),
                .lane = lane,
                .next_offset = row->next,
                .generation = row->generation,
                .anchor = {row->anchor_offset, row->anchor_timestamp_ms, row->anchor_crc}};
        }
    }
    return count;
}

void sim_positions_on_answer(struct sim *sim, struct sim_instance *instance,
                             const struct sim_request *request, bool lost)
{
    struct rcpt_assignment *assignment = instance->assignment;
    if (!rcpt_assignment_awaits(assignment, request->serial))
        return;
    if (lost) {
        (void)rcpt_assignment_on_failed(assignment, request->serial, sim_now_ms(sim));
    } else if (request->kind == REQUEST_BOOTSTRAP) {
        rcpt_assignment_on_inserted(assignment, request->serial, sim_now_ms(sim));
    } else {
        struct rcpt_assignment_pin pins[SIM_TOPICS];
        struct rcpt_assignment_row rows[SIM_PARTS * SIM_LANES];
        struct rcpt_assignment_answer answer = {.ladder = LADDER, .pins = pins, .rows = rows};
        answer.pin_count = list_pins(sim, request, pins);
        answer.row_count = list_rows(sim, instance, request, rows);
        rcpt_assignment_on_read(assignment, request->serial, &answer, sim_now_ms(sim));
        sim_group_step(sim, instance);
    }
}

/* ---- Kafka's side ---- */

static void assign(void *context, const struct rcpt_assignment_start *starts, size_t count)
{
    struct sim_instance *instance = context;
    for (size_t index = 0; index < count; index++)
        sim_consumer_assign(instance->sim, instance, sim_part(instance, starts[index].slot),
                            starts[index].offset);
    instance->held = 0;
}

static void seek(void *context, uint32_t slot, int64_t offset)
{
    struct sim_instance *instance = context;
    sim_say(instance->sim, "instance %u: rewind of part %u to %lld", instance->number,
            sim_part(instance, slot), (long long)offset);
    sim_consumer_seek(instance->sim, instance, sim_part(instance, slot), offset);
}

static void reassign(void *context, uint32_t slot, int64_t offset)
{
    struct sim_instance *instance = context;
    sim_say(instance->sim, "instance %u: part %u is assigned again at %lld", instance->number,
            sim_part(instance, slot), (long long)offset);
    sim_consumer_reassign(instance->sim, instance, sim_part(instance, slot), offset);
}

/* As host_halt: says why and goes on with the rest. */
static void refuse(void *context, enum rcpt_assignment_refusal why, uint32_t slot,
                   const struct rcpt_error *error)
{
    static const char *const names[] = {[RCPT_REFUSED_PINS] = "pins",
                                        [RCPT_REFUSED_ROWS] = "no-row",
                                        [RCPT_REFUSED_RETENTION] = "retention",
                                        [RCPT_REFUSED_LOG_END] = "log-end"};
    struct sim_instance *instance = context;
    uint32_t part = sim_part(instance, slot);
    instance->halted |= why == RCPT_REFUSED_ROWS ? instance->asked : 1u << part;
    sim_say(instance->sim, "instance %u: part %u stands still: %s", instance->number, part,
            error->text);
    sim_oracle_on_halt(instance->sim, part, names[why]);
}

static void note(void *context, const struct rcpt_assignment_note *note)
{
    (void)context;
    (void)note;
}

static void changed(void *context)
{
    (void)context;
}

/* ---- life ---- */

void sim_positions_start(struct sim *sim, struct sim_instance *instance)
{
    const struct rcpt_assignment_settings settings = {.hash_version = HASH_VERSION,
                                                      .skip_gaps = sim->plan.skip_gaps,
                                                      .patience_ms = sim->plan.zombie_timeout_ms};
    const struct rcpt_assignment_ports ports = {.context = instance,
                                                .may_ask = may_ask,
                                                .read = read_database,
                                                .query_lows = query_lows,
                                                .insert = insert_rows,
                                                .assign = assign,
                                                .seek = seek,
                                                .reassign = reassign,
                                                .refuse = refuse,
                                                .note = note,
                                                .changed = changed};
    instance->assignment = rcpt_assignment_new(&settings, &ports, instance->engine);
    rcpt_assignment_set_cluster(instance->assignment, CLUSTER);
}

void sim_positions_learn(struct sim *sim, struct sim_instance *instance)
{
    for (uint32_t topic = 0; topic < SIM_TOPICS; topic++)
        rcpt_assignment_set_topic(instance->assignment, sim_topic_name(topic * SIM_TOPIC_PARTS),
                                  (int32_t)sim->traffic.topic_parts[topic]);
}
