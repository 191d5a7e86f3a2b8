/* Rules of folds in the configuration: their fields, and what these mean together. Private to the
 * room. */
#ifndef RECEIPTD_CONFIG_FOLDS_H
#define RECEIPTD_CONFIG_FOLDS_H

#include "table.h"

extern const struct rcpt_config_table rcpt_config_fold_record;

/* The rule at `index`, also against those before it. The error says which and why. */
RCPT_MUST_CHECK bool rcpt_config_check_fold(const struct rcpt_fold_config *folds, size_t index,
                                            const struct rcpt_ladder *ladder,
                                            struct rcpt_error *error);

#endif
