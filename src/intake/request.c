/* The way of a request: to its account, through the adapter, into records; answered when Kafka has
 * acknowledged all of it.
 *
 * A delivery is read and decided at once (intake_on_request), or waits for a certificate (fetch.c)
 * or for aliases (alias.c), or for Kafka. While it waits for Kafka, records and letters hold its
 * ticket. on_settled() or one of the early answers ends it. Memory comes from two free lists:
 * deliveries, and arenas that are held only while a result is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "receiptd/core/hash.h"

#define MAX_HEADERS   100u
#define RETRY_AFTER_S 2u
#define WAITING_BYTES 5120u /* what a request that waits holds beside body and arena */

/* ---- answers ---- */

/* For answers after Kafka, and refusals without a body of the adapter's. */
static void answer(struct delivery *delivery, unsigned code, const char *content_type,
                   const void *body, size_t size, unsigned retry_after_s)
{
    struct rcpt_http_answer answer = {
        .status = (int)code,
        .content_type = content_type,
        .retry_after_s = retry_after_s,
        .body = body,
        .body_size = size,
    };
    rcpt_gateway_count_code(&delivery->account->stats, code);
    delivery_end_span(delivery, code);
    rcpt_http_answer(delivery->request, &answer);
}

/* 503 makes the gateway send again what Kafka did not acknowledge. The replay key is remembered
 * only after success, or the repetition would be taken for a copy. */
static void on_settled(struct rcpt_ticket *ticket)
{
    struct delivery *delivery = (struct delivery *)ticket;
    struct rcpt_gateway_stats *stats = &delivery->account->stats;
    double seconds = (double)(uv_hrtime() - rcpt_http_received_ns(delivery->request)) / 1e9;
    rcpt_gateway_observe(&stats->ack_seconds, seconds);
    if (ticket->failed) {
        stats->failed++;
        answer(delivery, 503, NULL, NULL, 0, RETRY_AFTER_S);
    } else {
        if (delivery->has_key)
            rcpt_replay_remember(delivery->intake->replay, delivery->key,
                                 intake_now(delivery->intake) + delivery->account->max_age_ms);
        answer(delivery, delivery->code, delivery->content_type, delivery->body,
               delivery->body_size, 0);
    }
    delivery_give(delivery);
}

/* Answers without Kafka: a refusal, a copy, or a request that held no receipt. */
static void answer_now(struct delivery *delivery)
{
    const struct rcpt_gateway_answer *given = &delivery->result.answer;
    char header[256] = "";
    if (given->www_authenticate != NULL)
        snprintf(header, sizeof(header), "WWW-Authenticate: %s\r\n", given->www_authenticate);
    struct rcpt_http_answer answer = {
        .status = (int)given->code,
        .content_type = given->content_type,
        .headers = header,
        .body = given->body.at,
        .body_size = given->body.at != NULL ? given->body.size : 0,
    };
    rcpt_gateway_count_code(&delivery->account->stats, given->code);
    delivery_end_span(delivery, given->code);
    rcpt_http_answer(delivery->request, &answer);
    intake_drop_arena(delivery);
    delivery_give(delivery);
}

/* The request was read, but is not taken now. */
static void turn_back(struct delivery *delivery, unsigned code, unsigned wait_s)
{
    answer(delivery, code, NULL, NULL, 0, wait_s);
    intake_drop_arena(delivery);
    delivery_give(delivery);
}

void intake_refuse(struct delivery *delivery)
{
    delivery->account->stats.turned_away++;
    turn_back(delivery, 503, RETRY_AFTER_S);
}

/* Copies the answer out of the arena, which goes before Kafka acknowledges. */
static void keep_answer(struct delivery *delivery)
{
    const struct rcpt_gateway_answer *given = &delivery->result.answer;
    delivery->code = given->code;
    delivery->content_type = given->content_type;
    if (given->body.at == NULL || given->body.size == 0)
        return;
    delivery->body = rcpt_strndup(given->body.at, given->body.size);
    delivery->body_size = given->body.size;
}

/* ---- into records ---- */

/* The id that the record carries; without an alias the gateway's own. If the receipt does not name
 * the number of parts, the alias says which part the id belongs to. */
static struct rcpt_text resolve(struct delivery *delivery, struct rcpt_gateway_event *event)
{
    struct rcpt_gateway_stats *stats = &delivery->account->stats;
    struct rcpt_alias alias;
    if (!intake_resolve(delivery->intake, delivery->account, event, &alias)) {
        stats->unrouted++;
        return event->gateway_message_id;
    }
    stats->aliased++;
    if (event->parts == 0 && alias.parts > 0) {
        event->part = alias.part;
        event->parts = alias.parts;
    }
    return (struct rcpt_text){alias.message_id, alias.message_id_size};
}

