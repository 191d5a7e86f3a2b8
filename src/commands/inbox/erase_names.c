/* Searches texts for many ids at once. The ids are sorted. At each place where a word may begin,
 * every byte narrows the range of ids that agree with the text. Called by erase_letters.c. */
#include "erase_names.h"

#include <stdlib.h>

#include "receiptd/base/error.h"
#include "receiptd/base/readings.h"

#define READINGS_KEPT ((size_t)1024 * 1024) /* bytes that stay between two texts */
#define MOST_DIGITS   64u                   /* of a number that may be an id */

void erase_names_init(struct erase_names *names)
{
    *names = (struct erase_names){0};
    rcpt_arena_init(&names->texts, 4096);
    rcpt_arena_init(&names->readings, 65536);
}

void erase_names_fini(struct erase_names *names)
{
    rcpt_arena_fini(&names->texts);
    rcpt_arena_fini(&names->readings);
    free(names->at);
}

void erase_names_add(struct erase_names *names, struct rcpt_text account, struct rcpt_text id)
{
    if (id.size == 0)
        return;
    if (names->count == names->capacity) {
        RCPT_GROW(names->at, names->capacity, 64);
    }
    struct erase_name *name = &names->at[names->count++];
    name->account =
        account.at != NULL ? rcpt_text_copy(&names->texts, account) : (struct rcpt_text){NULL, 0};
    name->id = rcpt_text_copy(&names->texts, id);
    names->sorted = false;
}

static int compare(const void *left, const void *right)
{
    return rcpt_text_compare(((const struct erase_name *)left)->id,
                             ((const struct erase_name *)right)->id);
}

/* The characters of an id; every character beyond ASCII counts as a letter. */
static bool is_word(char character)
{
    return (character >= '0' && character <= '9') || (character >= 'A' && character <= 'Z') ||
           (character >= 'a' && character <= 'z') || (unsigned char)character >= 0x80 ||
           (character != '\0' && strchr("_.|-", character) != NULL);
}

static bool is_edge(struct rcpt_text text, size_t at)
{
    return at >= text.size || !is_word(text.at[at]);
}

struct search {
    const struct erase_names *names;
    struct rcpt_text whole; /* before any escape was undone */
    struct rcpt_text text;
};

static bool contains(struct rcpt_text text, struct rcpt_text part)
{
    return part.size == 0 ||
           (text.size > 0 && memmem(text.at, text.size, part.at, part.size) != NULL);
}

static bool is_meant(const struct search *search, const struct erase_name *name)
{
    return name->account.at == NULL || contains(search->text, name->account) ||
           contains(search->whole, name->account);
}

/* The first name of the range whose byte at this place is not below `byte`. */
static size_t first_with(const struct erase_names *names, size_t low, size_t high, size_t place,
                         unsigned byte)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((unsigned char)names->at[middle].id.at[place] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* All names of the range begin as `text` does from `first` on, so those that end here come first.
 */
static bool is_named_at(const struct search *search, struct rcpt_text text, size_t first)
{
    const struct erase_names *names = search->names;
    size_t low = 0, high = names->count;
    for (size_t place = 0; low < high; place++) {
        for (; low < high && names->at[low].id.size == place; low++)
            if (is_edge(text, first + place) && is_meant(search, &names->at[low]))
                return true;
        if (first + place >= text.size)
            return false;
        unsigned byte = (unsigned char)text.at[first + place];
        high = first_with(names, low, high, place, byte + 1);
        low = first_with(names, low, high, place, byte);
    }
    return false;
}

static bool is_digit(struct rcpt_text text, size_t at)
{
    return at < text.size && text.at[at] >= '0' && text.at[at] <= '9';
}

/* Writes a number with a point or an exponent as the integer that it is: 880055.0 and 8.80055e5. */
static bool integer_at(struct rcpt_text text, size_t at, char digits[MOST_DIGITS], size_t *size)
{
    size_t used = 0;
    long shift = 0, exponent = 0;
    bool minus = at < text.size && text.at[at] == '-', written = false;
    if (minus)
        digits[used++] = text.at[at++];
    for (; is_digit(text, at) && used < MOST_DIGITS; at++)
        digits[used++] = text.at[at];
    if (used == minus)
        return false;
    if (at < text.size && text.at[at] == '.') {
        written = true;
        for (at++; is_digit(text, at) && used < MOST_DIGITS; at++, shift--)
            digits[used++] = text.at[at];
    }
    if (at < text.size && (text.at[at] | 0x20) == 'e') {
        bool below = at + 1 < text.size && text.at[at + 1] == '-';
        bool above = !below && at + 1 < text.size && text.at[at + 1] == '+';
        at += below || above ? 2 : 1;
        for (written = is_digit(text, at); is_digit(text, at) && exponent < 1000; at++)
            exponent = exponent * 10 + (text.at[at] - '0');
        shift += below ? -exponent : exponent;
    }
    for (; shift < 0 && used > (size_t)minus + 1 && digits[used - 1] == '0'; shift++)
        used--;
    for (; shift > 0 && used < MOST_DIGITS; shift--)
        digits[used++] = '0';
    *size = used;
    return written && shift == 0 && is_edge(text, at);
}

static bool is_numbered_at(const struct search *search, size_t first)
{
    char digits[MOST_DIGITS];
    size_t size;
    return integer_at(search->text, first, digits, &size) &&
           is_named_at(search, (struct rcpt_text){digits, size}, 0);
}

/* Returns false at the first reading that names a message: no other is needed. */
static bool on_reading(void *context, struct rcpt_text reading)
{
    struct search *search = context;
    search->text = reading;
    for (size_t first = 0; first < reading.size; first++)
        if ((first == 0 || !is_word(reading.at[first - 1])) &&
            (is_named_at(search, reading, first) || is_numbered_at(search, first)))
            return false;
    return true;
}

bool erase_names_any(struct erase_names *names, struct rcpt_text text)
{
    if (names->count == 0)
        return false;
    if (!names->sorted)
        qsort(names->at, names->count, sizeof(*names->at), compare);
    names->sorted = true;
    struct search search = {.names = names, .whole = text};
    bool named = !rcpt_readings_each(text, &names->readings, on_reading, &search);
    rcpt_arena_reset(&names->readings, READINGS_KEPT);
    return named;
}
