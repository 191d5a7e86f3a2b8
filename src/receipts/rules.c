/* The rules that the configuration switches on, for the senders and statements of lanes, and the
 * fields that the decoder reads for them. Called by receipts.c, lanes.c and commands. */
#include "receiptd/receipts/rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)

/* The settings point to the kinds, so `rules` stays where it is as long as they are used. */
static void read_dimensions(const struct rcpt_config *config, struct rules *rules)
{
    rcpt_dimensions_read(config, &rules->dimensions);
    rules->settings.dimension_count = rules->dimensions.count;
    for (size_t index = 0; index < rules->dimensions.count; index++) {
        snprintf(rules->kinds[index], sizeof(rules->kinds[index]), "by_%s",
                 rules->dimensions.names[index]);
        rules->settings.dimensions[index] = (struct rcpt_rules_column_of){
            .kind = rules->kinds[index], .column = rules->dimensions.columns[index]};
    }
}

static void read_groups(const struct rcpt_config *config, struct rules *rules)
{
    rcpt_groups_read(config, &rules->groups);
    rules->settings.group_count = rules->groups.count;
    for (size_t index = 0; index < rules->groups.count; index++)
        rules->settings.groups[index] = (struct rcpt_rules_column_of){
            .kind = rules->groups.names[index], .column = rules->groups.columns[index]};
}

/* Copied: a reload replaces the names, and statements may be made again before it takes effect. */
static void read_stream(const struct rcpt_config *config, const struct transition_wants *wants,
                        struct rules *rules)
{
    struct rcpt_rules_settings *settings = &rules->settings;
    bool is_state = config->stream.mode == RCPT_STREAM_STATE;
    settings->stream = wants->stream;
    settings->stream_state = is_state;
    settings->stream_column_count = wants->stream ? config->stream.columns_count : 0;
    for (size_t index = 0; index < settings->stream_column_count; index++) {
        snprintf(rules->stream_columns[index], sizeof(rules->stream_columns[index]), "%s",
                 config->stream.columns[index]);
        settings->stream_columns[index] = rules->stream_columns[index];
    }
}

/* A name is suppressing if the ladder has it, which the configuration has checked. */
static void add_suppressing(const struct rcpt_config *config, char *const *names, size_t count,
                            bool is_soft, struct rcpt_rules_settings *settings)
{
    for (size_t index = 0; index < count; index++) {
        int entry =
            rcpt_ladder_find_name(config->ladder, names[index], strlen(names[index]), NULL, 0);
        settings->suppressing[settings->suppressing_count++] = (struct rcpt_rules_suppressing){
            rcpt_ladder_entry(config->ladder, (size_t)entry)->code, is_soft};
    }
}

static void read_suppression(const struct rcpt_config *config, struct rules *rules)
{
    struct rcpt_rules_settings *settings = &rules->settings;
    settings->person = config->suppression.subject;
    settings->soft_count = (int16_t)config->suppression.soft_count;
    settings->soft_within_ms = config->suppression.soft_within_ms;
    if (settings->person == NULL)
        return;
    add_suppressing(config, config->suppression.on, config->suppression.on_size, false, settings);
    add_suppressing(config, config->suppression.soft, config->suppression.soft_size, true,
                    settings);
}

/* The window is one of whole days, as the store of keys forgets. */
void rules_read(const struct rcpt_config *config, const struct transition_wants *wants,
                struct rules *rules)
{
    int64_t days = (config->dedup.window_ms + DAY_MS - 1) / DAY_MS;
    *rules = (struct rules){.settings = {.ladder = config->ladder,
                                         .dedup = config->dedup.window_ms > 0,
                                         .series = config->counters.series_ms > 0,
                                         .reasons = config->counters.reasons,
                                         .gateways = config->counters.gateways_ms > 0,
                                         .times = config->counters.times,
                                         .links = config->counters.links,
                                         .costs = config->counters.cost,
                                         .folds = wants->folds,
                                         .fold_columns = wants->fold_columns}};
    snprintf(rules->window, sizeof(rules->window), "%" PRId64 " hours", days * 24);
    read_dimensions(config, rules);
    read_groups(config, rules);
    read_stream(config, wants, rules);
    read_suppression(config, rules);
    rcpt_ranges_read(config, &rules->ranges);
}

/* Whether a rule that is on looks at single receipts, not only at the fate of their messages. Rules
 * that read the JSON text of receipts need nothing of the decoder. */
bool rules_read_receipts(const struct rules *rules)
{
    const struct rcpt_rules_settings *settings = &rules->settings;
    return settings->dedup || settings->series || settings->reasons || settings->gateways ||
           settings->times || settings->stream || settings->person != NULL;
}

/* The columns are those that the senders' rules will ask for, since both come from the same
 * settings. */
static struct rcpt_lane_statements *make_statements(const struct rules *rules,
                                                    const struct transition_wants *wants,
                                                    struct rcpt_lane_variant variant)
{
    struct rcpt_rules *made = rcpt_rules_new(&rules->settings);
    variant.columns = rcpt_rules_columns(made, &variant.column_count);
    variant.orgs =
        wants->folds || wants->actions || wants->stream || rules->settings.person != NULL;
    variant.times = rules->settings.times;
    variant.payloads = rcpt_rules_read_payloads(&rules->settings);
    struct rcpt_lane_statements *statements = rcpt_lane_statements_new(&variant);
    rcpt_rules_free(made);
    return statements;
}

struct rcpt_lane_statements *rules_statements(const struct rcpt_config *config,
                                              const struct rules *rules,
                                              const struct transition_wants *wants,
                                              const char *recent_since, const char *recent_column)
{
    return make_statements(
        rules, wants,
        (struct rcpt_lane_variant){.bindings = rules->ranges.bindings,
                                   .binding_count = rules->ranges.binding_count,
                                   .resolves_ranges = rules->ranges.on,
                                   .inserts_unknown = config->unknown == RCPT_UNKNOWN_INSERT,
                                   .recent_since = recent_since,
                                   .recent_column = recent_column});
}

struct rcpt_lane_statements *rules_expiry_statements(const struct rules *rules,
                                                     const struct transition_wants *wants,
                                                     const char *candidates)
{
    return make_statements(rules, wants, (struct rcpt_lane_variant){.candidates = candidates});
}
