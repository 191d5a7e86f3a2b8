/* Sums and order of decimal numbers without rounding: 0.1 and 0.2 are 0.3, as PostgreSQL's numeric
 * has it. Pure. */
#ifndef RECEIPTD_BASE_DECIMAL_H
#define RECEIPTD_BASE_DECIMAL_H

#include "receiptd/base/text.h"

#define RCPT_DECIMAL_TEXT 80u /* bytes of the longest text, with its NUL */

__extension__ typedef __int128 rcpt_units; /* 38 digits */

/* units × 10^-scale */
struct rcpt_decimal {
    rcpt_units units;
    unsigned scale;
};

/* Reads a JSON number, also one that stands in a text. False: it is none, or has more than 18
 * digits before or 18 behind the point. */
bool rcpt_decimal_read(struct rcpt_text number, struct rcpt_decimal *decimal);
/* False: the sum would not fit, and stays as it was. */
bool rcpt_decimal_add(struct rcpt_decimal *sum, struct rcpt_decimal value);
/* With as many digits behind the point as the most exact number of the sum has. */
size_t rcpt_decimal_text(const struct rcpt_decimal *decimal, char text[RCPT_DECIMAL_TEXT]);
/* Below 0, 0 or above 0, as `a` is smaller than, equal to or larger than `b`: of JSON numbers of
 * any length. */
int rcpt_decimal_compare(struct rcpt_text a, struct rcpt_text b);
double rcpt_decimal_double(const struct rcpt_decimal *decimal);

#endif
