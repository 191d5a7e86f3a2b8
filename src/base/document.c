#include "receiptd/base/document.h"

#include <stdlib.h>
#include <yajl/yajl_parse.h>

#include "receiptd/base/error.h"

struct level {
    struct rcpt_node *container;
    struct rcpt_node *last; /* child */
};

struct building {
    struct rcpt_text text;
    struct rcpt_arena *arena;
    yajl_handle json;
    struct rcpt_node *root;
    struct rcpt_text key; /* of the member to come */
    struct level levels[RCPT_DOCUMENT_MAX_DEPTH];
    unsigned depth;
    unsigned nodes;
    const char *reason;
};

/* Texts outside of the input are yajl's for the time of the callback. */
static struct rcpt_text keep(struct building *building, const unsigned char *bytes, size_t size)
{
    struct rcpt_text text = {(const char *)bytes, size};
    const char *begin = building->text.at, *end = begin + building->text.size;
    if (size == 0)
        return RCPT_TEXT("");
    return text.at >= begin && text.at + size <= end ? text : rcpt_text_copy(building->arena, text);
}

static size_t consumed(const struct building *building)
{
    size_t bytes = yajl_get_bytes_consumed(building->json);
    return bytes < building->text.size ? bytes : building->text.size;
}

static struct rcpt_node *add(struct building *building, enum rcpt_node_type type)
{
    if (++building->nodes > RCPT_DOCUMENT_MAX_NODES) {
        building->reason = "too_many_values";
        return NULL;
    }
    struct rcpt_node *node = rcpt_arena_alloc(building->arena, sizeof(*node));
    *node = (struct rcpt_node){.type = type, .key = building->key};
    building->key = (struct rcpt_text){NULL, 0};
    if (building->depth == 0) {
        building->root = node;
        return node;
    }
    struct level *level = &building->levels[building->depth - 1];
    if (level->last != NULL)
        level->last->next = node;
    else
        level->container->first = node;
    level->last = node;
    return node;
}

/* The bytes of a scalar end where yajl stands. A string's quotes are not looked for: escapes make
 * it longer than its text. */
static int add_scalar(struct building *building, enum rcpt_node_type type,
                      const unsigned char *bytes, size_t size)
{
    struct rcpt_node *node = add(building, type);
    if (node == NULL)
        return 0;
    node->text = keep(building, bytes, size);
    node->raw = node->text;
    return 1;
}

static int on_null(void *context)
{
    return add(context, RCPT_NODE_NULL) != NULL;
}

static int on_boolean(void *context, int value)
{
    const char *text = value ? "true" : "false";
    struct rcpt_node *node = add(context, RCPT_NODE_BOOLEAN);
    if (node == NULL)
        return 0;
    node->text = rcpt_text_of(text);
    node->raw = node->text;
    return 1;
}

static int on_number(void *context, const char *text, size_t size)
{
    return add_scalar(context, RCPT_NODE_NUMBER, (const unsigned char *)text, size);
}

static int on_string(void *context, const unsigned char *text, size_t size)
{
    return add_scalar(context, RCPT_NODE_STRING, text, size);
}

static int on_key(void *context, const unsigned char *text, size_t size)
{
    struct building *building = context;
    building->key = rcpt_text_trim(keep(building, text, size));
    return 1;
}

static int begin(struct building *building, enum rcpt_node_type type)
{
    struct rcpt_node *node = add(building, type);
    if (node == NULL)
        return 0;
    if (building->depth == RCPT_DOCUMENT_MAX_DEPTH) {
        building->reason = "too_deep";
        return 0;
    }
    node->raw.at = building->text.at + consumed(building) - 1; /* the bracket has been read */
    building->levels[building->depth++] = (struct level){node, NULL};
    return 1;
}

static int on_begin_object(void *context)
{
    return begin(context, RCPT_NODE_OBJECT);
}

static int on_begin_array(void *context)
{
    return begin(context, RCPT_NODE_ARRAY);
}

static int on_end(void *context)
{
    struct building *building = context;
    struct rcpt_node *node = building->levels[--building->depth].container;
    node->raw.size = (size_t)(building->text.at + consumed(building) - node->raw.at);
    return 1;
}

static void *json_malloc(void *context, size_t size)
{
    (void)context;
    return rcpt_malloc(size);
}

static void *json_realloc(void *context, void *pointer, size_t size)
{
    (void)context;
    return rcpt_realloc(pointer, size);
}

static void json_free(void *context, void *pointer)
{
    (void)context;
    free(pointer);
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_begin_object,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end,
    .yajl_start_array = on_begin_array,
    .yajl_end_array = on_end,
};

const struct rcpt_node *rcpt_document_parse(struct rcpt_text text, struct rcpt_arena *arena,
                                            const char **reason)
{
    struct building building = {.text = text, .arena = arena, .reason = "invalid_json"};
    yajl_alloc_funcs memory = {json_malloc, json_realloc, json_free, NULL};
    building.json = yajl_alloc(&callbacks, &memory, &building);
    RCPT_ASSERT(building.json != NULL);
    yajl_config(building.json, yajl_dont_validate_strings, 1);
    bool good = text.size > 0 && yajl_parse(building.json, (const unsigned char *)text.at,
                                            text.size) == yajl_status_ok;
    good = good && yajl_complete_parse(building.json) == yajl_status_ok;
    yajl_free(building.json);
    if (good && building.root != NULL && building.depth == 0)
        return building.root;
    *reason = building.reason;
    return NULL;
}

bool rcpt_document_looks_like(struct rcpt_text text)
{
    text = rcpt_text_trim(text);
    return text.size > 0 && (text.at[0] == '{' || text.at[0] == '[');
}

const struct rcpt_node *rcpt_node_member(const struct rcpt_node *object, struct rcpt_text name)
{
    const struct rcpt_node *found = NULL;
    if (object == NULL || object->type != RCPT_NODE_OBJECT)
        return NULL;
    for (const struct rcpt_node *node = object->first; node != NULL; node = node->next)
        if (rcpt_text_equal(node->key, name))
            found = node;
    return found;
}

const struct rcpt_node *rcpt_node_get(const struct rcpt_node *object, const char *name)
{
    return rcpt_node_member(object, rcpt_text_of(name));
}

const struct rcpt_node *rcpt_node_element(const struct rcpt_node *array, unsigned index)
{
    if (array == NULL || array->type != RCPT_NODE_ARRAY)
        return NULL;
    const struct rcpt_node *node = array->first;
    while (node != NULL && index-- > 0)
        node = node->next;
    return node;
}

struct rcpt_text rcpt_node_text(const struct rcpt_node *node)
{
    if (node == NULL || node->type == RCPT_NODE_ARRAY || node->type == RCPT_NODE_OBJECT)
        return (struct rcpt_text){NULL, 0};
    return rcpt_text_trim(node->text);
}

struct rcpt_text rcpt_node_text_of(const struct rcpt_node *object, const char *name)
{
    return rcpt_node_text(rcpt_node_get(object, name));
}

bool rcpt_node_is_true(const struct rcpt_node *node)
{
    return node != NULL && node->type == RCPT_NODE_BOOLEAN && rcpt_text_is(node->text, "true");
}
