/* Says in words what a receipt did and why. It follows from what the timeline stores
 * (core/outcome.c). Called by explain.c. */
#include "explain_why.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/core/outcome.h"
#include "receiptd/core/record.h"

/* A ladder that lost a status since then still has rows with its code. */
const char *explain_status(const struct rcpt_ladder *ladder, int64_t code, char text[16])
{
    int index = rcpt_ladder_find_code(ladder, code, NULL, 0);
    if (index >= 0)
        return rcpt_ladder_entry(ladder, (size_t)index)->name;
    snprintf(text, 16, "%" PRId64, code);
    return text;
}

/* Whether the receipt is the first of its status in its transaction: the others are its duplicates.
 * Rows of one transaction have the same recorded_at and stand together. */
static bool is_first(const struct rcpt_session_rows *rows, size_t row)
{
    for (size_t other = row; other-- > 0;) {
        if (strcmp(rcpt_session_rows_text(rows, other, "recorded_at"),
                   rcpt_session_rows_text(rows, row, "recorded_at")) != 0)
            return true;
        if (rcpt_session_rows_int(rows, other, "status") ==
            rcpt_session_rows_int(rows, row, "status"))
            return false;
    }
    return true;
}

/* The receipt was of all messages to a person up to a time: sql/lane/range_resolve.sql numbers
 * what it parks above all indexes of events. */
static bool is_range(const struct rcpt_session_rows *rows, size_t row)
{
    return rcpt_session_rows_int(rows, row, "index") >= RCPT_RECORD_RANGE_INDEX;
}

/* The reasons for waiting: `waits` while the receipt waits, `after` when it is applied. The first
 * line is for receipts without a word in the timeline. */
static const struct {
    const char *waited, *effect, *waits, *after;
} waits[] = {
    {NULL, "woken", "the message has no row yet",
     "the message had no row; it waited, and was applied when the row came"},
    {"part", "part", "a part of the message is delivered; it is counted next",
     "a part of the message was delivered; the message is when all parts are"},
    {"beside", "beside", "it is applied next, together with others of its message",
     "it was applied together with others of its message, which had to wait"},
};

static size_t find_wait(const char *waited)
{
    size_t index = RCPT_COUNT_OF(waits) - 1;
    while (index > 0 && (waited == NULL || strcmp(waits[index].waited, waited) != 0))
        index--;
    return index;
}

/* `dead` is the reason of the letter. */
static void explain_dead(const char *dead, char why[EXPLAIN_WHY_BYTES])
{
    bool rowless = strcmp(dead, rcpt_reject_name(RCPT_REJECT_AGED_OUT)) == 0 ||
                   strcmp(dead, rcpt_reject_name(RCPT_REJECT_UNKNOWN_MESSAGE)) == 0;
    if (rowless)
        snprintf(why, EXPLAIN_WHY_BYTES, "the message had no row; it is a dead letter now");
    else
        snprintf(why, EXPLAIN_WHY_BYTES, "refused (%.40s); it is a dead letter now", dead);
}

/* The batch did not apply the receipt: it waits, is dead, or was applied later. */
static const char *explain_waiting(const struct rcpt_session_rows *rows, size_t row,
                                   char why[EXPLAIN_WHY_BYTES])
{
    size_t wait = find_wait(rcpt_session_rows_text(rows, row, "waited"));
    const char *dead = rcpt_session_rows_text(rows, row, "dead");
    bool parked = rcpt_session_rows_bool(rows, row, "parked");
    if (dead != NULL && !parked) {
        explain_dead(dead, why);
        return "dead";
    }
    if (is_range(rows, row))
        snprintf(why, EXPLAIN_WHY_BYTES,
                 "a receipt of all messages to the person up to a time; applied%s",
                 parked ? " next" : "");
    else
        snprintf(why, EXPLAIN_WHY_BYTES, "%s", parked ? waits[wait].waits : waits[wait].after);
    if (parked)
        return "waiting";
    return is_range(rows, row) ? "range" : waits[wait].effect;
}

/* No receipt: rcpt_encode_expired() has noted that none came. */
bool explain_is_expiry(const struct rcpt_session_rows *rows, size_t row)
{
    return rcpt_session_rows_text(rows, row, "topic")[0] == '\0';
}

/* If `old` is missing, the batch did not apply the receipt. */
const char *explain_why(const struct rcpt_ladder *ladder, const struct rcpt_session_rows *rows,
                        size_t row, char why[EXPLAIN_WHY_BYTES])
{
    char old_text[16], new_text[16];
    /* The timeline has the status before and after its transaction, not the outcome: the outcome
     * follows from both, and from the receipt's own status. */
    if (rcpt_session_rows_text(rows, row, "old") == NULL)
        return explain_waiting(rows, row, why);
    int16_t old = (int16_t)rcpt_session_rows_int(rows, row, "old");
    int16_t new = (int16_t)rcpt_session_rows_int(rows, row, "new");
    enum rcpt_outcome outcome =
        rcpt_outcome_of(ladder, old, new, (uint32_t)rcpt_session_rows_int(rows, row, "gained"),
                        (int16_t)rcpt_session_rows_int(rows, row, "status"), is_first(rows, row));
    const char *from = explain_status(ladder, old, old_text),
               *to = explain_status(ladder, new, new_text);
    /* The default is LOST: the message has a status of higher priority on another branch. */
    if (explain_is_expiry(rows, row)) {
        snprintf(why, EXPLAIN_WHY_BYTES, "%s → %s, since no receipt came in time", from, to);
        return "expired";
    }
    switch (outcome) {
    case RCPT_OUTCOME_APPLIED:
        if (old == new)
            snprintf(why, EXPLAIN_WHY_BYTES, "the flag is new; the status stays %s", to);
        else
            snprintf(why, EXPLAIN_WHY_BYTES, "%s → %s%s", from, to,
                     rcpt_outcome_is_correction(ladder, old, new) ? ", a correction" : "");
        break;
    case RCPT_OUTCOME_STALE:
        snprintf(why, EXPLAIN_WHY_BYTES, "the message had passed it: %s", from);
        break;
    case RCPT_OUTCOME_DUPLICATE:
        snprintf(why, EXPLAIN_WHY_BYTES, "known already: the status is %s", to);
        break;
    default:
        snprintf(why, EXPLAIN_WHY_BYTES, "contradicts %s, whose priority is higher", to);
        break;
    }
    return rcpt_outcome_name(outcome);
}
