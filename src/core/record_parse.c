/* Reads any JSON record with yajl: slower than record_scan.c, and the only place that says what is
 * wrong with a record. Called by record.c for what the scanner does not take.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "record_internal.h"

/* What the outermost value is; a wrapper is what the last key "events" says. */
enum form {
    FORM_SCALAR,
    FORM_ARRAY,
    FORM_OBJECT,
    FORM_WRAPPER,
    FORM_BROKEN_WRAPPER, /* "events" is no array */
};

struct fields {
    struct rcpt_fields is;
    size_t start;         /* of the object in the value */
    enum rcpt_field next; /* field that the next value belongs to */
};

/* Depth counts the containers that are open. The outermost object is an event until it turns out to
 * be a wrapper, so its fields are kept beside those of the elements. */
struct parse {
    struct rcpt_decoder *decoder;
    const char *value;
    size_t size;
    yajl_handle json;

    enum form form;
    size_t end; /* of the outermost value */
    uint32_t depth;
    bool too_deep;
    uint32_t list_depth;  /* depth inside the list of events; 0 outside of it */
    uint32_t field_depth; /* depth inside the object whose fields are collected; 0: none */
    uint32_t flags_depth; /* depth inside its list of flags; 0: outside of it */
    uint32_t index;       /* of the element in the list */
    size_t element_floor; /* end of the last element, or of the list's bracket */
    struct fields whole, element;
    struct fields *open; /* the ones that are collected */
};

static size_t consumed(const struct parse *parse)
{
    return yajl_get_bytes_consumed(parse->json);
}

/* Texts outside of the value are yajl's for the time of the callback. */
static const char *keep_text(struct parse *parse, const char *text, size_t size)
{
    if ((uintptr_t)text - (uintptr_t)parse->value < parse->size)
        return text;
    char *copy = rcpt_arena_alloc(&parse->decoder->strings, size);
    memcpy(copy, text, size);
    return copy;
}

