/* `receiptd check-config`: loads the file as the daemon would, asks librdkafka about its
 * properties, prints notes about weak settings. Connects to nothing. The pages of the reference and
 * the example come from here too. */
#include <stdio.h>
#include <sysexits.h>

#include "command.h"
#include "kafka/consumer.h"

/* The library knows its properties, the table of keys does not. A mistyped name must not be printed
 * either: by its name alone one knows whether a value is a secret. */
static bool check_properties(const struct rcpt_config *config, const char *path,
                             struct rcpt_error *error)
{
    for (unsigned index = 0; index < config->kafka.properties_count; index++) {
        const struct rcpt_config_pair *pair = &config->kafka.properties[index];
        struct rcpt_error refusal = {0};
        if (rcpt_kafka_check_property(pair->name, pair->value, &refusal))
            continue;
        rcpt_error_fatal(error, EX_CONFIG, "%s:%u:%u: kafka.properties: %s", path, pair->line,
                         pair->column, refusal.text);
        rcpt_error_hint(error, "%s", refusal.hint);
        return false;
    }
    return true;
}

/* Notes go to stderr: --print writes a file to stdout that can be used as it is. */
static void print_note(void *context, const char *key, const char *what, const char *hint)
{
    (void)context;
    fprintf(stderr, "note: %s: %s; %s\n", key, what, hint);
}

int command_check_config(const struct command_call *call)
{
    bool print = command_option(call, "print") != NULL;
    bool reference = command_option(call, "reference") != NULL;
    bool example = command_option(call, "example") != NULL;
    if (print + reference + example > 1)
        return command_usage(call, "--print, --reference and --example exclude each other");
    if (reference || example) {
        (reference ? rcpt_config_write_reference : rcpt_config_write_example)(stdout);
        return command_printed(EX_OK);
    }
    struct rcpt_error error = {0};
    struct rcpt_config *config = rcpt_config_load(call->config_path, &error);
    if (config == NULL)
        return command_fail(&error);
    if (!check_properties(config, call->config_path, &error)) {
        rcpt_config_free(config);
        return command_fail(&error);
    }
    if (print)
        rcpt_config_print(config, stdout);
    else
        printf("%s is valid\n", call->config_path);
    rcpt_config_find_weak(config, print_note, NULL);
    rcpt_config_free(config);
    return command_printed(EX_OK);
}
