/* The fields of an event beside its status: its origin (organisation, campaign, gateway, reason),
 * the link and the cost. They are read from the event's own JSON text.
 *
 * They are needed when a receipt is parked, its row has to be created, the timeline is written, or
 * a rule counts links or costs. So they are read then, and not when the record is decoded. Pure.
 * PostgreSQL's JSON functions cannot do it: they refuse escapes anywhere in the object that are
 * legal JSON.
 */
#ifndef RECEIPTD_CORE_ORIGIN_H
#define RECEIPTD_CORE_ORIGIN_H

#include "receiptd/base/arena.h"
#include "receiptd/base/text.h"
#include "receiptd/core/record.h"

struct rcpt_origin { /* at NULL: absent, neither a string nor a number, or with a NUL */
    struct rcpt_text org_id, campaign_id;
    struct rcpt_text gateway;            /* the account, as message_alias names it */
    struct rcpt_text gateway_message_id; /* the id that the gateway gave */
    struct rcpt_text reason, reason_class, event_id;
    struct rcpt_text link, cost, currency; /* what was clicked; the price as it was sent */
};

/* `json` is the text of one object that was decoded as an event before. Strings are in `arena` or
 * in `json`. */
struct rcpt_origin rcpt_origin_read(const char *json, size_t size, struct rcpt_arena *arena);

/* Whether the event names its message by the gateway's id: then it waits for an alias. */
bool rcpt_origin_is_gateways(const struct rcpt_origin *origin, const struct rcpt_event *event);

/* Joins an event's organisation into its message's. The text's `at` is NULL as long as no event has
 * named one. It is empty when events name different ones. Points into the record or into `arena`.
 */
void rcpt_origin_join_org(const struct rcpt_record *record, const struct rcpt_event *event,
                          struct rcpt_text *org, struct rcpt_arena *arena);

#endif
