/* The ladder of statuses: names and codes, parents, flags, overrides by channel, and the hash that
 * is pinned in the database. Built from the configuration or the default; after that only
 * ladder_growth.c changes it. Called by the decoder, the batch and all commands that show a status.
 */
#include "ladder_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "receiptd/base/error.h"
#include "receiptd/base/text.h"
#include "receiptd/core/hash.h"

/* Name, code, parent, terminal: docs/semantics.md draws the tree. */
static const struct rcpt_status_definition default_statuses[] = {
    {"TARGETED", 0, NULL, false},
    {"SKIPPED", 100, "TARGETED", true},
    {"SUBMIT_FAILED", 110, "TARGETED", false},
    {"IN_GTW", 200, "TARGETED", false},
    {"SENT", 300, "IN_GTW", false},
    {"DEFERRED", 310, "SENT", false},
    {"UNKNOWN", 400, "SENT", true},
    {"EXPIRED", 420, "SENT", true},
    {"BOUNCED_SOFT", 430, "SENT", true},
    {"FAILED", 440, "SENT", true},
    {"BLOCKED", 450, "SENT", true},
    {"REJECTED", 460, "IN_GTW", true},
    {"BOUNCED_HARD", 470, "SENT", true},
    {"DELIVERED", 600, "SENT", false},
    {"BOUNCED_HARD_EMAIL", 650, "SENT", true},
    {"OPENED", 700, "DELIVERED", false},
    {"CLICKED", 800, "OPENED", false},
};

static const struct rcpt_flag_definition default_flags[] = {
    {"COMPLAINED", "DELIVERED"}, {"UNSUBSCRIBED", "DELIVERED"},  {"RESUBSCRIBED", NULL},
    {"REPLIED", "DELIVERED"},    {"AUTORESPONDED", "DELIVERED"}, {"MACHINE_OPEN", "DELIVERED"},
    {"BOT_CLICK", "DELIVERED"},
};

/* An e-mail's hard bounce outranks DELIVERED: servers accept a message first and return it
 * later. */
static const struct rcpt_override_definition default_overrides[] = {
    {"email", "BOUNCED_HARD", "BOUNCED_HARD_EMAIL"},
};

static const struct rcpt_ladder_definition default_definition = {
    default_statuses,  RCPT_COUNT_OF(default_statuses),
    default_flags,     RCPT_COUNT_OF(default_flags),
    default_overrides, RCPT_COUNT_OF(default_overrides),
};

const struct rcpt_ladder_definition *rcpt_ladder_default_definition(void)
{
    return &default_definition;
}

/* The high bits are mixed in, since the mask takes the low ones only. */
static uint32_t name_slot(const char *name, size_t size)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return (hash ^ hash >> 15) & (NAME_SLOTS - 1);
}

/* At most 131 of 1024 slots are taken, so a probe rarely goes past the first one. */
static int find_entry(const struct rcpt_ladder *ladder, const char *name, size_t size)
{
    uint32_t slot = name_slot(name, size);
    for (; ladder->by_name[slot] != NO_ENTRY; slot = (slot + 1) & (NAME_SLOTS - 1)) {
        size_t index = ladder->by_name[slot];
        if (ladder->name_sizes[index] == size &&
            memcmp(ladder->entries[index].name, name, size) == 0)
            return (int)index;
    }
    return -1;
}

int ladder_find_defined(const struct rcpt_ladder *ladder, const char *name)
{
    return find_entry(ladder, name, strlen(name));
}

/* Linear: a ladder has few overrides. */
const struct override *ladder_find_override(const struct rcpt_ladder *ladder, int index,
                                            const char *channel, size_t size)
{
    for (size_t i = 0; i < ladder->override_count; i++) {
        const struct override *override = &ladder->overrides[i];
        if (override->from == index &&
            rcpt_text_equal_nocase((struct rcpt_text){override->channel, override->channel_size},
                                   (struct rcpt_text){channel, size}))
            return override;
    }
    return NULL;
}

/* Most entries have no override: `is_overridden` spares them the search. */
static int on_channel(const struct rcpt_ladder *ladder, int index, const char *channel, size_t size)
{
    if (index < 0 || size == 0 || !ladder->entries[index].is_overridden)
        return index;
    const struct override *override = ladder_find_override(ladder, index, channel, size);
    return override != NULL ? override->to : index;
}

const char *rcpt_ladder_near_channel(const struct rcpt_ladder *ladder, int entry,
                                     const char *channel)
{
    const char *best = NULL;
    for (size_t i = 0; i < ladder->override_count; i++)
        if (ladder->overrides[i].from == entry)
            best = rcpt_text_nearer(channel, best, ladder->overrides[i].channel);
    return best;
}

