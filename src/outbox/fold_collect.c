#include "receiptd/outbox/fold_collect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/arena.h"
#include "receiptd/base/document.h"
#include "receiptd/base/error.h"
#include "receiptd/base/json.h"
#include "receiptd/core/hash.h"

#define MOST_TRACES     8u
#define MOST_KEY_BYTES  1000u
#define MOST_TEXT_BYTES 1000u /* of a collected value; what is longer is cut */
#define CHUNK_BYTES     65536u
#define KEEP_BYTES      (4u * 1024 * 1024)
#define FIRST_SLOTS     1024u

struct value { /* a scalar as JSON */
    uint64_t hash;
    struct rcpt_text json;
};

struct values { /* a set */
    struct value *items;
    uint32_t count, capacity;
    uint64_t overflow;
};

struct kept { /* what a group has of one field */
    struct values set;
    struct rcpt_text json; /* first, last, min, max */
    double number;         /* min, max; a sum that is no integer any more */
    int64_t integer;
    uint64_t count;
    bool has, inexact;
};

struct group {
    struct group *next; /* in the order of arrival */
    uint64_t hash;
    uint32_t rule;
    struct rcpt_text key;
    uint64_t events;
    struct values traces;
    struct kept kept[];
};

struct rcpt_fold_collector {
    const struct rcpt_fold_spec *specs;
    size_t count;
    struct rcpt_arena groups_arena, event_arena;
    struct group **slots;
    size_t slot_count, group_count, bytes;
    struct group *first, **last;
    char *key; /* of the event that is looked at */
    size_t key_size;
    FILE *key_out;
};

/* ---- life ---- */

struct rcpt_fold_collector *rcpt_fold_collector_new(const struct rcpt_fold_spec *specs,
                                                    size_t count)
{
    struct rcpt_fold_collector *collector = rcpt_calloc(1, sizeof(*collector));
    collector->specs = specs;
    collector->count = count;
    collector->slot_count = FIRST_SLOTS;
    collector->slots = rcpt_calloc(collector->slot_count, sizeof(struct group *));
    collector->last = &collector->first;
    rcpt_arena_init(&collector->groups_arena, CHUNK_BYTES);
    rcpt_arena_init(&collector->event_arena, CHUNK_BYTES);
    collector->key_out = open_memstream(&collector->key, &collector->key_size);
    RCPT_ASSERT(collector->key_out != NULL);
    return collector;
}

void rcpt_fold_collector_free(struct rcpt_fold_collector *collector)
{
    if (collector == NULL)
        return;
    fclose(collector->key_out);
    free(collector->key);
    rcpt_arena_fini(&collector->groups_arena);
    rcpt_arena_fini(&collector->event_arena);
    free(collector->slots);
    free(collector);
}

void rcpt_fold_collector_reset(struct rcpt_fold_collector *collector)
{
    memset(collector->slots, 0, collector->slot_count * sizeof(struct group *));
    rcpt_arena_reset(&collector->groups_arena, KEEP_BYTES);
    collector->group_count = collector->bytes = 0;
    collector->first = NULL;
    collector->last = &collector->first;
}

size_t rcpt_fold_collector_groups(const struct rcpt_fold_collector *collector)
{
    return collector->group_count;
}

size_t rcpt_fold_collector_bytes(const struct rcpt_fold_collector *collector)
{
    return collector->bytes;
}

static void *take(struct rcpt_fold_collector *collector, size_t bytes)
{
    collector->bytes += bytes;
    void *memory = rcpt_arena_alloc(&collector->groups_arena, bytes);
    memset(memory, 0, bytes);
    return memory;
}

static struct rcpt_text keep(struct rcpt_fold_collector *collector, struct rcpt_text text)
{
    char *copy = take(collector, text.size + 1);
    memcpy(copy, text.at, text.size);
    return (struct rcpt_text){copy, text.size};
}

/* ---- fields ---- */

static const struct rcpt_node *field(const struct rcpt_node *object, const char *path)
{
    while (object != NULL) {
        size_t size = strcspn(path, ".");
        object = rcpt_node_member(object, (struct rcpt_text){path, size});
        if (path[size] == '\0')
            return object;
        path += size + 1;
    }
    return NULL;
}

