/* Values that come from elsewhere: ${NAME} from the environment, file:PATH from a file. */
#ifndef RECEIPTD_CONFIG_EXPAND_H
#define RECEIPTD_CONFIG_EXPAND_H

#include <stdbool.h>
#include <stddef.h>

#include "receiptd/base/error.h"

#define RCPT_CONFIG_MAX_VALUE 65536u      /* bytes of one value after expansion */
#define RCPT_CONFIG_MAX_LIST  (16u << 20) /* … and of a file that is no value */

/* Replaces ${NAME} and ${NAME:-default}; $${ stands for a literal ${. Returns a new text, or NULL
 * with the reason in `problem` (names the variable, never a value). */
RCPT_MUST_CHECK char *rcpt_config_expand(const char *text, char problem[160]);

/* Whether one of its variables is set, so that what it stands for is not in the text itself. */
bool rcpt_config_uses_environment(const char *text);

/* A new text: the path, from the folder of `config_name` where it is relative. */
RCPT_MUST_CHECK char *rcpt_config_absolute_path(const char *path, const char *config_name);

/* As rcpt_config_read_secret(), for a file that is no secret and may be longer. */
RCPT_MUST_CHECK char *rcpt_config_read_list(const char *path, const char *config_name,
                                            char problem[160]);

#endif
