/* The rules of the configuration in two more forms: as JSON for sql/fold/rules.sql, and as specs of
 * a collector, copied so that a reload may exchange the configuration. Pure. Called by folds.c,
 * topic.c and the command fold-plan. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "receiptd/base/json.h"

/* PostgreSQL's interval takes "1500 ms". */
static void write_interval(struct rcpt_json *json, const char *name, int64_t ms)
{
    char text[40];
    snprintf(text, sizeof(text), "%" PRId64 " ms", ms);
    rcpt_json_put_text(json, name, text);
}

/* "a|b" becomes ["a", "b"]. */
static void write_match(struct rcpt_json *json, const struct rcpt_fold_config *fold)
{
    rcpt_json_key(json, "match");
    rcpt_json_begin_object(json);
    for (size_t index = 0; index < fold->match_count; index++) {
        const char *values = fold->match[index].value;
        rcpt_json_key(json, fold->match[index].name);
        rcpt_json_begin_array(json);
        for (;;) {
            size_t size = strcspn(values, "|");
            rcpt_json_bytes(json, values, size);
            if (values[size] == '\0')
                break;
            values += size + 1;
        }
        rcpt_json_end_array(json);
    }
    rcpt_json_end_object(json);
}

/* By the field's name as the configuration writes it. */
static bool has_key(const struct rcpt_fold_config *fold, const char *name)
{
    for (size_t index = 0; index < fold->group_key_count; index++)
        if (strcmp(fold->group_key[index], name) == 0)
            return true;
    return false;
}

/* Whether groups are told apart by a field of the transition; only fields of the transition cost no
 * join. */
static void write_key_field(struct rcpt_json *json, const struct rcpt_fold_config *fold,
                            const char *name, const char *field)
{
    rcpt_json_put_bool(json, name, fold->source == RCPT_FOLD_TRANSITIONS && has_key(fold, field));
}

/* A collected value without a field takes the field of its own name. */
static const char *collected_field(const struct rcpt_fold_collect_config *collect)
{
    return collect->field != NULL ? collect->field : collect->name;
}

/* Returns 1 if the field names a column of the inbox. */
static size_t visit_column(const char *field, folds_put_column put, void *context)
{
    size_t prefix = strlen(RCPT_FOLD_COLUMN_PREFIX);
    if (strncmp(field, RCPT_FOLD_COLUMN_PREFIX, prefix) != 0)
        return 0;
    if (put != NULL)
        put(context, field + prefix);
    return 1;
}

/* Columns of the key are visited apart: they decide which group a transition belongs to. */
static size_t visit_key_columns(const struct rcpt_fold_config *fold, folds_put_column put,
                                void *context)
{
    size_t count = 0;
    for (size_t index = 0; index < fold->group_key_count; index++)
        count += visit_column(fold->group_key[index], put, context);
    return count;
}

/* Only rules over transitions read the inbox. */
size_t folds_columns(const struct rcpt_fold_config *fold, folds_put_column put, void *context)
{
    if (fold->source != RCPT_FOLD_TRANSITIONS)
        return 0;
    size_t count = visit_key_columns(fold, put, context);
    for (size_t index = 0; index < fold->match_count; index++)
        count += visit_column(fold->match[index].name, put, context);
    for (size_t index = 0; index < fold->collect_count; index++)
        count += visit_column(collected_field(&fold->collect[index]), put, context);
    return count;
}

static void put_column(void *context, const char *column)
{
    rcpt_json_text(context, column);
}

/* Columns of the inbox that the subscription has to read, those of the key apart. */
static void write_columns(struct rcpt_json *json, const struct rcpt_fold_config *fold)
{
    rcpt_json_key(json, "key_columns");
    rcpt_json_begin_array(json);
    if (fold->source == RCPT_FOLD_TRANSITIONS)
        visit_key_columns(fold, put_column, json);
    rcpt_json_end_array(json);
    rcpt_json_key(json, "columns");
    rcpt_json_begin_array(json);
    folds_columns(fold, put_column, json);
    rcpt_json_end_array(json);
}

/* As the configuration and fold_rule name them. */
const char *folds_kind_name(enum rcpt_fold_kind kind)
{
    static const char *const names[RCPT_FOLD_KIND__COUNT] = {
        [RCPT_FOLD_SET] = "set",   [RCPT_FOLD_SUM] = "sum",     [RCPT_FOLD_MIN] = "min",
        [RCPT_FOLD_MAX] = "max",   [RCPT_FOLD_COUNT] = "count", [RCPT_FOLD_FIRST] = "first",
        [RCPT_FOLD_LAST] = "last",
    };
    return names[kind];
}

/* Besides the fields of the rule every group collects traces, and one of transitions a tally of
 * status changes under the empty name. */
