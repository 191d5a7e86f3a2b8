/* Reads CSV (RFC 4180, a line feed alone ends a record too), record by record. Private to this
 * folder.
 */
#ifndef RECEIPTD_COMMANDS_CSV_H
#define RECEIPTD_COMMANDS_CSV_H

#include <stdio.h>

#include "receiptd/base/error.h"

#define CSV_MAX_FIELDS 64u
#define CSV_MAX_BYTES  65536u /* of a record */

struct csv {
    FILE *in;
    unsigned line; /* where the last record began */
    unsigned next_line;
    char text[CSV_MAX_BYTES];
    char *fields[CSV_MAX_FIELDS];
    size_t count;
};

void csv_init(struct csv *csv, FILE *in);
/* False: at the end (no error), or what is wrong (REJECT). Empty lines are passed over. */
RCPT_MUST_CHECK bool csv_next(struct csv *csv, struct rcpt_error *error);

#endif
