/* Values that come from elsewhere: ${NAME} from the environment, file:PATH from a file. */
#ifndef RECEIPTD_APP_CONFIG_EXPAND_H
#define RECEIPTD_APP_CONFIG_EXPAND_H

#include <stddef.h>

#include "receiptd/base/error.h"

#define RCPT_CONFIG_MAX_VALUE 65536u /* bytes of one value after expansion */

/* Replaces ${NAME} and ${NAME:-default}; $${ stands for a literal ${. Returns a new text, or NULL
 * with the reason in `problem` (names the variable, never a value). */
RCPT_MUST_CHECK char *rcpt_config_expand(const char *text, char problem[160]);

/* Contents of a regular file without one trailing newline. A relative path is taken from the folder
 * of `config_name`. Returns a new text, or NULL with the reason in `problem` (names the path, never
 * the contents). */
RCPT_MUST_CHECK char *rcpt_config_read_secret(const char *path, const char *config_name,
                                              char problem[160]);

#endif
