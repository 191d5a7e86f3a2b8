/* Whom an event says that its message belongs to: organisation and campaign, read from the event's
 * own JSON text.
 *
 * Needed only where receiptd has to create the row (`unknown: insert`), so it is read then and not
 * when the record is decoded. Pure. PostgreSQL's JSON functions cannot do it: they refuse escapes
 * anywhere in the object that are legal JSON.
 */
#ifndef RECEIPTD_CORE_ORIGIN_H
#define RECEIPTD_CORE_ORIGIN_H

#include "base/arena.h"

struct rcpt_origin {
    const char *org_id; /* NULL: absent, neither a string nor a number, or with a NUL */
    size_t org_id_size;
    const char *campaign_id; /* likewise */
    size_t campaign_id_size;
};

/* `json` is the text of one object that was decoded as an event before. Strings are in `arena` or
 * in `json`. */
struct rcpt_origin rcpt_origin_read(const char *json, size_t size, struct rcpt_arena *arena);

#endif
