/* Gives each gateway that events name a small number, in order of appearance. For figures only: a
 * name that is too long, or one too many, counts as "other". Called by record_event.c for each
 * event, and by src/operate for metrics.
 */
#include <string.h>

#include "record_internal.h"

static bool is_named(const struct rcpt_record_gateway *gateway, const struct rcpt_token *name)
{
    return gateway->size == name->size && memcmp(gateway->name, name->text, name->size) == 0;
}

/* Numbers are never given up: the label of a metric keeps its meaning until the process ends. */
static uint32_t add(struct rcpt_decoder *decoder, const struct rcpt_token *name)
{
    if (decoder->gateway_count == RCPT_RECORD_OTHER_GATEWAY ||
        name->size > RCPT_RECORD_MAX_GATEWAY_BYTES)
        return RCPT_RECORD_OTHER_GATEWAY;
    struct rcpt_record_gateway *gateway = &decoder->gateways[decoder->gateway_count];
    memcpy(gateway->name, name->text, name->size);
    gateway->size = (uint8_t)name->size;
    return decoder->gateway_count++;
}

/* Receipts come in runs of one gateway, so the last one is tried first. */
static uint32_t find(struct rcpt_decoder *decoder, const struct rcpt_token *name)
{
    if (name->kind != RCPT_TOKEN_STRING || name->size == 0)
        return RCPT_RECORD_NO_GATEWAY;
    if (is_named(&decoder->gateways[decoder->last_gateway], name))
        return decoder->last_gateway;
    for (uint32_t index = 1; index < decoder->gateway_count; index++) {
        if (is_named(&decoder->gateways[index], name))
            return index;
    }
    return add(decoder, name);
}

uint8_t rcpt_record_gateway_of(struct rcpt_decoder *decoder, const struct rcpt_token *name)
{
    uint32_t gateway = find(decoder, name);
    decoder->last_gateway = gateway;
    return (uint8_t)gateway;
}

const char *rcpt_decoder_gateway(const struct rcpt_decoder *decoder, uint32_t gateway)
{
    RCPT_ASSERT(gateway < RCPT_RECORD_MAX_GATEWAYS);
    if (gateway == RCPT_RECORD_OTHER_GATEWAY)
        return "other";
    return gateway < decoder->gateway_count ? decoder->gateways[gateway].name : NULL;
}

uint64_t rcpt_decoder_gateway_events(const struct rcpt_decoder *decoder, uint32_t gateway)
{
    RCPT_ASSERT(gateway < RCPT_RECORD_MAX_GATEWAYS);
    return decoder->gateways[gateway].events;
}
