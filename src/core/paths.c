/* Paths of a ladder as arrays (paths.h). Called by the rules. */
#include "paths.h"

#include <stdlib.h>
#include <string.h>

/* Codes are small, so their difference does not overflow. */
static int by_code(const void *left, const void *right)
{
    return *(const int16_t *)left - *(const int16_t *)right;
}

/* Arrays are indexed by code, ascending. A ladder only grows: when its size is unchanged, nothing
 * is read. */
void rcpt_paths_read(struct rcpt_paths *paths, const struct rcpt_ladder *ladder)
{
    size_t size = rcpt_ladder_entry_count(ladder);
    if (paths->ladder == ladder && paths->ladder_size == size)
        return;
    RCPT_ASSERT(size <= RCPT_PATHS_ENTRIES);
    paths->ladder = ladder;
    paths->ladder_size = size;
    memset(paths->index_of, 0xff, sizeof(paths->index_of));
    for (size_t index = 0; index < size; index++)
        paths->codes[index] = rcpt_ladder_entry(ladder, index)->code;
    qsort(paths->codes, size, sizeof(paths->codes[0]), by_code);
    for (size_t index = 0; index < size; index++)
        paths->index_of[paths->codes[index]] = (int16_t)index;
    for (size_t index = 0; index < size; index++) {
        const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(ladder, index);
        size_t own = (size_t)paths->index_of[entry->code];
        paths->parents[own] = entry->parent >= 0 ? paths->index_of[entry->parent] : -1;
        paths->is_terminal[own] = entry->terminal;
    }
}

/* −1: no such code. */
static int16_t index_of(const struct rcpt_paths *paths, int16_t code)
{
    return code >= 0 && code <= RCPT_PATHS_CODES ? paths->index_of[code] : -1;
}

/* Parents have smaller codes, so the two paths meet where both are the same. */
static uint32_t path_steps(const struct rcpt_paths *paths, int16_t from, int16_t to,
                           struct rcpt_step *steps)
{
    uint32_t count = 0;
    while (from != to) {
        if (to > from) {
            steps[count++] = (struct rcpt_step){paths->codes[to], 1};
            to = paths->parents[to];
        } else {
            steps[count++] = (struct rcpt_step){paths->codes[from], -1};
            from = paths->parents[from];
        }
    }
    return count;
}

uint32_t rcpt_paths_steps(const struct rcpt_paths *paths, int16_t old, int16_t new, uint32_t gained,
                          struct rcpt_step steps[static RCPT_PATHS_MOST_STEPS])
{
    int16_t from = index_of(paths, old), to = index_of(paths, new);
    uint32_t count = from >= 0 && to >= 0 ? path_steps(paths, from, to, steps) : 0;
    for (; gained != 0; gained &= gained - 1)
        steps[count++] =
            (struct rcpt_step){(int16_t)(RCPT_LADDER_FIRST_FLAG_CODE + __builtin_ctz(gained)), 1};
    return count;
}

bool rcpt_paths_pass(const struct rcpt_paths *paths, int16_t status, int16_t passed)
{
    int16_t wanted = index_of(paths, passed), at = index_of(paths, status);
    while (at >= 0 && at != wanted)
        at = paths->parents[at];
    return at >= 0;
}

bool rcpt_paths_pass_terminal(const struct rcpt_paths *paths, int16_t code)
{
    int16_t at = index_of(paths, code);
    while (at >= 0 && !paths->is_terminal[at])
        at = paths->parents[at];
    return at >= 0;
}

int16_t rcpt_paths_code(const struct rcpt_paths *paths, const char *name)
{
    int entry = rcpt_ladder_find_name(paths->ladder, name, strlen(name), NULL, 0);
    return entry >= 0 ? rcpt_ladder_entry(paths->ladder, (size_t)entry)->code
                      : RCPT_LADDER_NO_STATUS;
}
