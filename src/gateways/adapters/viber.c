/* Viber bots: one event as JSON. message_token has 64 bits; each device of a user reports
 * `delivered`. developers.viber.com/docs/api/rest-bot-api/#callbacks */
#include "../gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"delivered", NULL, "DELIVERED", NULL},
    {"seen", NULL, "OPENED", NULL},
    {"failed", NULL, "FAILED", NULL},
    {"expired", NULL, "EXPIRED", NULL},
    {"webhook", NULL, NULL, NULL},
    {"message", NULL, NULL, NULL},
    {"subscribed", NULL, NULL, NULL},
    {"unsubscribed", NULL, NULL, NULL},
    {"conversation_started", NULL, NULL, NULL},
    {"action", NULL, NULL, NULL},
    {"client_status", NULL, NULL, NULL},
};

const struct rcpt_gateway rcpt_gateway_viber = {
    .name = "viber",
    .channel = "viber",
    .fields = {.id = "/message_token", .status = "/event", .reason = "/desc", .at = "/timestamp"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .verify = rcpt_verify_viber,
};
