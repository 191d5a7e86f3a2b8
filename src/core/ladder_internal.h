/* Shared by ladder.c (building, finding) and ladder_growth.c. Private to src/core. */
#ifndef RECEIPTD_CORE_LADDER_INTERNAL_H
#define RECEIPTD_CORE_LADDER_INTERNAL_H

#include "receiptd/core/ladder.h"

#define MAX_ENTRIES (RCPT_LADDER_MAX_STATUSES + RCPT_LADDER_MAX_FLAGS)
#define MAX_CODE    (RCPT_LADDER_FIRST_FLAG_CODE - 1)
#define CODE_COUNT  (RCPT_LADDER_FIRST_FLAG_CODE + RCPT_LADDER_MAX_FLAGS)
#define NO_ENTRY    UINT8_MAX
/* At least seven slots per entry, so two names rarely share one. A power of two. */
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
    struct override overrides[RCPT_LADDER_MAX_OVERRIDES];
    size_t override_count;
    uint8_t by_name[NAME_SLOTS]; /* open addressing */
    uint8_t by_code[CODE_COUNT];
    char hash[17];
};

/* Index of the entry with this name, -1: there is none. */
int ladder_find_defined(const struct rcpt_ladder *ladder, const char *name);
/* The override of this entry on this channel; NULL: there is none. */
const struct override *ladder_find_override(const struct rcpt_ladder *ladder, int index,
                                            const char *channel, size_t size);
/* Makes the entry known by its name, which no other entry has. */
void ladder_put_name(struct rcpt_ladder *ladder, size_t index);

#endif