static void set_field(struct parse *parse, enum rcpt_token_kind kind, const char *text, size_t size)
{
    enum rcpt_field field = parse->open->next;
    if (field == RCPT_FIELD_EVENTS && parse->open == &parse->whole) {
        rcpt_record_forget(parse->decoder); /* of a list under the same key before */
        parse->form = FORM_BROKEN_WRAPPER;
    }
    if (field >= RCPT_FIELD__COUNT)
        return;
    if (field == RCPT_FIELD_FLAGS)
        parse->open->is.flags = 0; /* of a key that is there twice, the last one counts */
    struct rcpt_token *token = &parse->open->is.tokens[field];
    token->kind = kind;
    token->text = kind == RCPT_TOKEN_STRING ? keep_text(parse, text, size) : text;
    token->size = size;
    token->end = consumed(parse);
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* The element's text begins behind the last one's, after blanks and a comma. */
static size_t element_start(const struct parse *parse)
{
    size_t start = parse->element_floor;
    while (is_blank(parse->value[start]) || parse->value[start] == ',')
        start++;
    return start;
}

static void end_element(struct parse *parse)
{
    parse->index++;
    parse->element_floor = consumed(parse);
}

static void refuse_element(struct parse *parse)
{
    if (parse->index < RCPT_RECORD_MAX_EVENTS) {
        /* A number that ends the input is told by yajl from a text of its own: the record is about
         * to be refused. */
        size_t start = element_start(parse), end = consumed(parse),
               size = end > start ? end - start : 0;
        struct rcpt_reject *reject = rcpt_record_add_reject(
            parse->decoder, RCPT_REJECT_NOT_AN_EVENT, (int32_t)parse->index, start, size);
        snprintf(reject->detail, sizeof(reject->detail), "the element is not an object");
        parse->decoder->flaw_placed |= rcpt_record_find_flaws(parse->value + start, size).utf8;
    }
    end_element(parse);
}

static void take_event(struct parse *parse, const struct fields *fields)
{
    if (parse->index < RCPT_RECORD_MAX_EVENTS)
        rcpt_record_take_event(parse->decoder, &fields->is, parse->index, fields->start,
                               consumed(parse) - fields->start);
    end_element(parse);
}

static int on_scalar(struct parse *parse, enum rcpt_token_kind kind, const char *text, size_t size)
{
    if (parse->depth == 0)
        parse->end = consumed(parse);
    else if (parse->depth == parse->field_depth)
        set_field(parse, kind, text, size);
    else if (parse->depth == parse->flags_depth && kind == RCPT_TOKEN_STRING)
        parse->open->is.flags |= rcpt_record_flag_of(parse->decoder, text, size);
    else if (parse->depth == parse->list_depth)
        refuse_element(parse);
    return 1;
}

static int on_null(void *context)
{
    return on_scalar(context, RCPT_TOKEN_NULL, NULL, 0);
}

static int on_boolean(void *context, int value)
{
    (void)value;
    return on_scalar(context, RCPT_TOKEN_OTHER, NULL, 0);
}

static int on_number(void *context, const char *text, size_t size)
{
    return on_scalar(context, RCPT_TOKEN_NUMBER, text, size);
}

static int on_string(void *context, const unsigned char *text, size_t size)
{
    return on_scalar(context, RCPT_TOKEN_STRING, (const char *)text, size);
}

static int enter(struct parse *parse)
{
    parse->too_deep = ++parse->depth > RCPT_RECORD_MAX_DEPTH;
    return !parse->too_deep;
}

static void leave(struct parse *parse)
{
    if (--parse->depth == 0)
        parse->end = consumed(parse);
}

static void open_fields(struct parse *parse, struct fields *fields)
{
    memset(fields, 0, sizeof(*fields));
    fields->start = consumed(parse) - 1;
    parse->open = fields;
    parse->field_depth = parse->depth + 1;
    parse->flags_depth = 0;
}

static int on_start_map(void *context)
{
    struct parse *parse = context;
    if (parse->depth == 0) {
        parse->form = FORM_OBJECT;
        open_fields(parse, &parse->whole);
    } else if (parse->depth == parse->list_depth) {
        open_fields(parse, &parse->element);
    } else if (parse->depth == parse->field_depth) {
        set_field(parse, RCPT_TOKEN_OTHER, NULL, 0);
    }
    return enter(parse);
}

enum rcpt_field rcpt_record_field_of(const char *key, size_t size)
{
    switch (size) {
    case 2:
        return memcmp(key, "at", 2) == 0 ? RCPT_FIELD_AT : RCPT_FIELD_OTHER;
    case 5:
        return memcmp(key, "flags", 5) == 0 ? RCPT_FIELD_FLAGS : RCPT_FIELD_OTHER;
    case 6:
        if (memcmp(key, "status", 6) == 0)
            return RCPT_FIELD_STATUS;
        return memcmp(key, "events", 6) == 0 ? RCPT_FIELD_EVENTS : RCPT_FIELD_OTHER;
    case 7:
        if (memcmp(key, "channel", 7) == 0)
            return RCPT_FIELD_CHANNEL;
        return memcmp(key, "gateway", 7) == 0 ? RCPT_FIELD_GATEWAY : RCPT_FIELD_OTHER;
    case 10:
        return memcmp(key, "message_id", 10) == 0 ? RCPT_FIELD_ID : RCPT_FIELD_OTHER;
    default:
        return RCPT_FIELD_OTHER;
    }
}

static int on_map_key(void *context, const unsigned char *key, size_t size)
{
    struct parse *parse = context;
    if (parse->depth == parse->field_depth)
        parse->open->next = rcpt_record_field_of((const char *)key, size);
    return 1;
}

static int on_end_map(void *context)
{
    struct parse *parse = context;
    bool was_open = parse->depth == parse->field_depth;
    leave(parse);
    if (was_open && parse->open == &parse->element) {
        parse->field_depth = 0;
        take_event(parse, &parse->element);
    } else if (was_open && parse->form == FORM_OBJECT) {
        take_event(parse, &parse->whole);
    }
    return 1;
}

static void open_list(struct parse *parse, enum form form)
{
    rcpt_record_forget(parse->decoder);
    parse->form = form;
    parse->index = 0;
    parse->element_floor = consumed(parse);
    parse->list_depth = parse->depth + 1;
    parse->field_depth = 0;
}

static void open_field_list(struct parse *parse)
{
    set_field(parse, RCPT_TOKEN_OTHER, NULL, 0);
    if (parse->open->next == RCPT_FIELD_FLAGS)
        parse->flags_depth = parse->depth + 1;
}

static int on_start_array(void *context)
{
    struct parse *parse = context;
    if (parse->depth == 0)
        open_list(parse, FORM_ARRAY);
    else if (parse->depth == parse->field_depth && parse->open == &parse->whole &&
             parse->whole.next == RCPT_FIELD_EVENTS)
        open_list(parse, FORM_WRAPPER);
    else if (parse->depth == parse->field_depth)
        open_field_list(parse);
    return enter(parse);
}

static int on_end_array(void *context)
{
    struct parse *parse = context;
    bool was_list = parse->depth == parse->list_depth;
    if (parse->depth == parse->flags_depth)
        parse->flags_depth = 0;
    leave(parse);
    if (was_list) { /* back to the wrapper's fields, if there is one */
        parse->list_depth = 0;
        parse->open = &parse->whole;
        parse->field_depth = parse->depth;
    } else if (parse->depth == parse->list_depth && parse->depth > 0) {
        refuse_element(parse);
    }
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_start_map,
    .yajl_map_key = on_map_key,
    .yajl_end_map = on_end_map,
    .yajl_start_array = on_start_array,
    .yajl_end_array = on_end_array,
};

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

static void refuse_json(struct rcpt_decoder *decoder, size_t byte, const char *text, size_t size)
{
    struct rcpt_reject *reject = rcpt_record_refuse(decoder, RCPT_REJECT_INVALID_JSON);
    snprintf(reject->detail, sizeof(reject->detail), "byte %zu: %.*s", byte, (int)size, text);
}

/* yajl's reason is a fixed text with a line's end; it shows nothing of the value. */
static void refuse_by_yajl(struct parse *parse, size_t byte)
{
    unsigned char *reason = yajl_get_error(parse->json, 0, NULL, 0);
    const char *text = (const char *)reason;
    refuse_json(parse->decoder, byte, text, strcspn(text, "\n"));
    yajl_free_error(parse->json, reason);
}

/* yajl overlooks a string behind the value whose closing quote is missing. */
static bool has_trailing_bytes(struct parse *parse)
{
    while (parse->end < parse->size && is_blank(parse->value[parse->end]))
        parse->end++;
    return parse->end < parse->size;
}

/* False: the value is no JSON, and the record refused. */
static bool run(struct parse *parse)
{
    static const char too_deep[] = "nested too deep", trailing[] = "trailing bytes";
    yajl_status status = yajl_parse(parse->json, (const unsigned char *)parse->value, parse->size);
    size_t byte = consumed(parse);
    if (status == yajl_status_ok && has_trailing_bytes(parse)) {
        refuse_json(parse->decoder, parse->end, trailing, sizeof(trailing) - 1);
        return false;
    }
    if (status == yajl_status_ok) {
        byte = parse->size;
        status = yajl_complete_parse(parse->json);
    }
    if (parse->too_deep)
        refuse_json(parse->decoder, byte, too_deep, sizeof(too_deep) - 1);
    else if (status != yajl_status_ok)
        refuse_by_yajl(parse, byte);
    return status == yajl_status_ok;
}

static void judge_form(const struct parse *parse)
{
    static const char misplaced[] = "invalid utf-8 outside of the events";
    struct rcpt_reject *reject;
    if (parse->form == FORM_SCALAR || parse->form == FORM_BROKEN_WRAPPER) {
        reject = rcpt_record_refuse(parse->decoder, RCPT_REJECT_NOT_AN_EVENT);
        snprintf(reject->detail, sizeof(reject->detail), "%s",
                 parse->form == FORM_SCALAR ? "the value is neither an object nor an array"
                                            : "events is not an array");
    } else if (parse->index > RCPT_RECORD_MAX_EVENTS) {
        reject = rcpt_record_refuse(parse->decoder, RCPT_REJECT_TOO_MANY_EVENTS);
        snprintf(reject->detail, sizeof(reject->detail), "%u events, at most %d are allowed",
                 parse->index, RCPT_RECORD_MAX_EVENTS);
    } else if (parse->decoder->flaws.utf8 && !parse->decoder->flaw_placed) {
        refuse_json(parse->decoder, 0, misplaced, sizeof(misplaced) - 1);
    }
}

void rcpt_record_parse_any(struct rcpt_decoder *decoder)
{
    struct parse parse = {
        .decoder = decoder,
        .value = decoder->input.value,
        .size = decoder->input.value_size,
        .form = FORM_SCALAR,
        .end = decoder->input.value_size,
    };
    size_t byte;
    const char *wrong = rcpt_record_check_blanks(parse.value, parse.size, &byte);
    if (wrong != NULL) {
        refuse_json(decoder, byte, wrong, strlen(wrong));
        return;
    }
    decoder->flaws = rcpt_record_find_flaws(parse.value, parse.size);
    decoder->flaw_placed = false;
    /* A handle cannot be used for a second text, and yajl's own check of UTF-8 is weaker than the
     * one above. */
    yajl_alloc_funcs memory = {json_malloc, json_realloc, json_free, NULL};
    parse.json = yajl_alloc(&callbacks, &memory, &parse);
    yajl_config(parse.json, yajl_dont_validate_strings, 1);
    if (run(&parse))
        judge_form(&parse);
    yajl_free(parse.json);
}

void rcpt_record_parse(struct rcpt_decoder *decoder)
{
    if (!rcpt_record_scan(decoder))
        rcpt_record_parse_any(decoder);
}
