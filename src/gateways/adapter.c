/* The way of a request through an adapter: address, parameters, challenge, verification, verified
 * view, document, items, drafts; draft.c makes events of those. Pure: no I/O, no clock, memory from
 * the request's arena.
 *
 * rcpt_gateway_adapt() is called by src/intake and by `receiptd intake try`. After rcpt_verify()
 * the view hides everything that the signature does not cover. */
#include "account.h"
#include "items.h"
#include "receiptd/core/record.h"

const char *rcpt_gateway_verdict_name(enum rcpt_gateway_verdict verdict)
{
    static const char *const names[RCPT_GATEWAY_VERDICT__COUNT] = {
        [RCPT_GATEWAY_VERIFIED] = "verified",
        [RCPT_GATEWAY_UNVERIFIED] = "unverified",
        [RCPT_GATEWAY_MISSING] = "missing",
        [RCPT_GATEWAY_BAD] = "bad",
        [RCPT_GATEWAY_STALE] = "stale",
        [RCPT_GATEWAY_NEEDS_CERTIFICATE] = "needs_certificate",
    };
    return names[verdict];
}

/* ---- from item to draft ---- */

/* A field of the item comes before the parameter of the URL. */
static struct rcpt_text value_or(struct rcpt_text value, const struct rcpt_template *template,
                                 const struct rcpt_source *source)
{
    return value.size > 0 ? value : rcpt_template_value(template, source);
}

/* Collects all codes and words of an error; the first that is no "no error" is the reason. */
static void fill_said(const struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    struct rcpt_text values[RCPT_SAID_MOST];
    const struct rcpt_template *const templates[] = {reading->account->fields.reason,
                                                     reading->account->fields.words};
    for (size_t index = 0; index < RCPT_COUNT_OF(templates); index++) {
        unsigned count =
            rcpt_template_values(templates[index], &reading->source, values, RCPT_SAID_MOST);
        for (unsigned value = 0; value < count; value++) {
            rcpt_draft_say(draft, values[value]);
            if (index == 0 && rcpt_code_is_zero(draft->reason))
                draft->reason = values[value];
        }
    }
}

/* The account's channel comes before the item's, and that before the gateway's. */
static void fill_draft(const struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    const struct rcpt_gateway_account *account = reading->account;
    const struct rcpt_source *source = &reading->source;
    draft->id = rcpt_template_value(account->fields.id, source);
    draft->status = rcpt_template_value(account->fields.status, source);
    fill_said(reading, draft);
    draft->at = rcpt_template_value(account->fields.at, source);
    draft->event_id = rcpt_template_value(account->fields.event_id, source);
    draft->part = rcpt_template_value(account->fields.part, source);
    draft->parts = rcpt_template_value(account->fields.parts, source);
    draft->recipient = rcpt_template_value(account->fields.recipient, source);
    draft->until = rcpt_template_value(account->fields.until, source);
    draft->link = rcpt_template_value(account->fields.link, source);
    draft->cost = rcpt_template_value(account->fields.cost, source);
    draft->currency = rcpt_template_value(account->fields.currency, source);
    if (source->request->scanners != NULL)
        draft->ip = rcpt_template_value(account->fields.ip, source);
    draft->client_ref = rcpt_template_value(account->fields.client_ref, source);
    draft->message_id = value_or(rcpt_template_value(account->fields.message_id, source),
                                 account->url_message_id, source);
    draft->org_id = rcpt_template_value(account->fields.org_id, source);
    draft->campaign_id = value_or(rcpt_template_value(account->fields.campaign_id, source),
                                  account->url_campaign_id, source);
    draft->channel = rcpt_text_of(account->channel);
    if (draft->channel.size == 0)
        draft->channel = rcpt_template_value(account->fields.channel, source);
    if (draft->channel.size == 0)
        draft->channel = rcpt_text_of(reading->gateway->channel);
}

/* Without an item (a form) a dead letter shows the whole body. UTF-8 is checked per item, so that
 * one bad item does not refuse its neighbours. */
static void read_item(struct rcpt_reading *reading, const struct rcpt_node *item)
{
    struct rcpt_draft draft = {.item = item, .raw = item != NULL ? item->raw : reading->raw};
    if (draft.raw.size == 0)
        draft.raw = reading->raw;
    if (!reading->body_is_utf8 && item != NULL && !rcpt_text_is_utf8(item->raw)) {
        rcpt_draft_reject(reading, &draft, "invalid_utf8");
        return;
    }
    fill_draft(reading, &draft);
    if (reading->gateway->item != NULL)
        reading->gateway->item(reading, &draft);
    if (!draft.done)
        rcpt_reading_add(reading, &draft);
}

/* ---- parameters that we have put into the URL ---- */

/* The parameter of the URL that is a credential; NULL: there is none. */
static const char *credential_of(const struct rcpt_gateway_account *account)
{
    rcpt_verifier *verify = account->scheme->verify;
    if (verify == rcpt_verify_query)
        return account->auth_name;
    if (verify == rcpt_verify_url_hmac)
        return "sig";
    return verify == rcpt_verify_shared || verify == rcpt_verify_sns ? "token" : NULL;
}

