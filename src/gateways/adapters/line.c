/* LINE: events as JSON; only success is reported, and the message is known by the tag that the
 * sender gave. An empty list is LINE's try of the URL.
 * developers.line.biz/en/docs/partner-docs/line-notification-messages */
#include "gateways/gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"delivery", NULL, "DELIVERED", NULL},
    {"*", NULL, NULL, NULL}, /* messages, follows, postbacks */
};

const struct rcpt_gateway rcpt_gateway_line = {
    .name = "line",
    .channel = "line",
    .items = "/events/*",
    .fields = {.id = "/delivery/data",
               .status = "/type",
               .at = "/timestamp",
               .event_id = "/webhookEventId"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .verify = rcpt_verify_line,
};
