/* kafka.properties of the configuration, as clients of Kafka get them. Called by everything that
 * has one: consume.c, the readers of folds and actions, their producers, the intake. */
#include "receiptd/host/context.h"
#include "receiptd/kafka/consumer.h"

struct rcpt_kafka_property *host_kafka_properties(const struct rcpt_config *config)
{
    struct rcpt_kafka_property *properties =
        rcpt_calloc(config->kafka.properties_count + 2, sizeof(*properties)); /* one for readers */
    for (unsigned index = 0; index < config->kafka.properties_count; index++)
        properties[index] = (struct rcpt_kafka_property){config->kafka.properties[index].name,
                                                         config->kafka.properties[index].value};
    return properties;
}

struct rcpt_kafka_property *host_kafka_reader_properties(const struct rcpt_config *config,
                                                         size_t *count)
{
    struct rcpt_kafka_property *properties = host_kafka_properties(config);
    properties[config->kafka.properties_count] =
        (struct rcpt_kafka_property){"partition.assignment.strategy", "range,roundrobin"};
    *count = config->kafka.properties_count + 1;
    return properties;
}

void host_kafka_credentials(const struct rcpt_config *config,
                            struct rcpt_kafka_credentials *credentials)
{
    *credentials = (struct rcpt_kafka_credentials){
        .username = rcpt_config_kafka_property(config, "sasl.username"),
        .password = rcpt_config_kafka_property(config, "sasl.password")};
}
