/* The exact ledger of all counters: what a transaction has to add, by docs/semantics.md and
 * docs/rules.md, from the records of the log and from the rows as PostgreSQL has locked them.
 * Written without the code of src/core. */
#ifndef SIMULATION_LEDGER_H
#define SIMULATION_LEDGER_H

#include "database.h"

/* Before the writes of a batch: what the daemon made of every message, copies, and all cells. */
void sim_ledger_check(struct sim *sim, const struct sim_request *request);
/* Of all receipts that are copies of each other one has counted, if any was applied; and its key is
 * stored just then. */
void sim_ledger_check_keys(struct sim *sim);

#endif
