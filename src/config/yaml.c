/* The only reader and writer of YAML, on libyaml. Reading is one pass over the parser's events:
 * each event is checked, then becomes a node of a document that knows its line and column. Writing
 * is a thin layer over the emitter, for the normal form and for `check-config --print`. Called by
 * config.c, print.c, pages.c and tree.c. */
#include "yaml.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include "receiptd/base/error.h"

#define NAME_SHOWN 200u

/* The error's text is bounded, so a long path loses its beginning: the place and the reason must
 * stay. */
bool rcpt_config_error(struct rcpt_error *error, const char *name, struct rcpt_config_place place,
                       const char *format, ...)
{
    char text[sizeof(error->text)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    size_t size = strlen(name);
    const char *shown = size > NAME_SHOWN ? name + size - NAME_SHOWN : name;
    if (place.line == 0)
        return rcpt_error_fatal(error, EX_CONFIG, "%s: %s", shown, text);
    return rcpt_error_fatal(error, EX_CONFIG, "%s:%u:%u: %s", shown, place.line, place.column,
                            text);
}

/* libyaml counts lines and columns from 0, people and editors from 1. */
static struct rcpt_config_place place_of(yaml_mark_t mark)
{
    return (struct rcpt_config_place){(unsigned)mark.line + 1, (unsigned)mark.column + 1};
}

/* Errors of libyaml's decoder come with a byte offset only. */
static struct rcpt_config_place place_of_offset(const char *text, size_t offset)
{
    struct rcpt_config_place place = {1, 1};
    for (size_t index = 0; index < offset; index++) {
        if (text[index] == '\n')
            place = (struct rcpt_config_place){place.line + 1, 1};
        else if (((unsigned char)text[index] & 0xc0) != 0x80)
            place.column++;
    }
    return place;
}

/* libyaml's own words, with the place of the problem. The hint names what people get wrong most
 * often. */
static bool set_syntax_error(const yaml_parser_t *parser, const char *name, const char *text,
                             size_t size, struct rcpt_error *error)
{
    const char *problem = parser->problem != NULL ? parser->problem : "is not valid YAML";
    if (parser->error == YAML_READER_ERROR) {
        size_t offset = parser->problem_offset < size ? parser->problem_offset : size;
        rcpt_config_error(error, name, place_of_offset(text, offset), "%s", problem);
        rcpt_error_hint(error, "the file must be UTF-8 text without control characters");
        return false;
    }
    struct rcpt_config_place place = place_of(parser->problem_mark);
    if (parser->context != NULL)
        rcpt_config_error(error, name, place, "%s, %s that begins at line %zu", problem,
                          parser->context, parser->context_mark.line + 1);
    else
        rcpt_config_error(error, name, place, "%s", problem);
    rcpt_error_hint(error, "indent with blanks, not tabs; put a value in quotes when it contains "
                           "\": \" or \" #\", or \"${\" between brackets");
    return false;
}

/* Tags (`!!binary`) would choose a type that the table does not know. */
static bool has_tag(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.tag != NULL;
    default:
        return false;
    }
}

/* A document that is being read: the collections that are open, and the key of each mapping that
 * has no value yet. */
struct composer {
    const char *name; /* of the file */
    yaml_document_t *document;
    int open[RCPT_CONFIG_MAX_DEPTH], keys[RCPT_CONFIG_MAX_DEPTH];
    unsigned depth, documents;
    struct rcpt_error *error;
};

