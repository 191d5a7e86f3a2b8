/* Reads TZif files (RFC 9636): transitions, and the rule in POSIX's form that holds behind the
 * last of them. Called by src/gateways for `time_zone` of accounts, when the configuration is
 * read. */
#include "receiptd/base/zone.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"

#define FOLDER      "/usr/share/zoneinfo"
#define HEADER_SIZE 44u
#define MOST_BYTES  (1u << 20) /* the largest zone has some kilobytes */
#define HOUR        3600
#define DAY         86400
#define WEEK        7

/* When in a year summer time begins or ends: Mm.w.d, or the Julian day Jn or n. */
struct change {
    enum { CHANGE_WEEKDAY, CHANGE_JULIAN, CHANGE_DAY } kind;
    int month, week, day;
    int32_t seconds; /* local, from midnight on */
};

struct rule {
    int32_t standard, summer; /* offsets */
    bool has_summer;
    struct change begin, end;
};

struct rcpt_zone {
    size_t count;     /* of transitions */
    int64_t *at;      /* instants, growing */
    int32_t *offsets; /* from each of them on */
    int32_t before;   /* … and before the first */
    bool has_rule;
    struct rule rule;
};

/* ---- POSIX's form: "CET-1CEST,M3.5.0,M10.5.0/3" ---- */

static bool skip_name(const char **text)
{
    const char *at = *text;
    if (*at == '<') {
        at = strchr(at, '>');
        if (at == NULL)
            return false;
        *text = at + 1;
        return true;
    }
    while ((*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'z'))
        at++;
    bool good = at - *text >= 3;
    *text = at;
    return good;
}

static bool read_number(const char **text, int most, int *number)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    long value = strtol(*text, &end, 10);
    *text = end;
    *number = (int)value;
    return value >= 0 && value <= most;
}

/* "[+-]hh[:mm[:ss]]"; up to 167 hours in RFC 9636's extension. */
static bool read_clock(const char **text, int32_t *seconds)
{
    int parts[3] = {0};
    int sign = **text == '-' ? -1 : 1;
    *text += **text == '-' || **text == '+';
    for (int part = 0; part < 3; part++) {
        if (part > 0 && **text != ':')
            break;
        *text += part > 0;
        if (!read_number(text, part == 0 ? 167 : 59, &parts[part]))
            return false;
    }
    *seconds = sign * (parts[0] * HOUR + parts[1] * 60 + parts[2]);
    return true;
}

static bool read_change(const char **text, struct change *change)
{
    *change = (struct change){.kind = CHANGE_DAY, .seconds = 2 * HOUR};
    if (**text == 'M') {
        change->kind = CHANGE_WEEKDAY;
        ++*text;
        if (!read_number(text, 12, &change->month) || *(*text)++ != '.' ||
            !read_number(text, 5, &change->week) || *(*text)++ != '.')
            return false;
    } else if (**text == 'J') {
        change->kind = CHANGE_JULIAN;
        ++*text;
    }
    if (!read_number(text, change->kind == CHANGE_WEEKDAY ? 6 : 365, &change->day))
        return false;
    if (change->kind == CHANGE_WEEKDAY && (change->month < 1 || change->week < 1))
        return false;
    if (**text != '/')
        return true;
    ++*text;
    return read_clock(text, &change->seconds);
}

/* POSIX counts offsets to the west. Without an offset summer time is an hour ahead. */
static bool read_rule(const char *text, struct rule *rule)
{
    int32_t west;
    if (!skip_name(&text) || !read_clock(&text, &west))
        return false;
    rule->standard = -west;
    rule->has_summer = *text != '\0';
    if (!rule->has_summer)
        return true;
    if (!skip_name(&text))
        return false;
    rule->summer = rule->standard + HOUR;
    if (*text != ',') {
        if (!read_clock(&text, &west))
            return false;
        rule->summer = -west;
    }
    return *text++ == ',' && read_change(&text, &rule->begin) && *text++ == ',' &&
           read_change(&text, &rule->end) && *text == '\0';
}

/* ---- the calendar ---- */

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* From 1970-01-01 to the first of January. */
static int64_t days_before(int64_t year)
{
    int64_t past = year - 1;
    return past * 365 + past / 4 - past / 100 + past / 400 - 719162;
}