static void write_collect(struct rcpt_json *json, const struct rcpt_fold_config *fold)
{
    rcpt_json_key(json, "kinds");
    rcpt_json_begin_object(json);
    if (fold->source == RCPT_FOLD_TRANSITIONS) {
        rcpt_json_put_text(json, "", "tally");
    }
    rcpt_json_put_text(json, "traces", "links");
    for (size_t index = 0; index < fold->collect_count; index++) {
        rcpt_json_put_text(json, fold->collect[index].name,
                           folds_kind_name(fold->collect[index].kind));
    }
    rcpt_json_end_object(json);
    rcpt_json_key(json, "fields");
    rcpt_json_begin_object(json);
    for (size_t index = 0; index < fold->collect_count; index++) {
        const struct rcpt_fold_collect_config *collect = &fold->collect[index];
        rcpt_json_put_text(json, collect->name, collected_field(collect));
    }
    rcpt_json_end_object(json);
}

/* One object per rule; sql/functions reads its members by name. */
static void write_rule(struct rcpt_json *json, const struct rcpt_fold_config *fold)
{
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "rule", fold->name);
    rcpt_json_put_text(json, "source",
                       fold->source == RCPT_FOLD_TRANSITIONS ? "transitions" : "topic");
    rcpt_json_put_text(json, "topic", fold->topic);
    write_match(json, fold);
    write_key_field(json, fold, "by_campaign", "campaign_id");
    write_key_field(json, fold, "by_org", "org_id");
    write_key_field(json, fold, "by_status", "status");
    write_key_field(json, fold, "by_prev_status", "prev_status");
    write_key_field(json, fold, "by_flags", "flags");
    write_columns(json, fold);
    write_collect(json, fold);
    write_interval(json, "window", fold->window_ms);
    write_interval(json, "max_hold", fold->max_hold_ms);
    /* No wait of a call is longer, nor is a wait for the answer of a call in flight. */
    write_interval(json, "longest_wait",
                   fold->publish.webhook.retry_max_ms > FOLDS_CALL_LEASE_MS
                       ? fold->publish.webhook.retry_max_ms
                       : FOLDS_CALL_LEASE_MS);
    rcpt_json_put_int(json, "max_events", (int64_t)fold->max_events);
    rcpt_json_put_int(json, "max_values", (int64_t)fold->max_values);
    rcpt_json_put_bool(json, "funnel", fold->funnel);
    rcpt_json_key(json, "target");
    bool webhook = fold->publish.webhook.url != NULL;
    rcpt_json_text(json, webhook ? "webhook" : "kafka");
    rcpt_json_key(json, "destination"); /* a URL may hold a secret: it stays in the configuration */
    rcpt_json_text(json, webhook ? "" : fold->publish.kafka.topic);
    rcpt_json_put_text(json, "message_key", fold->publish.kafka.key);
    rcpt_json_end_object(json);
}

/* NULL is not allowed: the caller checks optional texts. */
static const char *copy(struct rcpt_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copied = rcpt_arena_alloc(arena, size);
    memcpy(copied, text, size);
    return copied;
}

/* Everything is copied: the collector lives until its consumer has left. */
struct rcpt_fold_spec folds_spec(const struct rcpt_fold_config *fold, struct rcpt_arena *arena)
{
    struct rcpt_fold_match *matches =
        rcpt_arena_alloc(arena, (fold->match_count + 1) * sizeof(*matches));
    struct rcpt_fold_collect *collects =
        rcpt_arena_alloc(arena, (fold->collect_count + 1) * sizeof(*collects));
    const char **keys = rcpt_arena_alloc(arena, (fold->group_key_count + 1) * sizeof(*keys));
    for (size_t index = 0; index < fold->match_count; index++)
        matches[index] = (struct rcpt_fold_match){copy(arena, fold->match[index].name),
                                                  copy(arena, fold->match[index].value)};
    for (size_t index = 0; index < fold->group_key_count; index++)
        keys[index] = copy(arena, fold->group_key[index]);
    for (size_t index = 0; index < fold->collect_count; index++) {
        const struct rcpt_fold_collect_config *collect = &fold->collect[index];
        collects[index] = (struct rcpt_fold_collect){
            copy(arena, collect->name), copy(arena, collected_field(collect)), collect->kind};
    }
    return (struct rcpt_fold_spec){
        .rule = copy(arena, fold->name),
        .topic = fold->topic != NULL ? copy(arena, fold->topic) : NULL,
        .matches = matches,
        .match_count = fold->match_count,
        .keys = keys,
        .key_count = fold->group_key_count,
        .collects = collects,
        .collect_count = fold->collect_count,
        .max_values = (size_t)fold->max_values,
    };
}

/* An array of all rules. Rules that are missing in it count as removed in the database. */
char *folds_rules_text(const struct rcpt_config *config)
{
    char *text = NULL;
    size_t size = 0;
    struct rcpt_json json;
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    rcpt_json_begin_array(&json);
    for (size_t index = 0; index < config->folds_count; index++)
        write_rule(&json, &config->folds[index]);
    rcpt_json_end_array(&json);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}
