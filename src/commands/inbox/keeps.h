/* inbox.retention and inbox.retention_overrides as parameters of the statements of sql/retire and
 * sql/partitions. Private to this folder. */
#ifndef RECEIPTD_COMMANDS_INBOX_KEEPS_H
#define RECEIPTD_COMMANDS_INBOX_KEEPS_H

#include "receiptd/config/config.h"
#include "receiptd/postgres/array_text.h"

#define KEEPS_VALUES 5u

struct keeps {
    struct rcpt_array_text campaigns, orgs;
    char *campaign_keeps, *org_keeps; /* array literals */
    char keep[24];
    /* Campaigns, their retentions in ms, organisations, theirs, and that of all others. */
    const char *values[KEEPS_VALUES];
};

void keeps_init(struct keeps *keeps, const struct rcpt_config *config);
void keeps_fini(struct keeps *keeps);

/* The shortest of them in ms; 0: nothing is ever too old. */
int64_t keeps_shortest(const struct rcpt_config *config);

#endif