static bool is_own_parameter(const struct rcpt_reading *reading, struct rcpt_text name)
{
    static const char *const names[] = {"message_id", "campaign_id", "end"};
    static const char *const signing[] = {"sig", "exp"};
    const struct rcpt_gateway_account *account = reading->account;
    const char *credential = credential_of(account);
    for (size_t index = 0; index < RCPT_COUNT_OF(names); index++)
        if (rcpt_text_is(name, names[index]))
            return true;
    if (account->scheme->verify != rcpt_verify_url_hmac)
        return credential != NULL && rcpt_text_is(name, credential);
    return rcpt_text_is(name, signing[0]) || rcpt_text_is(name, signing[1]) ||
           (account->auth_name != NULL && rcpt_text_is(name, account->auth_name));
}

/* Whether every parameter of the query is ours, and none the gateway's. */
static bool is_own_query(const struct rcpt_reading *reading)
{
    const struct rcpt_form *query = &reading->source.query;
    for (size_t index = 0; index < query->count; index++)
        if (!is_own_parameter(reading, query->fields[index].name))
            return false;
    return true;
}

/* ---- from document to items ---- */

/* Ignores a person's message, and any other known item that is no receipt. Other items may be
 * receipts in a form that the adapter does not know. */
static void read_other(struct rcpt_reading *reading, const struct rcpt_node *node)
{
    const struct rcpt_gateway *gateway = reading->gateway;
    struct rcpt_draft draft = {.item = node, .raw = node->raw.size > 0 ? node->raw : reading->raw};
    const char *known = gateway->other != NULL ? gateway->other(node) : NULL;
    if (known == NULL && rcpt_draft_is_inbound(reading))
        known = "inbound";
    if (known != NULL)
        rcpt_draft_ignore(reading, &draft, known);
    else
        rcpt_draft_set_aside(reading, &draft);
}

/* Whether a POST announces no body, as some old clients do that send one. */
static bool has_no_length(const struct rcpt_reading *reading)
{
    return rcpt_text_is(reading->source.request->method, "POST") &&
           rcpt_reading_header(reading, "content-length").at == NULL &&
           rcpt_reading_header(reading, "transfer-encoding").at == NULL;
}

/* The body is empty, so the query has to be the receipt. Parameters that our own platform has put
 * into the URL are none: a gateway tries the URL with them. */
static void read_query(struct rcpt_reading *reading)
{
    struct rcpt_draft draft = {.raw = reading->raw};
    if (is_own_query(reading)) {
        rcpt_reading_ignore(reading, "probe");
        if (reading->has_no_length) /* its body may have been lost on the way */
            reading->result->answer = (struct rcpt_gateway_answer){.code = 411};
    } else {
        rcpt_draft_set_aside(reading, &draft);
    }
}

/* A gateway without `items` may still send JSON: then each element or member is an item. */
static void read_document(struct rcpt_reading *reading)
{
    struct rcpt_source *source = &reading->source;
    bool is_empty = rcpt_text_trim(source->request->body).size == 0 && source->form.count == 0;
    bool has_form = reading->gateway->items == NULL || reading->gateway->json_in != NULL;
    if (source->root != NULL)
        rcpt_items_read(reading, read_item, read_other);
    else if (is_empty && (!has_form || is_own_query(reading)))
        read_query(reading);
    else
        read_item(reading, NULL);
    if (reading->result->event_count == 0 && reading->result->drop_count == 0)
        rcpt_reading_ignore(reading, "no_receipt");
}

/* ---- from request to document ---- */

/* Answers 400 for a text that is no JSON, and 413 for one that is too deep or too large. The
 * gateway's usual answer would signal success. */
static void parse_json(struct rcpt_reading *reading, struct rcpt_text text)
{
    const char *reason = NULL;
    reading->source.root = rcpt_document_parse(text, reading->arena, &reason);
    if (reading->source.root != NULL)
        return;
    rcpt_reading_reject(reading, reason, text);
    reading->result->answer.code = strcmp(reason, "invalid_json") == 0 ? 400 : 413;
    reading->result->answer.content_type = NULL;
    reading->result->answer.body = (struct rcpt_text){NULL, 0};
}

/* The verifier may have parsed the body already, and left only the signed members. */
static void find_document(struct rcpt_reading *reading)
{
    struct rcpt_text body = reading->source.request->body;
    if (reading->source.root != NULL)
        return; /* what the verifier has left of it */
    if (reading->gateway->json_in != NULL) {
        struct rcpt_text text = rcpt_reading_value(reading, reading->gateway->json_in);
        if (text.size > 0) {
            parse_json(reading, text);
            return;
        }
    }
    bool wants_json = reading->gateway->items != NULL && reading->gateway->json_in == NULL;
    if (!rcpt_document_looks_like(body) && rcpt_draft_is_inbound(reading))
        rcpt_reading_ignore(reading, "inbound");
    else if (rcpt_document_looks_like(body) || (wants_json && rcpt_text_trim(body).size > 0))
        parse_json(reading, body);
}

