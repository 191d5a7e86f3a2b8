/* Gives each gateway and class of reasons that events name a small number, in order of appearance,
 * and counts the receipts of each gateway and their delays. The numbers are for figures only: a
 * name that is too long, or one too many, counts as "other". Called by record_event.c for each
 * event, by record.c for the events of a whole record, and by src/operate for metrics.
 */
#include <string.h>

#include "record_internal.h"

static bool is_named(const struct rcpt_record_name *name, const struct rcpt_token *token)
{
    return name->size == token->size && memcmp(name->text, token->text, token->size) == 0;
}

/* Numbers are never given up: the label of a metric keeps its meaning until the process ends. */
static uint32_t add(struct rcpt_record_names *names, const struct rcpt_token *token)
{
    if (names->count == RCPT_RECORD_OTHER_GATEWAY || token->size > RCPT_RECORD_MAX_GATEWAY_BYTES)
        return RCPT_RECORD_OTHER_GATEWAY;
    struct rcpt_record_name *name = &names->names[names->count];
    memcpy(name->text, token->text, token->size);
    name->size = (uint8_t)token->size;
    return names->count++;
}

/* Receipts come in runs of one gateway, so the last one is tried first. */
static uint32_t find(struct rcpt_record_names *names, const struct rcpt_token *token)
{
    if (token->kind != RCPT_TOKEN_STRING || token->size == 0)
        return RCPT_RECORD_NO_GATEWAY;
    if (is_named(&names->names[names->last], token))
        return names->last;
    for (uint32_t index = 1; index < names->count; index++) {
        if (is_named(&names->names[index], token))
            return index;
    }
    return add(names, token);
}

uint8_t rcpt_record_facet_of(struct rcpt_decoder *decoder, enum rcpt_facet facet,
                             const struct rcpt_token *name)
{
    struct rcpt_record_names *names = &decoder->facets[facet];
    names->last = find(names, name);
    return (uint8_t)names->last;
}

void rcpt_decoder_set_rules(struct rcpt_decoder *decoder, bool keys)
{
    decoder->for_rules = true;
    decoder->keys = keys;
}

const char *rcpt_decoder_facet(const struct rcpt_decoder *decoder, enum rcpt_facet facet,
                               uint32_t number)
{
    const struct rcpt_record_names *names = &decoder->facets[facet];
    RCPT_ASSERT(number < RCPT_RECORD_MAX_GATEWAYS);
    if (number == RCPT_RECORD_OTHER_GATEWAY)
        return "other";
    return number < names->count ? names->names[number].text : NULL;
}

const double rcpt_record_delay_bounds[RCPT_RECORD_DELAYS] = {
    1, 2, 5, 10, 30, 60, 300, 900, 3600, 14400, 43200, 86400, 259200, 604800};

/* A receipt with a time in the future, from a clock that is ahead, has no delay. */
static void count_delay(struct rcpt_record_delays *delays, double seconds)
{
    unsigned bucket = 0;
    while (bucket < RCPT_RECORD_DELAYS && seconds > rcpt_record_delay_bounds[bucket])
        bucket++;
    delays->buckets[bucket]++;
    delays->sum += seconds > 0 ? seconds : 0;
}

void rcpt_record_count_gateway(struct rcpt_decoder *decoder, const struct rcpt_event *event)
{
    decoder->facets[RCPT_FACET_GATEWAY].names[event->gateway].events++;
    if (event->at_us != decoder->default_at_us)
        count_delay(&decoder->delays[event->gateway],
                    (double)(decoder->default_at_us - event->at_us) / 1e6);
}

const struct rcpt_record_delays *rcpt_decoder_gateway_delays(const struct rcpt_decoder *decoder,
                                                             uint32_t gateway)
{
    RCPT_ASSERT(gateway < RCPT_RECORD_MAX_GATEWAYS);
    return &decoder->delays[gateway];
}

uint64_t rcpt_decoder_gateway_events(const struct rcpt_decoder *decoder, uint32_t gateway)
{
    RCPT_ASSERT(gateway < RCPT_RECORD_MAX_GATEWAYS);
    return decoder->facets[RCPT_FACET_GATEWAY].names[gateway].events;
}
