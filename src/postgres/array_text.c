/* PostgreSQL arrays as text, '{a,"b",NULL}': a writer for parameters of blocking sessions and
 * commands, and a reader for the arrays in answers. The reader copies an element only if it holds
 * escapes.
 */
#include "receiptd/postgres/array_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"

void rcpt_array_text_init(struct rcpt_array_text *array)
{
    memset(array, 0, sizeof(*array));
    array->out = rcpt_open_memory(&array->text, &array->size);
    fputc('{', array->out);
}

void rcpt_array_text_fini(struct rcpt_array_text *array)
{
    if (array->out != NULL)
        fclose(array->out);
    free(array->text);
}

/* Every element after the first has a comma before it. */
static void separate(struct rcpt_array_text *array)
{
    RCPT_ASSERT(array->out != NULL);
    if (array->count++ > 0)
        fputc(',', array->out);
}

void rcpt_array_text_add_null(struct rcpt_array_text *array)
{
    separate(array);
    fputs("NULL", array->out);
}

void rcpt_array_text_add_int(struct rcpt_array_text *array, int64_t value)
{
    separate(array);
    fprintf(array->out, "%" PRId64, value);
}

/* Every text is quoted, so that "NULL", commas and braces need no other escape. */
void rcpt_array_text_add(struct rcpt_array_text *array, const char *bytes, size_t size)
{
    separate(array);
    fputc('"', array->out);
    for (size_t index = 0; index < size; index++) {
        if (bytes[index] == '"' || bytes[index] == '\\')
            fputc('\\', array->out);
        fputc(bytes[index], array->out);
    }
    fputc('"', array->out);
}

/* Hexadecimal. The backslash before the x is doubled, since the element is quoted. */
void rcpt_array_text_add_bytea(struct rcpt_array_text *array, const void *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    separate(array);
    fputs("\"\\\\x", array->out);
    for (size_t index = 0; index < size; index++) {
        unsigned char byte = ((const unsigned char *)bytes)[index];
        fputc(digits[byte >> 4], array->out);
        fputc(digits[byte & 15], array->out);
    }
    fputc('"', array->out);
}

/* The text is valid until fini(); add nothing afterwards. */
const char *rcpt_array_text_finish(struct rcpt_array_text *array)
{
    fputc('}', array->out);
    RCPT_ASSERT(fclose(array->out) == 0);
    array->out = NULL;
    return array->text;
}

/* The array is borrowed, and must be one that PostgreSQL wrote: it is not checked again. */
void rcpt_array_reader_init(struct rcpt_array_reader *reader, const char *array)
{
    RCPT_ASSERT(array == NULL || *array == '{');
    reader->at = array != NULL ? array + 1 : "}";
}

/* Behind an element stands a comma, or the end. */
static void step(struct rcpt_array_reader *reader)
{
    if (*reader->at == ',')
        reader->at++;
}

/* Without escapes the element is a slice of the array itself; otherwise a copy in the arena. */
static struct rcpt_text read_quoted(struct rcpt_array_reader *reader, struct rcpt_arena *arena)
{
    const char *from = ++reader->at;
    size_t size = strcspn(from, "\"\\");
    if (from[size] == '"') {
        reader->at += size + 1;
        return (struct rcpt_text){from, size};
    }
    for (size = 0; from[size] != '"'; size++)
        size += from[size] == '\\';
    char *copy = rcpt_arena_alloc(arena, size + 1), *end = copy;
    for (; *reader->at != '"'; reader->at++) {
        reader->at += *reader->at == '\\';
        *end++ = *reader->at;
    }
    reader->at++;
    *end = '\0';
    return (struct rcpt_text){copy, (size_t)(end - copy)};
}

/* Unquoted NULL is the null element; a quoted "NULL" is a text. */
bool rcpt_array_reader_next(struct rcpt_array_reader *reader, struct rcpt_arena *arena,
                            struct rcpt_text *element)
{
    if (*reader->at == '}')
        return false;
    if (*reader->at == '"') {
        *element = read_quoted(reader, arena);
    } else {
        const char *from = reader->at;
        while (*reader->at != ',' && *reader->at != '}')
            reader->at++;
        *element = (struct rcpt_text){from, (size_t)(reader->at - from)};
        if (rcpt_text_equal(*element, RCPT_TEXT("NULL")))
            *element = (struct rcpt_text){NULL, 0};
    }
    step(reader);
    return true;
}

/* The statements return no NULL in arrays of numbers. */
bool rcpt_array_reader_next_int(struct rcpt_array_reader *reader, int64_t *element)
{
    if (*reader->at == '}')
        return false;
    bool negative = *reader->at == '-';
    int64_t value = 0;
    for (reader->at += negative; *reader->at >= '0' && *reader->at <= '9'; reader->at++)
        value = value * 10 + (*reader->at - '0');
    *element = negative ? -value : value;
    step(reader);
    return true;
}
