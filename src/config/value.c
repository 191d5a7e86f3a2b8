/* Single values: from text to number and back, what names are allowed, what errors show. Pure.
 * Called by the checks, by the printer and by commands that take the same kinds of values. */
#include "table.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"

/* One way to write a multiple of the base unit: bytes, or milliseconds. */
struct unit {
    const char *name;
    int64_t factor;
    bool written; /* used by format; the others are only understood */
};

/* Largest first, so that formatting takes the first that divides. */
static const struct unit size_units[] = {
    {"GiB", 1LL << 30, true},  {"MiB", 1LL << 20, true}, {"KiB", 1LL << 10, true},
    {"GB", 1000000000, false}, {"MB", 1000000, false},   {"kB", 1000, false},
    {"B", 1, false},
};
static const struct unit duration_units[] = {
    {"d", 86400000, true}, {"h", 3600000, true}, {"m", 60000, true},
    {"s", 1000, true},     {"ms", 1, true},
};

static const struct unit *units_of(enum rcpt_config_type type, size_t *count)
{
    *count = 0;
    if (type == RCPT_CONFIG_SIZE) {
        *count = RCPT_COUNT_OF(size_units);
        return size_units;
    }
    if (type == RCPT_CONFIG_DURATION)
        *count = RCPT_COUNT_OF(duration_units);
    return duration_units;
}

/* Units are compared exactly: `M` could mean a minute or a million. */
static bool find_factor(enum rcpt_config_type type, const char *name, int64_t *factor)
{
    size_t count;
    const struct unit *units = units_of(type, &count);
    for (size_t index = 0; index < count; index++) {
        if (strcmp(units[index].name, name) == 0) {
            *factor = units[index].factor;
            return true;
        }
    }
    return false;
}

/* Digits by hand: strtod would depend on the locale and round what is exact here. */
static bool parse_ratio(const char *text, int64_t *value)
{
    size_t whole = strspn(text, "0123456789");
    const char *point = text + whole;
    size_t digits = *point == '.' ? strspn(point + 1, "0123456789") : 0;
    if (whole < 1 || whole > 9 || digits > 6 || (*point == '.' && digits == 0) ||
        (*point == '.' ? point[1 + digits] : *point) != '\0')
        return false;
    int64_t number = strtoll(text, NULL, 10), part = 0;
    for (size_t index = 0; index < 6; index++)
        part = part * 10 + (index < digits ? point[1 + index] - '0' : 0);
    *value = number * 1000000 + part;
    return true;
}

/* The shortest form that parses back to the same millionths: 0.01, not 0.010000. */
static void format_ratio(int64_t value, char out[RCPT_CONFIG_NUMBER_BYTES])
{
    int size = snprintf(out, RCPT_CONFIG_NUMBER_BYTES, "%" PRId64 ".%06" PRId64, value / 1000000,
                        value % 1000000);
    while (size > 0 && out[size - 1] == '0')
        out[--size] = '\0';
    if (size > 0 && out[size - 1] == '.')
        out[--size] = '\0';
}

/* strtoll takes more than a configuration should: no sign but a minus, no blanks before, no
 * octal. */
bool rcpt_config_parse_number(enum rcpt_config_type type, const char *text, int64_t *value)
{
    if (type == RCPT_CONFIG_RATIO)
        return parse_ratio(text, value);
    const char *digits = text[0] == '-' ? text + 1 : text;
    if (!isdigit((unsigned char)digits[0]))
        return false;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    /* Out of the range of int64. */
    if (errno != 0)
        return false;
    int64_t factor = 1;
    if (*end != '\0') {
        while (*end == ' ')
            end++;
        if (!find_factor(type, end, &factor))
            return false;
    } else if (type == RCPT_CONFIG_DURATION && number != 0) {
        return false;
    }
    return !__builtin_mul_overflow((int64_t)number, factor, value);
}

/* Days are for two and more of them: 24h is what people write. */
static bool suits(const struct unit *unit, int64_t value)
{
    return unit->written && value % unit->factor == 0 &&
           (strcmp(unit->name, "d") != 0 || value > unit->factor);
}

