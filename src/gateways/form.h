/* Parameters of a query or a form, in the order in which they came. */
#ifndef RECEIPTD_GATEWAYS_FORM_H
#define RECEIPTD_GATEWAYS_FORM_H

#include "receiptd/base/text.h"

/* Gateways send 30, customers' own variables come on top. A field costs 32 bytes several times
 * over, and is read before its sender is known. */
#define RCPT_FORM_MAX_FIELDS 256u

struct rcpt_parameter {
    struct rcpt_text name, value; /* decoded */
};

struct rcpt_form {
    const struct rcpt_parameter *fields;
    size_t count;
};

/* application/x-www-form-urlencoded; a % that begins no code stands for itself. Fields beyond the
 * limit are left out. */
struct rcpt_form rcpt_form_parse(struct rcpt_text text, struct rcpt_arena *arena);
/* multipart/form-data (RFC 7578); files are left out. The body's first line has to be the type's
 * boundary: most signatures cover the body alone, and another boundary would make another form of
 * it. No such boundary: no fields. */
struct rcpt_form rcpt_form_parse_multipart(struct rcpt_text content_type, struct rcpt_text body,
                                           struct rcpt_arena *arena);
/* Whether the body begins as multipart does. */
bool rcpt_form_is_multipart(struct rcpt_text body);

/* Value of the first field with that name; at == NULL: there is none. */
struct rcpt_text rcpt_form_get(const struct rcpt_form *form, struct rcpt_text name);

/* %XX decoded, + kept: for segments of a path. */
struct rcpt_text rcpt_form_decode_segment(struct rcpt_text text, struct rcpt_arena *arena);

#endif
