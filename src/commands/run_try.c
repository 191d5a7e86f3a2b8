/* `receiptd run --try TOPIC` decodes one record's value from the standard input as the daemon does.
 *
 * Receipts go to the standard output, a JSON line each, in the form of parked receipts. Dead
 * letters with their reasons go to stderr. It connects to nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "receiptd/base/clock.h"
#include "receiptd/gateways/topics.h"
#include "try.h"

#define MOST_INPUT   (64u << 20)
#define MOST_HEADERS 32u
#define DAY_US       INT64_C(86400000000)

char *command_try_input(size_t *size)
{
    char *text = rcpt_malloc(MOST_INPUT);
    *size = fread(text, 1, MOST_INPUT, stdin);
    return text;
}

int command_try_unknown(const char *what, const char *name,
                        const struct rcpt_gateway_account_config *entries, size_t count)
{
    fprintf(stderr, "receiptd: there is no %s \"%s\"\nHINT: ", what, name);
    for (size_t index = 0; index < count; index++)
        fprintf(stderr, "%s%s", index > 0 ? ", " : "the configuration has ", entries[index].name);
    fputs(count == 0 ? "the configuration has none\n" : "\n", stderr);
    return EX_NOINPUT;
}

const struct rcpt_gateway_account_config *command_try_find(
    const struct rcpt_gateway_account_config *entries, size_t count, const char *name)
{
    for (size_t index = 0; index < count; index++)
        if (strcmp(entries[index].name, name) == 0)
            return &entries[index];
    return NULL;
}

/* "name: value; name: value". False: one has no colon. */
static bool read_headers(const char *given, struct rcpt_gateway_header *headers, size_t *count)
{
    struct rcpt_text rest = rcpt_text_of(given);
    *count = 0;
    while (rest.size > 0 && *count < MOST_HEADERS) {
        struct rcpt_text part = rcpt_text_part(rest, 0, rcpt_text_find(rest, ";"));
        size_t colon = rcpt_text_find(part, ":");
        rest = rcpt_text_part(rest, part.size + 1, rest.size);
        if (colon == part.size) {
            fprintf(stderr, "receiptd: --header \"%.*s\" is none: write \"name: value\"\n",
                    (int)part.size, part.at);
            return false;
        }
        headers[*count].name = rcpt_text_trim(rcpt_text_part(part, 0, colon));
        headers[(*count)++].value = rcpt_text_trim(rcpt_text_part(part, colon + 1, part.size));
    }
    return true;
}

/* A time that is not found is no mistake for the daemon: the record's own time counts. */
static void note_time(const struct rcpt_record *record, const struct rcpt_event *event,
                      const char *template)
{
    const int64_t record_us = record->timestamp_ms * 1000;
    if (template != NULL && event->at_us == record_us)
        fprintf(stderr, "receiptd: note: no time at %s: the record's time in Kafka counts\n",
                template);
    else if (event->at_us > record_us + DAY_US)
        fputs("receiptd: note: the time lies in the future: is it YYMMDDhhmm "
              "(custom.time_format: short)?\n",
              stderr);
}

/* Exit codes as of `intake --try`: a part that becomes a dead letter is one not understood. */
static int report(const struct rcpt_record *record, const char *time_template)
{
    for (uint32_t index = 0; index < record->event_count; index++)
        printf("%.*s\n", (int)record->events[index].payload_size,
               record->value + record->events[index].payload);
    fflush(stdout);
    for (uint32_t index = 0; index < record->event_count; index++)
        note_time(record, &record->events[index], time_template);
    for (uint32_t index = 0; index < record->reject_count; index++)
        fprintf(stderr, "receiptd: dead letter: %s: %s\n",
                rcpt_reject_name(record->rejects[index].reason),
                rcpt_record_detail(record, &record->rejects[index]));
    if (record->event_count + record->reject_count == 0)
        fputs("receiptd: the record brings no receipts: it holds none, or only ignored ones\n",
              stderr);
    return record->reject_count > 0 ? EX_DATAERR : EX_OK;
}

static int try_record(const struct rcpt_config *config,
                      const struct rcpt_gateway_account_config *topic, const char *given,
                      struct rcpt_error *error)
{
    struct rcpt_gateway_header headers[MOST_HEADERS];
    struct rcpt_gateway_beside beside = {.headers = headers, .scanners = config->scanners};
    if (!read_headers(given, headers, &beside.header_count))
        return EX_USAGE;
    struct rcpt_gateway_topics *topics = rcpt_gateway_topics_new(
        config->kafka.accounts, config->kafka.accounts_count, config->ladder, error);
    if (topics == NULL)
        return command_fail(error);
    struct rcpt_record_input input = {.topic = topic->name,
                                      .timestamp_ms = rcpt_wall_ns() / RCPT_NS_PER_US / 1000};
    char *value = command_try_input(&input.value_size);
    input.value = value;
    input.form = rcpt_gateway_topics_form(topics, &input, &beside);
    struct rcpt_decoder *decoder = rcpt_decoder_new(config->ladder, 1);
    rcpt_decoder_set_machines(decoder, &config->machine);
    if (config->inbox.recipient != NULL)
        rcpt_decoder_take_ranges(decoder);
    struct rcpt_record *record = rcpt_record_decode(decoder, &input);
    int exit_code = report(record, topic->custom.at);
    rcpt_record_free(record);
    rcpt_decoder_free(decoder);
    rcpt_gateway_topics_free(topics);
    free(value);
    return command_printed(exit_code);
}

/* Topics are enough, without brokers and database. */
int command_run_try(const struct command_call *call)
{
    const char *name = command_option(call, "try");
    struct rcpt_error error = {0};
    struct rcpt_config *config = rcpt_config_load_for_try(call->config_path, &error);
    if (config == NULL)
        return command_fail(&error);
    const struct rcpt_gateway_account_config *topic =
        command_try_find(config->kafka.accounts, config->kafka.accounts_count, name);
    int exit_code = topic != NULL
                        ? try_record(config, topic, command_option(call, "header"), &error)
                        : command_try_unknown("topic of receipts", name, config->kafka.accounts,
                                              config->kafka.accounts_count);
    rcpt_config_free(config);
    return exit_code;
}
