#include "collect.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/hash.h"
#include "text.h"

#define MOST_TRACES      8u
#define MOST_KEY_BYTES   1000u
#define MOST_EVENT_BYTES (8u * 1024 * 1024) /* as for receipts */
#define CHUNK_BYTES      65536u
#define KEEP_BYTES       (16u * 1024 * 1024)
#define FIRST_SLOTS      1024u

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
    struct fold_text out; /* the key, value or part that is being written */
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
    return collector;
}

void rcpt_fold_collector_free(struct rcpt_fold_collector *collector)
{
    if (collector == NULL)
        return;
    fold_text_free(&collector->out);
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

static struct fold_text *begin(struct rcpt_fold_collector *collector)
{
    collector->out.size = 0;
    return &collector->out;
}

/* Borrowed until the next begin. */
static struct rcpt_text written(const struct rcpt_fold_collector *collector)
{
    return (struct rcpt_text){collector->out.at, collector->out.size};
}

static bool can_be_key(const struct rcpt_node *node)
{
    return node != NULL && node->type != RCPT_NODE_ARRAY && node->type != RCPT_NODE_OBJECT &&
           node->type != RCPT_NODE_NULL &&
           (node->type != RCPT_NODE_STRING || memchr(node->text.at, '\0', node->text.size) == NULL);
}

/* An empty text: one of the fields is missing, or all of it is too long. */
static struct rcpt_text key_of(struct rcpt_fold_collector *collector,
                               const struct rcpt_fold_spec *spec, const struct rcpt_node *event)
{
    struct fold_text *out = begin(collector);
    for (size_t index = 0; index < spec->key_count; index++) {
        const struct rcpt_node *node = field(event, spec->keys[index]);
        if (!can_be_key(node))
            return (struct rcpt_text){NULL, 0};
        fold_text_put_char(out, index == 0 ? '{' : ',');
        fold_text_put_string(out, rcpt_text_of(spec->keys[index]));
        fold_text_put_char(out, ':');
        (void)fold_text_put_value(out, node);
    }
    fold_text_put_char(out, '}');
    return out->size <= MOST_KEY_BYTES ? written(collector) : (struct rcpt_text){NULL, 0};
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
    if (fold_text_put_value(begin(collector), node))
        add_to_set(collector, set, most, written(collector));
}

static void collect_set(struct rcpt_fold_collector *collector, struct values *set, size_t most,
                        const struct rcpt_node *node)
{
    if (node->type == RCPT_NODE_OBJECT) {
        for (const struct rcpt_node *member = node->first; member != NULL; member = member->next) {
            fold_text_put_string(begin(collector), member->key);
            add_to_set(collector, set, most, written(collector));
        }
    } else if (node->type == RCPT_NODE_ARRAY) {
        for (const struct rcpt_node *item = node->first; item != NULL; item = item->next)
            add_node(collector, set, most, item);
    } else {
        add_node(collector, set, most, node);
    }
}

/* Exact as long as all are integers; from then on as a double. */
static void collect_sum(struct kept *kept, const struct rcpt_node *node, double number)
{
    int64_t integer, sum;
    if (!kept->inexact && fold_integer(node, &integer) &&
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
    if (!fold_number(node, &number))
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
    RCPT_ASSERT(fold_text_put_value(begin(collector), node)); /* null has been left out */
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
        fold_text_put_string(begin(collector),
                             (struct rcpt_text){event->traceparent, event->traceparent_size});
        add_to_set(collector, &group->traces, MOST_TRACES, written(collector));
    }
}

static bool is_ascii(const char *bytes, size_t size)
{
    unsigned char all = 0;
    for (size_t index = 0; index < size; index++)
        all |= (unsigned char)bytes[index];
    return all < 0x80;
}

static const struct rcpt_node *refuse(struct rcpt_fold_refusal *refusal,
                                      enum rcpt_reject_reason reason, const char *detail)
{
    refusal->reason = reason;
    snprintf(refusal->detail, sizeof(refusal->detail), "%s", detail);
    return NULL;
}

static const struct rcpt_node *parse(struct rcpt_fold_collector *collector,
                                     const struct rcpt_fold_event *event,
                                     struct rcpt_fold_refusal *refusal)
{
    const char *reason;
    struct rcpt_text text = {event->value, event->size};
    rcpt_arena_reset(&collector->event_arena, KEEP_BYTES);
    if (text.at == NULL || text.size == 0)
        return refuse(refusal, RCPT_REJECT_EMPTY_RECORD, "");
    if (text.size > MOST_EVENT_BYTES)
        return refuse(refusal, RCPT_REJECT_RECORD_TOO_LARGE, "");
    if (!is_ascii(text.at, text.size) && !rcpt_text_is_utf8(text))
        return refuse(refusal, RCPT_REJECT_INVALID_UTF8, "");
    const struct rcpt_node *node = rcpt_document_parse(text, &collector->event_arena, &reason);
    if (node == NULL)
        return refuse(refusal, RCPT_REJECT_INVALID_JSON, reason);
    return node->type == RCPT_NODE_OBJECT
               ? node
               : refuse(refusal, RCPT_REJECT_NOT_AN_EVENT, "no JSON object");
}

/* One letter names all rules that found no key. */
static void refuse_key(struct rcpt_fold_refusal *refusal, const struct rcpt_fold_spec *spec)
{
    size_t used = refusal->reason == RCPT_REJECT_NO_GROUP_KEY ? strlen(refusal->detail) : 0;
    snprintf(refusal->detail + used, sizeof(refusal->detail) - used, "%s %s",
             used == 0 ? "no usable group_key for rule" : ",", spec->rule);
    refusal->reason = RCPT_REJECT_NO_GROUP_KEY;
}

bool rcpt_fold_collector_add(struct rcpt_fold_collector *collector,
                             const struct rcpt_fold_event *event, struct rcpt_fold_refusal *refusal)
{
    const struct rcpt_node *node = parse(collector, event, refusal);
    bool good = node != NULL;
    if (good)
        refusal->reason = RCPT_REJECT_REASON__COUNT;
    for (uint32_t rule = 0; node != NULL && rule < collector->count; rule++) {
        const struct rcpt_fold_spec *spec = &collector->specs[rule];
        if (strcmp(spec->topic, event->topic) != 0 || !matches(spec, node))
            continue;
        struct rcpt_text key = key_of(collector, spec, node);
        if (key.size > 0)
            add_event(collector, group_of(collector, rule, key), node, event);
        else
            refuse_key(refusal, spec);
        good &= key.size > 0;
    }
    return good;
}

const char *rcpt_fold_collector_key(struct rcpt_fold_collector *collector, size_t rule,
                                    const struct rcpt_fold_event *event)
{
    struct rcpt_fold_refusal ignored;
    const struct rcpt_node *node = parse(collector, event, &ignored);
    if (node == NULL || !matches(&collector->specs[rule], node))
        return NULL;
    struct rcpt_text key = key_of(collector, &collector->specs[rule], node);
    return key.size > 0 ? rcpt_text_terminated(&collector->event_arena, key) : NULL;
}

/* ---- giving out ---- */

static void write_set(struct fold_text *out, const struct values *set)
{
    fold_text_put_char(out, '[');
    for (uint32_t index = 0; index < set->count; index++) {
        if (index > 0)
            fold_text_put_char(out, ',');
        fold_text_put(out, set->items[index].json.at, set->items[index].json.size);
    }
    fold_text_put_char(out, ']');
}

static void write_integer(struct fold_text *out, int64_t integer)
{
    char text[24];
    fold_text_put(out, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, integer));
}

