/* The common record, without a parser: flat objects in an array, in {"events": […]}, or alone,
 * whose strings hold no escape. Any other record, wrong or only unusual, is left to record_parse.c,
 * which starts from the first byte. So only one file reports flaws, and this one only has to be
 * right about records that it takes. Called by record_parse.c.
 */
#include <endian.h>
#include <string.h>

#include "receiptd/base/text.h"
#include "record_internal.h"

#define ONES  UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

struct scan {
    struct rcpt_decoder *decoder;
    const char *value, *next, *end;
    uint64_t seen; /* all bytes of strings, or-ed: a high bit says that there is more than ASCII */
    uint32_t index;
};

/* Offset of the next byte in the value. */
static size_t place(const struct scan *scan)
{
    return (size_t)(scan->next - scan->value);
}

static void skip_blanks(struct scan *scan)
{
    while (scan->next < scan->end && (*scan->next == ' ' || *scan->next == '\n' ||
                                      *scan->next == '\r' || *scan->next == '\t'))
        scan->next++;
}

static bool take(struct scan *scan, char byte)
{
    if (scan->next == scan->end || *scan->next != byte)
        return false;
    scan->next++;
    return true;
}

/* A high bit in every byte that is zero; bytes above the first such one may have it too. */
static uint64_t zero_bytes(uint64_t word)
{
    return (word - ONES) & ~word & HIGHS;
}

/* Bits as above for quotes, backslashes and control characters. */
static uint64_t special_bytes(uint64_t word)
{
    return zero_bytes(word ^ ONES * '"') | zero_bytes(word ^ ONES * '\\') |
           ((word - ONES * 0x20) & ~word & HIGHS);
}

/* Starts behind the opening quote and ends behind the closing one. Reads eight bytes at a time, up
 * to the first that needs attention. */
static bool scan_string(struct scan *scan, const char **text, size_t *size)
{
    const char *next = scan->next;
    *text = next;
    for (uint64_t word; (size_t)(scan->end - next) >= sizeof(word); next += sizeof(word)) {
        memcpy(&word, next, sizeof(word));
        word = le64toh(word); /* the first byte is the lowest, as the bits above need it */
        scan->seen |= word;
        uint64_t special = special_bytes(word);
        if (special != 0) {
            next += __builtin_ctzll(special) / 8;
            break;
        }
    }
    for (; next < scan->end && *next != '"'; next++) {
        if (*next == '\\' || (unsigned char)*next < 0x20)
            return false;
        scan->seen |= (unsigned char)*next;
    }
    *size = (size_t)(next - *text);
    scan->next = next;
    return take(scan, '"');
}

static bool is_digit(const struct scan *scan)
{
    return scan->next < scan->end && *scan->next >= '0' && *scan->next <= '9';
}

static bool scan_digits(struct scan *scan)
{
    if (!is_digit(scan))
        return false;
    while (is_digit(scan))
        scan->next++;
    return true;
}

/* JSON's grammar without an exponent. A number that goes on (1e5, 01) ends where no comma or
 * bracket follows, and there the caller gives up. */
static bool scan_number(struct scan *scan)
{
    take(scan, '-');
    if (!take(scan, '0') && !scan_digits(scan))
        return false;
    return !take(scan, '.') || scan_digits(scan);
}

static bool scan_word(struct scan *scan, const char *word, size_t size)
{
    if ((size_t)(scan->end - scan->next) < size || memcmp(scan->next, word, size) != 0)
        return false;
    scan->next += size;
    return true;
}

/* The text of a token points into the value: nothing is copied. */
static bool scan_scalar(struct scan *scan, struct rcpt_token *token)
{
    bool good;
    memset(token, 0, sizeof(*token));
    if (take(scan, '"')) {
        token->kind = RCPT_TOKEN_STRING;
        good = scan_string(scan, &token->text, &token->size);
    } else if (scan_word(scan, "null", 4)) {
        token->kind = RCPT_TOKEN_NULL;
        good = true;
    } else if (scan_word(scan, "true", 4) || scan_word(scan, "false", 5)) {
        token->kind = RCPT_TOKEN_OTHER;
        good = true;
    } else {
        token->kind = RCPT_TOKEN_NUMBER;
        token->text = scan->next;
        good = scan_number(scan);
        token->size = (size_t)(scan->next - token->text);
    }
    return good;
}

