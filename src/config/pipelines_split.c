/* The push of once_per and the step `split`: variants, when they are dealt, and how the remainder
 * is decided (docs/push.md). Called by pipelines.c; a pipeline has one split at most. */
#include "pipelines_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/config/value.h"
#include "receiptd/core/machine.h"

#define MOST_SUBJECTS 1000000000 /* of all sizes together: their product stays below 2^63 */
#define MOST_MARGIN   100.0

/* The rates by which a rule may decide: those of receiptd's own of which more is better
 * (sql/views/campaign_defined_kpi.sql), and what machines could add to them. */
static const struct {
    const char *name;
    bool has_opens, has_clicks;
} kpis[] = {
    {"delivered_per_sent", false, false},        {"opened_per_delivered", true, true},
    {"clicked_per_delivered", false, true},      {"clicked_per_opened", true, true},
    {"replied_per_delivered", false, false},     {"total_opens_per_delivered", true, true},
    {"total_clicks_per_delivered", false, true},
};

/* ---- once_per ---- */

/* A list counts over the pipeline, so it stays as it is. A mapping is replaced by its `by`. */
bool pipelines_read_push(struct compiler *compiler, yaml_node_t **once_per)
{
    yaml_node_t *node = *once_per;
    if (node == NULL || node->type != YAML_MAPPING_NODE)
        return true;
    if (!pipelines_check_keys(compiler, node, "once_per", "push by"))
        return false;
    const yaml_node_t *push = pipelines_member(compiler, node, "push");
    *once_per = pipelines_member(compiler, node, "by");
    if (push == NULL || *once_per == NULL)
        return pipelines_fail(compiler, node,
                              "once_per needs push, a name, and by, the fields that name a person: "
                              "{push: spring, by: [subject]}");
    return pipelines_read_text(compiler, push, "once_per.push", &compiler->push);
}

/* ---- numbers ---- */

/* A whole number from 1 on: subjects, or percent. */
static bool read_count(struct compiler *compiler, const yaml_node_t *node, const char *what,
                       int64_t most, int64_t *count)
{
    const char *text = "";
    if (!pipelines_read_text(compiler, node, what, &text))
        return false;
    return (rcpt_config_parse_number(RCPT_CONFIG_INTEGER, text, count) && *count >= 1 &&
            *count <= most) ||
           pipelines_fail(compiler, node, "%s: \"%.40s\" is not an integer from 1 to %lld", what,
                          text, (long long)most);
}

/* A part of the second-best rate: 0.1 asks for a tenth more. */
static bool read_margin(struct compiler *compiler, const yaml_node_t *node, double *margin)
{
    const char *text = "";
    char *end;
    if (node == NULL)
        return true;
    if (!pipelines_read_text(compiler, node, "split.decide.margin", &text))
        return false;
    *margin = strtod(text, &end);
    return (*end == '\0' && isfinite(*margin) && *margin >= 0 && *margin <= MOST_MARGIN) ||
           pipelines_fail(compiler, node,
                          "split.decide.margin: \"%.40s\" is not a number from 0 to 100: 0.1 wants "
                          "10 %% more",
                          text);
}

/* ---- variants ---- */

/* The stage is looked up when all of them are known. */
static bool read_variant(struct compiler *compiler, yaml_node_t *node, struct split *split)
{
    struct variant *variant = &split->variants[split->count];
    if (!pipelines_check_keys(compiler, node, "a variant", "stage size share"))
        return false;
    variant->node = pipelines_member(compiler, node, "stage");
    const yaml_node_t *size = pipelines_member(compiler, node, "size");
    const yaml_node_t *share = pipelines_member(compiler, node, "share");
    if (variant->node == NULL || (size == NULL) == (share == NULL))
        return pipelines_fail(compiler, node,
                              "a variant has a stage, and a size (subjects) or a share (percent)");
    if (split->count > 0 && split->by_size != (size != NULL))
        return pipelines_fail(compiler, node, "either all variants have a size, or all a share");
    split->by_size = size != NULL;
    if (!pipelines_read_text(compiler, variant->node, "the name of a stage", &variant->stage))
        return false;
    for (size_t index = 0; index < split->count; index++)
        if (strcmp(split->variants[index].stage, variant->stage) == 0)
            return pipelines_fail(compiler, variant->node, "two variants have the stage \"%.63s\"",
                                  variant->stage);
    split->count++;
    return size != NULL ? read_count(compiler, size, "size", MOST_SUBJECTS, &variant->part)
                        : read_count(compiler, share, "share", 100, &variant->part);
}

