/* LINE: events as JSON; only success is reported, and the message is known by the tag that the
 * sender gave. An empty list is LINE's try of the URL.
 * developers.line.biz/en/docs/partner-docs/line-notification-messages */
#include "../gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"delivery", NULL, "DELIVERED", NULL},
    {"message", NULL, NULL, NULL}, /* a person's, as are those down to postback */
    {"unsend", NULL, NULL, NULL},
    {"follow", NULL, NULL, NULL},
    {"unfollow", NULL, NULL, NULL},
    {"join", NULL, NULL, NULL},
    {"leave", NULL, NULL, NULL},
    {"member*", NULL, NULL, NULL},
    {"postback", NULL, NULL, NULL},
    {"videoPlayComplete", NULL, NULL, NULL},
    {"beacon", NULL, NULL, NULL},
    {"accountLink", NULL, NULL, NULL},
    {"things", NULL, NULL, NULL},
    {"module", NULL, NULL, NULL},
    {"activated", NULL, NULL, NULL},
    {"deactivated", NULL, NULL, NULL},
    {"bot*", NULL, NULL, NULL},
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
