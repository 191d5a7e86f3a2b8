/* Policies for receipts of machines: opens by mail programs that fetch every picture, clicks by
 * scanners that follow every link. Gateways mark them with the flags MACHINE_OPEN and BOT_CLICK; a
 * policy decides how they count. Pure: the decoder applies it to each event by itself, so neither
 * order nor repetition matters. */
#ifndef RECEIPTD_CORE_MACHINE_H
#define RECEIPTD_CORE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receiptd/base/text.h"
#include "receiptd/core/ladder.h"

enum rcpt_machine_kind { RCPT_MACHINE_OPEN, RCPT_MACHINE_CLICK, RCPT_MACHINE_KIND__COUNT };

enum rcpt_machine_policy {
    RCPT_MACHINE_FLAG,   /* the flag alone, with the status that it implies */
    RCPT_MACHINE_COUNT,  /* OPENED or CLICKED, and the flag */
    RCPT_MACHINE_IGNORE, /* nothing */
    RCPT_MACHINE_POLICY__COUNT,
};

/* A rule for receipts that name these; a NULL name fits any receipt. */
struct rcpt_machine_rule {
    char *account, *org_id, *campaign;
    enum rcpt_machine_kind kind;
    enum rcpt_machine_policy policy;
};

struct rcpt_machine_rules {
    enum rcpt_machine_policy opens, clicks; /* where no rule fits */
    struct rcpt_machine_rule *rules;        /* the first one that fits counts */
    size_t rule_count;
};

/* The flags and statuses of a ladder that are about machines. */
struct rcpt_machine_marks {
    uint32_t masks[RCPT_MACHINE_KIND__COUNT]; /* of the kind's flag; 0: the ladder lacks a part */
    int flags[RCPT_MACHINE_KIND__COUNT];      /* entries: of the flag … */
    int statuses[RCPT_MACHINE_KIND__COUNT];   /* … and of OPENED or CLICKED */
};

/* The names in an event by which rules are chosen. */
struct rcpt_machine_origin {
    struct rcpt_text account, org_id, campaign; /* size 0: none */
};

void rcpt_machine_find_marks(const struct rcpt_ladder *ladder, struct rcpt_machine_marks *marks);

/* Copies rules for another thread; the caller owns the copy. */
void rcpt_machine_rules_copy(const struct rcpt_machine_rules *rules,
                             struct rcpt_machine_rules *copy);
/* frees what the copy holds, not the copy itself */
void rcpt_machine_rules_free(struct rcpt_machine_rules *copy);

/* "open", "click"; "flag", "count", "ignore". */
const char *rcpt_machine_kind_name(enum rcpt_machine_kind kind);
const char *rcpt_machine_policy_name(enum rcpt_machine_policy policy);

/* The policy for an event of this origin; `rules` NULL: FLAG. */
enum rcpt_machine_policy rcpt_machine_policy_of(const struct rcpt_machine_rules *rules,
                                                enum rcpt_machine_kind kind,
                                                const struct rcpt_machine_origin *origin);

/* An event's status and flags, as named or after the policies. */
struct rcpt_machine_event {
    int entry;      /* of the ladder: its status, or its first flag; -1: nothing */
    unsigned kinds; /* bits 1 << kind: OPENED or CLICKED, where that is not its status */
    uint32_t flags; /* of it, with its entry's */
};

/* Applies the policies, one for each kind, to the event. They remove or replace only the machine's
 * open or click; the event's other flags and status stay. */
void rcpt_machine_apply(const struct rcpt_ladder *ladder, const struct rcpt_machine_marks *marks,
                        const enum rcpt_machine_policy policies[static RCPT_MACHINE_KIND__COUNT],
                        struct rcpt_machine_event *event);

/* Whether every possible receipt of this kind gets one of these policies (bits 1 << policy). */
bool rcpt_machine_is_always(const struct rcpt_machine_rules *rules, enum rcpt_machine_kind kind,
                            unsigned policies);

#endif
