/* JSON into a growing text: strings, scalars, numbers that PostgreSQL takes. Pure. Called by
 * collect.c for every event, so the common cases copy bytes. */
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/base/json.h"

#define FIRST_BYTES 256u
/* A longer text is cut, also as part of a group's key. 18 digits always fit an int64. */
#define MOST_TEXT_BYTES 1000u
#define MOST_DIGITS     18u

void fold_text_free(struct fold_text *text)
{
    free(text->at);
    *text = (struct fold_text){0};
}

/* The text is not terminated; a caller that needs a C string puts the NUL itself. */
static void reserve(struct fold_text *text, size_t more)
{
    size_t capacity = text->capacity == 0 ? FIRST_BYTES : text->capacity;
    while (capacity - text->size < more)
        capacity *= 2;
    if (capacity == text->capacity)
        return;
    text->at = rcpt_realloc(text->at, capacity);
    text->capacity = capacity;
}

void fold_text_put(struct fold_text *text, const char *bytes, size_t size)
{
    reserve(text, size);
    if (size > 0)
        memcpy(text->at + text->size, bytes, size);
    text->size += size;
}

void fold_text_put_char(struct fold_text *text, char byte)
{
    reserve(text, 1);
    text->at[text->size++] = byte;
}

/* For literals of this program only: nothing is escaped. */
void fold_text_put_words(struct fold_text *text, const char *words)
{
    fold_text_put(text, words, strlen(words));
}

/* Whether JSON writes the bytes as they are. */
static bool is_plain(const char *bytes, size_t size)
{
    for (size_t index = 0; index < size; index++) {
        unsigned char byte = (unsigned char)bytes[index];
        if (byte < 0x20 || byte > 0x7e || byte == '"' || byte == '\\')
            return false;
    }
    return true;
}

/* Rare: quotes, control characters and bytes that are not ASCII go through the JSON writer. */
static void put_escaped(struct fold_text *text, const char *bytes, size_t size)
{
    char *written = NULL;
    size_t written_size = 0;
    struct rcpt_json json;
    FILE *out = rcpt_open_memory(&written, &written_size);
    rcpt_json_init(&json, out);
    rcpt_json_bytes(&json, bytes, size);
    RCPT_ASSERT(fclose(out) == 0);
    fold_text_put(text, written, written_size);
    free(written);
}

/* Texts are cut at a fixed size, as a group's memory is bounded by the number of its values. */
void fold_text_put_string(struct fold_text *text, struct rcpt_text string)
{
    string.size = string.size < MOST_TEXT_BYTES ? string.size : MOST_TEXT_BYTES;
    fold_text_put_whole(text, string);
}

void fold_text_put_whole(struct fold_text *text, struct rcpt_text string)
{
    if (!is_plain(string.at, string.size)) {
        const char *nul = memchr(string.at, '\0', string.size);
        put_escaped(text, string.at, nul != NULL ? (size_t)(nul - string.at) : string.size);
        return;
    }
    fold_text_put_char(text, '"');
    fold_text_put(text, string.at, string.size);
    fold_text_put_char(text, '"');
}

/* null is no value. A number that PostgreSQL could not read is kept as a string, and so are arrays
 * and objects, as they stand in the event. False: nothing was written. */
bool fold_text_put_value(struct fold_text *text, const struct rcpt_node *node)
{
    double number;
    if (node->type == RCPT_NODE_NULL)
        return false;
    if (node->type == RCPT_NODE_STRING)
        fold_text_put_string(text, node->text);
    else if (fold_number(node, &number) || node->type == RCPT_NODE_BOOLEAN)
        fold_text_put(text, node->text.at, node->text.size);
    else
        fold_text_put_string(text, node->raw);
    return true;
}

/* 18 digits fit an int64. */
bool fold_integer(const struct rcpt_node *node, int64_t *integer)
{
    if (node->type != RCPT_NODE_NUMBER)
        return false;
    const char *digits = node->text.at, *end = digits + node->text.size;
    bool negative = *digits == '-';
    int64_t value = 0;
    digits += negative;
    if (digits == end || end - digits > (int)MOST_DIGITS)
        return false;
    for (; digits < end; digits++) {
        if (*digits < '0' || *digits > '9')
            return false;
        value = value * 10 + (*digits - '0');
    }
    *integer = negative ? -value : value;
    return true;
}

/* A number that becomes zero by its exponent ("1e-400") is no number for PostgreSQL either. */
bool fold_number(const struct rcpt_node *node, double *number)
{
    char text[48];
    int64_t integer;
    if (fold_integer(node, &integer)) {
        *number = (double)integer;
        return true;
    }
    if (node->type != RCPT_NODE_NUMBER || node->text.size >= sizeof(text))
        return false;
    memcpy(text, node->text.at, node->text.size);
    text[node->text.size] = '\0';
    *number = strtod(text, NULL);
    return isfinite(*number) && (*number != 0 || strpbrk(text, "eE") == NULL);
}
