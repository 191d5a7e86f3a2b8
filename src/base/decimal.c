/* Decimal numbers as 128-bit integers with a scale; their order by their digits. A sum takes the
 * larger scale of its parts, and refuses what does not fit. Called by folds
 * and by the rule that sums costs. */
#include "receiptd/base/decimal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DIGITS 18u
#define TEN_18      INT64_C(1000000000000000000)

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* An exponent as JSON writes it, moved into the place of the point; false: it is none, or absurd.
 */
static bool read_exponent(const char *at, const char *end, int *point)
{
    bool negative = at < end && *at == '-';
    int value = 0;
    at += at < end && (*at == '-' || *at == '+');
    if (at == end || end - at > 6)
        return false;
    for (; at < end; at++) {
        if (!is_digit(*at))
            return false;
        value = value * 10 + (*at - '0');
    }
    *point += negative ? -value : value;
    return true;
}

/* 36 digits fit into the units, and an exponent may ask for more. */
static bool shift_point(struct rcpt_decimal *decimal, int scale)
{
    if (scale > (int)MOST_DIGITS || scale < -(int)MOST_DIGITS)
        return false;
    for (; scale < 0; scale++)
        if (__builtin_mul_overflow(decimal->units, 10, &decimal->units))
            return false;
    decimal->scale = (unsigned)scale;
    return true;
}

/* The digits first, without their point; then the exponent moves the point. */
bool rcpt_decimal_read(struct rcpt_text number, struct rcpt_decimal *decimal)
{
    const char *at = number.at, *end = at + number.size, *point = NULL;
    bool negative = at < end && *at == '-';
    struct rcpt_decimal result = {0, 0};
    unsigned digits = 0, read = 0;
    int scale = 0, shift = 0;
    for (at += negative; at < end && (is_digit(*at) || (*at == '.' && point == NULL)); at++) {
        if (*at == '.') {
            point = at;
            continue;
        }
        result.units = result.units * 10 + (*at - '0');
        read++;
        digits += point == NULL && (digits > 0 || *at != '0');
        scale += point != NULL;
        if (digits > MOST_DIGITS || scale > (int)MOST_DIGITS)
            return false;
    }
    if (read == 0 || (at < end && (*at | ' ') != 'e') ||
        (at < end && !read_exponent(at + 1, end, &shift)) || !shift_point(&result, scale - shift))
        return false;
    result.units = negative ? -result.units : result.units;
    *decimal = result;
    return true;
}

static bool widen(struct rcpt_decimal *decimal, unsigned scale)
{
    for (; decimal->scale < scale; decimal->scale++)
        if (__builtin_mul_overflow(decimal->units, 10, &decimal->units))
            return false;
    return true;
}

bool rcpt_decimal_add(struct rcpt_decimal *sum, struct rcpt_decimal value)
{
    struct rcpt_decimal result = *sum;
    if (!widen(&result, value.scale) || !widen(&value, result.scale) ||
        __builtin_add_overflow(result.units, value.units, &result.units))
        return false;
    *sum = result;
    return true;
}

/* In parts of 18 digits, since no format prints 128 bits. */
size_t rcpt_decimal_text(const struct rcpt_decimal *decimal, char text[RCPT_DECIMAL_TEXT])
{
    char digits[64];
    bool negative = decimal->units < 0;
    __extension__ unsigned __int128 rest =
        negative ? -(unsigned __int128)decimal->units : (unsigned __int128)decimal->units;
    snprintf(digits, sizeof(digits), "%03lld%018lld%018lld",
             (long long)(rest / TEN_18 / (unsigned long long)TEN_18),
             (long long)(rest / (unsigned long long)TEN_18 % (unsigned long long)TEN_18),
             (long long)(rest % (unsigned long long)TEN_18));
    size_t point = strlen(digits) - decimal->scale, first = strspn(digits, "0");
    if (first >= point)
        first = point - 1;
    return (size_t)snprintf(text, RCPT_DECIMAL_TEXT, "%s%.*s%s%s", negative ? "-" : "",
                            (int)(point - first), digits + first, decimal->scale > 0 ? "." : "",
                            digits + point);
}

/* ---- order ---- */

/* A number's digits without its point. */
struct digits {
    struct rcpt_text text; /* sign, digits and point; no exponent */
    bool negative;
    int point; /* how many digits stand before it; the exponent moves it */
};

static struct digits digits_of(struct rcpt_text number)
{
    struct digits digits = {.negative = number.size > 0 && number.at[0] == '-'};
    size_t size = 0;
    while (size < number.size && number.at[size] != 'e' && number.at[size] != 'E')
        size++;
    digits.text = (struct rcpt_text){number.at + digits.negative, size - digits.negative};
    const char *point = memchr(digits.text.at, '.', digits.text.size);
    digits.point = (int)(point != NULL ? (size_t)(point - digits.text.at) : digits.text.size);
    if (size < number.size)
        (void)read_exponent(number.at + size + 1, number.at + number.size, &digits.point);
    return digits;
}

/* The digit that counts 10^place; 0 beyond both ends. */
static int digit_at(const struct digits *digits, int place)
{
    const char *point = memchr(digits->text.at, '.', digits->text.size);
    int index = digits->point - 1 - place;
    index += point != NULL && index >= point - digits->text.at;
    return index >= 0 && index < (int)digits->text.size ? digits->text.at[index] - '0' : 0;
}

static bool is_zero(const struct digits *digits)
{
    size_t index = 0;
    while (index < digits->text.size && strchr("0.", digits->text.at[index]) != NULL)
        index++;
    return index == digits->text.size;
}

/* From the highest place that one of them has down to the lowest. */
int rcpt_decimal_compare(struct rcpt_text a, struct rcpt_text b)
{
    struct digits left = digits_of(a), right = digits_of(b);
    int top = left.point > right.point ? left.point : right.point;
    int low_left = left.point - (int)left.text.size, low_right = right.point - (int)right.text.size;
    int bottom = low_left < low_right ? low_left : low_right;
    if (left.negative != right.negative && !(is_zero(&left) && is_zero(&right)))
        return left.negative ? -1 : 1;
    for (int place = top; place >= bottom; place--) {
        int order = digit_at(&left, place) - digit_at(&right, place);
        if (order != 0)
            return left.negative ? -order : order;
    }
    return 0;
}

/* The value as a double, for sums that are inexact from here on. */
double rcpt_decimal_double(const struct rcpt_decimal *decimal)
{
    char text[RCPT_DECIMAL_TEXT];
    rcpt_decimal_text(decimal, text);
    return strtod(text, NULL);
}
