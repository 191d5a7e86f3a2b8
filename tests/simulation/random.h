/* Random numbers of a schedule: splitmix64, one independent stream for each part of the world, so
 * that switching one kind of fault off changes as little as possible of the rest. */
#ifndef SIMULATION_RANDOM_H
#define SIMULATION_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_random {
    uint64_t state;
};

static inline uint64_t sim_random_next(struct sim_random *random)
{
    uint64_t mixed = random->state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

/* Uniform in [low, high]. */
static inline int64_t sim_random_between(struct sim_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(sim_random_next(random) % (uint64_t)(high - low + 1));
}

static inline uint32_t sim_random_below(struct sim_random *random, uint32_t bound)
{
    return (uint32_t)(sim_random_next(random) % bound);
}

static inline bool sim_random_chance(struct sim_random *random, uint32_t percent)
{
    return sim_random_below(random, 100) < percent;
}

/* Mostly short, sometimes long: half the draws are below 1/8 of the bound. Never below 1. */
static inline int64_t sim_random_delay(struct sim_random *random, int64_t bound)
{
    int64_t most = sim_random_chance(random, 50) ? bound / 8 : bound;
    return sim_random_between(random, 1, most > 1 ? most : 1);
}

#endif
