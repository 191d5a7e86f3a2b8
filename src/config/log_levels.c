/* The log as the configuration sets it: level, format, limits, and levels of single components. A
 * component is a folder of src that writes lines. Called at the start and by each reload. */
#include <string.h>

#include "receiptd/config/config.h"

#define NAME_BYTES 16u

/* The next name of the list. Returns where the list goes on, or NULL at its end. */
static const char *next_component(const char *list, char name[NAME_BYTES])
{
    size_t size = strcspn(list, ",");
    RCPT_ASSERT(size < NAME_BYTES);
    if (size == 0)
        return NULL;
    memcpy(name, list, size);
    name[size] = '\0';
    return list + size + strspn(list + size, ", ");
}

bool rcpt_config_is_component(const char *name)
{
    char each[NAME_BYTES];
    const char *list = RCPT_CONFIG_COMPONENTS;
    while ((list = next_component(list, each)) != NULL)
        if (strcmp(each, name) == 0)
            return true;
    return false;
}

/* Components that log.levels does not name get the common level back. */
void rcpt_config_apply_log(const struct rcpt_config *config)
{
    char each[NAME_BYTES];
    const char *list = RCPT_CONFIG_COMPONENTS;
    rcpt_log_configure(config->log.level, config->log.format);
    rcpt_log_set_limits(config->log.burst, config->log.plain_message_ids);
    while ((list = next_component(list, each)) != NULL) {
        enum rcpt_log_level level = RCPT_LOG_LEVEL__COUNT;
        for (unsigned index = 0; index < config->log.levels_count; index++)
            if (strcmp(config->log.levels[index].name, each) == 0)
                level = rcpt_log_find_level(config->log.levels[index].value);
        RCPT_ASSERT(rcpt_log_set_component(each, level));
    }
}
