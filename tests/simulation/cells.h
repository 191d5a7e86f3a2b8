/* What a transaction adds to counters, groups and folds, in one form: for the daemon's rules
 * and for the ledger, which must agree in every cell. */
#ifndef SIMULATION_CELLS_H
#define SIMULATION_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "receiptd/core/rules/rules.h"

enum sim_cell_kind { /* behind enum rcpt_count_of */
                     CELL_MEMBER = RCPT_COUNT__COUNT,
                     CELL_FOLD = CELL_MEMBER + RCPT_RULES_GROUPS,
                     CELL_CHANGE, /* a transition in the stream; `minute` is the message */
};

#define SIM_NO_BUCKET INT16_MIN

struct sim_cell_key { /* no padding: compared as bytes */
    uint8_t kind, campaign, key, more;
    int16_t status, other;
    uint32_t minute, gained;
};

struct sim_cell {
    struct sim_cell_key key;
    int64_t messages, events;
};

struct sim_cells {
    struct sim_cell *list;
    uint32_t count, capacity; /* the list is the table: open addressing; count of those in use */
};

void sim_cells_add(struct sim_cells *cells, struct sim_cell_key key, int64_t messages,
                   int64_t events);
void sim_cells_free(struct sim_cells *cells);
/* A cell in which the two differ; NULL: none. */
const struct sim_cell *sim_cells_difference(const struct sim_cells *left,
                                            const struct sim_cells *right, int64_t *messages,
                                            int64_t *events);

/* For those who walk the list: unused places have none. */
static inline bool sim_cell_is_used(const struct sim_cell *cell)
{
    return cell->messages != 0 || cell->events != 0;
}

#endif
