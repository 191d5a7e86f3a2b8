/* Which messages count as one (counters.groups): those of a customer, and attempts at one logical
 * message. Pure. */
#ifndef RECEIPTD_CONFIG_GROUPS_H
#define RECEIPTD_CONFIG_GROUPS_H

#include "config.h"
#include "postgres/bind.h"

#define RCPT_GROUPS         2u                 /* kinds that there are */
#define RCPT_GROUP_BINDINGS (RCPT_GROUPS + 1u) /* columns, and what they are */

/* Names are borrowed from the configuration, or static. The bindings point into the struct: it is
 * not copied. */
struct rcpt_groups {
    size_t count;
    const char *names[RCPT_GROUPS];   /* "customer" */
    const char *columns[RCPT_GROUPS]; /* of the inbox */
    char kinds[32];                   /* as an array of SQL: "{customer}" */
    /* Variables of sql/expiry and of the audit; none without groups. */
    struct rcpt_pg_binding bindings[RCPT_GROUP_BINDINGS];
    size_t binding_count;
};

void rcpt_groups_read(const struct rcpt_config *config, struct rcpt_groups *groups);

/* The inbox's column of this kind, which is there; NULL: it is not counted. Borrowed as above. */
const char *rcpt_groups_column(const struct rcpt_config *config, const char *kind);

/* Why counters.groups cannot be counted: a sentence; NULL: nothing is wrong. */
const char *rcpt_config_groups_problem(const struct rcpt_config *config);

#endif
