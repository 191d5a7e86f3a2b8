/* `receiptd intake --letters ACCOUNT`: the dead letters of the intake as JSON lines, from a time on
 * to the present end of the topic. Reads Kafka alone: joins no group, commits nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "command.h"
#include "receiptd/base/json.h"
#include "receiptd/core/timestamp.h"
#include "receiptd/host/context.h"
#include "receiptd/kafka/history.h"

#define ALL    "all"
#define LAST_S 3600

struct letters {
    const char *account; /* NULL: all */
};

static bool is_of(const char *account, const char *name, size_t size)
{
    return account == NULL ||
           (name != NULL && strlen(account) == size && memcmp(account, name, size) == 0);
}

static void put_header(struct rcpt_json *json, const struct rcpt_kafka_message *message,
                       const char *header, const char *key)
{
    size_t size;
    const char *value = rcpt_kafka_history_header(message, header, &size);
    if (value == NULL)
        return;
    rcpt_json_key(json, key);
    rcpt_json_bytes(json, value, size);
}

/* Bytes that are no UTF-8 are shown as U+FFFD; `bytes` says how many there are. */
static bool on_letter(void *context, const struct rcpt_kafka_message *message)
{
    const struct letters *letters = context;
    size_t size;
    const char *name = rcpt_kafka_history_header(message, "gateway", &size);
    struct rcpt_json json;
    if (!is_of(letters->account, name, size))
        return true;
    rcpt_json_init(&json, stdout);
    rcpt_json_begin_object(&json);
    put_header(&json, message, "received_at", "received_at");
    put_header(&json, message, "gateway", "account");
    put_header(&json, message, "reason", "reason");
    put_header(&json, message, "cut", "cut");
    rcpt_json_put_int(&json, "partition", message->partition);
    rcpt_json_put_int(&json, "offset", message->offset);
    rcpt_json_put_int(&json, "bytes", (int64_t)message->value_size);
    rcpt_json_key(&json, "body");
    rcpt_json_bytes(&json, message->value != NULL ? message->value : "", message->value_size);
    rcpt_json_end_object(&json);
    putchar('\n');
    return ferror(stdout) == 0;
}

/* False: it is no time. */
static bool read_since(const char *text, int64_t *since_ms)
{
    int64_t at_us;
    *since_ms = ((int64_t)time(NULL) - LAST_S) * 1000;
    if (text == NULL)
        return true;
    if (!rcpt_timestamp_parse(text, strlen(text), &at_us))
        return false;
    *since_ms = at_us / 1000;
    return true;
}

static bool check_keys(const struct rcpt_config *config, struct rcpt_error *error)
{
    if (config->kafka.brokers == NULL)
        return rcpt_error_fatal(error, EX_CONFIG, "kafka.brokers is not set");
    return config->intake.dead_letter_topic != NULL ||
           rcpt_error_fatal(error, EX_CONFIG, "intake.dead_letter_topic is not set");
}

int command_intake_letters(const struct command_call *call)
{
    const char *account = command_option(call, "letters"), *since = command_option(call, "since");
    struct letters letters = {strcmp(account, ALL) != 0 ? account : NULL};
    struct rcpt_kafka_history history = {.context = &letters, .on_message = on_letter};
    struct rcpt_error error = {0};
    if (!read_since(since, &history.since_ms)) {
        rcpt_error_fatal(&error, EX_USAGE, "--since: \"%.40s\" is no time", since);
        rcpt_error_hint(&error, "write it like 2026-11-21T02:30:00Z");
        return command_fail(&error);
    }
    struct rcpt_config *config = rcpt_config_load_for_try(call->config_path, &error);
    bool good = config != NULL && check_keys(config, &error);
    if (good) {
        struct rcpt_kafka_property *properties = host_kafka_properties(config);
        history.brokers = config->kafka.brokers;
        history.topic = config->intake.dead_letter_topic;
        history.properties = properties;
        history.property_count = config->kafka.properties_count;
        good = rcpt_kafka_read_history(&history, &error);
        free(properties);
    }
    rcpt_config_free(config);
    return good ? command_printed(EX_OK) : command_fail(&error);
}