/* The partition follows the message id by the same hash as lanes do, so one message stays in one
 * partition and in order. Without an alias the gateway's id takes its place; for a range the person
 * does. */
static void emit_event(struct delivery *delivery, const struct rcpt_gateway_event *event,
                       const struct rcpt_aggregate_origin *origin)
{
    struct rcpt_intake *intake = delivery->intake;
    struct rcpt_gateway_stats *stats = &delivery->account->stats;
    struct rcpt_gateway_event out = *event;
    bool is_range = event->recipient.size > 0;
    struct rcpt_text id = event->message_id;
    if (id.size == 0 && !is_range)
        id = resolve(delivery, &out);
    const struct rcpt_text key = is_range ? event->recipient : id;
    struct rcpt_text json =
        rcpt_gateway_event_json(delivery->account->adapter, &out, id, &intake->json);
    rcpt_aggregate_add(delivery->account->target->aggregate,
                       rcpt_hash_text_extended(key.at, key.size, 0), json.at, json.size,
                       &delivery->ticket, origin, intake_now(intake));
    rcpt_arena_reset(&intake->json, INTAKE_ARENA_KEEP_BYTES);
    stats->events++;
}

/* Each of many recipients in one element may be a dead letter: the element is sent once. */
static bool is_the_same(const struct rcpt_gateway_drop *drop,
                        const struct rcpt_gateway_drop *before)
{
    return drop->kind == before->kind && drop->reason == before->reason && drop->raw.size > 0 &&
           drop->raw.at == before->raw.at && drop->raw.size == before->raw.size;
}

/* Each drop counts; letters stop when the first could not be sent, since the gateway will repeat
 * the request. */
static void emit_drops(struct delivery *delivery)
{
    struct rcpt_gateway_stats *stats = &delivery->account->stats;
    const struct rcpt_gateway_result *result = &delivery->result;
    for (size_t i = 0; i < result->drop_count; i++) {
        const struct rcpt_gateway_drop *drop = &result->drops[i];
        stats->drops[drop->kind]++;
        if (drop->kind == RCPT_GATEWAY_UNMAPPED)
            rcpt_gateway_note_unmapped(stats, drop->status);
        if (drop->kind != RCPT_GATEWAY_IGNORED && !delivery->ticket.failed &&
            (i == 0 || !is_the_same(drop, drop - 1)))
            intake_send_letter(delivery, drop);
    }
}

/* No further aliases will be known. Ends by releasing the request's own hold of the ticket, which
 * may answer at once. */
void intake_emit(struct delivery *delivery)
{
    const struct rcpt_intake *intake = delivery->intake;
    const struct rcpt_gateway_result *result = &delivery->result;
    struct rcpt_aggregate_origin origin = {
        .name = delivery->account->name,
        .received_us = delivery->received_us,
        .traceparent = delivery->traceparent,
        .tracestate = delivery->tracestate,
    };
    delivery->events = (uint32_t)result->event_count;
    keep_answer(delivery);
    for (size_t i = 0; i < result->event_count; i++) {
        if (intake_record_bytes(intake) > intake->config->intake.memory_bytes) {
            /* Many events can repeat one large value, so memory may run out before the request is
             * done. Then it fails as a whole. */
            rcpt_ticket_hold(&delivery->ticket);
            rcpt_ticket_release(&delivery->ticket, false);
            break;
        }
        emit_event(delivery, &result->events[i], &origin);
    }
    emit_drops(delivery);
    if (result->confirm_url != NULL)
        intake_confirm(delivery);
    intake_drop_arena(delivery);
    rcpt_ticket_release(&delivery->ticket, true);
}

/* ---- reading ---- */

static struct rcpt_text text_of(struct rcpt_http_text text)
{
    return (struct rcpt_text){text.bytes, text.size};
}

/* The server lets only GET, HEAD and POST through; HEAD never comes here. */
static struct rcpt_text method_text(enum rcpt_http_method method)
{
    return method == RCPT_HTTP_POST ? (struct rcpt_text){"POST", 4} : (struct rcpt_text){"GET", 3};
}

