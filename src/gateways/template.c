/* Templates: where in a request a value stands, as adapters and accounts write it. template.h has
 * the language. Compiled once at the start (rcpt_template_new), evaluated for every item. Pure.
 *
 * Values around the items are kept for the request (outer_value): a value beside a thousand items
 * is looked up once. */
#include "template.h"

#include <stdlib.h>

#include "receiptd/base/error.h"
#include "receiptd/core/record.h"
#include "verify.h"

enum field_kind { FIELD_PARAMETER, FIELD_QUERY, FIELD_HEADER, FIELD_PATH, FIELD_JSON };

struct field {
    enum field_kind kind;
    struct rcpt_text name; /* parameter, query, header */
    unsigned number;       /* path: segment from 1; JSON: levels up, RCPT_ITEM_MAX_LEVELS: root */
    struct rcpt_text steps[12]; /* JSON */
    unsigned step_count;
};

struct part {
    struct rcpt_text literal; /* when field_count is 0 */
    unsigned first_field, field_count;
};

#define MAX_PARTS  16u
#define MAX_FIELDS 24u

struct rcpt_template {
    char *text; /* everything points into it */
    struct part parts[MAX_PARTS];
    unsigned part_count;
    struct field fields[MAX_FIELDS];
    unsigned field_count;
};

/* ---- compiling ---- */

/* "/a/b": steps of a path into JSON. */
static bool read_steps(struct field *field, struct rcpt_text path, const char **reason)
{
    while (path.size > 0) {
        if (path.at[0] != '/') {
            *reason = "a path into JSON must begin with a slash";
            return false;
        }
        path = rcpt_text_part(path, 1, path.size);
        struct rcpt_text step = path;
        step.size = rcpt_text_find(path, "/");
        path = rcpt_text_part(path, step.size, path.size);
        if (field->step_count == RCPT_COUNT_OF(field->steps)) {
            *reason = "a path has too many steps";
            return false;
        }
        field->steps[field->step_count++] = step;
    }
    return true;
}

/* "^" starts at the root, each ".." one level up from the item. */
static bool read_json_field(struct field *field, struct rcpt_text text, const char **reason)
{
    field->kind = FIELD_JSON;
    if (text.at[0] == '^') {
        field->number = RCPT_ITEM_MAX_LEVELS;
        text = rcpt_text_part(text, 1, text.size);
    }
    while (rcpt_text_begins(text, "..")) {
        field->number++;
        text = rcpt_text_part(text, 2, text.size);
        if (rcpt_text_begins(text, "/.."))
            text = rcpt_text_part(text, 1, text.size);
    }
    if (rcpt_text_is(text, "."))
        text.size = 0;
    return read_steps(field, text, reason);
}

/* The first character says the kind; a plain name is a parameter. */
static bool read_field(struct field *field, struct rcpt_text text, const char **reason)
{
    text = rcpt_text_trim(text);
    if (text.size == 0) {
        *reason = "a field has no name";
        return false;
    }
    field->name = rcpt_text_part(text, 1, text.size);
    switch (text.at[0]) {
    case '?':
        field->kind = FIELD_QUERY;
        return true;
    case '@':
        field->kind = FIELD_HEADER;
        return true;
    case '$':
        field->kind = FIELD_PATH;
        *reason = "behind $ stands the number of a segment, from 1";
        return rcpt_text_number(field->name, &field->number) && field->number > 0;
    case '/':
    case '.':
    case '^':
        return read_json_field(field, text, reason);
    default:
        field->kind = FIELD_PARAMETER;
        field->name = text;
        return true;
    }
}

/* Commas separate alternatives: the first that has a value is taken. */
static bool add_place(struct rcpt_template *template, struct rcpt_text text, const char **reason)
{
    struct part *part = &template->parts[template->part_count++];
    part->first_field = template->field_count;
    for (size_t at = 0; at <= text.size;) {
        struct rcpt_text alternative = rcpt_text_part(text, at, text.size);
        alternative.size = rcpt_text_find(alternative, ",");
        at += alternative.size + 1;
        if (template->field_count == MAX_FIELDS) {
            *reason = "has too many fields";
            return false;
        }
        if (!read_field(&template->fields[template->field_count++], alternative, reason))
            return false;
        part->field_count++;
    }
    return true;
}

