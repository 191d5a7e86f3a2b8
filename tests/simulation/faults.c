/* Breaks things at random times, by the plan, until the load is over; then mends all of them, so
 * that the end can be judged. Called by play.c.
 */
#include "faults.h"

#include "instance.h"
#include "traffic.h"

static struct sim_random *dice(struct sim *sim)
{
    return &sim->fault_random;
}

static uint32_t any_instance(struct sim *sim)
{
    return sim_random_below(dice(sim), sim->plan.instances);
}

static uint32_t any_part(struct sim *sim)
{
    uint32_t topic = sim_random_below(dice(sim), sim->plan.topics);
    return topic * SIM_TOPIC_PARTS + sim_random_below(dice(sim), sim->traffic.topic_parts[topic]);
}

static void cover_all(struct sim *sim, enum sim_fault fault)
{
    for (uint32_t number = 0; number < sim->plan.instances; number++)
        sim_cover(sim, fault, sim->instances[number], UINT32_MAX);
}

static void on_start(struct sim *sim, const struct sim_task *task)
{
    if (sim->instances[task->a]->stopping && sim->instances[task->a]->alive)
        sim_after(sim, 1000000, on_start, task->a, 0, 0); /* it takes longer to end */
    sim_instance_start(sim, task->a);
}

/* ---- instances ---- */

static void kill_instance(struct sim *sim)
{
    static const enum sim_fault ways[] = {FAULT_CUT_BEFORE, FAULT_CUT_HALF, FAULT_CUT_AFTER,
                                          FAULT_CUT_LATE};
    uint32_t number = any_instance(sim);
    if (!sim->instances[number]->alive)
        return;
    sim_cover(sim, FAULT_KILL, sim->instances[number], UINT32_MAX);
    sim_group_leave(sim, number, sim->plan.session_timeout_ms * 1000);
    sim_instance_kill(sim, number, ways[sim_random_below(dice(sim), 4)]);
    sim_after(sim, sim_random_delay(dice(sim), 4000000), on_start, number, 0, 0);
}

static void pause_instance(struct sim *sim)
{
    uint32_t number = any_instance(sim);
    int64_t for_us = sim_random_delay(dice(sim), 8000000);
    if (!sim->instances[number]->alive || sim->instances[number]->paused)
        return;
    sim_cover(sim, FAULT_PAUSE, sim->instances[number], UINT32_MAX);
    if (for_us > sim->plan.session_timeout_ms * 1000)
        sim_group_leave(sim, number, sim->plan.session_timeout_ms * 1000);
    sim_instance_pause(sim, number, for_us);
}

static void stop_instance(struct sim *sim)
{
    uint32_t number = any_instance(sim);
    if (!sim->instances[number]->alive)
        return;
    sim_cover(sim, FAULT_LEAVE, sim->instances[number], UINT32_MAX);
    sim_instance_stop(sim, number);
    sim_after(sim, 6000000 + sim_random_delay(dice(sim), 2000000), on_start, number, 0, 0);
}

/* ---- group and log ---- */

static void lose_assignment(struct sim *sim)
{
    uint32_t number = any_instance(sim);
    if (!sim->instances[number]->alive || sim_group_owned(sim, number) == 0)
        return;
    sim_cover(sim, FAULT_LOST, sim->instances[number], UINT32_MAX);
    sim_group_lose(sim, number);
}

static void retain(struct sim *sim, bool unapplied)
{
    uint32_t part = any_part(sim);
    struct sim_log *log = &sim->traffic.logs[part];
    int64_t low = log->high;
    for (uint32_t lane = 0; lane < sim->plan.engine.lanes && !unapplied; lane++) {
        const struct sim_row *row = &sim->database->rows[part][lane];
        if (!row->exists || row->next < low)
            low = row->exists ? row->next : 0;
    }
    if (unapplied)
        low = sim_random_between(dice(sim), log->low, log->high);
    /* Of a log that was made again the record that shows it must stay: nothing else can show it. */
    if (low <= log->low || log->made_anew > 0)
        return;
    cover_all(sim, unapplied ? FAULT_GAP : FAULT_RETENTION);
    sim_say(sim, "kafka: part %u begins at %lld now", part, (long long)low);
    log->low = low;
}

static bool has_anchors(const struct sim *sim, uint32_t part)
{
    for (uint32_t lane = 0; lane < sim->plan.engine.lanes; lane++) {
        const struct sim_row *row = &sim->database->rows[part][lane];
        if (!row->exists || row->anchor_offset < 0)
            return false;
    }
    return true;
}

