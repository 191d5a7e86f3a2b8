/* What a committed batch did, read from the arrays that its statement returns. Private to
 * src/postgres. */
#ifndef RECEIPTD_POSTGRES_EFFECTS_H
#define RECEIPTD_POSTGRES_EFFECTS_H

#include "statements.h"

/* Columns of sql/lane/apply. */
enum {
    APPLY_MESSAGES_KNOWN,
    APPLY_MESSAGES_CHANGED,
    APPLY_EVENTS_PARKED,
    APPLY_EVENTS_DEAD,
    APPLY_EVENTS_COUNTED,
    APPLY_WAS,
    APPLY_IS,
    APPLY_GAINED,
    APPLY_KIND,
    APPLY_MESSAGES,
    APPLY_UNKNOWN,
    APPLY_UNKNOWN_EVENTS,
    APPLY_REFUSED,
    APPLY_REFUSED_EVENTS,
    APPLY_EVENTS_REFUSED,
    APPLY_RETIRED,
    APPLY_RETIRED_EVENTS,
    APPLY_EVENTS_RETIRED
};
/* Columns of sql/lane/wake. */
enum {
    WAKE_ROWS,
    WAKE_MESSAGES_CHANGED,
    WAKE_OLD,
    WAKE_NEW,
    WAKE_N,
    WAKE_GATEWAYS,
    WAKE_REFUSED,
    WAKE_REFUSED_GATEWAYS
};
/* Columns of sql/lane/expire. */
enum { EXPIRE_ROWS, EXPIRE_GATEWAYS, EXPIRE_RETIRED, EXPIRE_RETIRED_GATEWAYS };
/* Columns of sql/lane/discard. */
enum { DISCARD_ROWS, DISCARD_GATEWAYS };

/* Does nothing without an observer (on_effects NULL), or where the kind has no effects. */
void rcpt_effects_report(rcpt_lane_on_effects on_effects, void *context, uint32_t lane,
                         enum rcpt_batch_kind kind, const struct rcpt_pg_rows *rows);

/* Reads '{1,2,3}' into `values`, at most `capacity` of them. Returns how many; NULL is empty. */
uint32_t rcpt_effects_read_array(const char *text, int64_t *values, uint32_t capacity);

/* Reads lines of a number, a blank and a name, at most `capacity` of them. Returns how many; they
 * point into the text, which is cut up. */
uint32_t rcpt_effects_read_gateways(char *text, struct rcpt_lane_gateway *gateways,
                                    uint32_t capacity);

#endif
