/* `receiptd check-config`: loads the file as the daemon would, asks librdkafka about its
 * properties, prints notes about weak settings. Connects to nothing. The pages of the reference and
 * the example come from here too. */
#include <stdio.h>
#include <sysexits.h>

#include "base/document.h"
#include "command.h"
#include "config/pipelines.h"
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

/* Both numbers are small: a file has at most 200 pipelines. */
static void note_once(const struct rcpt_node *pipeline, const struct rcpt_node *first)
{
    const struct rcpt_node *mine = rcpt_node_get(pipeline, "once_per");
    for (const struct rcpt_node *other = first; other != pipeline; other = other->next) {
        const struct rcpt_node *theirs = rcpt_node_get(other, "once_per");
        struct rcpt_text name = rcpt_node_text_of(pipeline, "name");
        struct rcpt_text others = rcpt_node_text_of(other, "name");
        if (mine->type == RCPT_NODE_NULL || !rcpt_text_equal(mine->raw, theirs->raw))
            continue;
        fprintf(
            stderr,
            "note: pipelines.%.*s.once_per: holds for this pipeline alone, as that of %.*s does; "
            "a subject that passed one may begin the other\n",
            (int)name.size, name.at, (int)others.size, others.at);
        return;
    }
}

/* once_per reads as if a pair of pipelines reached each subject once. */
static void note_pipelines(const struct rcpt_config *config)
{
    const char *reason;
    struct rcpt_arena arena;
    if (config->compiled == NULL)
        return;
    rcpt_arena_init(&arena, 64 * 1024);
    const struct rcpt_node *root =
        rcpt_document_parse(rcpt_text_of(config->compiled->definitions), &arena, &reason);
    RCPT_ASSERT(root != NULL && root->type == RCPT_NODE_ARRAY);
    for (const struct rcpt_node *pipeline = root->first; pipeline != NULL;
         pipeline = pipeline->next)
        note_once(pipeline, root->first);
    rcpt_arena_fini(&arena);
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
    note_pipelines(config);
    rcpt_config_free(config);
    return command_printed(EX_OK);
}
