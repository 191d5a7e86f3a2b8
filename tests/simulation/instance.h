/* One instance of the daemon: the real engine, assignment machine and decoder, and ports in place
 * of src/receipts (consume.c, lanes.c, positions.c, receipts.c). */
#ifndef SIMULATION_INSTANCE_H
#define SIMULATION_INSTANCE_H

#include "database.h"
#include "receiptd/core/assignment.h"
#include "receiptd/core/record.h"

#define SIM_GROUP_EVENTS 64u

struct sim_connection {
    bool up;
    uint32_t epoch; /* changes with each loss */
    uint32_t backend, backend_life;
    struct sim_request *pending, **pending_end;
    struct sim_sender *sender; /* NULL: of `control` */
    int64_t last_arrival_us;
};

struct sim_session { /* Kafka's side of one assigned partition */
    bool assigned, moving, out_of_range, scheduled;
    uint32_t epoch;
    uint32_t incarnation; /* of the log that it reads */
    int64_t position;     /* next offset that is delivered */
    int64_t seek_to;      /* a seek that takes effect … */
    uint32_t seek_after;  /* … after so many records; 0: none */
};

enum sim_group_kind { GROUP_ASSIGN, GROUP_REVOKE, GROUP_LOST };

struct sim_group_event {
    enum sim_group_kind kind;
    uint32_t parts;
};

struct sim_instance {
    struct sim *sim;
    uint32_t number, life;
    bool alive, paused, stopping;
    int64_t stop_by_us;
    struct sim_task *deferred; /* tasks that came while it was stopped */
    uint32_t deferred_count, deferred_capacity;
    struct rcpt_engine *engine;
    struct rcpt_decoder *decoder;
    struct sim_connection connections[SIM_LANES + 1]; /* the last one used is `control` */
    uint32_t control;
    struct sim_session sessions[SIM_PARTS];
    struct rcpt_assignment *assignment;
    uint32_t asked; /* partitions whose rows were read last */
    uint32_t held;  /* partitions that the group gave and that wait for their offsets */
    struct sim_group_event events[SIM_GROUP_EVENTS];
    uint32_t event_count;
    uint32_t halted; /* partitions that host_halt has stopped */
    bool probing, halted_for_good;
    uint32_t checks;
};

/* ---- instance.c ---- */
void sim_instances_init(struct sim *sim);
void sim_instances_fini(struct sim *sim);
void sim_instance_start(struct sim *sim, uint32_t number);
/* kill -9: its requests live on as `how` says. */
void sim_instance_kill(struct sim *sim, uint32_t number, enum sim_fault how);
void sim_instance_pause(struct sim *sim, uint32_t number, int64_t for_us);
void sim_instance_stop(struct sim *sim, uint32_t number);
void sim_instance_check_drain(struct sim *sim, struct sim_instance *instance);
/* Runs a task of an instance now, later, or never. */
void sim_instance_run(struct sim *sim, const struct sim_task *task);
void sim_instance_after(struct sim *sim, const struct sim_instance *instance, int64_t delay_us,
                        void (*run)(struct sim *, const struct sim_task *), uint32_t a, uint32_t b);
int64_t sim_now_ms(const struct sim *sim);
uint32_t sim_slot(struct sim_instance *instance, uint32_t part);
uint32_t sim_part(const struct sim_instance *instance, uint32_t slot);
uint32_t sim_assigned_parts(struct sim_instance *instance);

/* ---- connections.c ---- */
void sim_connections_start(struct sim *sim, struct sim_instance *instance);
/* Whether a transaction waits for its next flight on this connection, or with `control` on any. */
bool sim_connections_between_flights(const struct sim *sim, const struct sim_instance *instance,
                                     uint32_t connection);
void sim_connections_fini(struct sim *sim, struct sim_instance *instance, enum sim_fault how);
bool sim_connection_is_up(const struct sim_instance *instance, uint32_t connection);
/* Takes the request over. */
void sim_connection_send(struct sim *sim, struct sim_instance *instance, uint32_t connection,
                         struct sim_request *request);
/* The network breaks: both ends go on by themselves. */
void sim_connection_cut(struct sim *sim, struct sim_instance *instance, uint32_t connection,
                        enum sim_fault how);
void sim_instance_lose_connection(struct sim *sim, uint32_t instance, uint32_t life,
                                  uint32_t connection, uint32_t epoch, int64_t notice_us);
void sim_instance_on_answer(struct sim *sim, const struct sim_task *task);
void sim_port_submit(void *context, const struct rcpt_batch *batch);
void sim_port_read_positions(void *context, uint32_t lane);

/* ---- positions.c ---- */
void sim_positions_start(struct sim *sim, struct sim_instance *instance);
/* Polls how many partitions the topics have. */
void sim_positions_learn(struct sim *sim, struct sim_instance *instance);
void sim_positions_on_answer(struct sim *sim, struct sim_instance *instance,
                             const struct sim_request *request, bool lost);

/* ---- consumer.c ---- */
void sim_consumer_assign(struct sim *sim, struct sim_instance *instance, uint32_t part,
                         int64_t offset);
void sim_consumer_remove(struct sim_instance *instance, uint32_t part);
void sim_consumer_seek(struct sim *sim, struct sim_instance *instance, uint32_t part,
                       int64_t offset);
void sim_consumer_reassign(struct sim *sim, struct sim_instance *instance, uint32_t part,
                           int64_t offset);
void sim_consumer_on_append(struct sim *sim, uint32_t part);

/* ---- group.c ---- */
void sim_group_init(struct sim *sim);
void sim_group_fini(struct sim *sim);
/* A process that begins is no member yet, whatever its predecessor was. */
void sim_group_forget(struct sim *sim, uint32_t number);
void sim_group_join(struct sim *sim, uint32_t number);
void sim_group_leave(struct sim *sim, uint32_t number, int64_t after_us);
void sim_group_rebalance(struct sim *sim);
void sim_group_lose(struct sim *sim, uint32_t number);
uint32_t sim_group_owned(const struct sim *sim, uint32_t number);
/* Handles the group's messages in turn; an unanswered assignment holds up the rest. */
void sim_group_step(struct sim *sim, struct sim_instance *instance);

#endif
