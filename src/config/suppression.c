/* Suppression in the configuration: its statuses and flags are those of the ladder. Called by
 * config.c. */
#include <string.h>
#include <sysexits.h>

#include "folds.h"

static bool check_names(const struct rcpt_config *config, char *const *names, size_t count,
                        const char *key, struct rcpt_error *error)
{
    for (size_t index = 0; index < count; index++) {
        if (rcpt_ladder_find_name(config->ladder, names[index], strlen(names[index]), NULL, 0) >= 0)
            continue;
        rcpt_error_fatal(error, EX_CONFIG, "%s: the ladder has no status or flag \"%.63s\"", key,
                         names[index]);
        rcpt_error_hint(error, "set %s to those of your ladder, or to [] for none", key);
        return false;
    }
    return true;
}

bool rcpt_config_check_suppression(const struct rcpt_config *config, const char **key,
                                   struct rcpt_error *error)
{
    *key = "suppression.on";
    if (config->suppression.subject == NULL)
        return true;
    if (!check_names(config, config->suppression.on, config->suppression.on_size, *key, error))
        return false;
    *key = "suppression.soft";
    return check_names(config, config->suppression.soft, config->suppression.soft_size, *key,
                       error);
}