static int64_t year_of(int64_t seconds)
{
    int64_t days = seconds / DAY, year = 1970 + days / 366;
    while (days_before(year + 1) <= days)
        year++;
    return year;
}

/* Days from the first of January on. */
static int64_t day_of(const struct change *change, int64_t year)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    if (change->kind == CHANGE_DAY)
        return change->day;
    if (change->kind == CHANGE_JULIAN) /* 29 February has no number */
        return change->day - 1 + (is_leap(year) && change->day > 59);
    int64_t leap = is_leap(year);
    int64_t first = before[change->month - 1] + (change->month > 2 ? leap : 0);
    int64_t next = before[change->month] + (change->month > 1 ? leap : 0);
    int64_t weekday = (days_before(year) + first + 4) % WEEK; /* 1970 began on a Thursday */
    int64_t day = first + (change->day - weekday + WEEK) % WEEK + (change->week - 1) * WEEK;
    return day < next ? day : day - WEEK;
}

static int64_t local_change(const struct change *change, int64_t year)
{
    return (days_before(year) + day_of(change, year)) * DAY + change->seconds;
}

/* The offset that the rule gives for an instant. */
static int32_t rule_offset(const struct rule *rule, int64_t at)
{
    if (!rule->has_summer)
        return rule->standard;
    int64_t year = year_of(at + rule->standard);
    int64_t begin = local_change(&rule->begin, year) - rule->standard;
    int64_t end = local_change(&rule->end, year) - rule->summer;
    bool is_summer = begin < end ? at >= begin && at < end : at >= begin || at < end;
    return is_summer ? rule->summer : rule->standard;
}

/* ---- the file ---- */

