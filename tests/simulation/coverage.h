/* "Sometimes" counters: which kind of fault met a lane in which state or phase, summed over
 * schedules. */
#ifndef SIMULATION_COVERAGE_H
#define SIMULATION_COVERAGE_H

#include <stdint.h>
#include <stdio.h>

#include "plan.h"

enum sim_phase { /* first the states of a lane, then other phases that it can be in */
                 PHASE_DOWN,
                 PHASE_UNSYNCED,
                 PHASE_READING,
                 PHASE_READY,
                 PHASE_IN_FLIGHT,
                 PHASE_WAITING,
                 PHASE_SEARCHING, /* for an event that PostgreSQL refuses */
                 PHASE_WAKING,    /* a transaction over parked rows is in flight */
                 PHASE_BETWEEN, /* two flights of its transaction: PostgreSQL waits for the client */
                 PHASE_QUEUED,  /* raw events wait */
                 PHASE_REWINDING, /* one of its partitions */
                 PHASE_COMPARING, /* the anchor's record has not come by yet */
                 PHASE_HELD,      /* the instance reads positions of an assignment */
                 PHASE__COUNT,
};

struct sim_coverage {
    uint64_t hits[FAULT__COUNT][PHASE__COUNT];
};

/* The phases of one lane as a bit mask (without PHASE_HELD). Reads the engine, changes nothing. */
uint32_t sim_phases_of_lane(const struct rcpt_engine *engine, uint32_t lane);

/* Why this cell cannot be hit; NULL if it can. */
const char *sim_coverage_impossible(enum sim_fault fault, enum sim_phase phase);
/* Number of cells that can be hit and were not. */
uint32_t sim_coverage_missing(const struct sim_coverage *coverage);
void sim_coverage_print(const struct sim_coverage *coverage, FILE *out);
void sim_coverage_add(struct sim_coverage *sum, const struct sim_coverage *other);

#endif
