/* Dead letters that are valid by now become parked receipts. Private to this folder. */
#ifndef RECEIPTD_COMMANDS_REDRIVE_H
#define RECEIPTD_COMMANDS_REDRIVE_H

#include "command.h"

struct redrive_counts {
    int64_t moved;    /* letters */
    int64_t receipts; /* of them, parked */
    int64_t left;     /* letters that are not valid today either */
    int64_t cut;      /* of these, letters that hold only the first bytes of the refused payload */
};

/* Goes through the letters with this reason (NULL: all) once, in the order of their positions,
 * until `limit` were moved. One synchronous transaction per page: what `counts` says is durable,
 * also when it returns false with the error in the context. Run twice at the same time, each letter
 * is moved by one of the two. */
RCPT_MUST_CHECK bool redrive(struct command_context *context, const char *reason, int64_t limit,
                             struct redrive_counts *counts);

#endif
