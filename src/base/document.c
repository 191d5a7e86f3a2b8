#include "document.h"

#include <stdlib.h>
#include <yajl/yajl_parse.h>

#include "error.h"

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
static struct rcpt_text keep(struct rcpt_text input, const unsigned char *bytes, size_t size,
                             struct rcpt_arena *arena)
{
    struct rcpt_text text = {(const char *)bytes, size};
    const char *begin = input.at, *end = begin + input.size;
    if (size == 0)
        return RCPT_TEXT("");
    return text.at >= begin && text.at + size <= end ? text : rcpt_text_copy(arena, text);
}

static size_t consumed(yajl_handle json, struct rcpt_text input)
{
    size_t bytes = yajl_get_bytes_consumed(json);
    return bytes < input.size ? bytes : input.size;
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
    node->text = keep(building->text, bytes, size, building->arena);
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
    building->key = rcpt_text_trim(keep(building->text, text, size, building->arena));
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
    /* The bracket has been read. */
    node->raw.at = building->text.at + consumed(building->json, building->text) - 1;
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
    const char *end = building->text.at + consumed(building->json, building->text);
    node->raw.size = (size_t)(end - node->raw.at);
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

static yajl_handle begin_reading(const yajl_callbacks *calls, void *context)
{
    yajl_alloc_funcs memory = {json_malloc, json_realloc, json_free, NULL};
    yajl_handle json = yajl_alloc(calls, &memory, context);
    RCPT_ASSERT(json != NULL);
    yajl_config(json, yajl_dont_validate_strings, 1);
    return json;
}

static bool read_all(yajl_handle json, struct rcpt_text text)
{
    bool good = text.size > 0 &&
                yajl_parse(json, (const unsigned char *)text.at, text.size) == yajl_status_ok;
    good = good && yajl_complete_parse(json) == yajl_status_ok;
    yajl_free(json);
    return good;
}

const struct rcpt_node *rcpt_document_parse(struct rcpt_text text, struct rcpt_arena *arena,
                                            const char **reason)
{
    struct building building = {.text = text, .arena = arena, .reason = "invalid_json"};
    building.json = begin_reading(&callbacks, &building);
    if (read_all(building.json, text) && building.root != NULL && building.depth == 0)
        return building.root;
    *reason = building.reason;
    return NULL;
}

/* ---- members without a tree ---- */

struct picking {
    struct rcpt_text text;
    struct rcpt_arena *arena;
    yajl_handle json;
    const char *const *names; /* NULL: all */
    struct rcpt_node *found;
    size_t count, room;     /* without names */
    struct rcpt_node *into; /* where the member that is being read goes; NULL: over it */
    bool is_object;
    unsigned depth, nodes;
    const char *reason;
};

/* As add() counts and refuses. */
static int pick_count(struct picking *picking)
{
    if (++picking->nodes > RCPT_DOCUMENT_MAX_NODES)
        picking->reason = "too_many_values";
    return picking->nodes <= RCPT_DOCUMENT_MAX_NODES;
}

static int pick_scalar(struct picking *picking, enum rcpt_node_type type,
                       const unsigned char *bytes, size_t size)
{
    struct rcpt_node *node = picking->depth == 1 ? picking->into : NULL;
    picking->into = picking->depth == 1 ? NULL : picking->into;
    if (node != NULL) {
        node->type = type;
        node->text = keep(picking->text, bytes, size, picking->arena);
        node->raw = node->text;
    }
    return pick_count(picking);
}

static int pick_null(void *context)
{
    struct picking *picking = context;
    if (picking->depth == 1)
        picking->into = NULL; /* it has been emptied with its key */
    return pick_count(picking);
}

static int pick_boolean(void *context, int value)
{
    const char *text = value ? "true" : "false";
    return pick_scalar(context, RCPT_NODE_BOOLEAN, (const unsigned char *)text, strlen(text));
}

static int pick_number(void *context, const char *text, size_t size)
{
    return pick_scalar(context, RCPT_NODE_NUMBER, (const unsigned char *)text, size);
}

static int pick_string(void *context, const unsigned char *text, size_t size)
{
    return pick_scalar(context, RCPT_NODE_STRING, text, size);
}

static int pick_key(void *context, const unsigned char *text, size_t size)
{
    struct picking *picking = context;
    struct rcpt_text key = rcpt_text_trim((struct rcpt_text){(const char *)text, size});
    if (picking->depth != 1)
        return 1;
    if (picking->names == NULL && picking->count == picking->room) {
        picking->reason = "too_many_values";
        return 0;
    }
    if (picking->names == NULL)
        picking->into = &picking->found[picking->count++];
    for (size_t index = 0; picking->names != NULL && index < picking->room; index++)
        if (rcpt_text_is(key, picking->names[index]))
            picking->into = &picking->found[index];
    if (picking->into != NULL)
        *picking->into = (struct rcpt_node){
            .key = keep(picking->text, (const unsigned char *)key.at, key.size, picking->arena)};
    return 1;
}

static int pick_begin(struct picking *picking, enum rcpt_node_type type)
{
    if (pick_count(picking) == 0)
        return 0;
    if (picking->depth == RCPT_DOCUMENT_MAX_DEPTH) {
        picking->reason = "too_deep";
        return 0;
    }
    if (picking->depth == 0)
        picking->is_object = type == RCPT_NODE_OBJECT;
    if (picking->depth++ == 1 && picking->into != NULL) {
        picking->into->type = type;
        picking->into->raw.at = picking->text.at + consumed(picking->json, picking->text) - 1;
    }
    return 1;
}

static int pick_begin_object(void *context)
{
    return pick_begin(context, RCPT_NODE_OBJECT);
}

static int pick_begin_array(void *context)
{
    return pick_begin(context, RCPT_NODE_ARRAY);
}

static int pick_end(void *context)
{
    struct picking *picking = context;
    if (--picking->depth != 1 || picking->into == NULL)
        return 1;
    const char *end = picking->text.at + consumed(picking->json, picking->text);
    picking->into->raw.size = (size_t)(end - picking->into->raw.at);
    picking->into = NULL;
    return 1;
}

static const yajl_callbacks pick_callbacks = {
    .yajl_null = pick_null,
    .yajl_boolean = pick_boolean,
    .yajl_number = pick_number,
    .yajl_string = pick_string,
    .yajl_start_map = pick_begin_object,
    .yajl_map_key = pick_key,
    .yajl_end_map = pick_end,
    .yajl_start_array = pick_begin_array,
    .yajl_end_array = pick_end,
};

bool rcpt_document_members(struct rcpt_text text, struct rcpt_arena *arena,
                           const char *const *names, struct rcpt_node *found, size_t *count,
                           const char **reason)
{
    struct picking picking = {.text = text,
                              .arena = arena,
                              .names = names,
                              .found = found,
                              .room = *count,
                              .reason = "invalid_json"};
    memset(found, 0, *count * sizeof(*found));
    picking.json = begin_reading(&pick_callbacks, &picking);
    bool good = read_all(picking.json, text) && picking.is_object;
    if (!good) {
        memset(found, 0, *count * sizeof(*found));
        *reason = picking.reason;
    }
    if (names == NULL)
        *count = good ? picking.count : 0;
    return good;
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
