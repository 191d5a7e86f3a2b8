/* Events of topics into groups: each rule over the topic that matches an event adds it to the group
 * of its key. Groups are found by a hash of rule and key; all of their memory is dropped at once
 * when they have been given out. Called by topic.c and by the command fold-plan. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect_internal.h"
#include "receiptd/core/hash.h"

/* A group keeps a few traces, as links from its publication; further ones are dropped. A key is
 * part of an index row, which PostgreSQL bounds at 2704 bytes. */
#define MOST_TRACES      8u
#define MOST_KEY_BYTES   1000u
#define MOST_EVENT_BYTES (8u * 1024 * 1024) /* as for receipts */
#define CHUNK_BYTES      65536u
#define KEEP_BYTES       (16u * 1024 * 1024)

/* ---- life ---- */

struct rcpt_fold_collector *rcpt_fold_collector_new(const struct rcpt_fold_spec *specs,
                                                    size_t count)
{
    struct rcpt_fold_collector *collector = rcpt_calloc(1, sizeof(*collector));
    collector->specs = specs;
    collector->count = count;
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
    rcpt_table_free(&collector->groups);
    free(collector);
}

/* The table keeps its size: the next transaction has about as many groups. */
void rcpt_fold_collector_reset(struct rcpt_fold_collector *collector)
{
    rcpt_table_clear(&collector->groups);
    rcpt_arena_reset(&collector->groups_arena, KEEP_BYTES);
    collector->bytes = 0;
    collector->first = NULL;
    collector->last = &collector->first;
}

size_t rcpt_fold_collector_groups(const struct rcpt_fold_collector *collector)
{
    return collector->groups.count;
}

size_t rcpt_fold_collector_bytes(const struct rcpt_fold_collector *collector)
{
    return collector->bytes;
}

/* Zeroed, as a group begins empty. The bytes are counted for the caller, who bounds the
 * collector. */
void *collect_take(struct rcpt_fold_collector *collector, size_t bytes)
{
    collector->bytes += bytes;
    void *memory = rcpt_arena_alloc(&collector->groups_arena, bytes);
    memset(memory, 0, bytes);
    return memory;
}

struct rcpt_text collect_keep(struct rcpt_fold_collector *collector, struct rcpt_text text)
{
    char *copy = collect_take(collector, text.size + 1);
    memcpy(copy, text.at, text.size);
    return (struct rcpt_text){copy, text.size};
}

/* ---- fields ---- */

/* The node at "a.b" inside nested objects; NULL: none. */
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

/* The configuration has the values as "a|b"; texts are compared byte by byte. */
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

/* All fields must match; a field matches one of its values. */
static bool matches(const struct rcpt_fold_spec *spec, const struct rcpt_node *event)
{
    for (size_t index = 0; index < spec->match_count; index++)
        if (!is_one_of(rcpt_node_text(field(event, spec->matches[index].path)),
                       spec->matches[index].values))
            return false;
    return true;
}

struct fold_text *collect_begin(struct rcpt_fold_collector *collector)
{
    collector->out.size = 0;
    return &collector->out;
}

/* Borrowed until the next begin. */
struct rcpt_text collect_written(const struct rcpt_fold_collector *collector)
{
    return (struct rcpt_text){collector->out.at, collector->out.size};
}

/* Scalars only, and no text with a NUL, which PostgreSQL cannot hold. */
static bool can_be_key(const struct rcpt_node *node)
{
    return node != NULL && node->type != RCPT_NODE_ARRAY && node->type != RCPT_NODE_OBJECT &&
           node->type != RCPT_NODE_NULL &&
           (node->type != RCPT_NODE_STRING || memchr(node->text.at, '\0', node->text.size) == NULL);
}

/* The key as JSON; an empty text if a field is missing, or the key is too long for an index. Fields
 * in the order of group_key, so that equal keys are equal texts. */
static struct rcpt_text key_of(struct rcpt_fold_collector *collector,
                               const struct rcpt_fold_spec *spec, const struct rcpt_node *event)
{
    struct fold_text *out = collect_begin(collector);
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
    return out->size <= MOST_KEY_BYTES ? collect_written(collector) : (struct rcpt_text){NULL, 0};
}

/* ---- groups ---- */