/* A dead letter is read by more people than the configuration: it holds no credential. */
static struct rcpt_text query_to_show(const struct rcpt_reading *reading)
{
    struct rcpt_text query = reading->source.request->query;
    struct rcpt_text name = rcpt_text_of(credential_of(reading->account));
    if (rcpt_form_get(&reading->source.query, name).at == NULL)
        return query;
    char *shown = rcpt_arena_alloc(reading->arena, query.size + 1), *end = shown;
    while (query.size > 0) {
        struct rcpt_text field = rcpt_text_part(query, 0, rcpt_text_find(query, "&"));
        struct rcpt_text key = rcpt_text_part(field, 0, rcpt_text_find(field, "="));
        query = rcpt_text_part(query, field.size + 1, query.size);
        if (field.size == 0 || rcpt_text_equal(rcpt_form_decode_segment(key, reading->arena), name))
            continue;
        if (end != shown)
            *end++ = '&';
        end = mempcpy(end, field.at, field.size);
    }
    return (struct rcpt_text){shown, (size_t)(end - shown)};
}

/* The content decides what a body is: Content-Type is a header, which hardly any signature
 * covers. */
static void parse_parameters(struct rcpt_reading *reading)
{
    const struct rcpt_gateway_request *request = reading->source.request;
    struct rcpt_text type = rcpt_reading_header(reading, "content-type");
    reading->source.query = rcpt_form_parse(request->query, reading->arena);
    reading->raw = request->body.size > 0 ? request->body : query_to_show(reading);
    struct rcpt_text body = rcpt_text_skip_mark(request->body);
    if (!rcpt_form_is_multipart(body) && !rcpt_document_looks_like(body))
        reading->source.form = rcpt_form_parse(rcpt_text_trim(body), reading->arena);
    else if (rcpt_text_begins_nocase(type, "multipart/form-data"))
        reading->source.form = rcpt_form_parse_multipart(type, body, reading->arena);
}

/* Gateways try a URL when it is entered: an empty request is answered with 200. */
static bool is_probe(const struct rcpt_gateway_request *request)
{
    return rcpt_text_trim(rcpt_text_skip_mark(request->body)).size == 0 && request->query.size == 0;
}

/* A URL that signs one id brings one receipt. */
static void refuse_several(struct rcpt_reading *reading)
{
    struct rcpt_gateway_result *result = reading->result;
    if (reading->signed_id.size == 0 || result->event_count + result->drop_count <= 1)
        return;
    *result = (struct rcpt_gateway_result){.verdict = RCPT_GATEWAY_BAD,
                                           .verdict_reason =
                                               "the URL signs one message, the body names several",
                                           .answer = {.code = 403}};
}

/* Set first: verification and hooks may replace it. */
static void set_answer(struct rcpt_reading *reading)
{
    const struct rcpt_gateway_account *account = reading->account;
    const struct rcpt_gateway *gateway = reading->gateway;
    reading->result->answer = (struct rcpt_gateway_answer){
        .code = account->own_answer_code != 0 ? account->own_answer_code : 200,
        .content_type = gateway->answer_type,
        .body = rcpt_text_of(gateway->answer),
    };
}

/* The order matters for security: the address before any parsing, the challenge (which answers a
 * gateway's set-up) before verification, and everything else after it. */
void rcpt_gateway_adapt(const struct rcpt_gateway_account *account,
                        const struct rcpt_gateway_request *request, struct rcpt_arena *arena,
                        struct rcpt_gateway_result *result)
{
    struct rcpt_outer_values outer = {.next = 0};
    struct rcpt_reading reading = {.account = account,
                                   .gateway = account->gateway,
                                   .source = {.request = request, .arena = arena, .outer = &outer},
                                   .result = result,
                                   .arena = arena};
    memset(result, 0, sizeof(*result));
    reading.has_no_length = has_no_length(&reading);
    result->verdict = RCPT_GATEWAY_UNVERIFIED;
    result->verdict_reason = "nothing is asked for";
    set_answer(&reading);
    if (!rcpt_verify_allows(&reading))
        return;
    parse_parameters(&reading);
    if (reading.gateway->challenge != NULL && reading.gateway->challenge(&reading))
        return;
    if (is_probe(request)) {
        result->verdict_reason = "an empty request";
        rcpt_reading_ignore(&reading, "probe");
        return;
    }
    if (!rcpt_verify(&reading))
        return;
    reading.body_is_utf8 = rcpt_text_is_utf8(request->body);
    find_document(&reading);
    if (!reading.answered && reading.gateway->open != NULL)
        reading.gateway->open(&reading);
    if (!reading.answered)
        read_document(&reading);
    refuse_several(&reading);
}
