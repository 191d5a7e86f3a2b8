/* Whether the intake takes requests, and the reason if it does not. A leaf, called by the other
 * files of the intake. */
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "receiptd/base/log.h"

#define STALL_MS 2000 /* Kafka has been silent for so long: nothing more is taken in */

/* Half of the acknowledgement time-out at most, so that a request accepted just before still gets
 * an answer within it. */
static int64_t stall_ms(const struct rcpt_intake *intake)
{
    int64_t half = intake->config->intake.ack_timeout_ms / 2;
    return half < STALL_MS ? half : STALL_MS;
}

static const char *kafka_trouble(const struct rcpt_intake *intake)
{
    return intake->kafka_reason[0] != '\0' ? intake->kafka_reason : "connecting to Kafka";
}

/* The order is that of the start: without partitions no record has a target, without the database
 * no alias is found, and a stalled Kafka would only fill the memory. */
const char *intake_obstacle(const struct rcpt_intake *intake, const struct intake_target *target)
{
    if (rcpt_aggregate_partitions(target->aggregate) == 0 || !intake->letters_known)
        return kafka_trouble(intake);
    if (intake->database == INTAKE_DATABASE_UNKNOWN)
        return "connecting to PostgreSQL";
    if (intake->database == INTAKE_DATABASE_DOWN &&
        intake->config->intake.alias == RCPT_ALIAS_REQUIRED)
        return "aliases cannot be looked up";
    if (rcpt_aggregate_oldest_ms(target->aggregate, intake_now(intake)) > stall_ms(intake))
        return "Kafka does not acknowledge";
    return NULL;
}

/* Called from every tick and callback; logs and reports changes only, also of the reason. Ready
 * means that the requests of all accounts are taken. */
void intake_update_readiness(struct rcpt_intake *intake)
{
    const char *reason = intake->draining ? "stopping" : NULL;
    for (size_t i = 0; i < intake->target_count && reason == NULL; i++)
        reason = intake_obstacle(intake, &intake->targets[i]);
    if (reason == NULL && !intake->kafka_healthy) /* requests are taken: it may be back in time */
        reason = kafka_trouble(intake);
    const char *text = reason != NULL ? reason : "";
    if (intake->ready == (reason == NULL) && strcmp(intake->said_reason, text) == 0)
        return;
    intake->ready = reason == NULL;
    snprintf(intake->said_reason, sizeof(intake->said_reason), "%s", text);
    if (intake->ready)
        rcpt_log_info("intake", "ready");
    else
        rcpt_log_info("intake", "not ready: %s", text);
    intake->settings.on_ready(intake->settings.context, intake->ready, reason);
}