/* Refuses what a configuration must not have, before a node is made from it. */
static bool check_event(struct composer *composer, const yaml_event_t *event)
{
    struct rcpt_config_place place = place_of(event->start_mark);
    bool opens =
        event->type == YAML_MAPPING_START_EVENT || event->type == YAML_SEQUENCE_START_EVENT;
    const char *problem = NULL;
    if (event->type == YAML_DOCUMENT_START_EVENT && ++composer->documents > 1)
        problem = "a second document begins here";
    else if (event->type == YAML_ALIAS_EVENT)
        problem = "aliases are not supported, write the value out";
    else if (has_tag(event))
        problem = "tags are not supported";
    else if (event->type == YAML_SCALAR_EVENT &&
             memchr(event->data.scalar.value, '\0', event->data.scalar.length) != NULL)
        problem = "a value must not contain the NUL character";
    if (problem != NULL)
        return rcpt_config_error(composer->error, composer->name, place, "%s", problem);
    if (opens && composer->depth == RCPT_CONFIG_MAX_DEPTH)
        return rcpt_config_error(composer->error, composer->name, place,
                                 "nested deeper than %d levels", RCPT_CONFIG_MAX_DEPTH);
    return true;
}

/* The node becomes an entry, a key or a value of the innermost open collection. */
static void append(struct composer *composer, int node)
{
    if (composer->depth == 0)
        return;
    int parent = composer->open[composer->depth - 1], *key = &composer->keys[composer->depth - 1];
    if (yaml_document_get_node(composer->document, parent)->type == YAML_SEQUENCE_NODE) {
        RCPT_ASSERT(yaml_document_append_sequence_item(composer->document, parent, node) == 1);
    } else if (*key == 0) {
        *key = node;
    } else {
        RCPT_ASSERT(yaml_document_append_mapping_pair(composer->document, parent, *key, node) == 1);
        *key = 0;
    }
}

/* Nodes that libyaml makes by itself know their place; these are made one by one, so that aliases
 * and tags are still seen. */
static void compose(struct composer *composer, const yaml_event_t *event)
{
    int node = 0;
    if (event->type == YAML_SCALAR_EVENT)
        node = yaml_document_add_scalar(composer->document, NULL, event->data.scalar.value,
                                        (int)event->data.scalar.length, event->data.scalar.style);
    else if (event->type == YAML_SEQUENCE_START_EVENT)
        node = yaml_document_add_sequence(composer->document, NULL, YAML_ANY_SEQUENCE_STYLE);
    else if (event->type == YAML_MAPPING_START_EVENT)
        node = yaml_document_add_mapping(composer->document, NULL, YAML_ANY_MAPPING_STYLE);
    else if (event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT)
        composer->depth--;
    if (node == 0)
        return;
    yaml_document_get_node(composer->document, node)->start_mark = event->start_mark;
    append(composer, node);
    if (event->type != YAML_SCALAR_EVENT) {
        composer->open[composer->depth] = node;
        composer->keys[composer->depth++] = 0;
    }
}

/* The size is checked first: libyaml needs a multiple of the text in memory. The document belongs
 * to the caller on success, and is deleted here otherwise. */
