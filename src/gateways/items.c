/* The paths of adapters and accounts, such as "/results/~/a|b" with a star for the ~. A step is a
 * member's name, or several names, each of which is followed if it exists. The step "*" stands for
 * the elements of an array; a single object in its place is its own only element. The step "@"
 * stands for the members of an object. Pure; called by adapter.c for each request with JSON. */
#include "items.h"

struct walk {
    struct rcpt_reading *reading;
    rcpt_items_visitor *take, *miss;
};

/* Templates reach enclosing items by level (`../field`). A node that is its own element takes no
 * second level. */
static bool push(struct rcpt_source *source, const struct rcpt_node *node)
{
    if (source->items[source->level] == node)
        return false;
    RCPT_ASSERT(source->level + 1 < RCPT_ITEM_MAX_LEVELS);
    source->items[++source->level] = node;
    return true;
}

static struct rcpt_text first_step(struct rcpt_text path, struct rcpt_text *rest)
{
    path = rcpt_text_part(path, 1, path.size); /* the slash */
    struct rcpt_text step = rcpt_text_part(path, 0, rcpt_text_find(path, "/"));
    *rest = rcpt_text_part(path, step.size, path.size);
    return step;
}

/* The next of the names in "a|b"; false: there is none. */
static bool next_name(struct rcpt_text *names, struct rcpt_text *name)
{
    if (names->size == 0)
        return false;
    *name = rcpt_text_part(*names, 0, rcpt_text_find(*names, "|"));
    *names = rcpt_text_part(*names, name->size + 1, names->size);
    return true;
}

/* ---- whether a path leads anywhere ---- */

static bool leads(const struct rcpt_node *node, struct rcpt_text path);

/* An empty list is one: the request holds no receipt, and is not malformed. Some languages write
 * null for it. */
static bool any_leads(const struct rcpt_node *container, struct rcpt_text path)
{
    for (const struct rcpt_node *node = container->first; node != NULL; node = node->next)
        if (leads(node, path))
            return true;
    return container->first == NULL;
}

static bool leads(const struct rcpt_node *node, struct rcpt_text path)
{
    struct rcpt_text rest, name, step;
    if (path.size == 0)
        return true;
    step = first_step(path, &rest);
    if (rcpt_text_is(step, "*"))
        return node->type == RCPT_NODE_NULL ||
               (node->type == RCPT_NODE_ARRAY && any_leads(node, rest)) ||
               (node->type == RCPT_NODE_OBJECT && leads(node, rest));
    if (rcpt_text_is(step, "@"))
        return node->type == RCPT_NODE_OBJECT && any_leads(node, rest);
    while (next_name(&step, &name)) {
        const struct rcpt_node *member = rcpt_node_member(node, name);
        if (member != NULL && leads(member, rest))
            return true;
    }
    return false;
}

/* ---- the way ---- */

static void go(struct walk *walk, const struct rcpt_node *node, struct rcpt_text path);

static void go_into(struct walk *walk, const struct rcpt_node *node, struct rcpt_text path)
{
    struct rcpt_source *source = &walk->reading->source;
    bool pushed = push(source, node);
    go(walk, node, path);
    source->level -= pushed;
}

/* The innermost element around is what cannot be read. */
static void go_astray(struct walk *walk)
{
    const struct rcpt_source *source = &walk->reading->source;
    walk->miss(walk->reading, source->items[source->level]);
}

static void go_each(struct walk *walk, const struct rcpt_node *container, struct rcpt_text path)
{
    for (const struct rcpt_node *node = container->first; node != NULL; node = node->next)
        go_into(walk, node, path);
}

/* A member that leads nowhere is no miss while another of the step's names leads on. */
static void go_by_name(struct walk *walk, const struct rcpt_node *node, struct rcpt_text step,
                       struct rcpt_text path)
{
    struct rcpt_text name;
    const struct rcpt_node *last = NULL;
    bool found = false;
    while (next_name(&step, &name)) {
        const struct rcpt_node *member = rcpt_node_member(node, name);
        if (member == NULL)
            continue;
        last = member;
        if (!leads(member, path))
            continue;
        go(walk, member, path);
        found = true;
    }
    if (!found && last != NULL)
        go(walk, last, path);
    else if (!found)
        go_astray(walk);
}

static void go(struct walk *walk, const struct rcpt_node *node, struct rcpt_text path)
{
    struct rcpt_text rest;
    if (path.size == 0) {
        bool pushed = push(&walk->reading->source, node);
        walk->take(walk->reading, node);
        walk->reading->source.level -= pushed;
        return;
    }
    struct rcpt_text step = first_step(path, &rest);
    bool each = rcpt_text_is(step, "*"), members = rcpt_text_is(step, "@");
    if ((each && node->type == RCPT_NODE_ARRAY) || (members && node->type == RCPT_NODE_OBJECT))
        go_each(walk, node, rest);
    else if (each && node->type == RCPT_NODE_OBJECT)
        go_into(walk, node, rest);
    else if (!each && !members)
        go_by_name(walk, node, step, rest);
    else if (!each || node->type != RCPT_NODE_NULL)
        go_astray(walk);
}

/* Whether the document begins as the path does, so that it is of this form. */
static bool begins_as(const struct rcpt_node *root, struct rcpt_text path)
{
    struct rcpt_text rest;
    const struct rcpt_node *member = rcpt_node_member(root, first_step(path, &rest));
    return member != NULL && (member->type == RCPT_NODE_OBJECT || member->type == RCPT_NODE_ARRAY);
}

/* The paths are alternatives, separated by blanks: the first that leads somewhere is taken. If none
 * does, one with which the document begins tells how far it can be read, before "/" stands for the
 * document itself; without such a path, the first one does. */
static struct rcpt_text choose_path(const struct rcpt_node *root, const char *items)
{
    struct rcpt_text paths = rcpt_text_of(items), path, nearest = {NULL, 0};
    struct rcpt_text first = rcpt_text_part(paths, 0, rcpt_text_find(paths, " "));
    while (paths.size > 0) {
        path = rcpt_text_part(paths, 0, rcpt_text_find(paths, " "));
        if (rcpt_text_is(path, "/"))
            return nearest.size > 0 ? nearest : RCPT_TEXT("");
        if (leads(root, path))
            return path;
        if (nearest.size == 0 && begins_as(root, path))
            nearest = path;
        paths = rcpt_text_trim(rcpt_text_part(paths, path.size, paths.size));
    }
    return nearest.size > 0 ? nearest : first;
}

/* A gateway without `items` may still send JSON: then each element, or the object, is an item. */
void rcpt_items_read(struct rcpt_reading *reading, rcpt_items_visitor *take,
                     rcpt_items_visitor *miss)
{
    struct rcpt_source *source = &reading->source;
    struct walk walk = {.reading = reading, .take = take, .miss = miss};
    const char *items = reading->gateway->items != NULL ? reading->gateway->items : "/*";
    if (source->request->is_item)
        items = "/*";
    source->items[0] = source->root;
    source->level = 0;
    go(&walk, source->root, choose_path(source->root, items));
}
