/* Times as gateways write them (RFC 3339, or epoch seconds and milliseconds) to microseconds since
 * 1970, and back. Pure. Called by the decoder, by src/intake and by commands.
 */
#include "receiptd/core/timestamp.h"

#include <string.h>

#include "receiptd/base/error.h"

#define US_PER_SECOND     INT64_C(1000000)
#define DAYS_OF_400_YEARS 146097
#define SECONDS_PER_DAY   INT64_C(86400)
#define LATEST_US         INT64_C(253402300799999999) /* 9999-12-31T23:59:59.999999Z */
#define FRACTION_DIGITS   6
#define DATE_TIME_BYTES   19 /* 2026-11-21T02:30:00 */

/* Values with more digits before the point than this are milliseconds (below 1e11 they are seconds)
 * … */
#define SECONDS_DIGITS 11
/* … and with more than this they are beyond the year 9999. */
#define MILLISECONDS_DIGITS 15
/* Larger than the number of digits in any text, so that an exponent cut to it changes nothing. */
#define EXPONENT_LIMIT INT64_C(1000000000)

/* The part of the text that is not read yet. */
struct text {
    const char *next;
    const char *end;
};

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* Exactly `count` digits at a place that the caller knows to be inside the text. */
static bool read_digits(const char *text, int count, int *number)
{
    int value = 0;
    for (int i = 0; i < count; i++) {
        if (!is_digit(text[i]))
            return false;
        value = value * 10 + (text[i] - '0');
    }
    *number = value;
    return true;
}

/* Gregorian calendar, also for years before it was introduced (RFC 3339). */
static int days_of_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29 : days[month - 1];
}

/* Days from 0000-03-01 in years that begin in March, so that the leap day is a year's last. */
static int64_t days_from_march(int year, int month, int day)
{
    int64_t years = month > 2 ? year : year - 1;
    int64_t months = month > 2 ? month - 3 : month + 9;
    return years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 1;
}

static bool read_date(const char *text, int64_t *days)
{
    int year, month, day;
    if (!read_digits(text, 4, &year) || text[4] != '-' || !read_digits(text + 5, 2, &month) ||
        text[7] != '-' || !read_digits(text + 8, 2, &day))
        return false;
    if (year == 0 || month < 1 || month > 12 || day < 1 || day > days_of_month(year, month))
        return false;
    *days = days_from_march(year, month, day) - days_from_march(1970, 1, 1);
    return true;
}

/* Second 60 is left to the caller. */
static bool read_time(const char *text, int *seconds, bool *leap_second)
{
    int hour, minute, second;
    if (!read_digits(text, 2, &hour) || text[2] != ':' || !read_digits(text + 3, 2, &minute) ||
        text[5] != ':' || !read_digits(text + 6, 2, &second))
        return false;
    if (hour > 23 || minute > 59 || second > 60)
        return false;
    *leap_second = second == 60;
    *seconds = hour * 3600 + minute * 60 + second;
    return true;
}

/* ".123…": at least one digit after the point; no point is no fraction. */
static bool read_fraction(struct text *text, int64_t *us)
{
    *us = 0;
    if (text->next == text->end || *text->next != '.')
        return true;
    const char *first = ++text->next;
    for (; text->next < text->end && is_digit(*text->next); text->next++) {
        if (text->next - first < FRACTION_DIGITS)
            *us = *us * 10 + (*text->next - '0');
    }
    for (ptrdiff_t digits = text->next - first; digits < FRACTION_DIGITS; digits++)
        *us *= 10;
    return text->next > first;
}

/* "Z", "+05:30" or "+0530", and nothing behind it. */
static bool read_zone(struct text *text, int *seconds)
{
    ptrdiff_t size = text->end - text->next;
    const char *zone = text->next;
    int hours, minutes;
    if (size == 1 && (zone[0] == 'Z' || zone[0] == 'z')) {
        *seconds = 0;
        return true;
    }
    if ((size != 5 && size != 6) || (zone[0] != '+' && zone[0] != '-') ||
        (size == 6 && zone[3] != ':'))
        return false;
    if (!read_digits(zone + 1, 2, &hours) || !read_digits(text->end - 2, 2, &minutes) ||
        hours > 23 || minutes > 59)
        return false;
    *seconds = (hours * 60 + minutes) * 60;
    if (zone[0] == '-')
        *seconds = -*seconds;
    return true;
}

static bool is_separator(char character)
{
    return character == 'T' || character == 't' || character == ' ';
}

/* A leap second becomes the last microsecond before the next minute. */
bool rcpt_timestamp_parse(const char *text, size_t size, int64_t *at_us)
{
    int64_t days, fraction_us;
    int seconds, zone_seconds;
    bool leap_second;

    if (size < DATE_TIME_BYTES || !read_date(text, &days) || !is_separator(text[10]) ||
        !read_time(text + 11, &seconds, &leap_second))
        return false;
    struct text rest = {text + DATE_TIME_BYTES, text + size};
    if (!read_fraction(&rest, &fraction_us) || !read_zone(&rest, &zone_seconds))
        return false;
    int64_t us = (days * SECONDS_PER_DAY + seconds - zone_seconds) * US_PER_SECOND;
    us += leap_second ? -1 : fraction_us;
    if (us < 0 || us > LATEST_US)
        return false;
    *at_us = us;
    return true;
}

