/* The values that a group collects of fields, by kind: set, count, first, last, sum, min, max; and
 * the JSON that sql/fold/gather merges. Called by collect.c. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collect_internal.h"
#include "receiptd/core/hash.h"

/* ---- values in ---- */

/* Sets are small (max_values), so a linear search by hash is enough. */
void collect_into_set(struct rcpt_fold_collector *collector, struct collect_set *set, size_t most,
                      struct rcpt_text json)
{
    uint64_t hash = rcpt_hash_text_extended(json.at, json.size, 0);
    for (uint32_t index = 0; index < set->count; index++)
        if (set->items[index].hash == hash && rcpt_text_equal(set->items[index].json, json))
            return;
    if (set->count >= most) {
        set->overflow++;
        return;
    }
    if (set->count == set->capacity) {
        uint32_t capacity = set->capacity == 0 ? 4 : 2 * set->capacity;
        struct collect_item *items = collect_take(collector, capacity * sizeof(*items));
        if (set->count > 0)
            memcpy(items, set->items, set->count * sizeof(*items));
        set->items = items;
        set->capacity = capacity;
    }
    set->items[set->count++] = (struct collect_item){hash, collect_keep(collector, json)};
}

static void add_node(struct rcpt_fold_collector *collector, struct collect_set *set, size_t most,
                     const struct rcpt_node *node)
{
    if (fold_text_put_value(collect_begin(collector), node))
        collect_into_set(collector, set, most, collect_written(collector));
}

/* A field may hold one value, a list of values, or an object, whose keys are the values. */
static void collect_set(struct rcpt_fold_collector *collector, struct collect_set *set, size_t most,
                        const struct rcpt_node *node)
{
    if (node->type == RCPT_NODE_OBJECT) {
        for (const struct rcpt_node *member = node->first; member != NULL; member = member->next) {
            fold_text_put_string(collect_begin(collector), member->key);
            collect_into_set(collector, set, most, collect_written(collector));
        }
    } else if (node->type == RCPT_NODE_ARRAY) {
        for (const struct rcpt_node *item = node->first; item != NULL; item = item->next)
            add_node(collector, set, most, item);
    } else {
        add_node(collector, set, most, node);
    }
}

/* Exact up to 18 digits on either side of the point; beyond that a double, which makes the sum
 * inexact instead of wrong. */
static void collect_sum(struct collect_kept *kept, const struct rcpt_node *node, double number)
{
    struct rcpt_decimal value;
    if (!kept->inexact && rcpt_decimal_read(node->text, &value) &&
        rcpt_decimal_add(&kept->sum, value))
        return;
    kept->number = (kept->inexact ? kept->number : rcpt_decimal_double(&kept->sum)) + number;
    kept->inexact = true;
}

/* Doubles that differ are in the order of their numbers; of equal ones the digits decide. */
static bool is_beyond(const struct collect_kept *kept, enum rcpt_fold_kind kind,
                      const struct rcpt_node *node, double number)
{
    if (number != kept->number)
        return kind == RCPT_FOLD_MIN ? number < kept->number : number > kept->number;
    int order = rcpt_decimal_compare(node->text, kept->json);
    return kind == RCPT_FOLD_MIN ? order < 0 : order > 0;
}

/* min and max keep the number's own text, so that no digit is lost. */
static void collect_number(struct rcpt_fold_collector *collector, struct collect_kept *kept,
                           enum rcpt_fold_kind kind, const struct rcpt_node *node)
{
    double number;
    if (!fold_number(node, &number))
        return;
    if (kind == RCPT_FOLD_SUM) {
        collect_sum(kept, node, number);
    } else if (!kept->has || is_beyond(kept, kind, node, number)) {
        kept->number = number;
        kept->json = collect_keep(collector, node->text);
    }
    kept->has = true;
}

/* An equal value is not copied again: `last` of a steady stream costs nothing. */
static void collect_scalar(struct rcpt_fold_collector *collector, struct collect_kept *kept,
                           const struct rcpt_node *node)
{
    RCPT_ASSERT(fold_text_put_value(collect_begin(collector), node)); /* null has been left out */
    struct rcpt_text json = collect_written(collector);
    if (kept->has && rcpt_text_equal(kept->json, json))
        return;
    kept->json = collect_keep(collector, json);
    kept->has = true;
}

/* Null and absent fields are not collected. */
void collect_value(struct rcpt_fold_collector *collector, struct collect_kept *kept, size_t most,
                   enum rcpt_fold_kind kind, const struct rcpt_node *node)
{
    if (node == NULL || node->type == RCPT_NODE_NULL)
        return;
    switch (kind) {
    case RCPT_FOLD_SET:
        kept->has = true;
        collect_set(collector, &kept->set, most, node);
        return;
    case RCPT_FOLD_COUNT:
        kept->has = true;
        kept->count++;
        return;
    case RCPT_FOLD_FIRST:
        if (!kept->has)
            collect_scalar(collector, kept, node);
        return;
    case RCPT_FOLD_LAST:
        collect_scalar(collector, kept, node);
        return;
    case RCPT_FOLD_SUM:
    case RCPT_FOLD_MIN:
    case RCPT_FOLD_MAX:
        collect_number(collector, kept, kind, node);
        return;
    case RCPT_FOLD_KIND__COUNT:
        break;
    }
    rcpt_assert_failed("a known kind", __FILE__, __LINE__, __func__);
}

/* ---- JSON out ---- */

/* Items are JSON already, in the order in which they came. */
void collect_write_set(struct fold_text *out, const struct collect_set *set)
{
    fold_text_put_char(out, '[');
    for (uint32_t index = 0; index < set->count; index++) {
        if (index > 0)
            fold_text_put_char(out, ',');
        fold_text_put(out, set->items[index].json.at, set->items[index].json.size);
    }
    fold_text_put_char(out, ']');
}

void collect_write_integer(struct fold_text *out, int64_t integer)
{
    char text[24];
    int size = snprintf(text, sizeof(text), "%" PRId64, integer);
    fold_text_put(out, text, (size_t)size);
}

/* 17 digits give the same double back. */
static void write_double(struct fold_text *out, double number)
{
    char text[40];
    int size = snprintf(text, sizeof(text), "%.17g", number);
    fold_text_put(out, text, (size_t)size);
}

static void write_decimal(struct fold_text *out, const struct rcpt_decimal *decimal)
{
    char text[RCPT_DECIMAL_TEXT];
    size_t size = rcpt_decimal_text(decimal, text);
    fold_text_put(out, text, size);
}

/* The database adds up parts; a sum that is not finite counts as 0. */
void collect_write(struct fold_text *out, enum rcpt_fold_kind kind, const struct collect_kept *kept)
{
    if (kind == RCPT_FOLD_SET)
        collect_write_set(out, &kept->set);
    else if (kind == RCPT_FOLD_COUNT)
        collect_write_integer(out, (int64_t)kept->count);
    else if (kind == RCPT_FOLD_SUM && kept->inexact)
        write_double(out, isfinite(kept->number) ? kept->number : 0);
    else if (kind == RCPT_FOLD_SUM)
        write_decimal(out, &kept->sum);
    else
        fold_text_put(out, kept->json.at, kept->json.size);
}
