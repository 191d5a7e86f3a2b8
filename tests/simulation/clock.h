/* Virtual time: a heap of tasks, the earliest first, equals in the order in which they were made.
 */
#ifndef SIMULATION_CLOCK_H
#define SIMULATION_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct sim;

struct sim_task {
    int64_t at_us;
    uint64_t order;
    void (*run)(struct sim *sim, const struct sim_task *task);
    uint32_t instance; /* + 1; 0: of none. Waits while the instance is paused, is void when it has
                          died. */
    uint32_t life;
    uint32_t a, b, c;
};

struct sim_clock {
    struct sim_task *heap;
    uint32_t count, capacity;
    uint64_t made;
    int64_t now_us;
};

void sim_clock_fini(struct sim_clock *clock);
void sim_clock_add(struct sim_clock *clock, int64_t at_us, struct sim_task task);
/* Takes the earliest task and moves the time to it; false if there is none before `until_us` (time
 * is `until_us` then). */
bool sim_clock_take(struct sim_clock *clock, int64_t until_us, struct sim_task *task);

/* A task of no instance, `delay_us` from now. */
void sim_after(struct sim *sim, int64_t delay_us,
               void (*run)(struct sim *, const struct sim_task *), uint32_t a, uint32_t b,
               uint32_t c);

#endif