/* -1: no such status or flag. The channel may turn the status into another one. */
int rcpt_ladder_find_name(const struct rcpt_ladder *ladder, const char *name, size_t name_size,
                          const char *channel, size_t channel_size)
{
    if (name_size == 0 || name_size > RCPT_LADDER_MAX_NAME)
        return -1;
    return on_channel(ladder, find_entry(ladder, name, name_size), channel, channel_size);
}

int rcpt_ladder_find_code(const struct rcpt_ladder *ladder, int64_t code, const char *channel,
                          size_t channel_size)
{
    if (code < 0 || code >= CODE_COUNT || ladder->by_code[code] == NO_ENTRY)
        return -1;
    return on_channel(ladder, ladder->by_code[code], channel, channel_size);
}

/* Names appear in labels and log lines: no character of them needs an escape. */
static bool is_name(const char *name)
{
    size_t size = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return size > 0 && size <= RCPT_LADDER_MAX_NAME && name[size] == '\0';
}

/* Open addressing; entries are never removed. */
void ladder_put_name(struct rcpt_ladder *ladder, size_t index)
{
    uint32_t slot = name_slot(ladder->entries[index].name, ladder->name_sizes[index]);
    while (ladder->by_name[slot] != NO_ENTRY)
        slot = (slot + 1) & (NAME_SLOTS - 1);
    ladder->by_name[slot] = (uint8_t)index;
}

/* Adds a name and its code; NULL when the name is none or taken. The code is free. */
static struct rcpt_ladder_entry *add_entry(struct rcpt_ladder *ladder, const char *name, int code,
                                           struct rcpt_error *error)
{
    if (!is_name(name)) {
        rcpt_error_fatal(error, EX_CONFIG, "ladder: \"%.60s\" is not a name", name);
        rcpt_error_hint(error, "a name has 1 to %d characters of A-Z, 0-9 and _",
                        RCPT_LADDER_MAX_NAME);
        return NULL;
    }
    if (ladder_find_defined(ladder, name) >= 0) {
        rcpt_error_fatal(error, EX_CONFIG, "ladder: %s is defined twice", name);
        rcpt_error_hint(error, "names are unique over statuses and flags");
        return NULL;
    }
    size_t index = ladder->entry_count++;
    struct rcpt_ladder_entry *entry = &ladder->entries[index];
    ladder->name_sizes[index] = strlen(name);
    memcpy(entry->name, name, ladder->name_sizes[index] + 1);
    entry->code = (int16_t)code;
    entry->parent = RCPT_LADDER_NO_STATUS;
    ladder_put_name(ladder, index);
    ladder->by_code[code] = (uint8_t)index;
    return entry;
}

/* Statuses are added in the order of their codes, so that an entry's index does not depend on the
 * configuration's order. */
static bool add_status(struct rcpt_ladder *ladder, const struct rcpt_status_definition *status,
                       struct rcpt_error *error)
{
    if (status->code < 0 || status->code > MAX_CODE) {
        rcpt_error_fatal(error, EX_CONFIG, "ladder: status %.60s has code %d", status->name,
                         status->code);
        rcpt_error_hint(error, "a status code is between 0 and %d", MAX_CODE);
        return false;
    }
    if (ladder->by_code[status->code] != NO_ENTRY) {
        rcpt_error_fatal(error, EX_CONFIG, "ladder: statuses %s and %.60s have the same code %d",
                         ladder->entries[ladder->by_code[status->code]].name, status->name,
                         status->code);
        rcpt_error_hint(error, "a code is a priority, so no two statuses share one");
        return false;
    }
    struct rcpt_ladder_entry *entry = add_entry(ladder, status->name, status->code, error);
    if (entry == NULL)
        return false;
    entry->top = entry->code;
    entry->terminal = status->terminal;
    return true;
}

/* By code. */
static int compare_statuses(const void *left, const void *right)
{
    const struct rcpt_status_definition *const *a = left, *const *b = right;
    return ((*a)->code > (*b)->code) - ((*a)->code < (*b)->code);
}

/* Runs after all statuses are added, so that a parent with a larger code is distinguished from one
 * that is not defined. */
