/* Times as gateways write them: epochs, RFC 3339 and its relatives, digits without separators,
 * local times without a zone. A time whose zone is unknown stays a text (`gateway_at`) instead of
 * becoming a wrong instant. Pure; called by draft.c. */
#include <stdio.h>
#include <stdlib.h>

#include "gateway.h"
#include "receiptd/core/timestamp.h"

#define DATE_TIME_BYTES 19u /* 2025-10-18T12:10:29 */
#define MOMENT_BYTES    40u
#define US_PER_SECOND   INT64_C(1000000)
#define CLOCKS_DIFFER_S 300 /* a receipt is no later than it came, but for this */

/* `local` is YYYY-MM-DDThh:mm:ss[.f…]; with a zone it becomes exact. */
static bool take_local(struct rcpt_text local, const struct rcpt_clock *clock,
                       struct rcpt_arena *arena, struct rcpt_moment *moment)
{
    char text[MOMENT_BYTES + 8];
    int64_t at_us;
    if (local.size > MOMENT_BYTES)
        local.size = MOMENT_BYTES;
    int size = snprintf(text, sizeof(text), "%.*sZ", (int)local.size, local.at);
    if (!rcpt_timestamp_parse(text, (size_t)size, &at_us))
        return false;
    moment->exact = clock->zone != NULL;
    if (moment->exact) {
        int64_t latest_s = clock->received_us / US_PER_SECOND + CLOCKS_DIFFER_S;
        moment->at_us =
            rcpt_zone_instant(clock->zone, at_us / US_PER_SECOND, latest_s) * US_PER_SECOND +
            at_us % US_PER_SECOND;
        return true;
    }
    char clean[28];
    rcpt_timestamp_format(at_us, clean); /* with six digits and a Z */
    size_t kept = at_us % 1000000 == 0 ? DATE_TIME_BYTES : DATE_TIME_BYTES + 7;
    moment->local = rcpt_text_copy(arena, (struct rcpt_text){clean, kept});
    return true;
}

/* A blank before the zone, or in the place of a + that was not encoded: "…12:10:33 +0000",
 * "…12:10:33 00:00". */
static struct rcpt_text with_zone(struct rcpt_text text, struct rcpt_arena *arena)
{
    const char *blank = text.size > DATE_TIME_BYTES
                            ? memchr(text.at + DATE_TIME_BYTES, ' ', text.size - DATE_TIME_BYTES)
                            : NULL;
    if (blank == NULL)
        return text;
    struct rcpt_text head = rcpt_text_part(text, 0, (size_t)(blank - text.at));
    struct rcpt_text zone = rcpt_text_trim(rcpt_text_part(text, head.size, text.size));
    bool has_sign = zone.size > 0 && strchr("+-Zz", zone.at[0]) != NULL;
    return RCPT_TEXT_JOIN(arena, head, has_sign ? RCPT_TEXT("") : RCPT_TEXT("+"), zone);
}

/* 16 digits are microseconds and 19 nanoseconds: in another unit they were beyond the year 9999. */
static bool read_long_epoch(struct rcpt_text text, int64_t *at_us)
{
    char digits[20] = "";
    if (!rcpt_text_is_digits(text) || (text.size != 16 && text.size != 19))
        return false;
    memcpy(digits, text.at, 16);
    *at_us = strtoll(digits, NULL, 10);
    return true;
}

/* Reads every form that is recognisable by itself; any other is local time. */
static bool read_auto(struct rcpt_text text, const struct rcpt_clock *clock,
                      struct rcpt_arena *arena, struct rcpt_moment *moment)
{
    int64_t at_us;
    text = with_zone(text, arena);
    if (read_long_epoch(text, &at_us) || rcpt_timestamp_parse_epoch(text.at, text.size, &at_us) ||
        rcpt_timestamp_parse(text.at, text.size, &at_us)) {
        *moment = (struct rcpt_moment){.exact = true, .at_us = at_us};
        return true;
    }
    return take_local(text, clock, arena, moment);
}

static bool is_month_and_day(const char *digits)
{
    int month = (digits[0] - '0') * 10 + (digits[1] - '0');
    int day = (digits[2] - '0') * 10 + (digits[3] - '0');
    return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/* Where the year ends among 12 digits: YYMMDDhhmmss at some, YYYYMMDDhhmm at others, and some texts
 * are valid both ways. A year of four digits that begins with 20 wins when what follows is a date:
 * read the other way it would be a day in 2020, long ago for a receipt. */
static bool has_long_year(struct rcpt_text text)
{
    if (text.size == 14)
        return true;
    return text.size == 12 && text.at[0] == '2' && text.at[1] == '0' &&
           is_month_and_day(text.at + 4);
}

/* YYMMDDhhmm, with seconds, or with a long year. */
static bool is_short(struct rcpt_text text)
{
    return rcpt_text_is_digits(text) && (text.size == 10 || text.size == 12 || text.size == 14);
}

/* Missing parts are filled in: the century, and seconds of zero. */
static bool read_short(struct rcpt_text text, const struct rcpt_clock *clock,
                       struct rcpt_arena *arena, struct rcpt_moment *moment)
{
    char local[MOMENT_BYTES], digits[15] = {0};
    bool long_year = has_long_year(text);
    snprintf(digits, sizeof(digits), "%s%.*s%s", long_year ? "" : "20", (int)text.size, text.at,
             text.size == 10 || (text.size == 12 && long_year) ? "00" : "");
    int size = snprintf(local, sizeof(local), "%.4s-%.2s-%.2sT%.2s:%.2s:%.2s", digits, digits + 4,
                        digits + 6, digits + 8, digits + 10, digits + 12);
    return take_local((struct rcpt_text){local, (size_t)size}, clock, arena, moment);
}

/* Programs write zero where they have no time, as a number or as the date that it is in some
 * zone. */
static bool is_zero(const struct rcpt_moment *moment)
{
    return moment->exact ? moment->at_us <= 0 : rcpt_text_begins(moment->local, "1970-01-01");
}

/* False: no time. A text of digits is short form only where the adapter says so, else an epoch. */
bool rcpt_moment_read(struct rcpt_text text, enum rcpt_gateway_time format,
                      const struct rcpt_clock *clock, struct rcpt_arena *arena,
                      struct rcpt_moment *moment)
{
    struct rcpt_moment read = {.exact = false};
    text = rcpt_text_trim(text);
    bool is_digits = format == RCPT_GATEWAY_TIME_SHORT && is_short(text);
    bool good = text.size > 0 &&
                (is_digits /* 30 February is no second since 1970 */
                     ? read_short(text, clock, arena, &read)
                     : read_auto(text, clock, arena, &read)) &&
                !is_zero(&read);
    if (good)
        *moment = read;
    return good;
}
