/* Reads only a few texts of an event's JSON. Called by batch_build.c for an organisation in an
 * unusual form, by rules that count links and costs, and by src/postgres for receipts that may be
 * parked and for the timeline.
 */
#include "receiptd/core/origin.h"

#include <string.h>

#include "receiptd/base/json_read.h"

struct reading {
    struct rcpt_origin origin;
    struct rcpt_arena *arena;
    struct rcpt_text *field; /* that the next value belongs to; NULL: of no interest */
};

static void choose_field(struct reading *reading, struct rcpt_text key)
{
    reading->field = NULL;
    if (rcpt_text_is(key, "org_id"))
        reading->field = &reading->origin.org_id;
    else if (rcpt_text_is(key, "campaign_id"))
        reading->field = &reading->origin.campaign_id;
    else if (rcpt_text_is(key, "gateway"))
        reading->field = &reading->origin.gateway;
    else if (rcpt_text_is(key, "gateway_message_id"))
        reading->field = &reading->origin.gateway_message_id;
    else if (rcpt_text_is(key, "reason"))
        reading->field = &reading->origin.reason;
    else if (rcpt_text_is(key, "reason_class"))
        reading->field = &reading->origin.reason_class;
    else if (rcpt_text_is(key, "event_id"))
        reading->field = &reading->origin.event_id;
    else if (rcpt_text_is(key, "link"))
        reading->field = &reading->origin.link;
    else if (rcpt_text_is(key, "cost"))
        reading->field = &reading->origin.cost;
    else if (rcpt_text_is(key, "currency"))
        reading->field = &reading->origin.currency;
}

/* If a key occurs twice, the last value counts, even if it is of no use. PostgreSQL's text cannot
 * hold a NUL. */
static void set_field(struct reading *reading, const struct rcpt_json_token *token)
{
    bool usable = (token->kind == RCPT_JSON_STRING || token->kind == RCPT_JSON_NUMBER) &&
                  memchr(token->text.at, '\0', token->text.size) == NULL;
    *reading->field =
        usable ? rcpt_text_copy(reading->arena, token->text) : (struct rcpt_text){NULL, 0};
}

static bool on_token(void *context, const struct rcpt_json_token *token)
{
    struct reading *reading = context;
    if (token->depth != 1)
        return true;
    if (token->kind == RCPT_JSON_KEY)
        choose_field(reading, token->text);
    else if (reading->field != NULL)
        set_field(reading, token);
    return true;
}

struct rcpt_origin rcpt_origin_read(const char *json, size_t size, struct rcpt_arena *arena)
{
    struct reading reading = {.arena = arena};
    rcpt_json_read((struct rcpt_text){json, size}, on_token, &reading, NULL);
    return reading.origin;
}

bool rcpt_origin_is_gateways(const struct rcpt_origin *origin, const struct rcpt_event *event)
{
    return origin->gateway.size > 0 && origin->gateway_message_id.size == event->id_size &&
           memcmp(origin->gateway_message_id.at, event->id, event->id_size) == 0;
}

static struct rcpt_text org_of(const struct rcpt_record *record, const struct rcpt_event *event,
                               struct rcpt_arena *arena)
{
    const char *payload = record->value + event->payload;
    if (event->org_size == 0)
        return (struct rcpt_text){NULL, 0};
    if (event->org != RCPT_RECORD_ORG_ELSEWHERE)
        return (struct rcpt_text){payload + event->org, event->org_size};
    return rcpt_origin_read(payload, event->payload_size, arena).org_id;
}

/* A receipt without an organisation agrees with any. Only the wake knows whether all parts are
 * delivered; so the receipts of a message with a delivered part are parked like those whose
 * organisations differ. */
void rcpt_origin_join_org(const struct rcpt_record *record, const struct rcpt_event *event,
                          struct rcpt_text *org, struct rcpt_arena *arena)
{
    struct rcpt_text own = org_of(record, event, arena);
    if (event->delivers_part)
        *org = (struct rcpt_text){"", 0};
    else if (own.size > 0 && org->at == NULL)
        *org = own;
    else if (own.size > 0 && !rcpt_text_equal(own, *org))
        org->size = 0;
}
