/* The status ladder: statuses form a tree, a status code is a priority, flags stand beside the
 * tree.
 *
 * Pure; after rcpt_ladder_new it can grow, and nothing else changes. Definition of the default
 * ladder: docs/semantics.md. A status is addressed by its entry (a small index over statuses and
 * flags), because that is what events carry.
 */
#ifndef RECEIPTD_CORE_LADDER_H
#define RECEIPTD_CORE_LADDER_H

#include <stddef.h>
#include <stdint.h>

#include "receiptd/base/error.h"

#define RCPT_LADDER_MAX_STATUSES    100
#define RCPT_LADDER_MAX_FLAGS       31
#define RCPT_LADDER_MAX_OVERRIDES   64
#define RCPT_LADDER_MAX_NAME        40
#define RCPT_LADDER_FIRST_FLAG_CODE 9001 /* flag bit b is shown with code 9001 + b */
#define RCPT_LADDER_NO_STATUS       (-1)

struct rcpt_status_definition {
    const char *name;   /* 1…40 bytes of [A-Z0-9_] */
    int code;           /* 0…9000, unique; the root is 0; code = priority */
    const char *parent; /* name of the parent; NULL for the root only. Must have a smaller code */
    bool terminal;      /* for readers; no rule depends on it */
};

struct rcpt_flag_definition {
    const char *name;    /* unique over statuses and flags */
    const char *implies; /* status that a receipt of this flag carries, NULL if none */
};

struct rcpt_override_definition {
    const char *channel; /* value of the event's `channel`; EMAIL is email */
    const char *status;  /* what the event names … */
    const char *becomes; /* … and what it means on this channel */
};

struct rcpt_ladder_definition {
    const struct rcpt_status_definition *statuses;
    size_t status_count;
    const struct rcpt_flag_definition *flags; /* flag i has bit i */
    size_t flag_count;
    const struct rcpt_override_definition *overrides;
    size_t override_count;
};

struct rcpt_ladder_entry {
    char name[RCPT_LADDER_MAX_NAME + 1];
    int16_t code; /* status code, or 9001 + bit for a flag */
    /* status that a receipt of this entry carries: its own code, the implied one, or 0 */
    int16_t top;
    int16_t parent; /* parent's code; RCPT_LADDER_NO_STATUS for the root and for flags */
    uint32_t mask;  /* the flag's bit; 0 for statuses */
    bool terminal;
    bool is_flag;
    bool is_overridden; /* some channel has another meaning for it */
};

struct rcpt_ladder;

/* The ladder of docs/semantics.md. */
const struct rcpt_ladder_definition *rcpt_ladder_default_definition(void);

/* Checks and copies the definition. Errors name the status and its fault (duplicate name or code,
 * unknown parent, parent's code not smaller, no root, two roots, code out of range, unknown
 * override, too many). Returns NULL on error; the caller owns the ladder. */
RCPT_MUST_CHECK struct rcpt_ladder *rcpt_ladder_new(const struct rcpt_ladder_definition *definition,
                                                    struct rcpt_error *error);
/* A copy of the ladder as it is now, for another thread. */
struct rcpt_ladder *rcpt_ladder_copy(const struct rcpt_ladder *ladder);
void rcpt_ladder_free(struct rcpt_ladder *ladder);

size_t rcpt_ladder_entry_count(const struct rcpt_ladder *ladder);
const struct rcpt_ladder_entry *rcpt_ladder_entry(const struct rcpt_ladder *ladder, size_t index);

/* Entry of a name or code on a channel (channel_size 0: none). Returns the entry's index, or -1 if
 * unknown. */
int rcpt_ladder_find_name(const struct rcpt_ladder *ladder, const char *name, size_t name_size,
                          const char *channel, size_t channel_size);
int rcpt_ladder_find_code(const struct rcpt_ladder *ladder, int64_t code, const char *channel,
                          size_t channel_size);

/* Finds a channel that a misspelt `channel` may mean, among those for which the entry has
 * overrides. NULL: none is near. */
const char *rcpt_ladder_near_channel(const struct rcpt_ladder *ladder, int entry,
                                     const char *channel);

/* Whether `ladder` can grow into `fresh`. `fresh` must have every status, flag and override of
 * `ladder`; it may have more, and a new override must involve a new name. So everything that was
 * read, counted or parked by the old ladder is right by the new one. False with an error that names
 * what is in the way. */
RCPT_MUST_CHECK bool rcpt_ladder_can_grow(const struct rcpt_ladder *ladder,
                                          const struct rcpt_ladder *fresh,
                                          struct rcpt_error *error);
/* Adds the entries that only `fresh` has (rcpt_ladder_can_grow has agreed). Entries keep their
 * indices: decoded events keep their meaning. Not while another thread reads the ladder. */
void rcpt_ladder_grow(struct rcpt_ladder *ladder, const struct rcpt_ladder *fresh);

/* Hash over all that changes the meaning of rows, as 16 lower-case hex digits: codes, names,
 * parents, flags with their bits and implications, and overrides. The order of definition makes no
 * difference, except that it gives flags their bits. */
const char *rcpt_ladder_hash(const struct rcpt_ladder *ladder);

#endif
