/* The ledger: what must hold after every commit and at the end. Computed from the log, never from
 * the daemon's own state. */
#ifndef SIMULATION_ORACLE_H
#define SIMULATION_ORACLE_H

#include "database.h"

/* The content of a batch as it was submitted: folded right, made of records of the log. Fills the
 * request; false: an anomaly. */
bool sim_oracle_take_batch(struct sim *sim, const struct rcpt_batch *batch,
                           struct sim_request *request);
/* The same of a wake, whose items are known already. */
bool sim_oracle_take_woken(struct sim *sim, const struct rcpt_batch *batch,
                           struct sim_request *request);
/* Before the writes of a transaction: nothing that it handles has been handled before. */
void sim_oracle_before_commit(struct sim *sim, const struct sim_request *request);
/* After them: every event below the new positions is accounted for; rows are the maximum of what
 * was applied. */
void sim_oracle_after_commit(struct sim *sim, const struct sim_request *request);
/* Counters against a recount of everything. */
void sim_oracle_recount(struct sim *sim);
/* The database went back: the log may no longer have the records that it lost. */
void sim_oracle_after_going_back(struct sim *sim);
/* An instance stopped for good: was there a reason? */
void sim_oracle_on_halt(struct sim *sim, uint32_t part, const char *why);
/* The end: names work that is still open and could be done; NULL: none. */
const char *sim_oracle_unfinished(const struct sim *sim);
void sim_oracle_check_end(struct sim *sim);

#endif