/* Finds the group of rule and key, or begins it. */
static struct collect_group *group_of(struct rcpt_fold_collector *collector, uint32_t rule,
                                      struct rcpt_text key)
{
    uint64_t hash = rcpt_hash_text_extended(key.at, key.size, rule);
    struct collect_group *group;
    for (size_t probes = 0; (group = rcpt_table_next(&collector->groups, hash, &probes)) != NULL;)
        if (group->rule == rule && rcpt_text_equal(group->key, key))
            return group;
    size_t fields = collector->specs[rule].collect_count;
    group = collect_take(collector, sizeof(*group) + fields * sizeof(group->kept[0]));
    group->rule = rule;
    group->key = collect_keep(collector, key);
    *collector->last = group;
    collector->last = &group->next;
    rcpt_table_add(&collector->groups, hash, group);
    return group;
}

/* Kept fields are in the order of the rule's collects. */
static void add_event(struct rcpt_fold_collector *collector, struct collect_group *group,
                      const struct rcpt_node *node, const struct rcpt_fold_event *event)
{
    const struct rcpt_fold_spec *spec = &collector->specs[group->rule];
    group->events++;
    for (size_t index = 0; index < spec->collect_count; index++)
        collect_value(collector, &group->kept[index], spec->max_values, spec->collects[index].kind,
                      field(node, spec->collects[index].path));
    if (event->traceparent != NULL && group->traces.count < MOST_TRACES) {
        fold_text_put_string(collect_begin(collector),
                             (struct rcpt_text){event->traceparent, event->traceparent_size});
        collect_into_set(collector, &group->traces, MOST_TRACES, collect_written(collector));
    }
}

/* Most events are ASCII. Collecting all bits is cheaper than the check of UTF-8. */
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

/* Checks and parses the event into the arena of events, which the next event reuses. */
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

/* One dead letter names all rules that found no key. */
static void refuse_key(struct rcpt_fold_refusal *refusal, const struct rcpt_fold_spec *spec)
{
    size_t used = refusal->reason == RCPT_REJECT_NO_GROUP_KEY ? strlen(refusal->detail) : 0;
    snprintf(refusal->detail + used, sizeof(refusal->detail) - used, "%s %s",
             used == 0 ? "no usable group_key for rule" : ",", spec->rule);
    refusal->reason = RCPT_REJECT_NO_GROUP_KEY;
}

/* An event may be added by some rules and refused by others. */
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

/* For `fold-plan`, which groups a history by key and keeps no content. */
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

/* ---- groups out ---- */

static void write_name(struct fold_text *out, const char *name, bool *first)
{
    if (!*first)
        fold_text_put_char(out, ',');
    *first = false;
    fold_text_put_string(out, rcpt_text_of(name));
    fold_text_put_char(out, ':');
}

/* {"v": values, "o": overflows}, the form that sql/functions merges. */
static void write_part(struct fold_text *out, const struct rcpt_fold_spec *spec,
                       const struct collect_group *group)
{
    bool first = true;
    fold_text_put_words(out, "{\"v\":{");
    for (size_t index = 0; index < spec->collect_count; index++) {
        if (!group->kept[index].has)
            continue;
        write_name(out, spec->collects[index].name, &first);
        collect_write(out, spec->collects[index].kind, &group->kept[index]);
    }
    if (group->traces.count > 0) {
        write_name(out, "traces", &first);
        collect_write_set(out, &group->traces);
    }
    fold_text_put_words(out, "},\"o\":{");
    first = true;
    for (size_t index = 0; index < spec->collect_count; index++) {
        if (group->kept[index].set.overflow == 0)
            continue;
        write_name(out, spec->collects[index].name, &first);
        collect_write_integer(out, (int64_t)group->kept[index].set.overflow);
    }
    fold_text_put_words(out, "}}");
}

/* All parts are written into one buffer, so a group is borrowed for the call only. */
void rcpt_fold_collector_each(struct rcpt_fold_collector *collector,
                              void (*take_group)(void *context,
                                                 const struct rcpt_fold_group *group),
                              void *context)
{
    for (const struct collect_group *group = collector->first; group != NULL; group = group->next) {
        const struct rcpt_fold_spec *spec = &collector->specs[group->rule];
        write_part(collect_begin(collector), spec, group);
        fold_text_put_char(&collector->out, '\0');
        struct rcpt_fold_group given = {.rule = spec->rule,
                                        .key = group->key.at,
                                        .part = collector->out.at,
                                        .events = group->events};
        take_group(context, &given);
    }
}
