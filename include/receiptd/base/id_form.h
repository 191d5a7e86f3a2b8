/* Forms of one message id: what a gateway or a platform may have made of it on the way. The names
 * are those of `message_id_form` of an account (docs/gateways.md). Pure. */
#ifndef RECEIPTD_BASE_ID_FORM_H
#define RECEIPTD_BASE_ID_FORM_H

#include <stdbool.h>
#include <stddef.h>

#include "receiptd/base/error.h"
#include "receiptd/base/text.h"

#define RCPT_ID_FORM_BYTES 256u /* of the longest id, terminated */

enum rcpt_id_form {
    RCPT_ID_FORM_TRIM,  /* without blanks, quotes and brackets around it */
    RCPT_ID_FORM_LOWER, /* ASCII letters */
    RCPT_ID_FORM_UPPER,
    RCPT_ID_FORM_STRIP_HYPHENS,  /* without any hyphen, as of a UUID */
    RCPT_ID_FORM_STRIP_ZEROS,    /* without zeros at its beginning */
    RCPT_ID_FORM_STRIP_SUFFIX,   /* without -1, .1, :0, _2: a separator and up to 3 digits */
    RCPT_ID_FORM_HEX_TO_DECIMAL, /* of up to 64 bits; 0x may stand before them */
    RCPT_ID_FORM_DECIMAL_TO_HEX, /* in lower case */
    RCPT_ID_FORM__COUNT,
};

const char *rcpt_id_form_name(enum rcpt_id_form form); /* "trim", "lower" … */
/* RCPT_ID_FORM__COUNT: there is no such form. */
enum rcpt_id_form rcpt_id_form_find(const char *name);

/* Writes the form of an id of at most 255 bytes, terminated. False, and nothing useful written: the
 * id has that form already, or cannot have it. */
RCPT_MUST_CHECK bool rcpt_id_form_make(enum rcpt_id_form form, struct rcpt_text id,
                                       char made[RCPT_ID_FORM_BYTES]);

#endif
