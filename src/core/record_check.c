/* Flaws that the reader of JSON lets pass, because only the event that has them is refused: bytes
 * that are not UTF-8, halves of a surrogate pair. Called by record_parse.c, record_scan.c and
 * record_event.c.
 */
#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "record_internal.h"

/* Code unit of the \uXXXX here; -1 if there is none (the reader of JSON says so, if it matters). */
static int escaped_unit(const unsigned char *text, size_t left)
{
    int unit = 0;
    if (left < 6 || text[0] != '\\' || text[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = rcpt_text_hex_digit(text[i]);
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

/* Goes from backslash to backslash, so that text without escapes costs one memchr. */
static bool has_half_surrogate(const unsigned char *text, size_t size)
{
    const unsigned char *escape = memchr(text, '\\', size);
    while (escape != NULL) {
        size_t at = (size_t)(escape - text);
        size_t skip = escape_size(escape, size - at);
        if (skip == 0)
            return true;
        escape = memchr(escape + skip, '\\', size - at - skip);
    }
    return false;
}

/* Of a whole record to know whether anything has to be looked for, then of single events and
 * strings to know where. */
struct rcpt_text_flaws rcpt_record_find_flaws(const char *text, size_t size)
{
    return (struct rcpt_text_flaws){
        .utf8 = !rcpt_utf8_is_valid(text, size),
        .half_surrogate = has_half_surrogate((const unsigned char *)text, size),
    };
}