/* Without braces the whole text is one place. */
static bool compile(struct rcpt_template *template, struct rcpt_text text, const char **reason)
{
    if (rcpt_text_find(text, "{") == text.size)
        return add_place(template, text, reason);
    while (text.size > 0) {
        if (template->part_count + 2 > MAX_PARTS) {
            *reason = "has too many parts";
            return false;
        }
        size_t open = rcpt_text_find(text, "{");
        if (open > 0)
            template->parts[template->part_count++].literal = rcpt_text_part(text, 0, open);
        text = rcpt_text_part(text, open, text.size);
        if (text.size == 0)
            break;
        size_t close = rcpt_text_find(text, "}");
        if (close == text.size) {
            *reason = "a brace is not closed";
            return false;
        }
        if (!add_place(template, rcpt_text_part(text, 1, close - 1), reason))
            return false;
        text = rcpt_text_part(text, close + 1, text.size);
    }
    return true;
}

/* Names and literals point into the template's own copy of the text. */
struct rcpt_template *rcpt_template_new(const char *text, const char **reason)
{
    struct rcpt_template *template = rcpt_calloc(1, sizeof(*template));
    template->text = rcpt_strdup(text);
    if (compile(template, rcpt_text_of(template->text), reason))
        return template;
    rcpt_template_free(template);
    return NULL;
}

static bool is_in(const char *const headers[2], struct rcpt_text name)
{
    for (size_t index = 0; index < 2 && headers[index] != NULL; index++)
        if (rcpt_text_is_nocase(name, headers[index]))
            return true;
    return false;
}

/* For the check of the parts that a signature covers. */
unsigned rcpt_template_parts(const struct rcpt_template *template, const char *const headers[2])
{
    unsigned parts = 0;
    for (unsigned index = 0; index < template->field_count; index++) {
        const struct field *field = &template->fields[index];
        if (field->kind == FIELD_QUERY)
            parts |= RCPT_COVERS_QUERY;
        else if (field->kind == FIELD_HEADER && !is_in(headers, field->name))
            parts |= RCPT_COVERS_HEADERS;
        else if (field->kind == FIELD_PATH)
            parts |= RCPT_COVERS_PATH;
        else if (field->kind == FIELD_JSON)
            parts |= RCPT_COVERS_BODY;
    }
    return parts;
}

void rcpt_template_free(struct rcpt_template *template)
{
    if (template == NULL)
        return;
    free(template->text);
    free(template);
}

/* ---- evaluating ---- */

/* The first header of this name, without blanks around it. */
struct rcpt_text rcpt_source_header(const struct rcpt_source *source, const char *name)
{
    const struct rcpt_gateway_request *request = source->request;
    for (size_t index = 0; index < request->header_count; index++)
        if (rcpt_text_is_nocase(request->headers[index].name, name))
            return rcpt_text_trim(request->headers[index].value);
    return (struct rcpt_text){NULL, 0};
}

static struct rcpt_text header_value(const struct rcpt_source *source, struct rcpt_text name)
{
    const struct rcpt_gateway_request *request = source->request;
    for (size_t index = 0; index < request->header_count; index++)
        if (rcpt_text_equal_nocase(request->headers[index].name, name))
            return request->headers[index].value;
    return (struct rcpt_text){NULL, 0};
}

static struct rcpt_text parameter_value(const struct rcpt_source *source, struct rcpt_text name)
{
    struct rcpt_text value = rcpt_form_get(&source->form, name);
    if (value.size == 0 && source->root != NULL)
        value = rcpt_node_text(rcpt_node_member(source->items[source->level], name));
    if (value.size == 0)
        value = rcpt_form_get(&source->query, name);
    return value;
}

struct rcpt_text rcpt_source_value(const struct rcpt_source *source, const char *name)
{
    return rcpt_text_trim(parameter_value(source, rcpt_text_of(name)));
}

static struct rcpt_text segment(const struct rcpt_source *source, unsigned number)
{
    struct rcpt_text rest = source->request->tail;
    while (rest.size > 0) {
        rest = rcpt_text_part(rest, 1, rest.size); /* the slash */
        struct rcpt_text found = rest;
        found.size = rcpt_text_find(rest, "/");
        if (--number == 0)
            return rcpt_form_decode_segment(found, source->arena);
        rest = rcpt_text_part(rest, found.size, rest.size);
    }
    return (struct rcpt_text){NULL, 0};
}