/* Shares that are less than 100 percent together leave a remainder, as sizes do. */
static bool read_variants(struct compiler *compiler, const yaml_node_t *list, struct split *split)
{
    int64_t sum = 0;
    if (list == NULL || list->type != YAML_SEQUENCE_NODE ||
        list->data.sequence.items.start == list->data.sequence.items.top)
        return pipelines_fail(compiler, list != NULL ? list : split->node,
                              "split needs variants, a list of stages with a size or a share");
    for (const yaml_node_item_t *item = list->data.sequence.items.start;
         item < list->data.sequence.items.top; item++) {
        if (split->count == MAX_VARIANTS)
            return pipelines_fail(compiler, list, "more than %u variants", MAX_VARIANTS);
        if (!read_variant(compiler, pipelines_node(compiler, *item), split))
            return false;
        sum += split->variants[split->count - 1].part;
    }
    if (sum > (split->by_size ? MOST_SUBJECTS : 100))
        return pipelines_fail(compiler, list, "%s",
                              split->by_size ? "the sizes are more than 1000000000 together"
                                             : "the shares are more than 100 percent together");
    split->decides = split->by_size || sum < 100;
    return true;
}

/* ---- decide ---- */

/* A policy `count` makes a machine's open or click one of a person, and nothing tells them apart
 * afterwards. A bot's click implies an open. */
static bool check_machines(struct compiler *compiler, const yaml_node_t *node, bool has_opens,
                           bool has_clicks)
{
    const struct rcpt_machine_rules *rules = &compiler->config->machine;
    const unsigned others = ~(1u << RCPT_MACHINE_COUNT);
    if ((!has_opens || rcpt_machine_is_always(rules, RCPT_MACHINE_OPEN, others)) &&
        (!has_clicks || rcpt_machine_is_always(rules, RCPT_MACHINE_CLICK, others)))
        return true;
    return pipelines_fail(compiler, node,
                          "split.decide.kpi: a policy `count` in `machine` counts machines as "
                          "persons, so this rate cannot decide: use `flag` or `ignore` there");
}

/* The name is one of the list above, so that more is always better. */
static bool check_kpi(struct compiler *compiler, const yaml_node_t *node, const char *name)
{
    char known[256] = "";
    for (size_t index = 0; index < RCPT_COUNT_OF(kpis); index++) {
        if (strcmp(kpis[index].name, name) == 0)
            return check_machines(compiler, node, kpis[index].has_opens, kpis[index].has_clicks);
        size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, "%s%s", used > 0 ? ", " : "",
                 kpis[index].name);
    }
    return pipelines_fail(compiler, node, "split.decide.kpi: \"%.40s\" is none of %s", name, known);
}

/* Without the dimension no variant has a figure. */
static bool check_dimension(struct compiler *compiler, const yaml_node_t *node, const char *by)
{
    for (size_t index = 0; index < compiler->config->counters.by_count; index++)
        if (strcmp(compiler->config->counters.by[index], by) == 0)
            return true;
    return pipelines_fail(compiler, node,
                          "split.decide.by: counters.by does not count by \"%.40s\", so no variant "
                          "would have figures",
                          by);
}

/* The only campaign of on.match, if there is one. */
static const yaml_node_t *matched_campaign(const struct compiler *compiler)
{
    const yaml_node_t *node = compiler->campaigns;
    if (node == NULL || node->type == YAML_SCALAR_NODE)
        return node;
    const yaml_node_item_t *first = node->data.sequence.items.start;
    return node->data.sequence.items.top - first == 1 ? pipelines_node(compiler, *first) : NULL;
}

