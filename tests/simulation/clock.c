/* Virtual time: the heap of tasks. Every part of the simulation schedules its work here. */
#include "clock.h"

#include <stdlib.h>

#include "world.h"

void sim_clock_fini(struct sim_clock *clock)
{
    free(clock->heap);
}

static bool earlier(const struct sim_task *left, const struct sim_task *right)
{
    return left->at_us != right->at_us ? left->at_us < right->at_us : left->order < right->order;
}

void sim_clock_add(struct sim_clock *clock, int64_t at_us, struct sim_task task)
{
    if (clock->count == clock->capacity) {
        clock->capacity = clock->capacity * 2 + 256;
        clock->heap = rcpt_realloc(clock->heap, clock->capacity * sizeof(*clock->heap));
    }
    task.at_us = at_us > clock->now_us ? at_us : clock->now_us;
    task.order = clock->made++;
    uint32_t at = clock->count++;
    while (at > 0 && earlier(&task, &clock->heap[(at - 1) / 2])) {
        clock->heap[at] = clock->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    clock->heap[at] = task;
}

bool sim_clock_take(struct sim_clock *clock, int64_t until_us, struct sim_task *task)
{
    if (clock->count == 0 || clock->heap[0].at_us > until_us) {
        clock->now_us = until_us;
        return false;
    }
    *task = clock->heap[0];
    clock->now_us = task->at_us;
    struct sim_task last = clock->heap[--clock->count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= clock->count)
            break;
        if (child + 1 < clock->count && earlier(&clock->heap[child + 1], &clock->heap[child]))
            child++;
        if (!earlier(&clock->heap[child], &last))
            break;
        clock->heap[at] = clock->heap[child];
        at = child;
    }
    clock->heap[at] = last;
    return true;
}

void sim_after(struct sim *sim, int64_t delay_us,
               void (*run)(struct sim *, const struct sim_task *), uint32_t a, uint32_t b,
               uint32_t c)
{
    sim_clock_add(&sim->clock, sim->clock.now_us + delay_us,
                  (struct sim_task){.run = run, .a = a, .b = b, .c = c});
}