static bool link_status(struct rcpt_ladder *ladder, const struct rcpt_status_definition *status,
                        struct rcpt_error *error)
{
    struct rcpt_ladder_entry *entry = &ladder->entries[ladder_find_defined(ladder, status->name)];
    if (status->parent == NULL) {
        if (entry->code == 0)
            return true;
        rcpt_error_fatal(error, EX_CONFIG, "ladder: status %s has no parent", status->name);
        rcpt_error_hint(error, "only the root, the status with code 0, has none");
        return false;
    }
    if (entry->code == 0) {
        rcpt_error_fatal(error, EX_CONFIG, "ladder: the root %s has the parent %.60s", status->name,
                         status->parent);
        rcpt_error_hint(error, "the status with code 0 is the root and has no parent");
        return false;
    }
    int parent = ladder_find_defined(ladder, status->parent);
    if (parent < 0) {
        rcpt_error_fatal(error, EX_CONFIG, "ladder: parent %.60s of status %s is not defined",
                         status->parent, status->name);
        rcpt_error_hint(error, "name a status of the ladder as parent");
        return false;
    }
    if (ladder->entries[parent].code >= entry->code) {
        rcpt_error_fatal(error, EX_CONFIG,
                         "ladder: parent %s (%d) of status %s (%d) has no smaller code",
                         status->parent, ladder->entries[parent].code, status->name, entry->code);
        rcpt_error_hint(error, "a code is a priority: give the parent a smaller one");
        return false;
    }
    entry->parent = ladder->entries[parent].code;
    return true;
}

/* Two passes, and the root in between: a parent must be there before it can be checked. */
static bool add_statuses(struct rcpt_ladder *ladder,
                         const struct rcpt_ladder_definition *definition, struct rcpt_error *error)
{
    const struct rcpt_status_definition *sorted[RCPT_LADDER_MAX_STATUSES] = {NULL};
    size_t count = definition->status_count;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &definition->statuses[i];
    qsort(sorted, count, sizeof(sorted[0]), compare_statuses);
    for (size_t i = 0; i < count; i++) {
        if (!add_status(ladder, sorted[i], error))
            return false;
    }
    ladder->status_count = count;
    if (ladder->by_code[0] == NO_ENTRY) {
        rcpt_error_fatal(error, EX_CONFIG, "ladder: no status has code 0");
        rcpt_error_hint(error, "the status of a fresh message row, code 0, is the root");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!link_status(ladder, sorted[i], error))
            return false;
    }
    return true;
}

/* A flag's bit is its place in the configuration: removing one would move the others. */
static bool add_flag(struct rcpt_ladder *ladder, const struct rcpt_flag_definition *flag,
                     size_t bit, struct rcpt_error *error)
{
    struct rcpt_ladder_entry *entry =
        add_entry(ladder, flag->name, RCPT_LADDER_FIRST_FLAG_CODE + (int)bit, error);
    if (entry == NULL)
        return false;
    entry->is_flag = true;
    entry->mask = UINT32_C(1) << bit;
    if (flag->implies == NULL)
        return true;
    int implied = ladder_find_defined(ladder, flag->implies);
    if (implied < 0 || ladder->entries[implied].is_flag) {
        rcpt_error_fatal(error, EX_CONFIG, "ladder: flag %s implies %.60s, which is not a status",
                         flag->name, flag->implies);
        rcpt_error_hint(error, "name a status of the ladder, or leave it out");
        return false;
    }
    entry->top = ladder->entries[implied].code;
    return true;
}

/* Overrides are not chained: the status that an override gives is final. */
static bool add_override(struct rcpt_ladder *ladder,
                         const struct rcpt_override_definition *definition,
                         struct rcpt_error *error)
{
    int from = ladder_find_defined(ladder, definition->status);
    int to = ladder_find_defined(ladder, definition->becomes);
    if (from < 0 || to < 0) {
        rcpt_error_fatal(error, EX_CONFIG, "ladder: override names %.60s, which is not defined",
                         from < 0 ? definition->status : definition->becomes);
        rcpt_error_hint(error, "an override turns one status or flag of the ladder into another");
        return false;
    }
    size_t size = strlen(definition->channel);
    if (size == 0) {
        rcpt_error_fatal(error, EX_CONFIG, "ladder: override of %s has no channel",
                         definition->status);
        rcpt_error_hint(error, "name the value of the event's channel");
        return false;
    }
    const struct override *other = ladder_find_override(ladder, from, definition->channel, size);
    if (other != NULL && (other->to != to || strcmp(other->channel, definition->channel) == 0)) {
        rcpt_error_fatal(error, EX_CONFIG, "ladder: %s has two overrides for channel %.60s",
                         definition->status, definition->channel);
        rcpt_error_hint(error, "a status means one thing on a channel");
        return false;
    }
    struct override *override = &ladder->overrides[ladder->override_count++];
    override->channel = rcpt_strdup(definition->channel);
    override->channel_size = size;
    override->from = (uint8_t)from;
    override->to = (uint8_t)to;
    ladder->entries[from].is_overridden = true;
    return true;
}

