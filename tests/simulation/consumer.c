/* Kafka's deliveries to one instance: a session for each assigned partition, as src/kafka behaves.
 */
#include "instance.h"
#include "traffic.h"

#define POLL_US       20000 /* until a partition that is not polled is checked again */
#define BURST_RECORDS 12
#define STALE_RECORDS 6

static void deliver_soon(struct sim *sim, struct sim_instance *instance, uint32_t part,
                         int64_t delay_us);

static bool has_fault(const struct sim *sim, enum sim_fault fault)
{
    return sim->plan.fault_ms[fault] > 0 && !sim->calm;
}

/* ---- what the log does not have ---- */

static void on_range(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    struct sim_session *session = &instance->sessions[task->a];
    const struct sim_log *log = &sim->traffic.logs[task->a];
    if (session->epoch == task->b && session->assigned)
        rcpt_assignment_on_out_of_range(instance->assignment, sim_slot(instance, task->a),
                                        session->position, log->low, log->high, sim_now_ms(sim));
}

static void out_of_range(struct sim *sim, struct sim_instance *instance, uint32_t part)
{
    struct sim_session *session = &instance->sessions[part];
    session->out_of_range = true;
    sim_instance_after(sim, instance, sim_random_delay(&sim->kafka_random, 300000), on_range, part,
                       session->epoch);
}

/* ---- deliveries ---- */

static void deliver_one(struct sim *sim, struct sim_instance *instance, uint32_t part,
                        const struct sim_record *record)
{
    uint32_t slot = sim_slot(instance, part);
    if (!rcpt_engine_admits(instance->engine, slot, record->offset))
        return;
    uint32_t number = (uint32_t)(record - sim->traffic.records);
    struct rcpt_record_input input = {.topic = sim_topic_name(part),
                                      .partition = sim_partition(part),
                                      .offset = record->offset,
                                      .timestamp_ms = SIM_FIRST_TIMESTAMP + number,
                                      .value = record->value,
                                      .value_size = record->size};
    sim_trace(sim, ((uint64_t)part << 40) + (uint64_t)record->offset);
    rcpt_engine_deliver_take(instance->engine, slot, rcpt_record_decode(instance->decoder, &input),
                             sim_now_ms(sim));
}

/* Until a seek takes effect, records that were fetched before it still come. */
static void count_down_seek(struct sim_session *session)
{
    if (session->seek_after > 0 && --session->seek_after == 0)
        session->position = session->seek_to;
}

/* True: there may be more to deliver at once. */
static bool deliver_burst(struct sim *sim, struct sim_instance *instance, uint32_t part)
{
    struct sim_session *session = &instance->sessions[part];
    uint32_t slot = sim_slot(instance, part), epoch = session->epoch;
    uint32_t burst = (uint32_t)sim_random_between(&sim->kafka_random, 1, BURST_RECORDS);
    for (; burst > 0; burst--) {
        if (!rcpt_engine_wants(instance->engine, slot) ||
            session->position < sim->traffic.logs[part].low)
            break;
        const struct sim_record *record = sim_traffic_next(sim, part, session->position);
        if (record == NULL) {
            if (session->seek_after == 0)
                return false;
            session->seek_after = 1; /* nothing was fetched ahead: the seek is first */
            count_down_seek(session);
            continue;
        }
        session->position = record->offset + 1;
        deliver_one(sim, instance, part, record);
        count_down_seek(session);
        if (epoch != session->epoch || session->moving)
            return false;
    }
    return true;
}

static void step_back(struct sim *sim, struct sim_instance *instance, uint32_t part)
{
    struct sim_session *session = &instance->sessions[part];
    int64_t low = sim->traffic.logs[part].low;
    if (!has_fault(sim, FAULT_OLDER) || session->position < low ||
        session->position > sim->traffic.logs[part].high ||
        !sim_random_chance(&sim->kafka_random, 5))
        return;
    sim_cover(sim, FAULT_OLDER, instance, UINT32_MAX);
    session->position -= sim_random_between(&sim->kafka_random, 1, 15);
    if (session->position < low)
        session->position = low;
}

