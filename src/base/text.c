/* Texts with a length: comparing, trimming, searching, numbers, copies in an arena. Pure. Called by
 * all that reads a format of others: adapters of gateways, JSON, HTTP, templates.
 */
#include "text.h"

/* ASCII only, whatever the locale is. */
static char lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

/* The blanks of JSON and of HTTP headers. */
static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

bool rcpt_text_equal_nocase(struct rcpt_text left, struct rcpt_text right)
{
    if (left.size != right.size)
        return false;
    for (size_t index = 0; index < left.size; index++)
        if (lower(left.at[index]) != lower(right.at[index]))
            return false;
    return true;
}

bool rcpt_text_is_nocase(struct rcpt_text text, const char *other)
{
    return rcpt_text_equal_nocase(text, rcpt_text_of(other));
}

bool rcpt_text_begins(struct rcpt_text text, const char *prefix)
{
    return rcpt_text_is(rcpt_text_part(text, 0, strlen(prefix)), prefix);
}

bool rcpt_text_begins_nocase(struct rcpt_text text, const char *prefix)
{
    return rcpt_text_is_nocase(rcpt_text_part(text, 0, strlen(prefix)), prefix);
}

bool rcpt_text_is_digits(struct rcpt_text text)
{
    for (size_t index = 0; index < text.size; index++)
        if (text.at[index] < '0' || text.at[index] > '9')
            return false;
    return text.size > 0;
}

int rcpt_text_compare(struct rcpt_text left, struct rcpt_text right)
{
    size_t least = left.size < right.size ? left.size : right.size;
    int order = least > 0 ? memcmp(left.at, right.at, least) : 0;
    if (order != 0)
        return order;
    return (left.size > right.size) - (left.size < right.size);
}

struct rcpt_text rcpt_text_trim(struct rcpt_text text)
{
    while (text.size > 0 && is_blank(text.at[0])) {
        text.at++;
        text.size--;
    }
    while (text.size > 0 && is_blank(text.at[text.size - 1]))
        text.size--;
    return text;
}

/* Never beyond the text: a part that does not exist is empty. */
struct rcpt_text rcpt_text_part(struct rcpt_text text, size_t first, size_t size)
{
    if (text.at == NULL || first > text.size)
        return (struct rcpt_text){text.at, 0};
    size_t rest = text.size - first;
    return (struct rcpt_text){text.at + first, size < rest ? size : rest};
}

size_t rcpt_text_find(struct rcpt_text text, const char *needle)
{
    const char *found = NULL;
    if (text.size > 0)
        found = needle[1] == '\0' ? memchr(text.at, needle[0], text.size)
                                  : memmem(text.at, text.size, needle, strlen(needle));
    return found != NULL ? (size_t)(found - text.at) : text.size;
}

/* Nine digits at most, so that the value cannot overflow. */
bool rcpt_text_number(struct rcpt_text text, unsigned *number)
{
    unsigned value = 0;
    if (!rcpt_text_is_digits(text) || text.size > 9)
        return false;
    for (size_t index = 0; index < text.size; index++)
        value = value * 10 + (unsigned)(text.at[index] - '0');
    *number = value;
    return true;
}

struct rcpt_text rcpt_text_copy(struct rcpt_arena *arena, struct rcpt_text text)
{
    return (struct rcpt_text){rcpt_text_terminated(arena, text), text.size};
}

/* For libraries that want a C string. A NUL inside of the text stays. */
char *rcpt_text_terminated(struct rcpt_arena *arena, struct rcpt_text text)
{
    char *copy = rcpt_arena_alloc(arena, text.size + 1);
    if (text.size > 0)
        memcpy(copy, text.at, text.size);
    copy[text.size] = '\0';
    return copy;
}

struct rcpt_text rcpt_text_join(struct rcpt_arena *arena, const struct rcpt_text *texts)
{
    size_t size = 0, used = 0;
    for (const struct rcpt_text *text = texts; text->at != NULL; text++)
        size += text->size;
    char *joined = rcpt_arena_alloc(arena, size + 1);
    for (const struct rcpt_text *text = texts; text->at != NULL; text++) {
        memcpy(joined + used, text->at, text->size);
        used += text->size;
    }
    joined[size] = '\0';
    return (struct rcpt_text){joined, size};
}
