/* JSON as a tree for the adapters of gateways, or only the members of its outermost object, for
 * readers of a request whose signature is not checked yet. Both count values, so that memory and
 * time stay bounded. Called by src/gateways, src/folds and src/actions. */
#include "receiptd/base/document.h"

/* An open container and its youngest child: children are appended in the order of the text. */
struct level {
    struct rcpt_node *container;
    struct rcpt_node *last; /* child */
};

/* The way from the root to the container that is open. */
struct building {
    struct rcpt_text input;
    struct rcpt_arena *arena;
    struct rcpt_node *root;
    struct rcpt_text key; /* of the member to come */
    struct level levels[RCPT_JSON_READ_MAX_DEPTH];
    unsigned nodes;
};

static bool is_container(enum rcpt_json_kind kind)
{
    return kind == RCPT_JSON_ARRAY || kind == RCPT_JSON_OBJECT;
}

/* The bytes of a scalar are its text's. A string's quotes are not sought: escapes make it longer
 * than its text. A container's size is known at its end. */
static inline void set_value(struct rcpt_node *node, const struct rcpt_json_token *token,
                             struct rcpt_text input, struct rcpt_arena *arena)
{
    node->type = (enum rcpt_node_type)token->kind;
    if (node->type == RCPT_NODE_NULL)
        return;
    if (is_container(token->kind)) {
        node->raw.at = input.at + token->end - 1;
        return;
    }
    bool is_static = node->type == RCPT_NODE_BOOLEAN;
    node->text = is_static ? token->text : rcpt_json_keep(input, token->text, arena);
    node->raw = node->text;
}

/* A container's `raw.at` was set at its opening bracket; the size follows at the closing one. */
static void end_container(struct rcpt_node *node, const struct rcpt_json_token *token,
                          struct rcpt_text input)
{
    node->raw.size = (size_t)(input.at + token->end - node->raw.at);
}

/* Appends a node to the innermost container. */
static struct rcpt_node *add(struct building *building, unsigned depth)
{
    struct rcpt_node *node = rcpt_arena_alloc(building->arena, sizeof(*node));
    *node = (struct rcpt_node){.key = building->key};
    building->key = (struct rcpt_text){NULL, 0};
    if (depth == 0) {
        building->root = node;
        return node;
    }
    struct level *level = &building->levels[depth - 1];
    if (level->last != NULL)
        level->last->next = node;
    else
        level->container->first = node;
    level->last = node;
    return node;
}

/* The callback of the reader: a key is kept for the value that follows it. False stops the
 * reader. */
static bool build(void *context, const struct rcpt_json_token *token)
{
    struct building *building = context;
    if (token->kind == RCPT_JSON_END) {
        end_container(building->levels[token->depth].container, token, building->input);
        return true;
    }
    if (token->kind == RCPT_JSON_KEY) {
        building->key =
            rcpt_text_trim(rcpt_json_keep(building->input, token->text, building->arena));
        return true;
    }
    if (++building->nodes > RCPT_DOCUMENT_MAX_NODES)
        return false;
    struct rcpt_node *node = add(building, token->depth);
    set_value(node, token, building->input, building->arena);
    if (is_container(token->kind))
        building->levels[token->depth] = (struct level){node, NULL};
    return true;
}

/* A callback stops only where there are too many values. */
static const char *reason_of(enum rcpt_json_result result)
{
    switch (result) {
    case RCPT_JSON_TOO_DEEP:
        return "too_deep";
    case RCPT_JSON_STOPPED:
        return "too_many_values";
    default:
        return "invalid_json";
    }
}

const struct rcpt_node *rcpt_document_parse(struct rcpt_text text, struct rcpt_arena *arena,
                                            const char **reason)
{
    struct building building = {.input = text, .arena = arena};
    enum rcpt_json_result result = rcpt_json_read(text, build, &building, NULL);
    if (result == RCPT_JSON_OK)
        return building.root;
    *reason = reason_of(result);
    return NULL;
}

