#include "app.h"

struct rcpt_kafka_property *app_kafka_properties(const struct rcpt_config *config)
{
    struct rcpt_kafka_property *properties =
        rcpt_calloc(config->kafka.properties_count + 1, sizeof(*properties));
    for (unsigned index = 0; index < config->kafka.properties_count; index++)
        properties[index] = (struct rcpt_kafka_property){config->kafka.properties[index].name,
                                                         config->kafka.properties[index].value};
    return properties;
}