void rcpt_config_format_number(enum rcpt_config_type type, int64_t value,
                               char out[RCPT_CONFIG_NUMBER_BYTES])
{
    size_t count;
    if (type == RCPT_CONFIG_RATIO) {
        format_ratio(value, out);
        return;
    }
    const struct unit *units = units_of(type, &count);
    const char *name = type == RCPT_CONFIG_DURATION ? "s" : "";
    int64_t factor = 1;
    for (size_t index = 0; index < count && value != 0; index++) {
        if (suits(&units[index], value)) {
            name = units[index].name;
            factor = units[index].factor;
            break;
        }
    }
    snprintf(out, RCPT_CONFIG_NUMBER_BYTES, "%" PRId64 "%s", value / factor, name);
}

/* A row's member by its size; all are integers or a bool. */
int64_t rcpt_config_read_number(const struct rcpt_config_row *row, const void *base)
{
    const char *member = (const char *)base + row->offset;
    int64_t wide = 0;
    int32_t middle = 0;
    bool narrow = false;
    switch (row->size) {
    case sizeof(wide):
        memcpy(&wide, member, sizeof(wide));
        return wide;
    case sizeof(middle):
        memcpy(&middle, member, sizeof(middle));
        return middle;
    default:
        RCPT_ASSERT(row->size == sizeof(narrow));
        memcpy(&narrow, member, sizeof(narrow));
        return narrow;
    }
}

/* The words of an error after "is not" or "expected". */
const char *rcpt_config_expected(enum rcpt_config_type type)
{
    static const char *const expected[RCPT_CONFIG_TYPE__COUNT] = {
        [RCPT_CONFIG_TEXT] = "text",
        [RCPT_CONFIG_TREE] = "a list of mappings",
        [RCPT_CONFIG_IDENTIFIER] =
            "an SQL name: 1 to 63 letters, digits and underscores, no digit first",
        [RCPT_CONFIG_TABLE] = "schema.table, both SQL names of letters, digits and underscores",
        [RCPT_CONFIG_TOPIC] =
            "a topic name: 1 to 249 letters, digits, dots, dashes and underscores",
        [RCPT_CONFIG_LIST] = "a list of texts",
        [RCPT_CONFIG_INTEGER] = "a whole number",
        [RCPT_CONFIG_SIZE] = "a size such as 65536, 64KiB, 24MiB or 1GB",
        [RCPT_CONFIG_DURATION] = "a duration such as 500ms, 5s, 10m or 24h",
        [RCPT_CONFIG_RATIO] = "a decimal fraction such as 0.01, of at most six digits",
        [RCPT_CONFIG_CHOICE] = "one of the names that are allowed",
        [RCPT_CONFIG_MAP] = "a mapping of names to values",
        [RCPT_CONFIG_RECORDS] = "a list of mappings",
    };
    return expected[type];
}

/* Quoted SQL names could hold more; this set needs no quotes in any statement or log line. 63 bytes
 * is PostgreSQL's limit. */
static bool is_identifier(const char *text, size_t size)
{
    if (size < 1 || size > 63 || isdigit((unsigned char)text[0]))
        return false;
    for (size_t index = 0; index < size; index++)
        if (!isalnum((unsigned char)text[index]) && text[index] != '_')
            return false;
    return true;
}

bool rcpt_config_is_identifier(const char *text)
{
    return is_identifier(text, strlen(text));
}

bool rcpt_config_is_table_name(const char *text)
{
    const char *dot = strchr(text, '.');
    return dot != NULL && is_identifier(text, (size_t)(dot - text)) &&
           rcpt_config_is_identifier(dot + 1);
}

/* The rules are Kafka's own. */
bool rcpt_config_is_topic(const char *text)
{
    size_t size = strlen(text);
    if (size < 1 || size > 249 || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
        return false;
    return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
           size;
}

/* Errors quote what stands in the file; control bytes could move a terminal's cursor. */
const char *rcpt_config_shown(const char *text, char out[64])
{
    size_t used = 0;
    for (const char *byte = text; *byte != '\0' && used < 56; byte++)
        out[used++] = (unsigned char)*byte < 0x20 || *byte == 0x7f ? '?' : *byte;
    if (text[used] != '\0') {
        /* Not in the middle of a character. */
        while (used > 0 && ((unsigned char)text[used] & 0xc0) == 0x80)
            used--;
        memcpy(out + used, "...", 3);
        used += 3;
    }
    out[used] = '\0';
    return out;
}