/* PostgreSQL takes neither NUL in a text nor a number without bounds. */
static bool is_number(const struct rcpt_node *node, double *number)
{
    char text[48];
    if (node->type != RCPT_NODE_NUMBER || node->text.size >= sizeof(text))
        return false;
    memcpy(text, node->text.at, node->text.size);
    text[node->text.size] = '\0';
    *number = strtod(text, NULL);
    return isfinite(*number) && (*number != 0 || strpbrk(text, "eE") == NULL);
}

static void write_text(FILE *out, struct rcpt_text text)
{
    struct rcpt_json json;
    size_t size = text.size < MOST_TEXT_BYTES ? text.size : MOST_TEXT_BYTES;
    const char *nul = memchr(text.at, '\0', size);
    rcpt_json_init(&json, out);
    rcpt_json_bytes(&json, text.at, nul != NULL ? (size_t)(nul - text.at) : size);
}

/* A scalar, as JSON that the database takes; what is nested is told as a text. False: null. */
static bool write_value(FILE *out, const struct rcpt_node *node)
{
    double number;
    if (node->type == RCPT_NODE_NULL)
        return false;
    if (is_number(node, &number) || node->type == RCPT_NODE_BOOLEAN)
        fwrite(node->text.at, 1, node->text.size, out);
    else if (node->type == RCPT_NODE_STRING)
        write_text(out, node->text);
    else
        write_text(out, node->raw);
    return true;
}

static bool is_one_of(struct rcpt_text text, const char *values)
{
    for (;;) {
        size_t size = strcspn(values, "|");
        if (size == text.size && memcmp(values, text.at, size) == 0)
            return true;
        if (values[size] == '\0')
            return false;
        values += size + 1;
    }
}

static bool matches(const struct rcpt_fold_spec *spec, const struct rcpt_node *event)
{
    for (size_t index = 0; index < spec->match_count; index++)
        if (!is_one_of(rcpt_node_text(field(event, spec->matches[index].path)),
                       spec->matches[index].values))
            return false;
    return true;
}

/* What was written to the stream since it was rewound. */
static struct rcpt_text written(struct rcpt_fold_collector *collector)
{
    long size = ftell(collector->key_out);
    RCPT_ASSERT(size >= 0 && fflush(collector->key_out) == 0);
    return (struct rcpt_text){collector->key, (size_t)size};
}

/* An empty text: one of the fields is missing, or all of it is too long. */
static struct rcpt_text key_of(struct rcpt_fold_collector *collector,
                               const struct rcpt_fold_spec *spec, const struct rcpt_node *event)
{
    FILE *out = collector->key_out;
    rewind(out);
    for (size_t index = 0; index < spec->key_count; index++) {
        const struct rcpt_node *node = field(event, spec->keys[index]);
        if (node == NULL || node->type == RCPT_NODE_ARRAY || node->type == RCPT_NODE_OBJECT ||
            (node->type == RCPT_NODE_STRING &&
             memchr(node->text.at, '\0', node->text.size) != NULL))
            return (struct rcpt_text){NULL, 0};
        fputc(index == 0 ? '{' : ',', out);
        write_text(out, rcpt_text_of(spec->keys[index]));
        fputc(':', out);
        if (!write_value(out, node))
            return (struct rcpt_text){NULL, 0};
    }
    fputc('}', out);
    struct rcpt_text key = written(collector);
    return key.size <= MOST_KEY_BYTES ? key : (struct rcpt_text){NULL, 0};
}

/* ---- groups ---- */

static void insert(struct rcpt_fold_collector *collector, struct group *group)
{
    size_t slot = group->hash & (collector->slot_count - 1);
    while (collector->slots[slot] != NULL)
        slot = (slot + 1) & (collector->slot_count - 1);
    collector->slots[slot] = group;
}

static void grow(struct rcpt_fold_collector *collector)
{
    if (collector->group_count * 2 < collector->slot_count)
        return;
    free(collector->slots);
    collector->slot_count *= 2;
    collector->slots = rcpt_calloc(collector->slot_count, sizeof(struct group *));
    for (struct group *group = collector->first; group != NULL; group = group->next)
        insert(collector, group);
}

