/* Injects faults at random times, by the plan, until the load is over. Then repairs everything that
 * was broken. */
#ifndef SIMULATION_FAULTS_H
#define SIMULATION_FAULTS_H

#include "world.h"

void sim_faults_start(struct sim *sim);
void sim_faults_stop(struct sim *sim);

#endif
