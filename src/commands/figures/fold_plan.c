/* `receiptd fold-plan`: reads the history of a topic and says what a fold rule would publish with
 * other windows (folds/plan.c computes). Joins no group and changes nothing. All events are kept in
 * memory, as a group's hash and a time, and each window is computed over the same events. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "../command.h"
#include "receiptd/config/value.h"
#include "receiptd/core/record.h"
#include "receiptd/folds/plan.h"
#include "receiptd/host/context.h"
#include "receiptd/kafka/history.h"

#define MOST_WINDOWS 16u
#define MOST_EVENTS  20000000 /* 16 bytes each */

/* The state of one run. command_fold_plan() frees events and finder. */
struct planning {
    const struct rcpt_fold_config *fold;
    struct fold_finder *finder;
    struct fold_plan_event *events;
    size_t count, capacity, limit;
    uint64_t skipped;
    struct fold_plan_row rows[MOST_WINDOWS];
    size_t row_count;
};

/* Windows are durations, separated by commas. */
static bool read_windows(const struct command_call *call, struct planning *planning)
{
    const char *text = command_option(call, "windows");
    for (text = text != NULL ? text : "1s,10s,1m,5m"; *text != '\0'; text += *text == ',') {
        char word[32];
        size_t size = strcspn(text, ",");
        struct fold_plan_row *row = &planning->rows[planning->row_count++];
        if (planning->row_count > MOST_WINDOWS || size >= sizeof(word)) {
            command_usage(call, "--windows takes at most %u durations", MOST_WINDOWS);
            return false;
        }
        snprintf(word, sizeof(word), "%.*s", (int)size, text);
        if (!rcpt_config_parse_number(RCPT_CONFIG_DURATION, word, &row->window_ms) ||
            row->window_ms <= 0) {
            command_usage(call, "--windows: \"%s\" is no duration such as 10s", word);
            return false;
        }
        text += size;
    }
    if (planning->row_count == 0)
        command_usage(call, "--windows names durations, such as 1s,10s,1m");
    return planning->row_count > 0;
}

/* The rule may be new: nothing in the database is asked. */
static const struct rcpt_fold_config *find_rule(const struct rcpt_config *config, const char *name)
{
    for (size_t index = 0; index < config->folds_count; index++)
        if (strcmp(config->folds[index].name, name) == 0)
            return &config->folds[index];
    return NULL;
}

/* An event is 16 bytes here: the hash of its group and its time. Records that are no events of the
 * rule are counted. */
static bool on_message(void *context, const struct rcpt_kafka_message *message)
{
    struct planning *planning = context;
    uint64_t group;
    if (message->timestamp_ms < 0 ||
        !fold_finder_group(planning->finder, message->topic, message->value, message->value_size,
                           &group)) {
        planning->skipped++;
        return true;
    }
    /* Doubling keeps copies few. --limit bounds the number of events. */
    if (planning->count == planning->capacity) {
        RCPT_GROW(planning->events, planning->capacity, 65536);
    }
    planning->events[planning->count++] =
        (struct fold_plan_event){group, rcpt_record_bound_ms(message->timestamp_ms)};
    return planning->count < planning->limit;
}

/* Reads to the end that the topic has now, and blocks until then, which a command may do. */
static bool read_topic(const struct rcpt_config *config, struct planning *planning,
                       struct rcpt_error *error)
{
    struct rcpt_kafka_property *properties = host_kafka_properties(config);
    struct rcpt_kafka_history history = {.brokers = config->kafka.brokers,
                                         .topic = fold_finder_topic(planning->finder),
                                         .properties = properties,
                                         .property_count = config->kafka.properties_count,
                                         .context = planning,
                                         .on_message = on_message};
    bool good = rcpt_kafka_read_history(&history, error);
    free(properties);
    return good;
}

