/* A ladder that grows while instances run: statuses, flags and overrides may be added, but existing
 * ones keep their meaning. Called by src/receipts/ladders.c (can it grow?) and by
 * src/operate/reload.c.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "ladder_internal.h"

static bool refuse_change(struct rcpt_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse_change(struct rcpt_error *error, const char *format, ...)
{
    char what[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    rcpt_error_fatal(error, EX_CONFIG, "ladder: %s", what);
    rcpt_error_hint(error, "while instances run a ladder can only grow: restore its entries, or "
                           "stop all of them, run receiptd migrate, and start them");
    return false;
}

/* Rows and counters hold codes, so a code never changes its name, its parent or the status that it
 * implies. */
static bool keeps_entry(const struct rcpt_ladder *fresh, const struct rcpt_ladder_entry *old,
                        struct rcpt_error *error)
{
    size_t index = fresh->by_code[old->code];
    const char *kind = old->is_flag ? "flag" : "status";
    if (index == NO_ENTRY)
        return refuse_change(error, "%s %s (%d) is gone", kind, old->name, old->code);
    const struct rcpt_ladder_entry *now = &fresh->entries[index];
    if (strcmp(now->name, old->name) != 0)
        return refuse_change(error, "%s %s (%d) is called %s now", kind, old->name, old->code,
                             now->name);
    if (now->parent != old->parent)
        return refuse_change(error, "status %s (%d) has the parent %d instead of %d", old->name,
                             old->code, now->parent, old->parent);
    return now->top == old->top ||
           refuse_change(error, "flag %s implies %d instead of %d", old->name, now->top, old->top);
}

/* Whether `where` has the override that `owner` has. */
static bool has_override(const struct rcpt_ladder *where, const struct override *override,
                         const struct rcpt_ladder *owner)
{
    int from = ladder_find_defined(where, owner->entries[override->from].name);
    const struct override *found =
        from < 0 ? NULL
                 : ladder_find_override(where, from, override->channel, override->channel_size);
    return found != NULL &&
           strcmp(where->entries[found->to].name, owner->entries[override->to].name) == 0;
}

/* An override between entries that both ladders know would change the meaning of receipts that are
 * on their way. */
static bool keeps_overrides(const struct rcpt_ladder *old, const struct rcpt_ladder *fresh,
                            struct rcpt_error *error)
{
    for (size_t i = 0; i < old->override_count; i++) {
        const struct override *override = &old->overrides[i];
        if (!has_override(fresh, override, old))
            return refuse_change(error, "the override of %s on channel %.60s is gone or another",
                                 old->entries[override->from].name, override->channel);
    }
    for (size_t i = 0; i < fresh->override_count; i++) {
        const struct override *override = &fresh->overrides[i];
        const char *from = fresh->entries[override->from].name;
        if (!has_override(old, override, fresh) && ladder_find_defined(old, from) >= 0 &&
            ladder_find_defined(old, fresh->entries[override->to].name) >= 0)
            return refuse_change(error, "%s gets another meaning on channel %.60s", from,
                                 override->channel);
    }
    return true;
}

bool rcpt_ladder_can_grow(const struct rcpt_ladder *ladder, const struct rcpt_ladder *fresh,
                          struct rcpt_error *error)
{
    for (size_t i = 0; i < ladder->entry_count; i++) {
        if (!keeps_entry(fresh, &ladder->entries[i], error))
            return false;
    }
    return keeps_overrides(ladder, fresh, error);
}

/* Appends behind the existing entries, because events in memory hold indexes of entries. */
static void append_entry(struct rcpt_ladder *ladder, const struct rcpt_ladder_entry *entry)
{
    size_t index = ladder->entry_count++;
    RCPT_ASSERT(index < MAX_ENTRIES);
    ladder->entries[index] = *entry;
    ladder->name_sizes[index] = strlen(entry->name);
    ladder->status_count += !entry->is_flag;
    ladder_put_name(ladder, index);
    ladder->by_code[entry->code] = (uint8_t)index;
}

static void append_override(struct rcpt_ladder *ladder, const struct rcpt_ladder *fresh,
                            const struct override *added)
{
    RCPT_ASSERT(ladder->override_count < RCPT_LADDER_MAX_OVERRIDES);
    struct override *override = &ladder->overrides[ladder->override_count++];
    *override = *added;
    override->channel = rcpt_strdup(added->channel);
    override->from = (uint8_t)ladder_find_defined(ladder, fresh->entries[added->from].name);
    override->to = (uint8_t)ladder_find_defined(ladder, fresh->entries[added->to].name);
    ladder->entries[override->from].is_overridden = true;
}

/* `fresh` was checked by rcpt_ladder_can_grow. `terminal` may change: no rule depends on it. */
void rcpt_ladder_grow(struct rcpt_ladder *ladder, const struct rcpt_ladder *fresh)
{
    for (size_t i = 0; i < fresh->entry_count; i++) {
        const struct rcpt_ladder_entry *entry = &fresh->entries[i];
        if (ladder->by_code[entry->code] == NO_ENTRY)
            append_entry(ladder, entry);
        else
            ladder->entries[ladder->by_code[entry->code]].terminal = entry->terminal;
    }
    for (size_t i = 0; i < fresh->override_count; i++) {
        if (!has_override(ladder, &fresh->overrides[i], fresh))
            append_override(ladder, fresh, &fresh->overrides[i]);
    }
    memcpy(ladder->hash, fresh->hash, sizeof(ladder->hash));
}