/* A rule needs a rate, the campaign that has it, and the dimension that tells variants apart. */
static bool read_kpi(struct compiler *compiler, const yaml_node_t *decide, struct split *split)
{
    const yaml_node_t *kpi = pipelines_member(compiler, decide, "kpi");
    const yaml_node_t *by = pipelines_member(compiler, decide, "by");
    const yaml_node_t *campaign = pipelines_member(compiler, decide, "campaign");
    const yaml_node_t *margin = pipelines_member(compiler, decide, "margin");
    if (kpi == NULL)
        return (by == NULL && campaign == NULL && margin == NULL) ||
               pipelines_fail(compiler, decide, "campaign, by and margin belong to a kpi");
    if (campaign == NULL)
        campaign = matched_campaign(compiler);
    if (campaign == NULL)
        return pipelines_fail(compiler, decide,
                              "split.decide needs campaign: which figures is the kpi of?");
    split->by = "variant";
    return pipelines_read_text(compiler, kpi, "split.decide.kpi", &split->kpi) &&
           check_kpi(compiler, kpi, split->kpi) &&
           pipelines_read_text(compiler, campaign, "split.decide.campaign", &split->campaign) &&
           (by == NULL || pipelines_read_text(compiler, by, "split.decide.by", &split->by)) &&
           check_dimension(compiler, by != NULL ? by : decide, split->by) &&
           read_margin(compiler, margin, &split->margin);
}

/* Who gets the rest without a winner has to be said: it may be a hundred times the test. */
static bool read_otherwise(struct compiler *compiler, const yaml_node_t *decide,
                           struct split *split)
{
    const yaml_node_t *node = pipelines_member(compiler, decide, "otherwise");
    if (node == NULL)
        return pipelines_fail(compiler, decide,
                              "split.decide needs otherwise, what the remainder gets without a "
                              "winner: best, a stage, or nobody");
    if (!pipelines_read_text(compiler, node, "split.decide.otherwise", &split->otherwise))
        return false;
    bool good = strcmp(split->otherwise, "nobody") == 0 ||
                (strcmp(split->otherwise, "best") == 0 && split->kpi != NULL);
    for (size_t index = 0; index < split->count; index++)
        good = good || strcmp(split->otherwise, split->variants[index].stage) == 0;
    return good || pipelines_fail(compiler, node,
                                  "split.decide.otherwise: \"%.63s\" is no stage of a variant, nor "
                                  "nobody, nor best with a kpi",
                                  split->otherwise);
}

/* Without a KPI a person decides, and `otherwise` at the horizon. */
static bool read_decide(struct compiler *compiler, const yaml_node_t *decide, struct split *split)
{
    if (decide == NULL)
        return !split->decides ||
               pipelines_fail(compiler, split->node, "split needs decide, for the remainder");
    if (!split->decides)
        return pipelines_fail(compiler, decide, "the shares are 100 percent: nobody is left");
    if (!pipelines_check_keys(compiler, decide, "split.decide",
                              "after kpi campaign by margin otherwise"))
        return false;
    const yaml_node_t *after = pipelines_member(compiler, decide, "after");
    if (after == NULL)
        return pipelines_fail(compiler, decide, "split.decide needs after, the horizon");
    return pipelines_read_duration(compiler, after, "split.decide.after", &split->after_ms) &&
           read_kpi(compiler, decide, split) && read_otherwise(compiler, decide, split);
}

bool pipelines_read_split(struct compiler *compiler, yaml_node_t *node, struct step *step)
{
    struct split *split = &compiler->split;
    if (!pipelines_check_keys(compiler, node, "split", "variants gather decide"))
        return false;
    if (compiler->push == NULL)
        return pipelines_fail(compiler, node,
                              "a split needs a push: once_per: {push: NAME, by: [subject]}");
    if (split->node != NULL)
        return pipelines_fail(compiler, node, "a pipeline has one split");
    split->node = node;
    step->target = compiler->push;
    if (!read_variants(compiler, pipelines_member(compiler, node, "variants"), split))
        return false;
    const yaml_node_t *gather = pipelines_member(compiler, node, "gather");
    if (split->by_size != (gather != NULL))
        return pipelines_fail(compiler, gather != NULL ? gather : node,
                              "gather, how long subjects gather before they are dealt, belongs to "
                              "variants with sizes");
    return (gather == NULL ||
            pipelines_read_duration(compiler, gather, "split.gather", &split->gather_ms)) &&
           read_decide(compiler, pipelines_member(compiler, node, "decide"), split);
}

/* ---- the whole ---- */

/* A subject is dealt once, so no way leads from a variant back to the split. */
static bool comes_back(const struct compiler *compiler, size_t from)
{
    size_t stack[2 * MAX_STEPS + 1], depth = 0;
    bool seen[MAX_STEPS] = {false};
    stack[depth++] = from;
    while (depth > 0) {
        size_t at = stack[--depth];
        const struct step *step = &compiler->steps[at];
        if (step->op == OP_SPLIT)
            return true;
        if (seen[at] || step->op == OP_END)
            continue;
        seen[at] = true;
        stack[depth++] = step->next;
        stack[depth++] = step->other;
    }
    return false;
}

