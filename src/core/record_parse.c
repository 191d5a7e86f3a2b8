/* Reads any JSON record: slower than record_scan.c, and the only file that says what is wrong with
 * a record. A handler for the tokens of src/base/json_read.c: it collects the fields of the
 * outermost object and of the elements in the list of events. Called by record.c for records that
 * the scanner does not take.
 */
#include <stdio.h>
#include <string.h>

#include "receiptd/base/json_read.h"
#include "record_internal.h"

/* A zero, and the schema's number: what serializers of a schema registry write. */
#define SCHEMA_BYTES 5u

/* The form of the outermost value; for a wrapper the last key "events" decides. */
enum form {
    FORM_SCALAR,
    FORM_ARRAY,
    FORM_OBJECT,
    FORM_WRAPPER,
    FORM_BROKEN_WRAPPER, /* "events" is no array */
};

/* The fields of an object that is being read. */
struct draft {
    struct rcpt_record_fields fields;
    size_t start;         /* of the object in the value */
    enum rcpt_field next; /* field that the next value belongs to */
};

/* The outermost object is an event until it turns out to be a wrapper, so its fields are kept
 * beside those of the elements. The depths are those of tokens inside; 0: there is none. */
struct parse {
    struct rcpt_decoder *decoder;
    struct rcpt_text value;

    enum form form;
    unsigned list_depth;  /* of the list of events */
    unsigned field_depth; /* of the object whose fields are collected */
    unsigned flags_depth; /* of its list of flags */
    uint32_t index;       /* of the element in the list */
    size_t element_floor; /* end of the last element, or of the list's bracket */
    struct draft whole, element;
    struct draft *open; /* the one that is collected */
};

static enum rcpt_token_kind kind_of(const struct rcpt_json_token *token)
{
    switch (token->kind) {
    case RCPT_JSON_NULL:
        return RCPT_TOKEN_NULL;
    case RCPT_JSON_NUMBER:
        return RCPT_TOKEN_NUMBER;
    case RCPT_JSON_STRING:
        return RCPT_TOKEN_STRING;
    default:
        return RCPT_TOKEN_OTHER;
    }
}

static struct rcpt_token keep_token(struct parse *parse, const struct rcpt_json_token *token)
{
    enum rcpt_token_kind kind = kind_of(token);
    struct rcpt_text text = {NULL, 0};
    if (kind == RCPT_TOKEN_STRING || kind == RCPT_TOKEN_NUMBER)
        text = rcpt_json_keep(parse->value, token->text, &parse->decoder->strings);
    return (struct rcpt_token){.kind = kind,
                               .text = text.at,
                               .size = text.size,
                               .has_half_surrogate = token->has_half_surrogate};
}

/* A field of the outermost object, or of an element. The last value of a key counts; a scalar under
 * "events" makes a broken wrapper of the record, unless a list follows. */
static void set_field(struct parse *parse, const struct rcpt_json_token *token)
{
    enum rcpt_field field = parse->open->next;
    if (field == RCPT_FIELD_EVENTS && parse->open == &parse->whole) {
        rcpt_record_forget(parse->decoder); /* forgets a list under the same key before */
        parse->form = FORM_BROKEN_WRAPPER;
    }
    if (field >= RCPT_FIELD__COUNT)
        return;
    if (field == RCPT_FIELD_FLAGS)
        rcpt_record_open_flags(&parse->open->fields);
    parse->open->fields.tokens[field] = keep_token(parse, token);
}

/* An element of the list of flags. */
static void take_flag(struct parse *parse, const struct rcpt_json_token *token)
{
    struct rcpt_token name = keep_token(parse, token);
    rcpt_record_take_flag(parse->decoder, &parse->open->fields, &name);
}

/* The element's text begins behind the previous one's, after blanks and a comma. */
static size_t element_start(const struct parse *parse)
{
    size_t start = parse->element_floor;
    while (memchr(" \t\r\n,", parse->value.at[start], 5) != NULL)
        start++;
    return start;
}

static void end_element(struct parse *parse, size_t end)
{
    parse->index++;
    parse->element_floor = end;
}

/* A scalar or an array where an event has to stand. Events beyond the limit are only counted: the
 * whole record is refused for them. */
