/* One schedule from beginning to end, and many of them. */
#ifndef SIMULATION_SIMULATION_H
#define SIMULATION_SIMULATION_H

#include "coverage.h"

struct sim_outcome {
    char anomaly[32]; /* "": none */
    char detail[300];
    uint64_t trace;
    uint64_t receipts;
    int64_t virtual_ms;
};

/* Plays a seed. `log`: what happens, line by line; NULL: silent. */
void sim_play(uint64_t seed, const struct sim_limits *limits, struct sim_coverage *coverage,
              FILE *log, struct sim_outcome *outcome);

/* The smallest world in which the seed still fails. */
void sim_shrink(uint64_t seed, struct sim_limits *limits, struct sim_outcome *outcome);

struct sim_campaign {
    uint64_t from, seeds;
    uint32_t jobs;
    bool stop_at_first;
    bool witnesses; /* print each seed in which a fault met a state for the first time */
    struct sim_limits limits;
    struct sim_coverage coverage;
    uint64_t receipts, anomalies;
    uint64_t first_seed; /* of an anomaly */
    struct sim_outcome first;
};

/* Plays all seeds; failures are shrunk and printed with their command. */
void sim_campaign_run(struct sim_campaign *campaign);

/* `simulate` with its options; the exit code. */
int sim_main(int argc, char **argv);

#endif