/* Only where every row has a durable anchor: otherwise no consumer could notice. */
static void recreate(struct sim *sim)
{
    uint32_t part = any_part(sim);
    if (sim->traffic.logs[part].made_anew > 0 || !has_anchors(sim, part))
        return;
    sim->database->durable = sim->database->transaction_count;
    cover_all(sim, FAULT_RECREATE);
    sim_say(sim, "kafka: part %u is made again", part);
    sim_traffic_recreate(sim, part);
    for (uint32_t number = 0; number < sim->plan.instances; number++)
        sim_group_lose(sim, number);
}

static void on_rebalance(struct sim *sim, const struct sim_task *task)
{
    (void)task;
    sim_group_rebalance(sim);
}

static void add_partition(struct sim *sim)
{
    uint32_t topic = sim_random_below(dice(sim), sim->plan.topics);
    uint32_t number = sim->traffic.topic_parts[topic];
    if (number == SIM_TOPIC_PARTS)
        return;
    cover_all(sim, FAULT_PARTITIONS);
    sim->traffic.topic_parts[topic]++;
    sim->traffic.logs[topic * SIM_TOPIC_PARTS + number].exists = true;
    sim_after(sim, sim_random_delay(dice(sim), 1000000), on_rebalance, 0, 0, 0);
}

/* ---- connections and the server ---- */

static void cut(struct sim *sim, enum sim_fault how)
{
    struct sim_instance *instance = sim->instances[any_instance(sim)];
    if (!instance->alive)
        return;
    uint32_t connection = sim_random_below(dice(sim), instance->control + 1);
    if (!sim_connection_is_up(instance, connection))
        return;
    sim_cover(sim, how, instance, connection);
    sim_connection_cut(sim, instance, connection, how);
}

static void crash(struct sim *sim, enum sim_fault how)
{
    const struct sim_database *database = sim->database;
    if (sim_server_is_down(sim))
        return;
    uint32_t lost = database->transaction_count - database->durable;
    /* The replica lags behind this server's flushed WAL too; but never so far that no anchor of a
     * topic is left. */
    if (how == FAULT_FAILOVER && sim->plan.fault_ms[FAULT_RECREATE] == 0)
        lost = database->transaction_count < 30 ? database->transaction_count : 30;
    lost = (uint32_t)sim_random_between(dice(sim), 0, lost);
    cover_all(sim, how);
    sim_server_crash(sim, how == FAULT_POOLED_CRASH, lost, sim_random_delay(dice(sim), 1500000));
}

static void on_unlock(struct sim *sim, const struct sim_task *task)
{
    uint32_t *owner = &sim->traffic.messages[task->a].owner;
    if (*owner == SIM_OTHERS)
        sim_server_free(sim, owner);
}

static void lock_message(struct sim *sim)
{
    uint32_t message = sim_random_below(dice(sim), sim->traffic.message_count);
    if (!sim_server_lock_message(sim, message))
        return;
    cover_all(sim, FAULT_LOCKER);
    sim_after(sim, sim_random_delay(dice(sim), 4000000), on_unlock, message, 0, 0);
}

static void on_delete(struct sim *sim, const struct sim_task *task)
{
    struct sim_message *message = &sim->traffic.messages[task->a];
    if (message->owner != SIM_OTHERS || !message->exists)
        return; /* the server went down meanwhile */
    sim_transaction_begin(sim->database);
    sim_delete_message(sim, task->a);
    sim_transaction_end(sim, sim->plan.platform_synchronous);
    sim_server_free(sim, &message->owner);
    if (sim_random_chance(dice(sim), 50))
        sim_platform_insert_later(sim, task->a, sim_random_delay(dice(sim), 1000000));
}

static void delete_message(struct sim *sim)
{
    uint32_t message = sim_random_below(dice(sim), sim->traffic.message_count);
    if (!sim->traffic.messages[message].exists || !sim_server_lock_message(sim, message))
        return;
    cover_all(sim, FAULT_DELETE);
    sim_after(sim, sim_random_delay(dice(sim), 300000), on_delete, message, 0, 0);
}

