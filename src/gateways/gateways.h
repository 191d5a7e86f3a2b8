/* The list of adapters. A new one is a file in gateways/ and a row here. */
#ifndef RECEIPTD_GATEWAYS_GATEWAYS_H
#define RECEIPTD_GATEWAYS_GATEWAYS_H

#include "gateway.h"

#define RCPT_GATEWAYS(X)                                                                           \
    X(africastalking)                                                                              \
    X(aws_eum_sms)                                                                                 \
    X(bandwidth)                                                                                   \
    X(fb_messenger)                                                                                \
    X(gupshup_sms)                                                                                 \
    X(gupshup_whatsapp)                                                                            \
    X(infobip)                                                                                     \
    X(jasmin)                                                                                      \
    X(kaleyra)                                                                                     \
    X(kannel)                                                                                      \
    X(line)                                                                                        \
    X(mailgun)                                                                                     \
    X(messagebird)                                                                                 \
    X(msg91)                                                                                       \
    X(mtn)                                                                                         \
    X(plivo)                                                                                       \
    X(postmark)                                                                                    \
    X(sendgrid)                                                                                    \
    X(ses_sns)                                                                                     \
    X(sinch)                                                                                       \
    X(sms_simple_forms)                                                                            \
    X(sparkpost)                                                                                   \
    X(twilio)                                                                                      \
    X(viber)                                                                                       \
    X(vonage_messages)                                                                             \
    X(vonage_sms)                                                                                  \
    X(whatsapp_cloud)                                                                              \
    X(zenvia)

#define RCPT_GATEWAY_DECLARE(name) extern const struct rcpt_gateway rcpt_gateway_##name;
RCPT_GATEWAYS(RCPT_GATEWAY_DECLARE)
#undef RCPT_GATEWAY_DECLARE

#endif
