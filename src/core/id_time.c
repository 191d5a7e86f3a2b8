/* Ids that begin with their time (id_time.h): partitions of the inbox have bounds that are made
 * here. Called by the commands that make and drop partitions. */
#include "id_time.h"

#include <string.h>

/* How a kind writes its 48 bits: digits of so many bits each, the most significant first. */
static const struct form {
    const char *name, *pattern, *digits;
    unsigned bits, count, dash; /* a dash stands behind so many digits; 0: none does */
} forms[] = {
    [RCPT_ID_UUIDV7] = {"UUIDv7",
                        "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
                        "0123456789abcdef", 4, 12, 8},
    [RCPT_ID_ULID] = {"ULID", "^[0-7][0-9A-HJKMNP-TV-Z]{25}$", "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
                      5, 10, 0},
};

static const struct form *form_of(enum rcpt_id_kind kind)
{
    RCPT_ASSERT(kind == RCPT_ID_UUIDV7 || kind == RCPT_ID_ULID);
    return &forms[kind];
}

void rcpt_id_bound(enum rcpt_id_kind kind, int64_t ms, char bound[RCPT_ID_BOUND_SIZE])
{
    const struct form *form = form_of(kind);
    size_t used = 0;
    RCPT_ASSERT(ms >= 0 && ms <= RCPT_ID_MOST_MS);
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
    return form_of(kind)->name;
}
