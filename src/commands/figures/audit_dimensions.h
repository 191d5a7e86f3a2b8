/* The audit of dimensions (counters.by), groups (counters.groups) and times (counters.times).
 * Private to this folder. */
#ifndef RECEIPTD_COMMANDS_FIGURES_AUDIT_DIMENSIONS_H
#define RECEIPTD_COMMANDS_FIGURES_AUDIT_DIMENSIONS_H

#include "../command.h"
#include "../report.h"

struct audit_dimensions {
    struct command_context *context;
    bool repair;
    bool booked;          /* this run has booked messages that went without the trigger */
    struct report *drift; /* as that of audit.c: a row for each cell that is off */
    /* Findings: cells that were added to, cells that are off at the end, and campaigns with
     * messages that were inserted before a dimension was counted (once for each dimension). */
    int64_t repaired, remaining, older;
};

/* Audits the campaigns of an array of SQL. False: the error is in the context. */
RCPT_MUST_CHECK bool audit_dimensions(struct audit_dimensions *audit, const char *campaigns);
/* The histograms of times by gateway, over all campaigns. */
RCPT_MUST_CHECK bool audit_gateway_times(struct audit_dimensions *audit);

#endif