/* Reads the request into a result in a fresh arena: verification, then events and drops. */
static void adapt(struct delivery *delivery)
{
    struct rcpt_http_request *request = delivery->request;
    struct rcpt_gateway_header headers[MAX_HEADERS];
    struct rcpt_http_text rest = rcpt_http_rest(request);
    size_t count = rcpt_http_header_count(request);
    for (size_t i = 0; i < count && i < MAX_HEADERS; i++) {
        struct rcpt_http_text name, value;
        rcpt_http_header_at(request, i, &name, &value);
        headers[i] = (struct rcpt_gateway_header){text_of(name), text_of(value)};
    }
    const char *source = rcpt_http_source(request);
    struct rcpt_gateway_request given = {
        .method = method_text(rcpt_http_method(request)),
        .tail = {rest.bytes + delivery->consumed, rest.size - delivery->consumed},
        .query = text_of(rcpt_http_query(request)),
        .headers = headers,
        .header_count = count,
        .body = text_of(rcpt_http_body(request)),
        .source = {source, strlen(source)},
        .received_us = delivery->received_us,
        .find_certificate = intake_find_certificate,
        .context = delivery->intake,
        .scanners = delivery->intake->config->scanners,
    };
    delivery_take_arena(delivery);
    delivery_note_trace(delivery);
    rcpt_gateway_adapt(delivery->account->adapter, &given, &delivery->arena->arena,
                       &delivery->result);
    delivery_count_arena(delivery, rcpt_arena_bytes(&delivery->arena->arena));
    delivery->account->stats.verdicts[delivery->result.verdict]++;
}

/* ---- deciding ---- */

/* MISSING, BAD and STALE; UNVERIFIED means that the account asks for no verification. */
static bool is_refused(enum rcpt_gateway_verdict verdict)
{
    return verdict != RCPT_GATEWAY_VERIFIED && verdict != RCPT_GATEWAY_UNVERIFIED;
}

/* Only signed requests have a key. The key is noted for on_settled(). */
static bool is_copy(struct delivery *delivery)
{
    struct rcpt_intake *intake = delivery->intake;
    struct rcpt_text key = delivery->result.replay_key;
    if (key.size == 0)
        return false;
    delivery->has_key = true;
    delivery->key = rcpt_replay_key(intake->replay, delivery->account->number, key.at, key.size);
    return rcpt_replay_is_known(intake->replay, delivery->key, intake_now(intake));
}

/* Whether an event has the gateway's id alone, and the cache lacks its alias. */
static bool needs_lookup(struct delivery *delivery)
{
    const struct rcpt_gateway_result *result = &delivery->result;
    struct rcpt_alias alias;
    for (size_t i = 0; i < result->event_count; i++) {
        const struct rcpt_gateway_event *event = &result->events[i];
        if (event->message_id.size == 0 && event->gateway_message_id.size > 0 &&
            !intake_resolve(delivery->intake, delivery->account, event, &alias))
            return true;
    }
    return false;
}

/* Events that carry only the gateway's id may have to wait for ours. */
static void route(struct delivery *delivery)
{
    struct rcpt_intake *intake = delivery->intake;
    bool unresolved = intake->database != INTAKE_DATABASE_UNUSED && needs_lookup(delivery);
    if (unresolved && intake_can_look_up(intake))
        intake_look_up(delivery);
    else if (unresolved && intake->config->intake.alias == RCPT_ALIAS_REQUIRED)
        intake_refuse(delivery);
    else
        intake_emit(delivery);
}

/* Everything beside the bodies, which have the other half of intake.memory. */
static bool has_capacity(const struct rcpt_intake *intake, size_t more)
{
    size_t waiting = rcpt_http_stats(intake->http)->waiting_requests * WAITING_BYTES;
    size_t records = intake_record_bytes(intake);
    return waiting + records + intake->arena_bytes + more <=
           intake->config->intake.memory_bytes / 2;
}

/* A request that is alone in memory passes whatever it needs: it could never pass otherwise. */
static bool fits(const struct delivery *delivery)
{
    const struct rcpt_intake *intake = delivery->intake;
    return intake->arena_bytes == delivery->arena_bytes || has_capacity(intake, 0);
}

/* Whether the request is verified, or has content that its account accepts unverified: then it is
 * no guess at a secret. These requests do not count in the rate of their source. */
static bool is_welcome(const struct rcpt_gateway_result *result)
{
    if (result->verdict == RCPT_GATEWAY_VERIFIED || result->event_count > 0)
        return true;
    for (size_t i = 0; i < result->drop_count; i++)
        if ((result->drops[i].kind == RCPT_GATEWAY_IGNORED ||
             result->drops[i].kind == RCPT_GATEWAY_UNMAPPED) &&
            result->drops[i].raw.size > 0)
            return true;
    return false;
}

/* The account's rate is charged for requests that the account has signed, or accepts unverified:
 * refused and empty requests of strangers cannot use it up. */