static void refuse_element(struct parse *parse, size_t end)
{
    if (parse->index < RCPT_RECORD_MAX_EVENTS) {
        size_t start = element_start(parse), size = end - start;
        struct rcpt_reject *reject = rcpt_record_add_reject(
            parse->decoder, RCPT_REJECT_NOT_AN_EVENT, (int32_t)parse->index, start, size);
        snprintf(reject->detail, sizeof(reject->detail), "the element is not an object");
        parse->decoder->flaw_placed |= !rcpt_utf8_is_valid(parse->value.at + start, size);
    }
    end_element(parse, end);
}

static void take_event(struct parse *parse, const struct draft *draft, size_t end)
{
    if (parse->index < RCPT_RECORD_MAX_EVENTS)
        rcpt_record_take_event(parse->decoder, &draft->fields, parse->index, draft->start,
                               end - draft->start);
    end_element(parse, end);
}

/* The outermost value (depth 0) is judged by its form alone. */
static void on_scalar(struct parse *parse, const struct rcpt_json_token *token)
{
    if (token->depth == 0)
        return;
    if (token->depth == parse->field_depth)
        set_field(parse, token);
    else if (token->depth == parse->flags_depth)
        take_flag(parse, token);
    else if (token->depth == parse->list_depth)
        refuse_element(parse, token->end);
}

/* From here on the values at this depth belong to the object. */
static void open_draft(struct parse *parse, struct draft *draft,
                       const struct rcpt_json_token *token)
{
    memset(draft, 0, sizeof(*draft));
    draft->start = token->end - 1;
    parse->open = draft;
    parse->field_depth = token->depth + 1;
    parse->flags_depth = 0;
}

/* An object elsewhere (inside of a field) only passes by: its depth is none of the three. */
static void on_object(struct parse *parse, const struct rcpt_json_token *token)
{
    if (token->depth == 0) {
        parse->form = FORM_OBJECT;
        open_draft(parse, &parse->whole, token);
    } else if (token->depth == parse->list_depth) {
        open_draft(parse, &parse->element, token);
    } else if (token->depth == parse->field_depth) {
        set_field(parse, token);
    } else if (token->depth == parse->flags_depth) {
        take_flag(parse, token);
    }
}

/* By size first: most keys of an event are of no interest here. */
enum rcpt_field rcpt_record_field_of(const char *key, size_t size)
{
    switch (size) {
    case 2:
        return memcmp(key, "at", 2) == 0 ? RCPT_FIELD_AT : RCPT_FIELD_OTHER;
    case 4:
        return memcmp(key, "part", 4) == 0 ? RCPT_FIELD_PART : RCPT_FIELD_OTHER;
    case 5:
        if (memcmp(key, "parts", 5) == 0)
            return RCPT_FIELD_PARTS;
        if (memcmp(key, "until", 5) == 0)
            return RCPT_FIELD_UNTIL;
        return memcmp(key, "flags", 5) == 0 ? RCPT_FIELD_FLAGS : RCPT_FIELD_OTHER;
    case 6:
        if (memcmp(key, "status", 6) == 0)
            return RCPT_FIELD_STATUS;
        if (memcmp(key, "org_id", 6) == 0)
            return RCPT_FIELD_ORG;
        return memcmp(key, "events", 6) == 0 ? RCPT_FIELD_EVENTS : RCPT_FIELD_OTHER;
    case 7:
        if (memcmp(key, "channel", 7) == 0)
            return RCPT_FIELD_CHANNEL;
        return memcmp(key, "gateway", 7) == 0 ? RCPT_FIELD_GATEWAY : RCPT_FIELD_OTHER;
    case 8:
        return memcmp(key, "event_id", 8) == 0 ? RCPT_FIELD_EVENT_ID : RCPT_FIELD_OTHER;
    case 9:
        return memcmp(key, "recipient", 9) == 0 ? RCPT_FIELD_RECIPIENT : RCPT_FIELD_OTHER;
    case 10:
        return memcmp(key, "message_id", 10) == 0 ? RCPT_FIELD_ID : RCPT_FIELD_OTHER;
    case 11:
        return memcmp(key, "campaign_id", 11) == 0 ? RCPT_FIELD_CAMPAIGN : RCPT_FIELD_OTHER;
    case 12:
        return memcmp(key, "reason_class", 12) == 0 ? RCPT_FIELD_REASON : RCPT_FIELD_OTHER;
    default:
        return RCPT_FIELD_OTHER;
    }
}

/* Forgets what was found before: another list under the same key, or the fields of an object that
 * is no event. */
static void open_list(struct parse *parse, enum form form, const struct rcpt_json_token *token)
{
    rcpt_record_forget(parse->decoder);
    parse->form = form;
    parse->index = 0;
    parse->element_floor = token->end;
    parse->list_depth = token->depth + 1;
    parse->field_depth = 0;
}