/* What the database keeps for the push: without numbers of steps, which differ by pipeline. */
static void write_rule(const struct split *split, struct rcpt_json *json)
{
    rcpt_json_begin_object(json);
    rcpt_json_key(json, "variants");
    rcpt_json_begin_array(json);
    for (size_t index = 0; index < split->count; index++) {
        rcpt_json_begin_object(json);
        rcpt_json_put_text(json, "stage", split->variants[index].stage);
        rcpt_json_put_int(json, split->by_size ? "size" : "share", split->variants[index].part);
        rcpt_json_end_object(json);
    }
    rcpt_json_end_array(json);
    if (split->by_size)
        rcpt_json_put_int(json, "gather_ms", split->gather_ms);
    if (split->decides) {
        rcpt_json_put_int(json, "after_ms", split->after_ms);
        rcpt_json_put_text(json, "kpi", split->kpi);
        rcpt_json_put_text(json, "campaign", split->campaign);
        rcpt_json_put_text(json, "by", split->by);
        rcpt_json_key(json, "margin");
        rcpt_json_double(json, split->margin);
        rcpt_json_put_text(json, "otherwise", split->otherwise);
    }
    rcpt_json_end_object(json);
}

/* Pipelines of one push share its row, so they split it alike. */
static bool check_rule(struct compiler *compiler)
{
    size_t size = 0;
    struct rcpt_json json;
    struct push_rule *mine = &compiler->rules[compiler->rule_count];
    *mine = (struct push_rule){.push = compiler->push, .pipeline = compiler->pipeline};
    FILE *out = rcpt_open_memory(&mine->text, &size);
    rcpt_json_init(&json, out);
    write_rule(&compiler->split, &json);
    RCPT_ASSERT(fclose(out) == 0);
    compiler->rule_count++;
    for (const struct push_rule *other = compiler->rules; other < mine; other++)
        if (strcmp(other->push, mine->push) == 0 && strcmp(other->text, mine->text) != 0)
            return pipelines_fail(compiler, compiler->split.node,
                                  "pipeline %.100s splits push \"%.100s\" in another way",
                                  other->pipeline, mine->push);
    return true;
}

/* Behind a split that every run takes, the rest of its stage would never run. */
static bool check_rest_of_stage(struct compiler *compiler)
{
    for (size_t index = 0; index + 1 < compiler->step_count; index++) {
        const struct step *step = &compiler->steps[index];
        if (step->op == OP_SPLIT && step->when.count == 0 && step->unless.count == 0 &&
            step[1].stage == step->stage)
            return pipelines_fail(compiler, compiler->split.node,
                                  "an action behind the split would never run: put it into the "
                                  "stages of the variants");
    }
    return true;
}

bool pipelines_check_split(struct compiler *compiler)
{
    struct split *split = &compiler->split;
    if (split->node == NULL)
        return true;
    for (size_t index = 0; index < split->count; index++) {
        struct variant *variant = &split->variants[index];
        if (!pipelines_find_stage(compiler, variant->node, &variant->first))
            return false;
        if (comes_back(compiler, variant->first))
            return pipelines_fail(
                compiler, variant->node,
                "stage \"%.63s\" comes back to its split: a subject is dealt once", variant->stage);
    }
    return check_rest_of_stage(compiler) && check_rule(compiler);
}

void pipelines_write_split(struct compiler *compiler, struct rcpt_json *json)
{
    const struct split *split = &compiler->split;
    rcpt_json_key(json, "exits");
    rcpt_json_begin_object(json);
    for (size_t index = 0; index < split->count; index++) {
        int64_t delay_ms = 0;
        size_t first = pipelines_land(compiler, split->variants[index].first, &delay_ms);
        rcpt_json_key(json, split->variants[index].stage);
        rcpt_json_begin_array(json);
        rcpt_json_int(json, (int64_t)first);
        rcpt_json_int(json, delay_ms);
        rcpt_json_end_array(json);
    }
    rcpt_json_end_object(json);
    rcpt_json_key(json, "rule");
    write_rule(split, json);
}