static void on_deliver(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    struct sim_session *session = &instance->sessions[task->a];
    const struct sim_log *log = &sim->traffic.logs[task->a];
    if (session->epoch != task->b)
        return;
    session->scheduled = false;
    if (!session->assigned || session->moving || session->out_of_range ||
        session->incarnation != log->incarnation || instance->stopping)
        return;
    step_back(sim, instance, task->a);
    bool lies = has_fault(sim, FAULT_RANGE) && sim_random_chance(&sim->kafka_random, 2);
    if (lies)
        sim_cover(sim, FAULT_RANGE, instance, UINT32_MAX);
    if (lies || session->position < log->low || session->position > log->high) {
        out_of_range(sim, instance, task->a);
        return;
    }
    bool more = deliver_burst(sim, instance, task->a);
    rcpt_engine_tick(instance->engine, sim_now_ms(sim));
    if (session->epoch != task->b)
        return;
    bool wanted = rcpt_engine_wants(instance->engine, sim_slot(instance, task->a));
    if (more || !wanted)
        deliver_soon(sim, instance, task->a,
                     wanted ? sim_random_delay(&sim->kafka_random, 10000) : POLL_US);
}

static void deliver_soon(struct sim *sim, struct sim_instance *instance, uint32_t part,
                         int64_t delay_us)
{
    struct sim_session *session = &instance->sessions[part];
    if (session->scheduled)
        return;
    session->scheduled = true;
    sim_instance_after(sim, instance, delay_us, on_deliver, part, session->epoch);
}

void sim_consumer_on_append(struct sim *sim, uint32_t part)
{
    for (uint32_t number = 0; number < sim->plan.instances; number++) {
        struct sim_instance *instance = sim->instances[number];
        if (instance->alive && instance->sessions[part].assigned)
            deliver_soon(sim, instance, part, sim_random_delay(&sim->kafka_random, 20000));
    }
}

/* ---- positions ---- */

static void begin_at(struct sim *sim, struct sim_instance *instance, uint32_t part, int64_t offset)
{
    struct sim_session *session = &instance->sessions[part];
    session->moving = session->out_of_range = session->scheduled = false;
    session->position = offset;
    session->seek_after = 0;
    deliver_soon(sim, instance, part, sim_random_delay(&sim->kafka_random, 30000));
}

void sim_consumer_assign(struct sim *sim, struct sim_instance *instance, uint32_t part,
                         int64_t offset)
{
    struct sim_session *session = &instance->sessions[part];
    session->assigned = true;
    session->epoch++;
    session->incarnation = sim->traffic.logs[part].incarnation;
    begin_at(sim, instance, part, offset);
}

void sim_consumer_remove(struct sim_instance *instance, uint32_t part)
{
    struct sim_session *session = &instance->sessions[part];
    session->assigned = session->scheduled = false;
    session->epoch++;
}

static void on_moved(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    struct sim_session *session = &instance->sessions[task->a];
    if (session->epoch == task->b && session->moving)
        begin_at(sim, instance, task->a, session->position);
}

/* Un-assigned and assigned: records that were fetched before can no longer come. */
void sim_consumer_reassign(struct sim *sim, struct sim_instance *instance, uint32_t part,
                           int64_t offset)
{
    struct sim_session *session = &instance->sessions[part];
    if (!session->assigned)
        return;
    session->epoch++;
    session->moving = true;
    session->scheduled = false;
    session->position = offset;
    sim_instance_after(sim, instance, sim_random_delay(&sim->kafka_random, 100000), on_moved, part,
                       session->epoch);
}

void sim_consumer_seek(struct sim *sim, struct sim_instance *instance, uint32_t part,
                       int64_t offset)
{
    struct sim_session *session = &instance->sessions[part];
    if (!session->assigned)
        return;
    if (session->out_of_range || session->moving) {
        sim_consumer_reassign(sim, instance, part, offset);
        return;
    }
    if (has_fault(sim, FAULT_SEEK_LOST) && sim_random_chance(&sim->kafka_random, 40)) {
        sim_cover(sim, FAULT_SEEK_LOST, instance, UINT32_MAX);
        return;
    }
    session->seek_to = offset;
    session->seek_after = 0;
    if (has_fault(sim, FAULT_SEEK_LATE) && sim_random_chance(&sim->kafka_random, 50)) {
        sim_cover(sim, FAULT_SEEK_LATE, instance, UINT32_MAX);
        session->seek_after = 1 + sim_random_below(&sim->kafka_random, STALE_RECORDS);
    } else {
        session->position = offset;
    }
    deliver_soon(sim, instance, part, sim_random_delay(&sim->kafka_random, 20000));
}
