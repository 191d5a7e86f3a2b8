/* MTN: one receipt as JSON. The field mixes names of OMA ParlayX with those of SMPP. */
#include "../gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"DeliveredToTerminal", NULL, "DELIVERED", NULL},
    {"DeliveredToNetwork", NULL, "SENT", NULL},
    {"MessageWaiting", NULL, "DEFERRED", NULL},
    {"DeliveryUncertain", NULL, "UNKNOWN", NULL},
    {"DeliveryImpossible", NULL, "FAILED", NULL},
    {"DeliveryNotificationNotSupported", NULL, "UNKNOWN", NULL},
};

const struct rcpt_gateway rcpt_gateway_mtn = {
    .name = "mtn",
    .channel = "sms",
    .inbound = "{senderAddress}{message}",
    .fields = {.id = "TransactionID,transactionId,requestId",
               .status = "deliveryStatus",
               .client_ref = "clientCorrelator"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .smpp_words = true,
};