static void raise_generation(struct sim *sim)
{
    struct sim_database *database = sim->database;
    uint32_t topic = sim_random_below(dice(sim), sim->plan.topics);
    struct sim_pin *pin = &database->pins[topic];
    if (!pin->exists || sim_server_is_down(sim))
        return;
    for (uint32_t at = 0; at < SIM_TOPIC_PARTS * SIM_LANES; at++) { /* it waits for its locks */
        if (database->row_owner[topic * SIM_TOPIC_PARTS + at / SIM_LANES][at % SIM_LANES] != 0)
            return;
    }
    cover_all(sim, FAULT_GENERATION);
    sim_transaction_begin(database);
    SIM_SET(database, pin->generation, pin->generation + 1);
    for (uint32_t at = 0; at < SIM_TOPIC_PARTS * SIM_LANES; at++) {
        struct sim_row *row =
            &database->rows[topic * SIM_TOPIC_PARTS + at / SIM_LANES][at % SIM_LANES];
        if (row->exists)
            SIM_SET(database, row->generation, pin->generation);
    }
    sim_transaction_end(sim, true);
}

static void delete_row(struct sim *sim)
{
    struct sim_database *database = sim->database;
    uint32_t part = any_part(sim), lane = sim_random_below(dice(sim), sim->plan.engine.lanes);
    struct sim_row *row = &database->rows[part][lane];
    if (!row->exists || sim_server_is_down(sim) || database->row_owner[part][lane] != 0)
        return;
    cover_all(sim, FAULT_ROW_DELETED);
    sim_transaction_begin(database);
    SIM_SET(database, row->exists, false);
    sim_transaction_end(sim, true);
    database->row_deleted[part] = true;
}

/* ---- the schedule ---- */

static void happen(struct sim *sim, enum sim_fault fault)
{
    switch (fault) {
    case FAULT_KILL:
        kill_instance(sim);
        break;
    case FAULT_PAUSE:
        pause_instance(sim);
        break;
    case FAULT_LEAVE:
        stop_instance(sim);
        break;
    case FAULT_REBALANCE:
        cover_all(sim, fault);
        sim_group_rebalance(sim);
        break;
    case FAULT_LOST:
        lose_assignment(sim);
        break;
    case FAULT_RETENTION:
    case FAULT_GAP:
        retain(sim, fault == FAULT_GAP);
        break;
    case FAULT_RECREATE:
        recreate(sim);
        break;
    case FAULT_PARTITIONS:
        add_partition(sim);
        break;
    case FAULT_CUT_BEFORE:
    case FAULT_CUT_HALF:
    case FAULT_CUT_AFTER:
    case FAULT_CUT_LATE:
        cut(sim, fault);
        break;
    case FAULT_CRASH:
    case FAULT_POOLED_CRASH:
    case FAULT_FAILOVER:
        crash(sim, fault);
        break;
    case FAULT_DEADLOCK:
        cover_all(sim, fault);
        sim_server_make_victim(sim, sim_random_below(dice(sim), 4));
        break;
    case FAULT_LOCKER:
        lock_message(sim);
        break;
    case FAULT_SLOW:
        cover_all(sim, fault);
        sim->database->slow_until_us = sim->clock.now_us + sim_random_delay(dice(sim), 2000000);
        break;
    case FAULT_GENERATION:
        raise_generation(sim);
        break;
    case FAULT_ROW_DELETED:
        delete_row(sim);
        break;
    case FAULT_DELETE:
        delete_message(sim);
        break;
    default: /* happens at deliveries, seeks and rebalances */
        break;
    }
}

static void schedule(struct sim *sim, enum sim_fault fault);

static void on_fault(struct sim *sim, const struct sim_task *task)
{
    if (sim->calm)
        return;
    sim_say(sim, "fault: %s", sim_fault_name((enum sim_fault)task->a));
    happen(sim, (enum sim_fault)task->a);
    schedule(sim, (enum sim_fault)task->a);
}

static void schedule(struct sim *sim, enum sim_fault fault)
{
    int64_t mean_us = sim->plan.fault_ms[fault] * 1000;
    sim_after(sim, sim_random_between(dice(sim), 1, 2 * mean_us), on_fault, (uint32_t)fault, 0, 0);
}

void sim_faults_start(struct sim *sim)
{
    for (int fault = 0; fault < FAULT__COUNT; fault++) {
        if (sim->plan.fault_ms[fault] > 0)
            schedule(sim, (enum sim_fault)fault);
    }
}

void sim_faults_stop(struct sim *sim)
{
    sim->calm = true;
    sim->database->slow_until_us = 0;
    sim_after(sim, 1000000, on_rebalance, 0, 0, 0);
}