static const struct rcpt_node *step(const struct rcpt_node *node, struct rcpt_text name)
{
    unsigned index;
    if (node != NULL && node->type == RCPT_NODE_ARRAY && rcpt_text_number(name, &index))
        return rcpt_node_element(node, index);
    return rcpt_node_member(node, name);
}

static struct rcpt_text value_below(const struct rcpt_node *node, const struct field *field)
{
    for (unsigned index = 0; index < field->step_count; index++)
        node = step(node, field->steps[index]);
    return rcpt_text_trim(rcpt_node_text(node));
}

/* The document around many items may be large, so it is not searched for each of them. */
static struct rcpt_text outer_value(struct rcpt_outer_values *outer, const struct rcpt_node *node,
                                    const struct field *field)
{
    for (size_t index = 0; index < RCPT_OUTER_VALUES; index++)
        if (outer->found[index].field == field && outer->found[index].from == node)
            return outer->found[index].value;
    unsigned place = outer->next++ % RCPT_OUTER_VALUES;
    outer->found[place].field = field;
    outer->found[place].from = node;
    outer->found[place].value = value_below(node, field);
    return outer->found[place].value;
}

static struct rcpt_text json_value(const struct rcpt_source *source, const struct field *field)
{
    const struct rcpt_node *node = source->root;
    if (node == NULL)
        return (struct rcpt_text){NULL, 0};
    if (field->number < RCPT_ITEM_MAX_LEVELS)
        node = field->number <= source->level ? source->items[source->level - field->number] : NULL;
    if (field->number > 0 && source->outer != NULL)
        return outer_value(source->outer, node, field);
    return value_below(node, field);
}

/* Empty: there is no such value in this request. */
static struct rcpt_text field_value(const struct rcpt_source *source, const struct field *field)
{
    switch (field->kind) {
    case FIELD_QUERY:
        return rcpt_form_get(&source->query, field->name);
    case FIELD_HEADER:
        return header_value(source, field->name);
    case FIELD_PATH:
        return segment(source, field->number);
    case FIELD_JSON:
        return json_value(source, field);
    default:
        return parameter_value(source, field->name);
    }
}

/* The first alternative with a value. */
static struct rcpt_text part_value(const struct rcpt_template *template, const struct part *part,
                                   const struct rcpt_source *source)
{
    struct rcpt_text value = part->literal;
    for (unsigned index = 0; index < part->field_count && value.size == 0; index++)
        value = rcpt_text_trim(field_value(source, &template->fields[part->first_field + index]));
    return value;
}

/* Empty when one of the parts is: half an id is no id. */
static struct rcpt_text join_parts(const struct rcpt_template *template,
                                   const struct rcpt_source *source)
{
    struct rcpt_text values[MAX_PARTS + 1] = {{NULL, 0}};
    for (unsigned index = 0; index < template->part_count; index++) {
        values[index] = part_value(template, &template->parts[index], source);
        if (values[index].size == 0)
            return (struct rcpt_text){NULL, 0};
    }
    for (unsigned index = 0; index < template->part_count; index++)
        if (values[index].size > RCPT_RECORD_MAX_ID_BYTES)
            return values[index]; /* too long as it is, and not written once more for each item */
    return rcpt_text_join(source->arena, values);
}

/* One part, the common case, copies nothing. */
struct rcpt_text rcpt_template_value(const struct rcpt_template *template,
                                     const struct rcpt_source *source)
{
    if (template == NULL)
        return (struct rcpt_text){NULL, 0};
    if (template->part_count > 1)
        return join_parts(template, source);
    struct rcpt_text value = part_value(template, &template->parts[0], source);
    return value.size > 0 ? value : (struct rcpt_text){NULL, 0};
}

unsigned rcpt_template_values(const struct rcpt_template *template,
                              const struct rcpt_source *source, struct rcpt_text *values,
                              unsigned most)
{
    unsigned count = 0;
    if (template == NULL || most == 0)
        return 0;
    if (template->part_count > 1) {
        values[0] = join_parts(template, source);
        return values[0].size > 0;
    }
    for (unsigned index = 0; index < template->field_count && count < most; index++) {
        values[count] = rcpt_text_trim(field_value(source, &template->fields[index]));
        count += values[count].size > 0;
    }
    return count;
}
