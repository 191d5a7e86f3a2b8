/* The one check of UTF-8: for JSON that is read or written, for the configuration, and for all that
 * becomes a text in PostgreSQL.
 */
#include "receiptd/base/utf8.h"

#include <stdint.h>
#include <string.h>

/* Table 3-7 of the Unicode standard: overlong forms, surrogates and code points above U+10FFFF are
 * excluded by the range of the second byte. 0: no valid sequence. */
size_t rcpt_utf8_sequence(const char *text, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)text;
    unsigned char low = 0x80, high = 0xbf; /* of the second byte */
    if (bytes[0] < 0x80)
        return 1;
    size_t length = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4 || size < length)
        return 0;
    switch (bytes[0]) {
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
    if (bytes[1] < low || bytes[1] > high)
        return 0;
    for (size_t index = 2; index < length; index++)
        if ((bytes[index] & 0xc0) != 0x80)
            return 0;
    return length;
}

bool rcpt_utf8_is_valid(const char *text, size_t size)
{
    size_t at = 0;
    while (at < size) {
        /* Almost everything is ASCII. */
        for (uint64_t word; size - at >= sizeof(word); at += sizeof(word)) {
            memcpy(&word, text + at, sizeof(word));
            if ((word & UINT64_C(0x8080808080808080)) != 0)
                break;
        }
        while (at < size && (unsigned char)text[at] < 0x80)
            at++;
        /* Other text comes in runs: stay here until it ends. */
        while (at < size && (unsigned char)text[at] >= 0x80) {
            size_t sequence = rcpt_utf8_sequence(text + at, size - at);
            if (sequence == 0)
                return false;
            at += sequence;
        }
    }
    return true;
}

bool rcpt_utf8_is_text(const char *text, size_t size)
{
    return (size == 0 || memchr(text, '\0', size) == NULL) && rcpt_utf8_is_valid(text, size);
}