/* By status and channel: the hash must not depend on the configuration's order. */
static int compare_overrides(const void *left, const void *right)
{
    const struct override *a = left, *b = right;
    return a->from != b->from ? (int)a->from - (int)b->from : strcmp(a->channel, b->channel);
}

/* Each piece is hashed with the hash so far as seed: the order is fixed, and no two pieces run
 * together. */
static uint64_t hash_entry(uint64_t hash, const struct rcpt_ladder_entry *entry)
{
    char line[RCPT_LADDER_MAX_NAME + 64];
    int size = snprintf(line, sizeof(line), "%s %d parent %d mask %u top %d", entry->name,
                        entry->code, entry->parent, entry->mask, entry->top);
    return rcpt_hash_text_extended(line, (size_t)size, hash);
}

/* Hashes the meaning only: neither the order of overrides nor `terminal` changes the hash. */
static void set_hash(struct rcpt_ladder *ladder)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < ladder->entry_count; i++)
        hash = hash_entry(hash, &ladder->entries[i]);
    qsort(ladder->overrides, ladder->override_count, sizeof(ladder->overrides[0]),
          compare_overrides);
    for (size_t i = 0; i < ladder->override_count; i++) {
        const struct override *override = &ladder->overrides[i];
        hash = rcpt_hash_text_extended(override->channel, override->channel_size, hash);
        hash = hash_entry(hash, &ladder->entries[override->from]);
        hash = hash_entry(hash, &ladder->entries[override->to]);
    }
    snprintf(ladder->hash, sizeof(ladder->hash), "%016llx", (unsigned long long)hash);
}

/* Bounds of arrays in struct rcpt_ladder, and of the hash table of names. */
static bool check_count(const char *what, size_t count, size_t most, struct rcpt_error *error)
{
    if (count <= most)
        return true;
    rcpt_error_fatal(error, EX_CONFIG, "ladder: %zu %s, at most %zu are allowed", count, what,
                     most);
    rcpt_error_hint(error, "leave out %s that no gateway sends", what);
    return false;
}

/* Checks the counts first: the arrays below have fixed sizes. */
static bool fill(struct rcpt_ladder *ladder, const struct rcpt_ladder_definition *definition,
                 struct rcpt_error *error)
{
    if (!check_count("statuses", definition->status_count, RCPT_LADDER_MAX_STATUSES, error) ||
        !check_count("flags", definition->flag_count, RCPT_LADDER_MAX_FLAGS, error) ||
        !check_count("overrides", definition->override_count, RCPT_LADDER_MAX_OVERRIDES, error) ||
        !add_statuses(ladder, definition, error))
        return false;
    for (size_t i = 0; i < definition->flag_count; i++) {
        if (!add_flag(ladder, &definition->flags[i], i, error))
            return false;
    }
    for (size_t i = 0; i < definition->override_count; i++) {
        if (!add_override(ladder, &definition->overrides[i], error))
            return false;
    }
    set_hash(ladder);
    return true;
}

/* NULL with the error, which names the entry of the configuration that is wrong. */
struct rcpt_ladder *rcpt_ladder_new(const struct rcpt_ladder_definition *definition,
                                    struct rcpt_error *error)
{
    struct rcpt_ladder *ladder = rcpt_calloc(1, sizeof(*ladder));
    memset(ladder->by_name, NO_ENTRY, sizeof(ladder->by_name));
    memset(ladder->by_code, NO_ENTRY, sizeof(ladder->by_code));
    if (fill(ladder, definition, error))
        return ladder;
    rcpt_ladder_free(ladder);
    return NULL;
}

struct rcpt_ladder *rcpt_ladder_copy(const struct rcpt_ladder *ladder)
{
    struct rcpt_ladder *copy = rcpt_malloc(sizeof(*copy));
    *copy = *ladder;
    for (size_t i = 0; i < copy->override_count; i++)
        copy->overrides[i].channel = rcpt_strdup(ladder->overrides[i].channel);
    return copy;
}

void rcpt_ladder_free(struct rcpt_ladder *ladder)
{
    if (ladder == NULL)
        return;
    for (size_t i = 0; i < ladder->override_count; i++)
        free(ladder->overrides[i].channel);
    free(ladder);
}

size_t rcpt_ladder_entry_count(const struct rcpt_ladder *ladder)
{
    return ladder->entry_count;
}

const struct rcpt_ladder_entry *rcpt_ladder_entry(const struct rcpt_ladder *ladder, size_t index)
{
    RCPT_ASSERT(index < ladder->entry_count);
    return &ladder->entries[index];
}

const char *rcpt_ladder_hash(const struct rcpt_ladder *ladder)
{
    return ladder->hash;
}
