/* Forms: query strings, url-encoded and multipart bodies. Tolerant, as gateways are: a percent sign
 * without two digits stands for itself, and of several fields with one name the first counts.
 * Fields point into the request where nothing had to be decoded. Pure; called by adapter.c and the
 * verifiers. */
#include "form.h"

/* Decoding never grows a text, so its size bounds the memory. */
static struct rcpt_text decode(struct rcpt_text text, bool plus_is_blank, struct rcpt_arena *arena)
{
    if (text.size == 0)
        return RCPT_TEXT("");
    if (memchr(text.at, '%', text.size) == NULL &&
        (!plus_is_blank || memchr(text.at, '+', text.size) == NULL))
        return text;
    char *out = rcpt_arena_alloc(arena, text.size);
    size_t used = 0;
    for (size_t index = 0; index < text.size; index++) {
        char byte = text.at[index];
        int high = -1, low = -1;
        if (byte == '%' && index + 2 < text.size) {
            high = rcpt_text_hex_digit(text.at[index + 1]);
            low = rcpt_text_hex_digit(text.at[index + 2]);
        }
        if (high >= 0 && low >= 0) {
            out[used++] = (char)(high << 4 | low);
            index += 2;
        } else {
            out[used++] = byte == '+' && plus_is_blank ? ' ' : byte;
        }
    }
    return (struct rcpt_text){out, used};
}

struct rcpt_text rcpt_form_decode_segment(struct rcpt_text text, struct rcpt_arena *arena)
{
    return decode(text, false, arena);
}

/* An upper bound of the fields, for one allocation. */
static size_t count_of(struct rcpt_text text, char separator)
{
    size_t count = 1;
    for (size_t index = 0; index < text.size; index++)
        count += text.at[index] == separator;
    return count < RCPT_FORM_MAX_FIELDS ? count : RCPT_FORM_MAX_FIELDS;
}

/* Fields beyond RCPT_FORM_MAX_FIELDS are left out. */
struct rcpt_form rcpt_form_parse(struct rcpt_text text, struct rcpt_arena *arena)
{
    if (text.size == 0)
        return (struct rcpt_form){NULL, 0};
    size_t limit = count_of(text, '&'), count = 0;
    struct rcpt_parameter *fields = rcpt_arena_alloc(arena, limit * sizeof(*fields));
    for (size_t at = 0; at <= text.size && count < limit;) {
        struct rcpt_text field = rcpt_text_part(text, at, text.size);
        field.size = rcpt_text_find(field, "&");
        at += field.size + 1;
        if (field.size == 0)
            continue;
        size_t equals = rcpt_text_find(field, "=");
        fields[count++] = (struct rcpt_parameter){
            rcpt_text_skip_mark(decode(rcpt_text_part(field, 0, equals), true, arena)),
            decode(rcpt_text_part(field, equals + 1, field.size), true, arena)};
    }
    return (struct rcpt_form){fields, count};
}

/* ---- multipart ---- */

/* Value of `name="…"` or name=… in a header's value; at == NULL: not there. */
static struct rcpt_text attribute(struct rcpt_text value, const char *name)
{
    size_t at = rcpt_text_find(value, name);
    if (at == value.size)
        return (struct rcpt_text){NULL, 0};
    struct rcpt_text rest = rcpt_text_part(value, at + strlen(name), value.size);
    bool quoted = rest.size > 0 && rest.at[0] == '"';
    rest = rcpt_text_part(rest, quoted, rest.size);
    rest.size = rcpt_text_find(rest, quoted ? "\"" : ";");
    return quoted ? rest : rcpt_text_trim(rest);
}

/* Name of the field that a part's headers declare; empty: a file, or no field. */
static struct rcpt_text part_name(struct rcpt_text headers)
{
    while (headers.size > 0) {
        struct rcpt_text line = headers;
        line.size = rcpt_text_find(headers, "\r\n");
        headers = rcpt_text_part(headers, line.size + 2, headers.size);
        if (!rcpt_text_begins_nocase(line, "content-disposition:"))
            continue;
        if (attribute(line, "filename=").at != NULL)
            break;
        return attribute(line, " name=");
    }
    return (struct rcpt_text){NULL, 0};
}

/* By its content: a form or JSON does not begin with two dashes and have a line end. */
bool rcpt_form_is_multipart(struct rcpt_text body)
{
    return rcpt_text_begins(body, "--") && rcpt_text_find(body, "\r\n") < body.size;
}

/* RFC 7578 as gateways use it: text fields only; files are skipped. 70 bytes is the longest
 * boundary (RFC 2046). */
struct rcpt_form rcpt_form_parse_multipart(struct rcpt_text content_type, struct rcpt_text body,
                                           struct rcpt_arena *arena)
{
    struct rcpt_text boundary = attribute(content_type, "boundary=");
    if (boundary.size == 0 || boundary.size > 70)
        return (struct rcpt_form){NULL, 0};
    const char *mark =
        rcpt_text_terminated(arena, RCPT_TEXT_JOIN(arena, RCPT_TEXT("--"), boundary));
    const char *end =
        rcpt_text_terminated(arena, RCPT_TEXT_JOIN(arena, RCPT_TEXT("\r\n--"), boundary));
    size_t count = 0, at = strlen(mark);
    if (!rcpt_text_begins(body, mark) || !rcpt_text_begins(rcpt_text_part(body, at, 2), "\r\n"))
        return (struct rcpt_form){NULL, 0};
    struct rcpt_parameter *fields = rcpt_arena_alloc(arena, RCPT_FORM_MAX_FIELDS * sizeof(*fields));
    while (at < body.size && count < RCPT_FORM_MAX_FIELDS) {
        struct rcpt_text part = rcpt_text_part(body, at, body.size);
        part.size = rcpt_text_find(part, end);
        at += part.size + strlen(end);
        size_t blank = rcpt_text_find(part, "\r\n\r\n");
        struct rcpt_text name = part_name(rcpt_text_part(part, 0, blank));
        if (name.size > 0 && blank < part.size)
            fields[count++] =
                (struct rcpt_parameter){name, rcpt_text_part(part, blank + 4, part.size)};
    }
    return (struct rcpt_form){fields, count};
}

/* The first field of this name. at == NULL: there is none. */
struct rcpt_text rcpt_form_get(const struct rcpt_form *form, struct rcpt_text name)
{
    for (size_t index = 0; index < form->count; index++)
        if (rcpt_text_equal(form->fields[index].name, name))
            return form->fields[index].value;
    return (struct rcpt_text){NULL, 0};
}
