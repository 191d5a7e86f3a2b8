/* The list of adapters (gateways.h), by name. Called by the check of the configuration and by
 * account.c. */
#include "gateways.h"

/* Some thirty names: a search of all is enough at the start. */
const struct rcpt_gateway *rcpt_gateway_find(const char *name)
{
#define ADDRESS(name) &rcpt_gateway_##name,
    static const struct rcpt_gateway *const gateways[] = {RCPT_GATEWAYS(ADDRESS)};
#undef ADDRESS
    for (size_t index = 0; index < RCPT_COUNT_OF(gateways); index++)
        if (strcmp(gateways[index]->name, name) == 0)
            return gateways[index];
    return NULL;
}

/* For completion, documentation and suggestions. */
const char *const *rcpt_gateway_list(size_t *count)
{
#define NAME(name) #name,
    static const char *const names[] = {RCPT_GATEWAYS(NAME)};
#undef NAME
    *count = RCPT_COUNT_OF(names);
    return names;
}
