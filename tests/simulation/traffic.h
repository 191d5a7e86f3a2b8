/* The producer and the logs: makes records with real JSON, remembers what each of them means. */
#ifndef SIMULATION_TRAFFIC_H
#define SIMULATION_TRAFFIC_H

#include "world.h"

void sim_traffic_init(struct sim *sim);
void sim_traffic_fini(struct sim *sim);

/* Appends one record (or a gap) to the partition's log. */
void sim_traffic_produce(struct sim *sim, uint32_t part);
/* The log begins again, with another incarnation. */
void sim_traffic_recreate(struct sim *sim, uint32_t part);
/* The next record at or above the offset; NULL if there is none yet. */
const struct sim_record *sim_traffic_next(const struct sim *sim, uint32_t part, int64_t offset);
/* The record with this offset in the present log; NULL if there is none. */
const struct sim_record *sim_traffic_at(const struct sim *sim, uint32_t part, int64_t offset);

#endif
