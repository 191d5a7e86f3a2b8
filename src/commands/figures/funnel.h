/* Counts of one campaign and the rates that are made of them. Private to funnel.c and
 * funnel_rates.c. */
#ifndef RECEIPTD_COMMANDS_FIGURES_FUNNEL_H
#define RECEIPTD_COMMANDS_FIGURES_FUNNEL_H

#include "../command.h"
#include "receiptd/base/json.h"

#define FUNNEL_NUMBER_WIDTH 13u
#define FUNNEL_NAME_WIDTH   30u
#define FUNNEL_SHARE_WIDTH  11u
#define FUNNEL_NO_STATUS    SIZE_MAX

enum funnel_measure {
    FUNNEL_MESSAGES,
    FUNNEL_EVENTS,
    FUNNEL_CURRENT,
    FUNNEL_DUPLICATES, /* copies that did not count */
    FUNNEL_CUSTOMERS,  /* the groups of counters.groups */
    FUNNEL_LOGICAL,
    FUNNEL_MEASURE__COUNT
};

extern const char *const funnel_measure_names[FUNNEL_MEASURE__COUNT];

/* A status or flag of the ladder. Texts are borrowed from the result. */
struct funnel_status {
    const char *code, *name, *parent_code; /* parent_code NULL: a root or flag */
    size_t parent;                         /* index, or FUNNEL_NO_STATUS */
    bool is_flag;
    /* Counts of the campaign that is printed; flags have no `current`. */
    int64_t counts[FUNNEL_MEASURE__COUNT];
};

struct funnel_part; /* what a rate is made of */

/* The results that the command reads, and the campaign that it prints. */
struct funnel {
    struct rcpt_session_rows *counts, *ladder, *kpis, *undefined; /* results */
    struct rcpt_session_rows *pending; /* of one campaign, with inbox.expiry; NULL otherwise */
    const struct rcpt_machine_rules *machines; /* as the configuration has them */
    bool shows[FUNNEL_MEASURE__COUNT];         /* what is not counted is not shown */
    const char *vendor;                        /* whose rates are shown; NULL: receiptd's own */
    struct funnel_status *statuses;            /* by code: flags come last */
    struct funnel_part *parts;                 /* in the order of their rates */
    size_t status_count, part_count, next_row;
    const char *campaign, *org; /* org NULL: of several organisations, or of none */
};

/* ---- funnel.c ---- */
size_t funnel_find_status(const struct funnel *funnel, const char *code); /* NULL: there is none */
void funnel_print_number(int64_t value);
void funnel_print_share(int64_t part, int64_t whole);

/* ---- funnel_rates.c ---- */
/* Reads receiptd's own rates, or those of a vendor. NULL: the error is in the context. */
RCPT_MUST_CHECK struct rcpt_session_rows *funnel_query_rates(struct command_context *context,
                                                             const char *vendor);
void funnel_take_rates(struct funnel *funnel);
/* Writes the member `kpis`, or `vendor` and `vendor_kpis`, of an object; prints lines for people.
 */
void funnel_write_rates(const struct funnel *funnel, struct rcpt_json *json);
void funnel_print_rates(const struct funnel *funnel);
/* --kpis list: prints the vendors' definitions. Returns the exit code. */
int funnel_list_vendors(struct command_context *context, enum command_format format);

#endif