/* A number taken apart: its digits with an optional point among them, and its exponent. */
struct number {
    const char *digits;
    const char *digits_end;
    int64_t point; /* digits before the point, before the exponent is applied */
    int64_t exponent;
};

static size_t skip_digits(struct text *text)
{
    const char *first = text->next;
    while (text->next < text->end && is_digit(*text->next))
        text->next++;
    return (size_t)(text->next - first);
}

/* An exponent may be absurd; EXPONENT_LIMIT keeps the arithmetic below in range. */
static bool read_exponent(struct text *text, int64_t *exponent)
{
    *exponent = 0;
    if (text->next == text->end || (*text->next != 'e' && *text->next != 'E'))
        return true;
    text->next++;
    bool negative = text->next < text->end && *text->next == '-';
    if (text->next < text->end && (*text->next == '-' || *text->next == '+'))
        text->next++;
    const char *first = text->next;
    for (; text->next < text->end && is_digit(*text->next); text->next++) {
        if (*exponent < EXPONENT_LIMIT)
            *exponent = *exponent * 10 + (*text->next - '0');
    }
    bool any = text->next > first;
    if (negative)
        *exponent = -*exponent;
    return any;
}

/* JSON's grammar without the sign: times before 1970 are none. */
static bool read_number(struct text *text, struct number *number)
{
    number->digits = text->next;
    size_t whole = skip_digits(text);
    if (whole == 0 || (whole > 1 && number->digits[0] == '0'))
        return false;
    if (text->next < text->end && *text->next == '.') {
        text->next++;
        if (skip_digits(text) == 0)
            return false;
    }
    number->digits_end = text->next;
    number->point = (int64_t)whole;
    return read_exponent(text, &number->exponent) && text->next == text->end;
}

/* The first `count` digits from `digits` on as a number, padded with zeros, whatever the point's
 * place. */
static int64_t leading_digits(const char *digits, const char *end, int64_t count)
{
    int64_t value = 0;
    while (count > 0) {
        char digit = digits < end ? *digits++ : '0';
        if (digit == '.')
            continue;
        value = value * 10 + (digit - '0');
        count--;
    }
    return value;
}

/* Exact for any number of digits: no floating point, and digits below a microsecond are cut. */
bool rcpt_timestamp_parse_epoch(const char *text, size_t size, int64_t *at_us)
{
    struct text rest = {text, text + size};
    struct number number;
    if (!read_number(&rest, &number))
        return false;

    /* Digits are counted from the first that is not zero: value = 0.d1d2… × 10^magnitude. */
    const char *first = number.digits;
    int64_t magnitude = number.point + number.exponent;
    for (; first < number.digits_end && (*first == '0' || *first == '.'); first++)
        magnitude -= *first == '0';
    if (first == number.digits_end) {
        *at_us = 0;
        return true;
    }
    if (magnitude > MILLISECONDS_DIGITS)
        return false;
    int64_t digits = magnitude + (magnitude <= SECONDS_DIGITS ? 6 : 3);
    int64_t us = leading_digits(first, number.digits_end, digits);
    if (us > LATEST_US)
        return false;
    *at_us = us;
    return true;
}

/* Writes leading zeros, the digits, and `next`. By hand, because the intake does it for every
 * event. */
static char *put_digits(char *at, int value, int width, char next)
{
    for (int place = width - 1; place >= 0; place--, value /= 10)
        at[place] = (char)('0' + value % 10);
    at[width] = next;
    return at + width + 1;
}

/* Guesses year and month from the days, then corrects the guess. */
void rcpt_timestamp_format(int64_t at_us, char text[28])
{
    RCPT_ASSERT(at_us >= 0 && at_us <= LATEST_US);
    int64_t seconds = at_us / US_PER_SECOND;
    int64_t days = seconds / SECONDS_PER_DAY;
    int day_seconds = (int)(seconds % SECONDS_PER_DAY);
    days += days_from_march(1970, 1, 1);
    int year = (int)(days * 400 / DAYS_OF_400_YEARS); /* or the next one, by a leap day */
    while (days_from_march(year + 1, 1, 1) <= days)
        year++;
    int64_t day_of_year = days - days_from_march(year, 1, 1);
    int month = day_of_year < 11 * 29 ? (int)(day_of_year / 29) + 1 : 12; /* or one before */
    while (days_from_march(year, month, 1) > days)
        month--;
    int day = (int)(days - days_from_march(year, month, 1)) + 1;
    text = put_digits(text, year, 4, '-');
    text = put_digits(text, month, 2, '-');
    text = put_digits(text, day, 2, 'T');
    text = put_digits(text, day_seconds / 3600, 2, ':');
    text = put_digits(text, day_seconds / 60 % 60, 2, ':');
    text = put_digits(text, day_seconds % 60, 2, '.');
    text = put_digits(text, (int)(at_us % US_PER_SECOND), 6, 'Z');
    *text = '\0';
}
