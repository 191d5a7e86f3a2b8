/* The ladder of statuses: names and codes, parents, flags, overrides by channel, the hash that is
 * pinned in the database, and growth by a reload. Built from the configuration or the default, then
 * only read. Called by the decoder, the batch and all commands that show a status.
 */
#include "ladder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "hash.h"

#define MAX_ENTRIES (RCPT_LADDER_MAX_STATUSES + RCPT_LADDER_MAX_FLAGS)
#define MAX_CODE    (RCPT_LADDER_FIRST_FLAG_CODE - 1)
#define CODE_COUNT  (RCPT_LADDER_FIRST_FLAG_CODE + RCPT_LADDER_MAX_FLAGS)
#define NO_ENTRY    UINT8_MAX
/* Eight slots per entry at the most: hardly any two names meet. A power of two. */
#define NAME_SLOTS 1024u

_Static_assert(MAX_ENTRIES < NO_ENTRY, "an entry's index is kept in a byte");

struct override {
    char *channel;
    size_t channel_size;
    uint8_t from;
    uint8_t to;
};

struct rcpt_ladder {
    /* Statuses by code, then flags by bit; then, likewise, what each growth has added. */
    struct rcpt_ladder_entry entries[MAX_ENTRIES];
    size_t name_sizes[MAX_ENTRIES];
    size_t entry_count;
    size_t status_count;
    bool overridden[MAX_ENTRIES]; /* some channel has another meaning for it */
    struct override overrides[RCPT_LADDER_MAX_OVERRIDES];
    size_t override_count;
    uint8_t by_name[NAME_SLOTS]; /* open addressing */
    uint8_t by_code[CODE_COUNT];
    char hash[17];
};

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

static const struct rcpt_override_definition default_overrides[] = {
    {"email", "BOUNCED_HARD", "BOUNCED_HARD_EMAIL"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct rcpt_ladder_definition default_definition = {
    default_statuses,     COUNT(default_statuses), default_flags,
    COUNT(default_flags), default_overrides,       COUNT(default_overrides),
};

const struct rcpt_ladder_definition *rcpt_ladder_default_definition(void)
{
    return &default_definition;
}

static uint32_t name_slot(const char *name, size_t size)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return (hash ^ hash >> 15) & (NAME_SLOTS - 1);
}

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

static int find_defined(const struct rcpt_ladder *ladder, const char *name)
{
    return find_entry(ladder, name, strlen(name));
}

static const struct override *find_override(const struct rcpt_ladder *ladder, int index,
                                            const char *channel, size_t size)
{
    for (size_t i = 0; i < ladder->override_count; i++) {
        const struct override *override = &ladder->overrides[i];
        if (override->from == index && override->channel_size == size &&
            memcmp(override->channel, channel, size) == 0)
            return override;
    }
    return NULL;
}

static int on_channel(const struct rcpt_ladder *ladder, int index, const char *channel, size_t size)
{
    if (index < 0 || size == 0 || !ladder->overridden[index])
        return index;
    const struct override *override = find_override(ladder, index, channel, size);
    return override != NULL ? override->to : index;
}

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

static bool is_name(const char *name)
{
    size_t size = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return size > 0 && size <= RCPT_LADDER_MAX_NAME && name[size] == '\0';
}

static void put_name(struct rcpt_ladder *ladder, size_t index)
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
    if (find_defined(ladder, name) >= 0) {
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
    put_name(ladder, index);
    ladder->by_code[code] = (uint8_t)index;
    return entry;
}

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

static int compare_statuses(const void *left, const void *right)
{
    const struct rcpt_status_definition *const *a = left, *const *b = right;
    return ((*a)->code > (*b)->code) - ((*a)->code < (*b)->code);
}

/* All statuses are there, so that a parent with too large a code is told from one that is not
 * defined. */
static bool link_status(struct rcpt_ladder *ladder, const struct rcpt_status_definition *status,
                        struct rcpt_error *error)
{
    struct rcpt_ladder_entry *entry = &ladder->entries[find_defined(ladder, status->name)];
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
    int parent = find_defined(ladder, status->parent);
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
    int implied = find_defined(ladder, flag->implies);
    if (implied < 0 || ladder->entries[implied].is_flag) {
        rcpt_error_fatal(error, EX_CONFIG, "ladder: flag %s implies %.60s, which is not a status",
                         flag->name, flag->implies);
        rcpt_error_hint(error, "name a status of the ladder, or leave it out");
        return false;
    }
    entry->top = ladder->entries[implied].code;
    return true;
}

static bool add_override(struct rcpt_ladder *ladder,
                         const struct rcpt_override_definition *definition,
                         struct rcpt_error *error)
{
    int from = find_defined(ladder, definition->status);
    int to = find_defined(ladder, definition->becomes);
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
    if (find_override(ladder, from, definition->channel, size) != NULL) {
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
    ladder->overridden[from] = true;
    return true;
}

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

static bool check_count(const char *what, size_t count, size_t most, struct rcpt_error *error)
{
    if (count <= most)
        return true;
    rcpt_error_fatal(error, EX_CONFIG, "ladder: %zu %s, at most %zu are allowed", count, what,
                     most);
    rcpt_error_hint(error, "leave out %s that no gateway sends", what);
    return false;
}

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

void rcpt_ladder_free(struct rcpt_ladder *ladder)
{
    if (ladder == NULL)
        return;
    for (size_t i = 0; i < ladder->override_count; i++)
        free(ladder->overrides[i].channel);
    free(ladder);
}

/* ---- growth ---- */

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
    rcpt_error_hint(error, "while instances run a ladder can only grow: give back what it had, or "
                           "stop all of them, run receiptd migrate, and start them");
    return false;
}

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
    int from = find_defined(where, owner->entries[override->from].name);
    const struct override *found =
        from < 0 ? NULL : find_override(where, from, override->channel, override->channel_size);
    return found != NULL &&
           strcmp(where->entries[found->to].name, owner->entries[override->to].name) == 0;
}

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
        if (!has_override(old, override, fresh) && find_defined(old, from) >= 0 &&
            find_defined(old, fresh->entries[override->to].name) >= 0)
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

static void append_entry(struct rcpt_ladder *ladder, const struct rcpt_ladder_entry *entry)
{
    size_t index = ladder->entry_count++;
    RCPT_ASSERT(index < MAX_ENTRIES);
    ladder->entries[index] = *entry;
    ladder->name_sizes[index] = strlen(entry->name);
    ladder->status_count += !entry->is_flag;
    put_name(ladder, index);
    ladder->by_code[entry->code] = (uint8_t)index;
}

static void append_override(struct rcpt_ladder *ladder, const struct rcpt_ladder *fresh,
                            const struct override *added)
{
    RCPT_ASSERT(ladder->override_count < RCPT_LADDER_MAX_OVERRIDES);
    struct override *override = &ladder->overrides[ladder->override_count++];
    *override = *added;
    override->channel = rcpt_strdup(added->channel);
    override->from = (uint8_t)find_defined(ladder, fresh->entries[added->from].name);
    override->to = (uint8_t)find_defined(ladder, fresh->entries[added->to].name);
    ladder->overridden[override->from] = true;
}

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
