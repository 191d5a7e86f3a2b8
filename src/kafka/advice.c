/* Hints for troubles of TLS and of passwords. librdkafka's own texts name its functions; the remedy
 * depends on the properties that are set. Called by health.c and producer.c. */
#include <string.h>

#include "internal.h"

static bool says(const struct rcpt_error *error, const char *part)
{
    return strstr(error->text, part) != NULL;
}

static const char *property_or(const struct rcpt_kafka_settings *settings, const char *name,
                               const char *fallback)
{
    const char *value = rcpt_kafka_property(settings, name);
    return value != NULL ? value : fallback;
}

/* Never shows the password, only which mechanism and user are set. */
static void advise_on_password(const struct rcpt_kafka_settings *settings, struct rcpt_error *error)
{
    const char *mechanism = rcpt_kafka_mechanism(settings);
    const char *user = property_or(settings, "sasl.username", "");
    if (says(error, "supported mechanisms"))
        rcpt_error_hint(error,
                        "sasl.mechanism in kafka.properties is %s: set one that the broker has",
                        mechanism != NULL ? mechanism : "not set");
    else if (rcpt_kafka_is_scram_broken(settings))
        rcpt_error_hint(error,
                        "the password of \"%.40s\" may be right: librdkafka %s cannot do %s with "
                        "Kafka 4 and later (mended in 2.6.1); use PLAIN over TLS, or a later "
                        "librdkafka",
                        user, rd_kafka_version_str(), mechanism);
    else
        rcpt_error_hint(
            error,
            "check in kafka.properties: sasl.mechanism is %s, sasl.username is \"%.80s\", "
            "and the password in the file that sasl.password names",
            mechanism != NULL ? mechanism : "not set", user);
}

/* Two causes: the certificate is not trusted, or one of the two sides does not speak TLS. */
static void advise_on_tls(const struct rcpt_kafka_settings *settings, struct rcpt_error *error)
{
    if (says(error, "certificate verify failed"))
        rcpt_error_hint(
            error,
            "the broker's certificate is not signed by ssl.ca.location (%.80s), or is "
            "for another name than the address in kafka.brokers or advertised.listeners",
            property_or(settings, "ssl.ca.location", "not set: the system's"));
    else
        rcpt_error_hint(
            error, "security.protocol in kafka.properties is %s: does this listener speak TLS?",
            property_or(settings, "security.protocol", "not set (plaintext)"));
}

/* The broker hung up: over TLS the reason is in the alert it sent, without TLS there is none. */
static void advise_on_disconnect(const struct rcpt_kafka_settings *settings,
                                 struct rcpt_error *error)
{
    if (says(error, "alert"))
        rcpt_error_hint(error,
                        "the broker refuses our certificate: ssl.certificate.location in "
                        "kafka.properties is %.80s",
                        property_or(settings, "ssl.certificate.location", "not set"));
    else if (says(error, "security.protocol"))
        rcpt_error_hint(error,
                        "security.protocol in kafka.properties is %s: does this listener ask for "
                        "ssl or sasl_ssl?",
                        property_or(settings, "security.protocol", "not set (plaintext)"));
}

/* Other errors keep their hint. */
void rcpt_kafka_advise(const struct rcpt_kafka_settings *settings, struct rcpt_error *error)
{
    if (strcmp(error->code, rd_kafka_err2name(RD_KAFKA_RESP_ERR__AUTHENTICATION)) == 0 ||
        strcmp(error->code, rd_kafka_err2name(RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED)) == 0)
        advise_on_password(settings, error);
    else if (strcmp(error->code, rd_kafka_err2name(RD_KAFKA_RESP_ERR__SSL)) == 0)
        advise_on_tls(settings, error);
    else if (strcmp(error->code, rd_kafka_err2name(RD_KAFKA_RESP_ERR__TRANSPORT)) == 0)
        advise_on_disconnect(settings, error);
}

/* The hint for trouble with a topic names its key in the configuration, and the right that a
 * producer may lack. The error's text begins with the topic. */
void rcpt_producer_advise(const struct rcpt_producer_settings *settings, struct rcpt_error *error)
{
    const char *key = "the step of pipelines that produces to it";
    for (size_t i = 0; settings->topic_keys != NULL && i < settings->topic_count; i++) {
        size_t size = strlen(settings->topics[i]);
        if (strncmp(error->text, settings->topics[i], size) == 0 && error->text[size] == ':')
            key = settings->topic_keys[i];
    }
    if (strcmp(error->code, rd_kafka_err2name(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)) == 0 ||
        strcmp(error->code, rd_kafka_err2name(RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC)) == 0)
        rcpt_error_hint(error, "create the topic, or correct %s", key);
    else if (strcmp(error->code, rd_kafka_err2name(RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION)) == 0)
        rcpt_error_hint(error, "the topic's name is not valid: correct %s", key);
    else if (strcmp(error->code, rd_kafka_err2name(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)) ==
             0)
        rcpt_error_hint(error, "grant WRITE and DESCRIBE on the topic to receiptd's user");
}
