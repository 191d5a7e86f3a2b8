/* Retentions as parameters (keeps.h). Called by retire.c and partitions_drop.c. */
#include "keeps.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static char *keeps_of(const struct rcpt_config *config, bool of_campaigns,
                      struct rcpt_array_text *names)
{
    size_t used = 1, size = 3 + config->inbox.overrides_count * 24;
    char *keeps = rcpt_malloc(size);
    keeps[0] = '{';
    for (size_t index = 0; index < config->inbox.overrides_count; index++) {
        const struct rcpt_config_retention *given = &config->inbox.overrides[index];
        const char *name = of_campaigns ? given->campaign : given->org_id;
        if (name == NULL)
            continue;
        rcpt_array_text_add(names, name, strlen(name));
        used += (size_t)snprintf(keeps + used, size - used, "%s%" PRId64, used > 1 ? "," : "",
                                 given->keep_ms);
    }
    keeps[used] = '}';
    keeps[used + 1] = '\0';
    return keeps;
}

void keeps_init(struct keeps *keeps, const struct rcpt_config *config)
{
    rcpt_array_text_init(&keeps->campaigns);
    rcpt_array_text_init(&keeps->orgs);
    keeps->campaign_keeps = keeps_of(config, true, &keeps->campaigns);
    keeps->org_keeps = keeps_of(config, false, &keeps->orgs);
    snprintf(keeps->keep, sizeof(keeps->keep), "%" PRId64, config->inbox.retention_ms);
    keeps->values[0] = rcpt_array_text_finish(&keeps->campaigns);
    keeps->values[1] = keeps->campaign_keeps;
    keeps->values[2] = rcpt_array_text_finish(&keeps->orgs);
    keeps->values[3] = keeps->org_keeps;
    keeps->values[4] = keeps->keep;
}

void keeps_fini(struct keeps *keeps)
{
    rcpt_array_text_fini(&keeps->campaigns);
    rcpt_array_text_fini(&keeps->orgs);
    free(keeps->campaign_keeps);
    free(keeps->org_keeps);
}

int64_t keeps_shortest(const struct rcpt_config *config)
{
    int64_t shortest = config->inbox.retention_ms;
    for (size_t index = 0; index < config->inbox.overrides_count; index++) {
        int64_t keep = config->inbox.overrides[index].keep_ms;
        if (keep > 0 && (shortest == 0 || keep < shortest))
            shortest = keep;
    }
    return shortest;
}
