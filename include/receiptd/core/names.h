/* The names of gateways and reasons, for callers that count by them. */
#ifndef RECEIPTD_CORE_NAMES_H
#define RECEIPTD_CORE_NAMES_H

#include "receiptd/core/record.h"

/* Names of a batch's gateways and reasons by the decoder's numbers. */
struct rcpt_lane_names {
    const char *(*name)(const void *context, enum rcpt_facet facet, uint32_t number);
    const void *context;
};
/* NULL or "": none. */
static inline const char *rcpt_lane_name(const struct rcpt_lane_names *names, enum rcpt_facet facet,
                                         uint32_t number)
{
    return names != NULL && names->name != NULL ? names->name(names->context, facet, number) : NULL;
}

#endif