static struct group *group_of(struct rcpt_fold_collector *collector, uint32_t rule,
                              struct rcpt_text key)
{
    uint64_t hash = rcpt_hash_text_extended(key.at, key.size, rule);
    size_t slot = hash & (collector->slot_count - 1);
    for (; collector->slots[slot] != NULL; slot = (slot + 1) & (collector->slot_count - 1)) {
        struct group *group = collector->slots[slot];
        if (group->hash == hash && group->rule == rule && rcpt_text_equal(group->key, key))
            return group;
    }
    size_t fields = collector->specs[rule].collect_count;
    struct group *group = take(collector, sizeof(*group) + fields * sizeof(group->kept[0]));
    group->hash = hash;
    group->rule = rule;
    group->key = keep(collector, key);
    *collector->last = group;
    collector->last = &group->next;
    collector->group_count++;
    insert(collector, group);
    grow(collector);
    return group;
}

/* ---- what is collected ---- */

static void add_to_set(struct rcpt_fold_collector *collector, struct values *set, size_t most,
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
        struct value *items = take(collector, capacity * sizeof(*items));
        if (set->count > 0)
            memcpy(items, set->items, set->count * sizeof(*items));
        set->items = items;
        set->capacity = capacity;
    }
    set->items[set->count++] = (struct value){hash, keep(collector, json)};
}

static void add_node(struct rcpt_fold_collector *collector, struct values *set, size_t most,
                     const struct rcpt_node *node)
{
    rewind(collector->key_out);
    if (write_value(collector->key_out, node))
        add_to_set(collector, set, most, written(collector));
}

static void collect_set(struct rcpt_fold_collector *collector, struct values *set, size_t most,
                        const struct rcpt_node *node)
{
    if (node->type == RCPT_NODE_OBJECT) {
        for (const struct rcpt_node *member = node->first; member != NULL; member = member->next) {
            rewind(collector->key_out);
            write_text(collector->key_out, member->key);
            add_to_set(collector, set, most, written(collector));
        }
    } else if (node->type == RCPT_NODE_ARRAY) {
        for (const struct rcpt_node *item = node->first; item != NULL; item = item->next)
            add_node(collector, set, most, item);
    } else {
        add_node(collector, set, most, node);
    }
}

static bool is_integer(const struct rcpt_node *node, int64_t *integer)
{
    char text[24], *end;
    if (node->text.size >= 19)
        return false;
    memcpy(text, node->text.at, node->text.size);
    text[node->text.size] = '\0';
    *integer = strtoll(text, &end, 10);
    return *end == '\0';
}

/* Exact as long as all are integers; from then on as a double. */
static void collect_sum(struct kept *kept, const struct rcpt_node *node, double number)
{
    int64_t integer, sum;
    if (!kept->inexact && is_integer(node, &integer) &&
        !__builtin_add_overflow(kept->integer, integer, &sum)) {
        kept->integer = sum;
        return;
    }
    kept->number = (kept->inexact ? kept->number : (double)kept->integer) + number;
    kept->inexact = true;
}

static void collect_number(struct rcpt_fold_collector *collector, struct kept *kept,
                           enum rcpt_fold_kind kind, const struct rcpt_node *node)
{
    double number;
    if (!is_number(node, &number))
        return;
    if (kind == RCPT_FOLD_SUM) {
        collect_sum(kept, node, number);
    } else if (!kept->has ||
               (kind == RCPT_FOLD_MIN ? number < kept->number : number > kept->number)) {
        kept->number = number;
        kept->json = keep(collector, node->text);
    }
    kept->has = true;
}

static void collect_scalar(struct rcpt_fold_collector *collector, struct kept *kept,
                           const struct rcpt_node *node)
{
    rewind(collector->key_out);
    if (!write_value(collector->key_out, node))
        return;
    struct rcpt_text json = written(collector);
    if (kept->has && rcpt_text_equal(kept->json, json))
        return;
    kept->json = keep(collector, json);
    kept->has = true;
}