/* The picture is one SVG file without scripts. */
static int write_picture(const char *path, const struct planning *planning)
{
    struct rcpt_error error;
    char title[400];
    FILE *out = fopen(path, "we");
    if (out == NULL) {
        rcpt_error_fatal(&error, EX_CANTCREAT, "%.300s: cannot be written: %s", path,
                         strerror(errno));
        return command_fail(&error);
    }
    snprintf(title, sizeof(title), "rule %.63s over topic %.249s", planning->fold->name,
             fold_finder_topic(planning->finder));
    fold_plan_write_svg(title, planning->rows, planning->row_count, out);
    if (fclose(out) == 0)
        return EX_OK;
    rcpt_error_fatal(&error, EX_IOERR, "%.300s: cannot be written: %s", path, strerror(errno));
    return command_fail(&error);
}

/* Without events every window publishes nothing, which would look like a result. */
static int refuse_empty(const struct planning *planning)
{
    struct rcpt_error error;
    const struct rcpt_fold_config *fold = planning->fold;
    rcpt_error_fatal(
        &error, EX_DATAERR, "none of the %llu records of topic %.249s is an event of rule %.63s",
        (unsigned long long)planning->skipped, fold_finder_topic(planning->finder), fold->name);
    if (planning->skipped == 0)
        rcpt_error_hint(&error, "the topic is empty");
    else if (fold->source == RCPT_FOLD_TRANSITIONS)
        rcpt_error_hint(&error,
                        "the rule folds transitions, which are in no topic of receipts: name with "
                        "--topic one whose JSON objects have the fields of match and group_key "
                        "(%.60s …), such as an export of the rule's events",
                        fold->group_key[0]);
    else
        rcpt_error_hint(&error,
                        "an event is a JSON object that fits match and has the fields of group_key "
                        "(%.60s …)",
                        fold->group_key[0]);
    return command_fail(&error);
}

/* --topic replaces the rule's topic, so that a rule can be tried on a copy of production. */
static int plan(const struct command_call *call, const struct rcpt_config *config,
                struct planning *planning)
{
    struct rcpt_error error;
    const char *topic = command_option(call, "topic"), *svg = command_option(call, "svg");
    planning->finder = fold_finder_new(planning->fold, topic);
    if (fold_finder_topic(planning->finder) == NULL)
        return command_usage(call, "the rule reads no topic: name one with --topic");
    if (!read_topic(config, planning, &error))
        return command_fail(&error);
    if (planning->count == 0)
        return refuse_empty(planning);
    fold_plan(planning->events, planning->count, planning->fold->max_hold_ms, planning->rows,
              planning->row_count);
    fold_plan_write_table(planning->rows, planning->row_count, stdout);
    if (planning->skipped > 0)
        printf("%llu records are no events of this rule\n", (unsigned long long)planning->skipped);
    int code = svg != NULL ? write_picture(svg, planning) : EX_OK;
    return command_printed(code);
}

int command_fold_plan(const struct command_call *call)
{
    struct planning planning = {.fold = NULL};
    struct rcpt_error error;
    int64_t limit;
    const char *rule = command_option(call, "rule");
    if (rule == NULL)
        return command_usage(call, "--rule names one of folds");
    if (!read_windows(call, &planning) ||
        !command_number(call, "limit", 1, MOST_EVENTS, MOST_EVENTS, &limit))
        return EX_USAGE;
    planning.limit = (size_t)limit;
    struct rcpt_config *config = rcpt_config_load(call->config_path, &error);
    if (config == NULL)
        return command_fail(&error);
    int code;
    planning.fold = find_rule(config, rule);
    if (planning.fold != NULL) {
        code = plan(call, config, &planning);
    } else {
        rcpt_error_fatal(&error, EX_NOINPUT, "there is no rule \"%.63s\" in folds", rule);
        code = command_fail(&error);
    }
    fold_finder_free(planning.finder);
    free(planning.events);
    rcpt_config_free(config);
    return code;
}