static bool has_rate(struct delivery *delivery, unsigned *wait_s)
{
    const struct rcpt_gateway_result *result = &delivery->result;
    const struct rcpt_intake *intake = delivery->intake;
    bool sends = result->verdict == RCPT_GATEWAY_VERIFIED || result->event_count > 0;
    for (size_t i = 0; i < result->drop_count && !sends; i++)
        sends = result->drops[i].kind != RCPT_GATEWAY_IGNORED;
    return !sends ||
           rcpt_rate_admit(&delivery->account->rate, intake->config->intake.limits.rate_per_account,
                           intake_now(intake), wait_s);
}

/* A copy is answered like the original, whose records are in Kafka. */
static void decide_welcome(struct delivery *delivery)
{
    struct intake_account *account = delivery->account;
    unsigned wait_s = 0;
    if (is_copy(delivery)) {
        answer_now(delivery);
    } else if (!has_rate(delivery, &wait_s)) {
        account->stats.throttled++;
        turn_back(delivery, 429, wait_s);
    } else if (!fits(delivery)) {
        intake_refuse(delivery);
    } else {
        route(delivery);
    }
}

/* The rate of the source was charged when the request arrived, and is given back here. */
static void decide(struct delivery *delivery)
{
    const struct rcpt_gateway_result *result = &delivery->result;
    if (result->verdict == RCPT_GATEWAY_NEEDS_CERTIFICATE) {
        intake_await_certificate(delivery);
    } else if (is_refused(result->verdict)) {
        rcpt_log_debug("intake", "account %s: request refused: %s", delivery->account->name,
                       result->verdict_reason);
        answer_now(delivery);
    } else {
        if (is_welcome(result))
            rcpt_http_give_back(delivery->request);
        decide_welcome(delivery);
    }
}

void intake_adapt_again(struct delivery *delivery)
{
    adapt(delivery);
    decide(delivery);
}

/* ---- arriving ---- */

/* For bsearch: a text without a NUL against an account's name. */
static int compare_names(const void *key, const void *member)
{
    const struct rcpt_http_text *name = key;
    const struct intake_account *account = *(const struct intake_account *const *)member;
    size_t common = name->size < account->name_size ? name->size : account->name_size;
    int order = memcmp(name->bytes, account->name, common);
    if (order != 0)
        return order;
    return name->size < account->name_size ? -1 : name->size > account->name_size;
}

/* "/acme-twilio/whatever": the first segment names the account. */
static struct intake_account *find_account(const struct rcpt_intake *intake,
                                           struct rcpt_http_text rest, size_t *consumed)
{
    if (rest.size < 2)
        return NULL;
    const char *slash = memchr(rest.bytes + 1, '/', rest.size - 1);
    struct rcpt_http_text name = {rest.bytes + 1,
                                  slash != NULL ? (size_t)(slash - rest.bytes - 1) : rest.size - 1};
    *consumed = name.size + 1;
    struct intake_account *const *found = bsearch(&name, intake->accounts, intake->account_count,
                                                  sizeof(struct intake_account *), compare_names);
    return found != NULL ? *found : NULL;
}

/* Refuses without a delivery: the cheapest answer, for when memory or Kafka is short. */
static void turn_away(struct intake_account *account, struct rcpt_http_request *request, int status,
                      unsigned wait_s)
{
    struct rcpt_http_answer answer = {.status = status, .retry_after_s = wait_s};
    rcpt_gateway_count_code(&account->stats, (unsigned)status);
    rcpt_http_answer(request, &answer);
}

/* The server's handler. Sheds load before anything is read or allocated. */
void intake_on_request(void *context, struct rcpt_http_request *request)
{
    struct rcpt_intake *intake = context;
    size_t consumed = 0;
    struct intake_account *account = find_account(intake, rcpt_http_rest(request), &consumed);
    if (account == NULL) {
        rcpt_http_answer_text(request, 404, "no such account\n");
        return;
    }
    account->stats.requests++;
    if (rcpt_http_method(request) == RCPT_HTTP_HEAD) { /* a probe of the gateway */
        turn_away(account, request, 200, 0);
    } else if (intake_obstacle(intake, account->target) != NULL ||
               !has_capacity(intake, rcpt_http_body(request).size)) {
        account->stats.turned_away++;
        rcpt_http_give_back(request); /* it was not read, and comes again */
        turn_away(account, request, 503, RETRY_AFTER_S);
    } else {
        struct delivery *delivery = delivery_take(intake, account, request, on_settled);
        delivery->consumed = consumed;
        adapt(delivery);
        decide(delivery);
    }
}
