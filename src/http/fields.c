/* The content of a request: method, target, headers and body, as texts in its memory. Called by
 * handlers and by the files of the server that read headers. */
#include <string.h>
#include <strings.h>

#include "internal.h"

/* Texts lie in the head and end in a NUL. */
static struct rcpt_http_text text_at(const struct rcpt_http_request *request, uint32_t at,
                                     uint32_t size)
{
    return (struct rcpt_http_text){request->head.bytes + at, size};
}

bool http_request_text_is(struct rcpt_http_text text, const char *expected)
{
    return text.bytes != NULL && text.size == strlen(expected) &&
           strncasecmp(text.bytes, expected, text.size) == 0;
}

enum rcpt_http_method rcpt_http_method(const struct rcpt_http_request *request)
{
    return request->method;
}

/* 0 stands for no query, since the target has at least one byte before it. */
struct rcpt_http_text rcpt_http_query(const struct rcpt_http_request *request)
{
    if (request->query == 0)
        return (struct rcpt_http_text){0};
    return text_at(request, request->query, request->query_size);
}

struct rcpt_http_text rcpt_http_rest(const struct rcpt_http_request *request)
{
    uint32_t prefix = request->route != NULL ? (uint32_t)request->route->prefix_size : 0;
    return text_at(request, request->path + prefix, request->path_size - prefix);
}

size_t rcpt_http_header_count(const struct rcpt_http_request *request)
{
    return request->field_count;
}

void rcpt_http_header_at(const struct rcpt_http_request *request, size_t index,
                         struct rcpt_http_text *name, struct rcpt_http_text *value)
{
    RCPT_ASSERT(index < request->field_count);
    const struct http_field *field = &request->fields[index];
    *name = text_at(request, field->name, field->name_size);
    *value = text_at(request, field->value, field->value_size);
}

/* The first line of this name; headers that matter for security are counted by request.c. */
struct rcpt_http_text rcpt_http_header(const struct rcpt_http_request *request, const char *name)
{
    size_t size = strlen(name);
    for (uint32_t i = 0; i < request->field_count; i++) {
        const struct http_field *field = &request->fields[i];
        if (field->name_size == size &&
            strncasecmp(request->head.bytes + field->name, name, size) == 0)
            return text_at(request, field->value, field->value_size);
    }
    return (struct rcpt_http_text){0};
}

/* Never absent: a request without a body has an empty one. */
struct rcpt_http_text rcpt_http_body(const struct rcpt_http_request *request)
{
    if (request->body.bytes == NULL)
        return (struct rcpt_http_text){"", 0};
    return (struct rcpt_http_text){request->body.bytes, request->body.size};
}