static void on_array(struct parse *parse, const struct rcpt_json_token *token)
{
    if (token->depth == 0) {
        open_list(parse, FORM_ARRAY, token);
    } else if (token->depth == parse->field_depth && parse->open == &parse->whole &&
               parse->whole.next == RCPT_FIELD_EVENTS) {
        open_list(parse, FORM_WRAPPER, token);
    } else if (token->depth == parse->field_depth && parse->open->next == RCPT_FIELD_FLAGS) {
        rcpt_record_open_flags(&parse->open->fields);
        parse->flags_depth = token->depth + 1;
    } else if (token->depth == parse->field_depth) {
        set_field(parse, token);
    } else if (token->depth == parse->flags_depth) {
        take_flag(parse, token);
    }
}

/* An element of the list, or the outermost object where it is an event. */
static void end_object(struct parse *parse, const struct rcpt_json_token *token)
{
    if (parse->open == &parse->element) {
        parse->field_depth = 0;
        take_event(parse, &parse->element, token->end);
    } else if (parse->form == FORM_OBJECT) {
        take_event(parse, &parse->whole, token->end);
    }
}

/* The depth of the tokens inside tells what ends: at most one of the three depths is equal to it.
 */
static void on_end(struct parse *parse, const struct rcpt_json_token *token)
{
    unsigned inside = token->depth + 1;
    if (inside == parse->field_depth) {
        end_object(parse, token);
    } else if (inside == parse->flags_depth) {
        parse->flags_depth = 0;
    } else if (inside == parse->list_depth) { /* back to the wrapper's fields, if there is one */
        parse->list_depth = 0;
        parse->open = &parse->whole;
        parse->field_depth = token->depth;
    } else if (token->depth == parse->list_depth && token->depth > 0) {
        refuse_element(parse, token->end); /* an array in the list */
    }
}

static bool on_token(void *context, const struct rcpt_json_token *token)
{
    struct parse *parse = context;
    switch (token->kind) {
    case RCPT_JSON_KEY:
        if (token->depth == parse->field_depth)
            parse->open->next = rcpt_record_field_of(token->text.at, token->text.size);
        break;
    case RCPT_JSON_OBJECT:
        on_object(parse, token);
        break;
    case RCPT_JSON_ARRAY:
        on_array(parse, token);
        break;
    case RCPT_JSON_END:
        on_end(parse, token);
        break;
    default:
        on_scalar(parse, token);
        break;
    }
    return true;
}

static void refuse_json(struct rcpt_decoder *decoder, size_t byte, const char *text)
{
    struct rcpt_reject *reject = rcpt_record_refuse(decoder, RCPT_REJECT_INVALID_JSON);
    const char *value = decoder->input.value;
    bool has_schema = decoder->input.value_size > SCHEMA_BYTES && value[0] == '\0';
    if (has_schema)
        snprintf(reject->detail, sizeof(reject->detail),
                 "five bytes of a schema registry stand first: send JSON by a serializer without");
    else
        snprintf(reject->detail, sizeof(reject->detail), "byte %zu: %s", byte, text);
}

/* Judges whether the JSON is a record. Invalid UTF-8 that lies in no event makes the whole record
 * invalid. */
static void judge_form(const struct parse *parse)
{
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
    } else if (parse->decoder->has_flaw && !parse->decoder->flaw_placed) {
        refuse_json(parse->decoder, 0, "invalid utf-8 outside of the events");
    }
}

/* Checks the encoding first: rcpt_record_take_event checks events only if the record has a flaw. */
void rcpt_record_parse_any(struct rcpt_decoder *decoder)
{
    struct parse parse = {
        .decoder = decoder,
        .value = {decoder->input.value, decoder->input.value_size},
        .form = FORM_SCALAR,
    };
    struct rcpt_json_fault fault;
    decoder->has_flaw = !rcpt_utf8_is_valid(parse.value.at, parse.value.size);
    decoder->flaw_placed = false;
    if (rcpt_json_read(parse.value, on_token, &parse, &fault) == RCPT_JSON_OK)
        judge_form(&parse);
    else
        refuse_json(decoder, fault.byte, fault.text);
}

/* The scan decides alone whether it takes a record; both ways give the same result
 * (tests/fuzz/fuzz_record.c). */
void rcpt_record_parse(struct rcpt_decoder *decoder)
{
    if (!rcpt_record_scan(decoder))
        rcpt_record_parse_any(decoder);
}