/* Starts behind the opening bracket of a list of flags; takes only names. */
static bool scan_flags(struct scan *scan, struct rcpt_record_fields *fields)
{
    skip_blanks(scan);
    if (take(scan, ']'))
        return true;
    do {
        struct rcpt_token name = {.kind = RCPT_TOKEN_STRING};
        skip_blanks(scan);
        if (!take(scan, '"') || !scan_string(scan, &name.text, &name.size))
            return false;
        rcpt_record_take_flag(scan->decoder, fields, &name);
        skip_blanks(scan);
    } while (take(scan, ','));
    return take(scan, ']');
}

/* Reads one key with its value. `whole`: the object is the record, where "events" means a list. A
 * container as value ends the scan, except for a list of flags. */
static bool scan_field(struct scan *scan, struct rcpt_record_fields *fields, bool whole)
{
    const char *key;
    size_t size;
    struct rcpt_token token;
    if (!take(scan, '"') || !scan_string(scan, &key, &size))
        return false;
    skip_blanks(scan);
    if (!take(scan, ':'))
        return false;
    skip_blanks(scan);
    enum rcpt_field field = rcpt_record_field_of(key, size);
    if (field == RCPT_FIELD_FLAGS) {
        rcpt_record_open_flags(fields);
        if (take(scan, '['))
            return scan_flags(scan, fields);
    }
    if (!scan_scalar(scan, &token))
        return false;
    if (field < RCPT_FIELD__COUNT)
        fields->tokens[field] = token; /* if a key occurs twice, the last one counts */
    return field != RCPT_FIELD_EVENTS || !whole;
}

/* Starts behind the opening brace; takes the event at the closing one. */
static bool scan_object(struct scan *scan, bool whole)
{
    struct rcpt_record_fields fields;
    size_t start = place(scan) - 1;
    memset(&fields, 0, sizeof(fields));
    skip_blanks(scan);
    if (!take(scan, '}')) {
        do {
            skip_blanks(scan);
            if (!scan_field(scan, &fields, whole))
                return false;
            skip_blanks(scan);
        } while (take(scan, ','));
        if (!take(scan, '}'))
            return false;
    }
    if (scan->index == RCPT_RECORD_MAX_EVENTS)
        return false;
    rcpt_record_take_event(scan->decoder, &fields, scan->index++, start, place(scan) - start);
    return true;
}

/* Starts behind the opening bracket. */
static bool scan_list(struct scan *scan)
{
    skip_blanks(scan);
    if (take(scan, ']'))
        return true;
    do {
        skip_blanks(scan);
        if (!take(scan, '{') || !scan_object(scan, false))
            return false;
        skip_blanks(scan);
    } while (take(scan, ','));
    return take(scan, ']');
}

/* {"events": […]} without another key. Reads a wrapper; an object that begins otherwise is an
 * event. */
static bool scan_wrapper(struct scan *scan)
{
    const char *start = scan->next;
    skip_blanks(scan);
    if (scan_word(scan, "\"events\"", 8)) {
        skip_blanks(scan);
        if (take(scan, ':')) {
            skip_blanks(scan);
            if (take(scan, '[') && scan_list(scan)) {
                skip_blanks(scan);
                return take(scan, '}');
            }
        }
        return false;
    }
    scan->next = start;
    return scan_object(scan, true);
}

/* False also for records with bytes that are not UTF-8: record_parse.c finds the event that has
 * them. */
bool rcpt_record_scan(struct rcpt_decoder *decoder)
{
    const char *value = decoder->input.value;
    size_t size = decoder->input.value_size;
    struct scan scan = {.decoder = decoder, .value = value, .next = value, .end = value + size};
    decoder->has_flaw = false; /* the scan takes no record with a flaw */
    skip_blanks(&scan);
    bool taken = take(&scan, '[') ? scan_list(&scan) : take(&scan, '{') && scan_wrapper(&scan);
    skip_blanks(&scan);
    if (taken && scan.next == scan.end &&
        ((scan.seen & HIGHS) == 0 || rcpt_utf8_is_valid(value, size)))
        return true;
    rcpt_record_forget(decoder);
    return false;
}