bool rcpt_config_read_yaml(const char *name, const char *text, size_t size,
                           yaml_document_t *document, struct rcpt_error *error)
{
    struct composer composer = {.name = name, .document = document, .error = error};
    yaml_parser_t parser;
    bool good = true, more = true;
    if (size > RCPT_CONFIG_MAX_BYTES)
        return rcpt_config_error(error, name, (struct rcpt_config_place){0},
                                 "is larger than 1 MiB");
    RCPT_ASSERT(yaml_parser_initialize(&parser) == 1);
    RCPT_ASSERT(yaml_document_initialize(document, NULL, NULL, NULL, 1, 1) == 1);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    while (good && more) {
        yaml_event_t event;
        if (yaml_parser_parse(&parser, &event) == 0) {
            good = set_syntax_error(&parser, name, text, size, error);
            break;
        }
        more = event.type != YAML_STREAM_END_EVENT;
        good = check_event(&composer, &event);
        if (good)
            compose(&composer, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    if (!good)
        yaml_document_delete(document);
    return good;
}

struct rcpt_config_place rcpt_config_place_of(const yaml_node_t *node)
{
    return place_of(node->start_mark);
}

const char *rcpt_config_scalar(const yaml_node_t *node)
{
    RCPT_ASSERT(node->type == YAML_SCALAR_NODE);
    return (const char *)node->data.scalar.value;
}

/* YAML has several words for nothing. A word in quotes is text. */
bool rcpt_config_is_null(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    const char *text = rcpt_config_scalar(node);
    return text[0] == '\0' || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0;
}

/* ---- writing ---- */

/* The emitter owns the event from here on. After a failure of `out` (a full disk, a closed pipe)
 * the rest is dropped, and the caller checks `failed` once, at the end. */
static void emit(struct rcpt_config_writer *writer, yaml_event_t *event, int made)
{
    RCPT_ASSERT(made == 1);
    if (writer->failed)
        yaml_event_delete(event);
    else
        writer->failed = yaml_emitter_emit(&writer->emitter, event) == 0;
}

/* Lines are not folded: a value stays on its line, so that `grep` finds it. */
void rcpt_config_writer_init(struct rcpt_config_writer *writer, FILE *out)
{
    yaml_event_t event;
    writer->failed = false;
    RCPT_ASSERT(yaml_emitter_initialize(&writer->emitter) == 1);
    yaml_emitter_set_output_file(&writer->emitter, out);
    yaml_emitter_set_unicode(&writer->emitter, 1);
    yaml_emitter_set_width(&writer->emitter, -1);
    emit(writer, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    emit(writer, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
}

void rcpt_config_writer_fini(struct rcpt_config_writer *writer)
{
    yaml_event_t event;
    emit(writer, &event, yaml_document_end_event_initialize(&event, 1));
    emit(writer, &event, yaml_stream_end_event_initialize(&event));
    yaml_emitter_delete(&writer->emitter);
}

void rcpt_config_write_map(struct rcpt_config_writer *writer, enum rcpt_config_style style)
{
    yaml_event_t event;
    emit(writer, &event,
         yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
                                             style == RCPT_CONFIG_FLOW ? YAML_FLOW_MAPPING_STYLE
                                                                       : YAML_BLOCK_MAPPING_STYLE));
}

void rcpt_config_write_map_end(struct rcpt_config_writer *writer)
{
    yaml_event_t event;
    emit(writer, &event, yaml_mapping_end_event_initialize(&event));
}

void rcpt_config_write_list(struct rcpt_config_writer *writer, enum rcpt_config_style style)
{
    yaml_event_t event;
    emit(writer, &event,
         yaml_sequence_start_event_initialize(
             &event, NULL, NULL, 1,
             style == RCPT_CONFIG_FLOW ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE));
}

void rcpt_config_write_list_end(struct rcpt_config_writer *writer)
{
    yaml_event_t event;
    emit(writer, &event, yaml_sequence_end_event_initialize(&event));
}

static void write_scalar(struct rcpt_config_writer *writer, const char *text,
                         yaml_scalar_style_t style)
{
    yaml_event_t event;
    emit(writer, &event,
         yaml_scalar_event_initialize(&event, NULL, NULL, (const unsigned char *)text,
                                      (int)strlen(text), 1, 1, style));
}

void rcpt_config_write_plain(struct rcpt_config_writer *writer, const char *text)
{
    write_scalar(writer, text, YAML_PLAIN_SCALAR_STYLE);
}

/* Words that YAML readers take for null or a boolean, by one version of the format or another. */
static bool is_reserved(const char *text)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no",
                                        "on",   "off",  "y",     "n"};
    for (size_t index = 0; index < RCPT_COUNT_OF(words); index++)
        if (strcasecmp(text, words[index]) == 0)
            return true;
    return false;
}

/* Text is written without quotes only where no reader of YAML, old or new, takes it for something
 * else. */
static bool is_plain(const char *text)
{
    if (!isalpha((unsigned char)text[0]) || is_reserved(text))
        return false;
    for (; *text != '\0'; text++)
        if (!isalnum((unsigned char)*text) && strchr("_.-/", *text) == NULL)
            return false;
    return true;
}

void rcpt_config_write_text(struct rcpt_config_writer *writer, const char *text)
{
    write_scalar(writer, text,
                 is_plain(text) ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}
