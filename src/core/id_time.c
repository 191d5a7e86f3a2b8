/* Ids that begin with their time (id_time.h): makes the bounds of the inbox's partitions. Called by
 * the commands that make and drop partitions. */
#include "receiptd/core/id_time.h"

#include <string.h>

/* How a kind writes its 48 bits: digits of so many bits each, the most significant first. Digits of
 * a KSUID are no groups of bits. */
static const struct form {
    const char *name, *pattern, *digits;
    unsigned bits, count, dash; /* a dash stands behind so many digits; 0: none does */
} forms[] = {
    [RCPT_ID_UUIDV7] = {"UUIDv7",
                        "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
                        "0123456789abcdef", 4, 12, 8},
    [RCPT_ID_ULID] = {"ULID", "^[0-7][0-9A-HJKMNP-TV-Z]{25}$", "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
                      5, 10, 0},
    [RCPT_ID_KSUID] = {.name = "KSUID", .pattern = "^[0-9A-Za-z]{27}$"},
    [RCPT_ID_SNOWFLAKE] = {.name = "snowflake"},
};

/* ---- KSUID: 160 bits, the most significant word first, which is the time ---- */

#define KSUID_EPOCH_S INT64_C(1400000000)
#define KSUID_DIGITS  27
#define KSUID_WORDS   5
#define KSUID_BASE    62u

static const char base62[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static void bound_of_ksuid(int64_t ms, char bound[RCPT_ID_BOUND_SIZE])
{
    int64_t seconds = (ms + 999) / 1000 - KSUID_EPOCH_S;
    seconds = seconds < 0 ? 0 : seconds > UINT32_MAX ? UINT32_MAX : seconds;
    uint32_t words[KSUID_WORDS] = {(uint32_t)seconds};
    bound[KSUID_DIGITS] = '\0';
    for (size_t digit = KSUID_DIGITS; digit-- > 0;) {
        uint64_t rest = 0;
        for (size_t word = 0; word < KSUID_WORDS; word++) {
            rest = rest << 32 | words[word];
            words[word] = (uint32_t)(rest / KSUID_BASE);
            rest %= KSUID_BASE;
        }
        bound[digit] = base62[rest];
    }
}

/* 27 digits can write more than 160 bits: a larger number is no KSUID. */
static bool time_of_ksuid(const char *id, int64_t *ms)
{
    uint32_t words[KSUID_WORDS] = {0};
    if (strlen(id) != KSUID_DIGITS)
        return false;
    for (; *id != '\0'; id++) {
        const char *found = strchr(base62, *id);
        if (found == NULL)
            return false;
        uint64_t carry = (uint64_t)(found - base62);
        for (size_t word = KSUID_WORDS; word-- > 0;) {
            carry += (uint64_t)words[word] * KSUID_BASE;
            words[word] = (uint32_t)carry;
            carry >>= 32;
        }
        if (carry != 0)
            return false;
    }
    *ms = (KSUID_EPOCH_S + words[0]) * 1000;
    return true;
}

/* ---- all of them ---- */

static const struct form *form_of(enum rcpt_id_kind kind)
{
    RCPT_ASSERT(rcpt_id_has_bounds(kind));
    return &forms[kind];
}

void rcpt_id_bound(enum rcpt_id_kind kind, int64_t ms, char bound[RCPT_ID_BOUND_SIZE])
{
    const struct form *form = form_of(kind);
    size_t used = 0;
    RCPT_ASSERT(ms >= 0 && ms <= RCPT_ID_MOST_MS);
    if (kind == RCPT_ID_KSUID) {
        bound_of_ksuid(ms, bound);
        return;
    }
    for (unsigned digit = 0; digit < form->count; digit++) {
        unsigned shift = (form->count - 1 - digit) * form->bits;
        if (digit > 0 && digit == form->dash)
            bound[used++] = '-';
        bound[used++] = form->digits[(uint64_t)ms >> shift & ((1u << form->bits) - 1)];
    }
    bound[used] = '\0';
}

/* ULID's first digit holds the uppermost 3 bits, so a larger one is no time. */
bool rcpt_id_time(enum rcpt_id_kind kind, const char *id, int64_t *ms)
{
    const struct form *form = form_of(kind);
    uint64_t value = 0;
    if (kind == RCPT_ID_KSUID)
        return time_of_ksuid(id, ms);
    for (unsigned digit = 0; digit < form->count; digit++) {
        if (digit > 0 && digit == form->dash && *id++ != '-')
            return false;
        const char *found = *id != '\0' ? strchr(form->digits, *id++) : NULL;
        if (found == NULL)
            return false;
        value = value << form->bits | (uint64_t)(found - form->digits);
    }
    if (value > RCPT_ID_MOST_MS)
        return false;
    *ms = (int64_t)value;
    return true;
}

const char *rcpt_id_pattern(enum rcpt_id_kind kind)
{
    return form_of(kind)->pattern;
}

const char *rcpt_id_name(enum rcpt_id_kind kind)
{
    RCPT_ASSERT(kind != RCPT_ID_ANY);
    return forms[kind].name;
}
