/* The daemon's side of a transaction in two flights: the real keys, decided messages, counts and
 * rules, as src/postgres/flights.c drives them. One for each connection. */
#ifndef SIMULATION_FLIGHTS_H
#define SIMULATION_FLIGHTS_H

#include "database.h"

struct sim_sender;

struct sim_sender *sim_sender_new(const struct sim *sim);
void sim_sender_free(struct sim_sender *sender);

/* The first flight of a batch. names: of its gateways and reasons. */
void sim_sender_begin(struct sim_sender *sender, const struct sim *sim, struct sim_request *request,
                      struct rcpt_lane_names names);
/* Takes the answer to a flight and fills in the next one. False: the ledger ends the schedule. */
bool sim_sender_go_on(struct sim_sender *sender, struct sim *sim, struct sim_request *request);

#endif
