/* The meaning of a transaction's error for its batch. Called by statements.c and flights.c.
 */
#include <stdio.h>
#include <string.h>

#include "flights.h"

#include "receiptd/postgres/sqlstate.h"

/* Codes with which a session ends rather than a statement: the transaction may have been committed
 * just before. */
static bool is_end_of_session(const char *sqlstate)
{
    return sqlstate[0] == '\0' || strncmp(sqlstate, "08", 2) == 0 ||
           strncmp(sqlstate, "57P", 3) == 0;
}

/* UNKNOWN makes the lane read its positions: only they show whether the transaction was
 * committed. */
enum rcpt_engine_outcome rcpt_lane_outcome(const struct rcpt_error *error)
{
    if (error == NULL)
        return RCPT_ENGINE_COMMITTED;
    if (strcmp(error->code, RCPT_SQLSTATE_FENCED) == 0)
        return RCPT_ENGINE_FENCED;
    if (error->decision == RCPT_DECISION_REJECT)
        return RCPT_ENGINE_DATA;
    if (error->decision == RCPT_DECISION_RECONNECT && is_end_of_session(error->code))
        return RCPT_ENGINE_UNKNOWN;
    return RCPT_ENGINE_RETRY;
}

/* SQLSTATE and text, cut between two characters: half of one would be refused with the dead letter.
 */
void rcpt_lane_describe(char *detail, size_t capacity, const struct rcpt_error *error)
{
    size_t used = (size_t)snprintf(detail, capacity, "%.8s ", error->code);
    size_t size = strlen(error->text);
    if (size > capacity - used - 1) {
        size = capacity - used - 1;
        while (size > 0 && ((unsigned char)error->text[size] & 0xC0u) == 0x80u)
            size--;
    }
    memcpy(detail + used, error->text, size);
    detail[used + size] = '\0';
}