static void collect(struct rcpt_fold_collector *collector, struct kept *kept, size_t most,
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

static void add_event(struct rcpt_fold_collector *collector, struct group *group,
                      const struct rcpt_node *node, const struct rcpt_fold_event *event)
{
    const struct rcpt_fold_spec *spec = &collector->specs[group->rule];
    group->events++;
    for (size_t index = 0; index < spec->collect_count; index++)
        collect(collector, &group->kept[index], spec->max_values, spec->collects[index].kind,
                field(node, spec->collects[index].path));
    if (event->traceparent != NULL && group->traces.count < MOST_TRACES) {
        rewind(collector->key_out);
        write_text(collector->key_out,
                   (struct rcpt_text){event->traceparent, event->traceparent_size});
        add_to_set(collector, &group->traces, MOST_TRACES, written(collector));
    }
}

static const struct rcpt_node *parse(struct rcpt_fold_collector *collector,
                                     const struct rcpt_fold_event *event)
{
    const char *reason;
    rcpt_arena_reset(&collector->event_arena, KEEP_BYTES);
    if (event->value == NULL)
        return NULL;
    const struct rcpt_node *node = rcpt_document_parse(
        (struct rcpt_text){event->value, event->size}, &collector->event_arena, &reason);
    return node != NULL && node->type == RCPT_NODE_OBJECT ? node : NULL;
}

bool rcpt_fold_collector_add(struct rcpt_fold_collector *collector,
                             const struct rcpt_fold_event *event)
{
    const struct rcpt_node *node = parse(collector, event);
    bool good = node != NULL;
    for (uint32_t rule = 0; node != NULL && rule < collector->count; rule++) {
        const struct rcpt_fold_spec *spec = &collector->specs[rule];
        if (strcmp(spec->topic, event->topic) != 0 || !matches(spec, node))
            continue;
        struct rcpt_text key = key_of(collector, spec, node);
        good &= key.size > 0;
        if (key.size > 0)
            add_event(collector, group_of(collector, rule, key), node, event);
    }
    return good;
}

const char *rcpt_fold_collector_key(struct rcpt_fold_collector *collector, size_t rule,
                                    const struct rcpt_fold_event *event)
{
    const struct rcpt_node *node = parse(collector, event);
    if (node == NULL || !matches(&collector->specs[rule], node))
        return NULL;
    struct rcpt_text key = key_of(collector, &collector->specs[rule], node);
    return key.size > 0 ? rcpt_text_terminated(&collector->event_arena, key) : NULL;
}

/* ---- giving out ---- */

static void write_set(FILE *out, const struct values *set)
{
    fputc('[', out);
    for (uint32_t index = 0; index < set->count; index++) {
        if (index > 0)
            fputc(',', out);
        fwrite(set->items[index].json.at, 1, set->items[index].json.size, out);
    }
    fputc(']', out);
}

static void write_kept(FILE *out, enum rcpt_fold_kind kind, const struct kept *kept)
{
    if (kind == RCPT_FOLD_SET)
        write_set(out, &kept->set);
    else if (kind == RCPT_FOLD_COUNT)
        fprintf(out, "%llu", (unsigned long long)kept->count);
    else if (kind == RCPT_FOLD_SUM && kept->inexact)
        fprintf(out, "%.17g", isfinite(kept->number) ? kept->number : 0);
    else if (kind == RCPT_FOLD_SUM)
        fprintf(out, "%lld", (long long)kept->integer);
    else
        fwrite(kept->json.at, 1, kept->json.size, out);
}

static void write_part(FILE *out, const struct rcpt_fold_spec *spec, const struct group *group)
{
    const char *comma = "";
    fputs("{\"v\":{", out);
    for (size_t index = 0; index < spec->collect_count; index++) {
        if (!group->kept[index].has)
            continue;
        fputs(comma, out);
        write_text(out, rcpt_text_of(spec->collects[index].name));
        fputc(':', out);
        write_kept(out, spec->collects[index].kind, &group->kept[index]);
        comma = ",";
    }
    if (group->traces.count > 0) {
        fprintf(out, "%s\"traces\":", comma);
        write_set(out, &group->traces);
    }
    fputs("},\"o\":{", out);
    comma = "";
    for (size_t index = 0; index < spec->collect_count; index++) {
        if (group->kept[index].set.overflow == 0)
            continue;
        fputs(comma, out);
        write_text(out, rcpt_text_of(spec->collects[index].name));
        fprintf(out, ":%llu", (unsigned long long)group->kept[index].set.overflow);
        comma = ",";
    }
    fputs("}}", out);
}

void rcpt_fold_collector_each(struct rcpt_fold_collector *collector,
                              void (*take_group)(void *context,
                                                 const struct rcpt_fold_group *group),
                              void *context)
{
    for (const struct group *group = collector->first; group != NULL; group = group->next) {
        const struct rcpt_fold_spec *spec = &collector->specs[group->rule];
        rewind(collector->key_out);
        write_part(collector->key_out, spec, group);
        fputc('\0', collector->key_out);
        struct rcpt_fold_group given = {.rule = spec->rule,
                                        .key = group->key.at,
                                        .part = written(collector).at,
                                        .events = group->events};
        take_group(context, &given);
    }
}
