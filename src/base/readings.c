/* Undoes escapes of several kinds, breadth first: each reading is read on in every way that changes
 * it. Called by commands that search in payloads. */
#include "receiptd/base/readings.h"
#include "receiptd/base/error.h"

/* A shorter run of letters and digits is taken for a word, not for base64. */
#define BASE64_LEAST 12u
#define REPLACEMENT  0xfffdu /* for a half of a surrogate pair */

struct writer {
    char *at;
    size_t size;
};

/* A way to undo: writes the result, at most twice as long as the text. */
typedef void (*undo)(struct rcpt_text text, struct writer *out);

static void put(struct writer *out, unsigned byte)
{
    out->at[out->size++] = (char)byte;
}

static void put_character(struct writer *out, uint32_t code)
{
    if (code < 0x80) {
        put(out, code);
        return;
    }
    if (code < 0x800) {
        put(out, 0xc0 | code >> 6);
    } else {
        if (code < 0x10000) {
            put(out, 0xe0 | code >> 12);
        } else {
            put(out, 0xf0 | code >> 18);
            put(out, 0x80 | (code >> 12 & 0x3f));
        }
        put(out, 0x80 | (code >> 6 & 0x3f));
    }
    put(out, 0x80 | (code & 0x3f));
}

/* `count` hexadecimal digits at `first`; false: they are not there. */
static bool hex(struct rcpt_text text, size_t first, size_t count, uint32_t *value)
{
    *value = 0;
    for (size_t index = first; index < first + count; index++) {
        int digit = index < text.size ? rcpt_text_hex_digit((unsigned char)text.at[index]) : -1;
        if (digit < 0)
            return false;
        *value = *value << 4 | (uint32_t)digit;
    }
    return true;
}

/* \uXXXX or %uXXXX at `first`, with the other half of a pair behind it. Returns its bytes; 0: there
 * is none. */
static size_t unicode(struct rcpt_text text, size_t first, char mark, struct writer *out)
{
    uint32_t code, low;
    if (first + 1 >= text.size || text.at[first] != mark || (text.at[first + 1] | 0x20) != 'u' ||
        !hex(text, first + 2, 4, &code))
        return 0;
    if (code >= 0xd800 && code < 0xdc00 && first + 7 < text.size && text.at[first + 6] == mark &&
        (text.at[first + 7] | 0x20) == 'u' && hex(text, first + 8, 4, &low) && low >= 0xdc00 &&
        low < 0xe000) {
        put_character(out, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
        return 12;
    }
    put_character(out, code >= 0xd800 && code < 0xe000 ? REPLACEMENT : code);
    return 6;
}

/* The character that the letter behind a backslash stands for; 0: it is no escape of JSON. */
static char short_escape(char letter)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;
    return found != NULL ? meanings[found - letters] : '\0';
}

static void undo_json(struct rcpt_text text, struct writer *out)
{
    for (size_t index = 0; index < text.size;) {
        size_t taken = unicode(text, index, '\\', out);
        char meant = '\0';
        if (taken == 0 && text.at[index] == '\\' && index + 1 < text.size)
            meant = short_escape(text.at[index + 1]);
        if (meant != '\0')
            taken = 2;
        if (taken == 0 || meant != '\0')
            put(out, (unsigned char)(meant != '\0' ? meant : text.at[index]));
        index += taken > 0 ? taken : 1;
    }
}

static void undo_percent_with(struct rcpt_text text, bool form, struct writer *out)
{
    for (size_t index = 0; index < text.size;) {
        uint32_t byte;
        size_t taken = unicode(text, index, '%', out);
        if (taken == 0 && text.at[index] == '%' && hex(text, index + 1, 2, &byte)) {
            put(out, byte);
            taken = 3;
        } else if (taken == 0) {
            put(out, form && text.at[index] == '+' ? ' ' : (unsigned char)text.at[index]);
            taken = 1;
        }
        index += taken;
    }
}

static void undo_percent(struct rcpt_text text, struct writer *out)
{
    undo_percent_with(text, false, out);
}

static void undo_form(struct rcpt_text text, struct writer *out)
{
    undo_percent_with(text, true, out);
}