static int64_t big_endian(const unsigned char *bytes, size_t size)
{
    uint64_t value = (bytes[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (size_t index = 0; index < size; index++)
        value = value << 8 | bytes[index];
    return (int64_t)value;
}

/* Numbers of a header: times of UT, of standard, leap seconds, transitions, types, characters. */
struct counts {
    size_t ut, standard, leaps, times, types, chars;
};

static bool read_header(const unsigned char *bytes, size_t size, struct counts *counts)
{
    if (size < HEADER_SIZE || memcmp(bytes, "TZif", 4) != 0 || bytes[4] < '2')
        return false;
    const unsigned char *at = bytes + 20;
    *counts = (struct counts){
        (size_t)big_endian(at, 4) & 0xffff,      (size_t)big_endian(at + 4, 4) & 0xffff,
        (size_t)big_endian(at + 8, 4) & 0xffff,  (size_t)big_endian(at + 12, 4) & 0xffff,
        (size_t)big_endian(at + 16, 4) & 0xffff, (size_t)big_endian(at + 20, 4) & 0xffff};
    return counts->types > 0;
}

static size_t data_size(const struct counts *counts, size_t time_size)
{
    return counts->times * (time_size + 1) + counts->types * 6 + counts->chars +
           counts->leaps * (time_size + 4) + counts->standard + counts->ut;
}

/* The line behind the data. An empty line means that later times are unknown. */
static bool read_footer(const unsigned char *bytes, size_t size, struct rcpt_zone *zone)
{
    char text[128];
    const unsigned char *end = size > 1 ? memchr(bytes + 1, '\n', size - 1) : NULL;
    if (size < 2 || bytes[0] != '\n' || end == NULL || end - bytes >= (int)sizeof(text))
        return false;
    size_t length = (size_t)(end - bytes) - 1;
    memcpy(text, bytes + 1, length);
    text[length] = '\0';
    zone->has_rule = length > 0;
    return length == 0 || read_rule(text, &zone->rule);
}

/* The second block has times of 64 bits; the first is for readers that know no others. */
static bool read_file(const unsigned char *bytes, size_t size, struct rcpt_zone *zone)
{
    struct counts counts;
    if (!read_header(bytes, size, &counts))
        return false;
    size_t first = HEADER_SIZE + data_size(&counts, 4);
    if (first > size || !read_header(bytes + first, size - first, &counts))
        return false;
    const unsigned char *times = bytes + first + HEADER_SIZE;
    size_t rest = size - first - HEADER_SIZE, data = data_size(&counts, 8);
    if (data > rest)
        return false;
    const unsigned char *indexes = times + counts.times * 8, *types = indexes + counts.times;
    zone->at = rcpt_calloc(counts.times + 1, sizeof(*zone->at));
    zone->offsets = rcpt_calloc(counts.times + 1, sizeof(*zone->offsets));
    zone->before = (int32_t)big_endian(types, 4);
    for (; zone->count < counts.times; zone->count++) {
        size_t type = indexes[zone->count];
        if (type >= counts.types)
            return false;
        zone->at[zone->count] = big_endian(times + zone->count * 8, 8);
        zone->offsets[zone->count] = (int32_t)big_endian(types + type * 6, 4);
    }
    return read_footer(times + data, rest - data, zone);
}

/* Names are words parted by slashes: none leads out of the folder. */
static bool is_name(const char *name)
{
    size_t size =
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/");
    return size > 0 && name[size] == '\0' && name[0] != '/' && strstr(name, "//") == NULL;
}

static bool read_name(const char *name, struct rcpt_zone *zone, const char **problem)
{
    char path[512];
    const char *folder = getenv("TZDIR");
    int size = snprintf(path, sizeof(path), "%s/%s", folder != NULL ? folder : FOLDER, name);
    FILE *file = size < (int)sizeof(path) ? fopen(path, "re") : NULL;
    *problem = "is no zone of the system's data: see the list of names, or install tzdata";
    if (file == NULL)
        return false;
    unsigned char *bytes = rcpt_malloc(MOST_BYTES);
    bool good = read_file(bytes, fread(bytes, 1, MOST_BYTES, file), zone);
    *problem = "is a file of the system's zone data that cannot be read";
    free(bytes);
    fclose(file);
    return good;
}

/* Two digits; −1: they are none. */
static int two_digits(const char *text)
{
    bool good = text[0] >= '0' && text[0] <= '9' && text[1] >= '0' && text[1] <= '9';
    return good ? (text[0] - '0') * 10 + text[1] - '0' : -1;
}

/* "Z", or a sign with hours and minutes. */
static bool read_offset(const char *text, int32_t *seconds)
{
    if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0) {
        *seconds = 0;
        return true;
    }
    size_t digits = strspn(text + (text[0] != '\0'), "0123456789:");
    if ((text[0] != '+' && text[0] != '-') || text[digits + 1] != '\0')
        return false;
    bool colon = digits == 5 && text[3] == ':';
    if (!colon && digits != 4)
        return false;
    int hours = two_digits(text + 1), minutes = two_digits(text + (colon ? 4 : 3));
    if (hours < 0 || minutes < 0)
        return false;
    if (hours > 23 || minutes > 59)
        return false;
    *seconds = (hours * 60 + minutes) * 60 * (text[0] == '-' ? -1 : 1);
    return true;
}

struct rcpt_zone *rcpt_zone_new(const char *name, const char **problem)
{
    struct rcpt_zone *zone = rcpt_calloc(1, sizeof(*zone));
    *problem = "is neither, as it is written";
    if (read_offset(name, &zone->before) || (is_name(name) && read_name(name, zone, problem)))
        return zone;
    rcpt_zone_free(zone);
    return NULL;
}

void rcpt_zone_free(struct rcpt_zone *zone)
{
    if (zone == NULL)
        return;
    free(zone->at);
    free(zone->offsets);
    free(zone);
}

/* ---- instants ---- */

/* The offset after the last transition that is not later than the instant. */
static int32_t offset_at(const struct rcpt_zone *zone, int64_t at)
{
    size_t low = 0, high = zone->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (zone->at[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == zone->count && zone->has_rule)
        return rule_offset(&zone->rule, at);
    return low > 0 ? zone->offsets[low - 1] : zone->before;
}

/* The offsets a day before and after are the two that may hold: no zone changes twice in two
 * days. With the one before, the instant is the earlier one where clocks go back. */
int64_t rcpt_zone_instant(const struct rcpt_zone *zone, int64_t local_s, int64_t latest_s)
{
    int32_t earlier = offset_at(zone, local_s - DAY), later = offset_at(zone, local_s + DAY);
    int64_t first = local_s - earlier, second = local_s - later;
    bool first_holds = offset_at(zone, first) == earlier;
    bool second_holds = offset_at(zone, second) == later;
    if (!second_holds)
        return first; /* also where neither holds: the hour that is left out */
    return !first_holds || second <= latest_s ? second : first;
}
