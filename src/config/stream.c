/* The status stream in the configuration: what its keys mean together. Called by config.c. */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "folds.h"
#include "print.h"

/* A URL by mistake may have credentials. */
static bool fail(struct rcpt_error *error, const char *key, const char *value, const char *what,
                 const char *hint)
{
    char *shown = rcpt_config_redact_url(value);
    rcpt_error_fatal(error, EX_CONFIG, "%s: \"%.63s\" %s", key, shown, what);
    rcpt_error_hint(error, "%s", hint);
    free(shown);
    return false;
}

static bool check_columns(const struct rcpt_config *config, const char *key,
                          struct rcpt_error *error)
{
    char **columns = config->stream.columns;
    for (size_t index = 0; index < config->stream.columns_count; index++) {
        if (!rcpt_config_is_identifier(columns[index]))
            return fail(error, key, columns[index], "is not the name of a column",
                        "use 1 to 63 letters, digits and underscores");
        for (size_t other = 0; other < index; other++)
            if (strcmp(columns[other], columns[index]) == 0)
                return fail(error, key, columns[index], "is named twice", "name each column once");
    }
    return true;
}

/* receiptd would read its own records as receipts from a topic that it reads. */
bool rcpt_config_check_stream(const struct rcpt_config *config, const char **key,
                              struct rcpt_error *error)
{
    const char *topic = config->stream.topic;
    *key = "stream.topic";
    if (topic != NULL && !rcpt_config_is_topic(topic))
        return fail(error, *key, topic, "is not a topic name",
                    "use 1 to 249 letters, digits, dots, dashes and underscores");
    for (unsigned index = 0; topic != NULL && index < config->kafka.topics_count; index++)
        if (strcmp(topic, config->kafka.topics[index]) == 0)
            return fail(error, *key, topic, "is a topic of receipts",
                        "name a topic that is not in kafka.topics");
    *key = "stream.columns";
    return check_columns(config, *key, error);
}
