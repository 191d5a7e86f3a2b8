/* The legal changes of a state machine: a table of bit sets, one for each state.
 *
 *     static const unsigned successors[DOOR_STATE__COUNT] = {
 *         [DOOR_OPEN] = RCPT_TO(DOOR_CLOSED),
 *         [DOOR_CLOSED] = RCPT_TO(DOOR_OPEN) | RCPT_TO(DOOR_LOCKED),
 *     };
 *
 * A state without an entry is the last. The one setter of the machine asserts before it changes.
 */
#ifndef RECEIPTD_BASE_STATES_H
#define RECEIPTD_BASE_STATES_H

#include "receiptd/base/error.h"

#define RCPT_TO(state) (1u << (state))
#define RCPT_ASSERT_FOLLOWS(successors, from, to)                                                  \
    RCPT_ASSERT(((successors)[from] & RCPT_TO(to)) != 0)

#endif
