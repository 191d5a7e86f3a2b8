/* Flaws that yajl lets pass: bytes that are not UTF-8, halves of a surrogate pair, vertical tabs
 * and form feeds between tokens. Called by record_parse.c and by record_event.c.
 */
#include <stdbool.h>
#include <string.h>

#include "record_internal.h"

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* Size of the sequence that begins here with a byte above 0x7f; 0 if it is not one of Unicode,
 * table 3-7. */
static size_t sequence_size(const unsigned char *text, size_t left)
{
    unsigned char low = 0x80, high = 0xbf; /* of the second byte */
    size_t size = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4 || left < size)
        return 0;
    switch (text[0]) {
    case 0xe0:
        low = 0xa0; /* below it two bytes are enough */
        break;
    case 0xed:
        high = 0x9f; /* above it are the surrogates */
        break;
    case 0xf0:
        low = 0x90;
        break;
    case 0xf4:
        high = 0x8f; /* U+10FFFF is the last */
        break;
    default:
        break;
    }
    if (text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < size; i++) {
        if (!is_continuation(text[i]))
            return 0;
    }
    return size;
}

/* Place of the first byte that is not part of UTF-8; `size` if there is none. */
static size_t find_invalid_utf8(const unsigned char *text, size_t size)
{
    size_t at = 0;
    while (at < size) {
        uint64_t word;
        for (; size - at >= sizeof(word); at += sizeof(word)) {
            memcpy(&word, text + at, sizeof(word));
            if ((word & UINT64_C(0x8080808080808080)) != 0)
                break;
        }
        while (at < size && text[at] < 0x80)
            at++;
        /* Non-ASCII text comes in runs: stay here until it ends. */
        while (at < size && text[at] >= 0x80) {
            size_t sequence = sequence_size(text + at, size - at);
            if (sequence == 0)
                return at;
            at += sequence;
        }
    }
    return size;
}

static int hex_value(unsigned char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    unsigned char lower = character | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Code unit of the \uXXXX here; -1 if there is none (yajl says so, if it matters). */
static int escaped_unit(const unsigned char *text, size_t left)
{
    int unit = 0;
    if (left < 6 || text[0] != '\\' || text[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_value(text[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* Bytes of the escape here, a pair of surrogates counted as one; 0 for half a pair. */
static size_t escape_size(const unsigned char *text, size_t left)
{
    int unit = escaped_unit(text, left);
    if (unit < 0)
        return left < 2 ? left : 2;
    if ((unit & 0xf800) != 0xd800)
        return 6;
    int second = escaped_unit(text + 6, left - 6);
    bool pair = (unit & 0xfc00) == 0xd800 && second >= 0 && (second & 0xfc00) == 0xdc00;
    return pair ? 12 : 0;
}

static size_t find_half_surrogate(const unsigned char *text, size_t size)
{
    const unsigned char *escape = memchr(text, '\\', size);
    while (escape != NULL) {
        size_t at = (size_t)(escape - text);
        size_t skip = escape_size(escape, size - at);
        if (skip == 0)
            return at;
        escape = memchr(escape + skip, '\\', size - at - skip);
    }
    return size;
}

static size_t find_byte(const char *text, size_t size, int byte)
{
    const char *found = memchr(text, byte, size);
    return found != NULL ? (size_t)(found - text) : size;
}

const char *rcpt_record_check_blanks(const char *value, size_t size, size_t *byte)
{
    if ((*byte = find_byte(value, size, '\v')) < size)
        return "vertical tab";
    if ((*byte = find_byte(value, size, '\f')) < size)
        return "form feed";
    return NULL;
}

struct rcpt_text_flaws rcpt_record_find_flaws(const char *text, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)text;
    return (struct rcpt_text_flaws){
        .utf8 = find_invalid_utf8(bytes, size) < size,
        .half_surrogate = find_half_surrogate(bytes, size) < size,
    };
}
