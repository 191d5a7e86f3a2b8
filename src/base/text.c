/* Texts with a length: comparing, trimming, searching, numbers, copies in an arena; and the nearest
 * of several words, for hints. Pure. Called by readers of other people's formats: adapters of
 * gateways, JSON, HTTP, templates. */
#include "receiptd/base/text.h"

#define WORD_BYTES 64u /* longer words get no hint */

/* ASCII only, independent of the locale. */
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

int rcpt_text_hex_digit(int character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    int lower = character | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

char *rcpt_text_unescape(struct rcpt_arena *arena, struct rcpt_text text, bool is_query)
{
    char *plain = rcpt_arena_alloc(arena, text.size + 1);
    size_t used = 0;
    for (size_t at = 0; at < text.size; at++) {
        char byte = is_query && text.at[at] == '+' ? ' ' : text.at[at];
        if (byte == '%') {
            int high =
                text.size - at > 2 ? rcpt_text_hex_digit((unsigned char)text.at[at + 1]) : -1;
            int low = high >= 0 ? rcpt_text_hex_digit((unsigned char)text.at[at + 2]) : -1;
            if (low < 0)
                return NULL;
            byte = (char)(high * 16 + low);
            at += 2;
        }
        plain[used++] = byte;
    }
    plain[used] = '\0';
    return rcpt_utf8_is_text(plain, used) ? plain : NULL;
}

bool rcpt_text_is_digits(struct rcpt_text text)
{
    for (size_t index = 0; index < text.size; index++)
        if (text.at[index] < '0' || text.at[index] > '9')
            return false;
    return text.size > 0;
}

/* The order of memcmp; of two texts, one of which begins the other, the shorter comes first. */
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

struct rcpt_text rcpt_text_skip_mark(struct rcpt_text text)
{
    static const char mark[] = "\xef\xbb\xbf";
    return rcpt_text_begins(text, mark) ? rcpt_text_part(text, strlen(mark), text.size) : text;
}

/* Never beyond the text: a part that does not exist is empty. */
struct rcpt_text rcpt_text_part(struct rcpt_text text, size_t first, size_t size)
{
    if (text.at == NULL || first > text.size)
        return (struct rcpt_text){text.at, 0};
    size_t rest = text.size - first;
    return (struct rcpt_text){text.at + first, size < rest ? size : rest};
}

/* The text's size if the needle does not occur, so that rcpt_text_part(text, 0, found) is the whole
 * text then. */
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

/* For libraries that take C strings. A NUL inside of the text stays, and ends it for them. */
char *rcpt_text_terminated(struct rcpt_arena *arena, struct rcpt_text text)
{
    char *copy = rcpt_arena_alloc(arena, text.size + 1);
    if (text.size > 0)
        memcpy(copy, text.at, text.size);
    copy[text.size] = '\0';
    return copy;
}

/* An entry whose `at` is NULL ends the list. */
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

/* FNV-1a, 64 bits. Not for the hash of lanes, which PostgreSQL has to compute too (core/hash.h). */
uint64_t rcpt_text_hash(struct rcpt_text text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t index = 0; index < text.size; index++)
        hash = (hash ^ (unsigned char)text.at[index]) * UINT64_C(0x100000001b3);
    return hash;
}

/* ---- what was probably meant ---- */

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Edit distance in which two neighbours changed round count as one edit. Both words are shorter
 * than WORD_BYTES. */
static size_t distance(const char *left, const char *right)
{
    size_t rows[WORD_BYTES + 1][WORD_BYTES + 1];
    size_t left_size = strlen(left), right_size = strlen(right);
    for (size_t i = 0; i <= left_size; i++)
        rows[i][0] = i;
    for (size_t j = 0; j <= right_size; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= left_size; i++) {
        for (size_t j = 1; j <= right_size; j++) {
            size_t replaced = rows[i - 1][j - 1] + (left[i - 1] != right[j - 1]);
            rows[i][j] = min3(rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced);
            if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] &&
                rows[i - 2][j - 2] + 1 < rows[i][j])
                rows[i][j] = rows[i - 2][j - 2] + 1;
        }
    }
    return rows[left_size][right_size];
}

/* Near enough: one edit, and one more for each four bytes of the candidate. */
const char *rcpt_text_nearer(const char *text, const char *best, const char *candidate)
{
    if (strlen(text) >= WORD_BYTES || strlen(candidate) >= WORD_BYTES)
        return best;
    size_t edits = distance(text, candidate);
    if (edits > 1 + strlen(candidate) / 4 || edits >= strlen(candidate))
        return best;
    return best == NULL || edits < distance(text, best) ? candidate : best;
}