static void write_double(struct fold_text *out, double number)
{
    char text[40];
    fold_text_put(out, text, (size_t)snprintf(text, sizeof(text), "%.17g", number));
}

static void write_kept(struct fold_text *out, enum rcpt_fold_kind kind, const struct kept *kept)
{
    if (kind == RCPT_FOLD_SET)
        write_set(out, &kept->set);
    else if (kind == RCPT_FOLD_COUNT)
        write_integer(out, (int64_t)kept->count);
    else if (kind == RCPT_FOLD_SUM && kept->inexact)
        write_double(out, isfinite(kept->number) ? kept->number : 0);
    else if (kind == RCPT_FOLD_SUM)
        write_integer(out, kept->integer);
    else
        fold_text_put(out, kept->json.at, kept->json.size);
}

static void write_name(struct fold_text *out, const char *name, bool *first)
{
    if (!*first)
        fold_text_put_char(out, ',');
    *first = false;
    fold_text_put_string(out, rcpt_text_of(name));
    fold_text_put_char(out, ':');
}

static void write_part(struct fold_text *out, const struct rcpt_fold_spec *spec,
                       const struct group *group)
{
    bool first = true;
    fold_text_put_words(out, "{\"v\":{");
    for (size_t index = 0; index < spec->collect_count; index++) {
        if (!group->kept[index].has)
            continue;
        write_name(out, spec->collects[index].name, &first);
        write_kept(out, spec->collects[index].kind, &group->kept[index]);
    }
    if (group->traces.count > 0) {
        write_name(out, "traces", &first);
        write_set(out, &group->traces);
    }
    fold_text_put_words(out, "},\"o\":{");
    first = true;
    for (size_t index = 0; index < spec->collect_count; index++) {
        if (group->kept[index].set.overflow == 0)
            continue;
        write_name(out, spec->collects[index].name, &first);
        write_integer(out, (int64_t)group->kept[index].set.overflow);
    }
    fold_text_put_words(out, "}}");
}

void rcpt_fold_collector_each(struct rcpt_fold_collector *collector,
                              void (*take_group)(void *context,
                                                 const struct rcpt_fold_group *group),
                              void *context)
{
    for (const struct group *group = collector->first; group != NULL; group = group->next) {
        const struct rcpt_fold_spec *spec = &collector->specs[group->rule];
        write_part(begin(collector), spec, group);
        fold_text_put_char(&collector->out, '\0');
        struct rcpt_fold_group given = {.rule = spec->rule,
                                        .key = group->key.at,
                                        .part = collector->out.at,
                                        .events = group->events};
        take_group(context, &given);
    }
}
