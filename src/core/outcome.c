/* Judges a receipt's effect from the message's status before and after: applied, stale, duplicate
 * or contradicted. Counts corrections. Pure. Called by src/operate/measure_receipts.c for metrics
 * and by `receiptd explain`.
 */
#include "receiptd/core/outcome.h"

static const char *const names[RCPT_OUTCOME__COUNT] = {
    [RCPT_OUTCOME_APPLIED] = "applied",
    [RCPT_OUTCOME_STALE] = "stale",
    [RCPT_OUTCOME_DUPLICATE] = "duplicate",
    [RCPT_OUTCOME_LOST] = "contradicted",
};

const char *rcpt_outcome_name(enum rcpt_outcome outcome)
{
    return names[outcome];
}

/* The parent of a status; RCPT_LADDER_NO_STATUS above the root and for codes of another ladder. */
static int16_t parent_of(const struct rcpt_ladder *ladder, int16_t status)
{
    int index = rcpt_ladder_find_code(ladder, status, NULL, 0);
    return index >= 0 ? rcpt_ladder_entry(ladder, (size_t)index)->parent : RCPT_LADDER_NO_STATUS;
}

/* Climbs from the status to the root until it meets the ancestor. */
bool rcpt_outcome_is_on_path(const struct rcpt_ladder *ladder, int16_t ancestor, int16_t status)
{
    while (status > ancestor) /* a parent's code is smaller */
        status = parent_of(ladder, status);
    return status == ancestor;
}

bool rcpt_outcome_is_correction(const struct rcpt_ladder *ladder, int16_t old, int16_t new)
{
    return new > old && !rcpt_outcome_is_on_path(ladder, old, new);
}

/* A flag never loses: it is set, or it was set before. */
static enum rcpt_outcome outcome_of_flag(uint32_t gained, int16_t code, bool first)
{
    bool is_new = (gained >> (code - RCPT_LADDER_FIRST_FLAG_CODE) & 1u) != 0;
    return is_new && first ? RCPT_OUTCOME_APPLIED : RCPT_OUTCOME_DUPLICATE;
}

/* The order of checks matters: the status in which the message stood is a duplicate before anything
 * else. A receipt that is not on the path to the new status was contradicted by a higher one. */
enum rcpt_outcome rcpt_outcome_of(const struct rcpt_ladder *ladder, int16_t old, int16_t new,
                                  uint32_t gained, int16_t code, bool first)
{
    if (code >= RCPT_LADDER_FIRST_FLAG_CODE)
        return outcome_of_flag(gained, code, first);
    if (code == old)
        return RCPT_OUTCOME_DUPLICATE;
    if (!rcpt_outcome_is_on_path(ladder, code, new))
        return RCPT_OUTCOME_LOST;
    if (code < old && rcpt_outcome_is_on_path(ladder, code, old))
        return RCPT_OUTCOME_STALE;
    return first ? RCPT_OUTCOME_APPLIED : RCPT_OUTCOME_DUPLICATE;
}

/* The first receipt of a code has the effect; the others with the same code are its duplicates. */
void rcpt_outcome_count(struct rcpt_outcome_counts *sums, const struct rcpt_ladder *ladder,
                        const struct rcpt_outcome_group *group)
{
    for (uint32_t index = 0; index < group->size; index++) {
        uint64_t more = (uint64_t)(group->counts[index] - 1) * group->messages;
        sums->receipts[rcpt_outcome_of(ladder, group->old, group->new, group->gained,
                                       group->codes[index], true)] += group->messages;
        if (more > 0)
            sums->receipts[rcpt_outcome_of(ladder, group->old, group->new, group->gained,
                                           group->codes[index], false)] += more;
    }
    if (rcpt_outcome_is_correction(ladder, group->old, group->new))
        sums->corrections += group->messages;
}