/* ---- members without a tree ---- */

/* Only the requested members are kept, so that a body of any shape costs no memory before its
 * signature is checked. */
struct picking {
    struct rcpt_text input;
    struct rcpt_arena *arena;
    const char *const *names; /* NULL: all */
    struct rcpt_node *found;
    size_t count, capacity;
    /* the member to be kept whose value comes next, or is open; else NULL */
    struct rcpt_node *into;
    bool is_object;
    unsigned nodes;
};

/* The last of several members with one name counts, as in the tree: its node is emptied here and
 * filled again. */
static bool pick_key(struct picking *picking, struct rcpt_text text)
{
    struct rcpt_text key = rcpt_text_trim(text);
    if (picking->names == NULL && picking->count == picking->capacity)
        return false;
    if (picking->names == NULL)
        picking->into = &picking->found[picking->count++];
    for (size_t index = 0; picking->names != NULL && index < picking->capacity; index++)
        if (rcpt_text_is(key, picking->names[index]))
            picking->into = &picking->found[index];
    if (picking->into != NULL)
        *picking->into =
            (struct rcpt_node){.key = rcpt_json_keep(picking->input, key, picking->arena)};
    return true;
}

/* Depth 0 is the outermost object, depth 1 its members; deeper values only count. */
static bool pick(void *context, const struct rcpt_json_token *token)
{
    struct picking *picking = context;
    bool is_member = token->depth == 1;
    if (token->kind == RCPT_JSON_KEY)
        return !is_member || pick_key(picking, token->text);
    if (token->kind != RCPT_JSON_END && ++picking->nodes > RCPT_DOCUMENT_MAX_NODES)
        return false;
    if (token->depth == 0)
        picking->is_object |= token->kind == RCPT_JSON_OBJECT;
    if (!is_member || picking->into == NULL)
        return true;
    if (token->kind == RCPT_JSON_END)
        end_container(picking->into, token, picking->input);
    else
        set_value(picking->into, token, picking->input, picking->arena);
    if (!is_container(token->kind))
        picking->into = NULL;
    return true;
}

/* Clears `found` if the text turns out to be no JSON, even behind a member that was found. */
bool rcpt_document_members(struct rcpt_text text, struct rcpt_arena *arena,
                           const char *const *names, struct rcpt_node *found, size_t *count,
                           const char **reason)
{
    struct picking picking = {
        .input = text, .arena = arena, .names = names, .found = found, .capacity = *count};
    memset(found, 0, *count * sizeof(*found));
    enum rcpt_json_result result = rcpt_json_read(text, pick, &picking, NULL);
    bool good = result == RCPT_JSON_OK && picking.is_object;
    if (!good) {
        memset(found, 0, *count * sizeof(*found));
        *reason = reason_of(result);
    }
    if (names == NULL)
        *count = good ? picking.count : 0;
    return good;
}

/* A guess by the first byte, to choose between JSON and a form; parsing decides. */
bool rcpt_document_looks_like(struct rcpt_text text)
{
    text = rcpt_text_trim(rcpt_text_skip_mark(text));
    return text.size > 0 && (text.at[0] == '{' || text.at[0] == '[');
}

/* Linear: objects of gateways have a few dozen members. */
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

/* A missing node and a container give an empty text, so adapters need no check of presence. */
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

/* Depth is bounded by the parser. */
bool rcpt_node_is_bare(const struct rcpt_node *node)
{
    if (node == NULL || node->type == RCPT_NODE_NULL)
        return node != NULL;
    if (node->type != RCPT_NODE_ARRAY && node->type != RCPT_NODE_OBJECT)
        return false;
    for (const struct rcpt_node *child = node->first; child != NULL; child = child->next)
        if (!rcpt_node_is_bare(child))
            return false;
    return true;
}

bool rcpt_node_is_true(const struct rcpt_node *node)
{
    return node != NULL && node->type == RCPT_NODE_BOOLEAN && rcpt_text_is(node->text, "true");
}
