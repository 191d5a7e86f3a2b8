/* The paths of a ladder as arrays: the statuses that a change of a message enters and leaves.
 *
 * Pure. A ladder only grows, so it is read again when it has more entries.
 */
#ifndef RECEIPTD_CORE_PATHS_H
#define RECEIPTD_CORE_PATHS_H

#include "receiptd/core/ladder.h"

#define RCPT_PATHS_CODES      (RCPT_LADDER_FIRST_FLAG_CODE + RCPT_LADDER_MAX_FLAGS)
#define RCPT_PATHS_ENTRIES    (RCPT_LADDER_MAX_STATUSES + RCPT_LADDER_MAX_FLAGS)
#define RCPT_PATHS_MOST_STEPS (2 * RCPT_LADDER_MAX_STATUSES + RCPT_LADDER_MAX_FLAGS)

struct rcpt_paths {
    const struct rcpt_ladder *ladder;
    size_t ladder_size;                     /* entries that are read */
    int16_t codes[RCPT_PATHS_ENTRIES];      /* ascending */
    int16_t parents[RCPT_PATHS_ENTRIES];    /* as indexes of codes; −1: none */
    bool is_terminal[RCPT_PATHS_ENTRIES];   /* by index of codes */
    int16_t index_of[RCPT_PATHS_CODES + 1]; /* −1: no such code */
};

/* An effect of a change on counters. 1: its path enters the status, or it gains the flag; −1: its
 * path leaves the status. */
struct rcpt_step {
    int16_t code;
    int16_t delta;
};

/* Zeroed before the first call. */
void rcpt_paths_read(struct rcpt_paths *paths, const struct rcpt_ladder *ladder);
/* How many steps there are. A status that the ladder does not have has no path. */
uint32_t rcpt_paths_steps(const struct rcpt_paths *paths, int16_t old, int16_t new, uint32_t gained,
                          struct rcpt_step steps[static RCPT_PATHS_MOST_STEPS]);
/* Whether the path of `status` goes through `passed`, or ends there. */
bool rcpt_paths_pass(const struct rcpt_paths *paths, int16_t status, int16_t passed);
bool rcpt_paths_pass_terminal(const struct rcpt_paths *paths, int16_t code);
/* Code of a name; RCPT_LADDER_NO_STATUS: there is none. */
int16_t rcpt_paths_code(const struct rcpt_paths *paths, const char *name);

#endif
