/* Counts which kind of fault met a lane in which state: a combination that no seed reaches is a
 * hole in the simulation. Called by play.c for each fault, and by campaign.c for the sums.
 */
#include "coverage.h"

/* The states of a lane are private to the core. This file reads them only to know which state a
 * fault has met. */
#include "core/engine_internal.h"

static const char *const phase_names[PHASE__COUNT] = {
    "down",   "unsynced", "reading", "ready",  "in_flight", "waiting", "searching",
    "waking", "between",  "queued",  "rewind", "comparing", "held",
};

_Static_assert((int)LANE_STATE__COUNT == (int)PHASE_SEARCHING, "states of a lane come first");

uint32_t sim_phases_of_lane(const struct rcpt_engine *engine, uint32_t index)
{
    const struct lane *lane = &engine->lanes[index];
    uint32_t phases = 1u << lane->state;
    if (search_is_on(&lane->search) || lane->search.refusal_count > 0)
        phases |= 1u << PHASE_SEARCHING;
    if (lane->state == LANE_IN_FLIGHT && lane->batch.kind >= RCPT_BATCH_WAKE)
        phases |= 1u << PHASE_WAKING;
    if (lane->count > lane->in_flight)
        phases |= 1u << PHASE_QUEUED;
    for (uint32_t slot = 0; slot < engine->slot_count; slot++) {
        if (slot_is_rewinding(&engine->slots[slot]))
            phases |= 1u << PHASE_REWINDING;
        if (slot_is_comparing(&engine->slots[slot]))
            phases |= 1u << PHASE_COMPARING;
    }
    return phases;
}

const char *sim_coverage_impossible(enum sim_fault fault, enum sim_phase phase)
{
    bool is_cut = fault >= FAULT_CUT_BEFORE && fault <= FAULT_CUT_LATE;
    if (is_cut && phase == PHASE_DOWN)
        return "there is no connection to cut";
    if ((fault == FAULT_SEEK_LATE || fault == FAULT_SEEK_LOST) && phase == PHASE_HELD)
        return "seeks are for partitions that are consumed";
    return NULL;
}

uint32_t sim_coverage_missing(const struct sim_coverage *coverage)
{
    uint32_t missing = 0;
    for (int fault = 0; fault < FAULT__COUNT; fault++) {
        for (int phase = 0; phase < PHASE__COUNT; phase++)
            missing +=
                coverage->hits[fault][phase] == 0 &&
                sim_coverage_impossible((enum sim_fault)fault, (enum sim_phase)phase) == NULL;
    }
    return missing;
}

void sim_coverage_print(const struct sim_coverage *coverage, FILE *out)
{
    fprintf(out, "%-13s", "fault");
    for (int phase = 0; phase < PHASE__COUNT; phase++)
        fprintf(out, " %9s", phase_names[phase]);
    fprintf(out, "\n");
    for (int fault = 0; fault < FAULT__COUNT; fault++) {
        fprintf(out, "%-13s", sim_fault_name((enum sim_fault)fault));
        for (int phase = 0; phase < PHASE__COUNT; phase++) {
            if (sim_coverage_impossible((enum sim_fault)fault, (enum sim_phase)phase) != NULL)
                fprintf(out, " %9s", "-");
            else
                fprintf(out, " %9llu", (unsigned long long)coverage->hits[fault][phase]);
        }
        fprintf(out, "\n");
    }
}

void sim_coverage_add(struct sim_coverage *sum, const struct sim_coverage *other)
{
    for (int fault = 0; fault < FAULT__COUNT; fault++) {
        for (int phase = 0; phase < PHASE__COUNT; phase++)
            sum->hits[fault][phase] += other->hits[fault][phase];
    }
}
