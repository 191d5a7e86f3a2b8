/* The rules that the configuration switches on: their files for the statements of lanes
 * (sql/lane/rules), and what the decoder reads of receipts for them. Called by receipts.c and
 * lanes.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define DAY_MS INT64_C(86400000)

/* Of whole days, as the store forgets. */
static void read_dedup(const struct rcpt_config *config, struct rules *rules)
{
    if (!rules->read.keys)
        return;
    int64_t days = (config->dedup.window_ms + DAY_MS - 1) / DAY_MS;
    snprintf(rules->window, sizeof(rules->window), "%" PRId64 " hours", days * 24);
    rules->bindings[rules->binding_count++] =
        (struct rcpt_pg_binding){"dedup_window", rules->window};
}

/* The first one says which receipts are echoes; the others count those that are not. */
static void add_readers(const struct rcpt_config *config, struct rules *rules)
{
    rules->files[rules->count++] = rules->read.keys ? "lane/rules/dedup" : "lane/rules/no_dedup";
    rules->read.minutes = config->counters.series_ms > 0;
    rules->read.delays = config->counters.gateways_ms > 0;
    rules->read.facets = config->counters.reasons || rules->read.delays;
    if (rules->read.minutes)
        rules->files[rules->count++] = "lane/rules/series";
    if (config->counters.reasons)
        rules->files[rules->count++] = "lane/rules/reasons";
    if (rules->read.delays)
        rules->files[rules->count++] = "lane/rules/gateways";
    rules->read.times = config->counters.times;
    if (rules->read.times)
        rules->files[rules->count++] = "lane/rules/times";
    rules->read.receipts = rules->count > 1 || rules->read.keys;
    if (!rules->read.receipts)
        rules->count = 0;
}

static void add_dimensions(const struct rcpt_config *config, struct rules *rules)
{
    rcpt_dimensions_read(config, &rules->dimensions);
    if (rules->dimensions.count == 0)
        return;
    rules->files[rules->count++] =
        rules->read.keys ? "lane/rules/dimensions_echoes" : "lane/rules/dimensions_no_echoes";
    rules->files[rules->count++] = "lane/rules/dimensions";
    for (size_t index = 0; index < rules->dimensions.binding_count; index++)
        rules->bindings[rules->binding_count++] = rules->dimensions.bindings[index];
}

static void add_groups(const struct rcpt_config *config, struct rules *rules)
{
    rcpt_groups_read(config, &rules->groups);
    if (rules->groups.count == 0)
        return;
    rules->files[rules->count++] = "lane/rules/groups";
    for (size_t index = 0; index < rules->groups.binding_count; index++)
        rules->bindings[rules->binding_count++] = rules->groups.bindings[index];
}

/* No rule of counting, but columns of the inbox that statements name. */
static void add_ranges(const struct rcpt_config *config, struct rules *rules)
{
    rcpt_ranges_read(config, &rules->ranges);
    for (size_t index = 0; index < rules->ranges.binding_count; index++)
        rules->bindings[rules->binding_count++] = rules->ranges.bindings[index];
}

void rules_read(const struct rcpt_config *config, struct rules *rules)
{
    *rules = (struct rules){.read.keys = config->dedup.window_ms > 0};
    read_dedup(config, rules);
    add_readers(config, rules);
    add_dimensions(config, rules);
    add_groups(config, rules);
    add_ranges(config, rules);
}

static const char *name_facet(const void *context, enum rcpt_facet facet, uint32_t number)
{
    const struct receipts *receipts = context;
    return rcpt_decoder_facet(receipts->decoder, facet, number);
}

bool rules_want_flights(void)
{
    const char *flights = getenv("RECEIPTD_FLIGHTS");
    return flights != NULL && strcmp(flights, "2") == 0;
}

/* The second flight writes cells of the funnel alone: what else may be written needs the other
 * form. */
bool rules_allow_flights(const struct rcpt_config *config, const struct rules *rules,
                         size_t subscribers)
{
    return rules_want_flights() && rules->count == 0 && subscribers == 0 &&
           config->unknown == RCPT_UNKNOWN_PARK && config->timeline.retention_ms == 0;
}

/* Before the first batch. */
void rules_give(const struct receipts *receipts, struct rcpt_lane_sender *sender,
                size_t subscribers)
{
    struct rules rules;
    rules_read(receipts->context->config, &rules);
    rcpt_lane_sender_set_names(sender,
                               &(struct rcpt_lane_names){.name = name_facet, .context = receipts});
    rcpt_lane_sender_set_rules(sender, &rules.read, receipts->context->config->ladder);
    if (rules_allow_flights(receipts->context->config, &rules, subscribers))
        rcpt_lane_sender_set_flights(sender);
}