/* The value of a digit of either alphabet; -1: it is in neither. */
static int base64_digit(char character)
{
    if (character >= 'A' && character <= 'Z')
        return character - 'A';
    if (character >= 'a' && character <= 'z')
        return character - 'a' + 26;
    if (character >= '0' && character <= '9')
        return character - '0' + 52;
    if (character == '+' || character == '-')
        return 62;
    return character == '/' || character == '_' ? 63 : -1;
}

/* Whether a line of base64 ends here and goes on in the next. */
static size_t line_end(struct rcpt_text text, size_t at, size_t digits)
{
    size_t next = at;
    while (next < text.size && next < at + 2 && (text.at[next] == '\r' || text.at[next] == '\n'))
        next++;
    return digits % 4 == 0 && next < text.size && base64_digit(text.at[next]) >= 0 ? next - at : 0;
}

/* Decodes the run that begins here, and returns where it ends. Bytes that are no text are taken
 * back. */
static size_t base64_run(struct rcpt_text text, size_t first, struct writer *out)
{
    size_t digits = 0, index = first, begun = out->size;
    uint32_t bits = 0;
    for (size_t skip = 1; index < text.size && skip > 0; index += skip) {
        int digit = base64_digit(text.at[index]);
        skip = digit >= 0 ? 1 : line_end(text, index, digits);
        if (digit < 0)
            continue;
        bits = bits << 6 | (uint32_t)digit;
        if (++digits % 4 != 1)
            put(out, bits >> (6 - 2 * ((digits - 1) % 4)) & 0xff);
    }
    size_t valid = begun;
    for (size_t step = 1; valid < out->size && step > 0; valid += step)
        step = rcpt_utf8_sequence(out->at + valid, out->size - valid);
    /* A payload that was cut may end within a character. */
    if (digits < BASE64_LEAST || valid + 3 < out->size)
        out->size = begun;
    else
        put(out, '\n');
    return index;
}

static void undo_base64(struct rcpt_text text, struct writer *out)
{
    for (size_t index = 0; index < text.size;)
        index = base64_digit(text.at[index]) >= 0 ? base64_run(text, index, out) : index + 1;
}

/* Bytes that are not UTF-8 count as Latin-1, as older programs and escape() of JavaScript write it.
 */
static void undo_latin1(struct rcpt_text text, struct writer *out)
{
    for (size_t index = 0; index < text.size;) {
        size_t size = rcpt_utf8_sequence(text.at + index, text.size - index);
        if (size == 0)
            put_character(out, (unsigned char)text.at[index]);
        for (size_t end = index + size; index < end; index++)
            put(out, (unsigned char)text.at[index]);
        index += size == 0;
    }
}

struct list {
    struct rcpt_text at[RCPT_READINGS_MOST];
    size_t count;
};

/* Drops a reading that is empty or equals another. */
static void append(struct list *list, struct rcpt_text reading)
{
    for (size_t index = 0; index < list->count; index++)
        if (rcpt_text_equal(list->at[index], reading))
            return;
    if (reading.size > 0 && list->count < RCPT_READINGS_MOST)
        list->at[list->count++] = reading;
}

bool rcpt_readings_each(struct rcpt_text text, struct rcpt_arena *arena,
                        rcpt_reading_callback on_reading, void *context)
{
    static const undo ways[] = {undo_json, undo_percent, undo_form, undo_base64, undo_latin1};
    struct list list = {.at = {text}, .count = 1};
    size_t level_end = 1;
    for (size_t index = 0, depth = 0; index < list.count; index++) {
        if (index == level_end) {
            depth++;
            level_end = list.count;
        }
        if (!on_reading(context, list.at[index]))
            return false;
        for (size_t way = 0; depth < RCPT_READINGS_DEPTH && way < sizeof(ways) / sizeof(*ways);
             way++) {
            struct writer out = {.at = rcpt_arena_alloc(arena, 2 * list.at[index].size)};
            ways[way](list.at[index], &out);
            append(&list, (struct rcpt_text){out.at, out.size});
        }
    }
    return true;
}
