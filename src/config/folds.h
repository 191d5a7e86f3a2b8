/* Checks of fold rules, of the status stream and of suppression over several fields. Private to
 * this folder. */
#ifndef RECEIPTD_CONFIG_FOLDS_H
#define RECEIPTD_CONFIG_FOLDS_H

#include "table.h"

/* The rule at `index`, also against those before it. The error says which and why. */
RCPT_MUST_CHECK bool rcpt_config_check_fold(const struct rcpt_fold_config *folds, size_t index,
                                            const struct rcpt_ladder *ladder,
                                            struct rcpt_error *error);
/* The stream: `key` says whose value is at fault. */
RCPT_MUST_CHECK bool rcpt_config_check_stream(const struct rcpt_config *config, const char **key,
                                              struct rcpt_error *error);
/* Suppression, likewise. */
RCPT_MUST_CHECK bool rcpt_config_check_suppression(const struct rcpt_config *config,
                                                   const char **key, struct rcpt_error *error);

#endif
