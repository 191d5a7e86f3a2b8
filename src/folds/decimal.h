/* Sums and order of decimal numbers without rounding: 0.1 and 0.2 are 0.3, as PostgreSQL's numeric
 * has it. Pure. Private to this folder. */
#ifndef RECEIPTD_FOLDS_DECIMAL_H
#define RECEIPTD_FOLDS_DECIMAL_H

#include "receiptd/base/text.h"

#define FOLD_DECIMAL_TEXT 80u /* bytes of the longest text, with its NUL */

__extension__ typedef __int128 fold_units; /* 38 digits */

/* units × 10^-scale */
struct fold_decimal {
    fold_units units;
    unsigned scale;
};

/* Of a JSON number. False: more than 18 digits before or 18 behind the point. */
bool fold_decimal_read(struct rcpt_text number, struct fold_decimal *decimal);
/* False: the sum would not fit, and stays as it was. */
bool fold_decimal_add(struct fold_decimal *sum, struct fold_decimal value);
/* With as many digits behind the point as the most exact number of the sum has. */
size_t fold_decimal_text(const struct fold_decimal *decimal, char text[FOLD_DECIMAL_TEXT]);
/* Below 0, 0 or above 0, as `a` is smaller than, equal to or larger than `b`: of JSON numbers of
 * any length. */
int fold_decimal_compare(struct rcpt_text a, struct rcpt_text b);
double fold_decimal_double(const struct fold_decimal *decimal);

#endif
