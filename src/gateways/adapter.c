/* The way of a request: address → parameters → challenge → verification → verified view → document
 * → items → events. */
#include "account.h"
#include "core/record.h"

#define MAX_EVENTS     100000u /* of one request; a body of a megabyte has fewer */
#define MAX_TEXT_BYTES 16384u  /* of a value: what stands around many items comes again in each */

const char *rcpt_intake_verdict_name(enum rcpt_intake_verdict verdict)
{
    static const char *const names[RCPT_INTAKE_VERDICT__COUNT] = {
        [RCPT_INTAKE_VERIFIED] = "verified", [RCPT_INTAKE_UNVERIFIED] = "unverified",
        [RCPT_INTAKE_MISSING] = "missing",   [RCPT_INTAKE_BAD] = "bad",
        [RCPT_INTAKE_STALE] = "stale",       [RCPT_INTAKE_NEEDS_CERTIFICATE] = "needs_certificate",
    };
    return names[verdict];
}

/* ---- what comes out ---- */

/* Memory for one element more than there are; the old one stays in the arena. */
static void *grow(struct rcpt_arena *arena, const void *old, size_t count, size_t *room,
                  size_t size)
{
    *room = *room > 0 ? *room * 2 : 8;
    void *larger = rcpt_arena_alloc(arena, *room * size);
    if (old != NULL)
        memcpy(larger, old, count * size);
    return larger;
}

static void add_drop(struct rcpt_reading *reading, struct rcpt_intake_drop drop)
{
    struct rcpt_intake_result *result = reading->result;
    if (reading->drops == NULL || result->drop_count == reading->drop_room)
        reading->drops = grow(reading->arena, reading->drops, result->drop_count,
                              &reading->drop_room, sizeof(drop));
    reading->drops[result->drop_count++] = drop;
    result->drops = reading->drops;
}

static void add_event(struct rcpt_reading *reading, const struct rcpt_intake_event *event)
{
    struct rcpt_intake_result *result = reading->result;
    if (reading->events == NULL || result->event_count == reading->event_room)
        reading->events = grow(reading->arena, reading->events, result->event_count,
                               &reading->event_room, sizeof(*event));
    reading->events[result->event_count++] = *event;
    result->events = reading->events;
}

static void drop_draft(struct rcpt_reading *reading, struct rcpt_draft *draft,
                       enum rcpt_intake_drop_kind kind, const char *reason)
{
    draft->done = true;
    add_drop(reading, (struct rcpt_intake_drop){kind, reason, draft->status, draft->raw});
}

void rcpt_draft_ignore(struct rcpt_reading *reading, struct rcpt_draft *draft, const char *reason)
{
    drop_draft(reading, draft, RCPT_INTAKE_IGNORED, reason);
}

void rcpt_draft_reject(struct rcpt_reading *reading, struct rcpt_draft *draft, const char *reason)
{
    drop_draft(reading, draft, RCPT_INTAKE_REJECTED, reason);
}

void rcpt_reading_ignore(struct rcpt_reading *reading, const char *reason)
{
    reading->answered = true;
    add_drop(reading, (struct rcpt_intake_drop){.kind = RCPT_INTAKE_IGNORED, .reason = reason});
}

void rcpt_reading_reject(struct rcpt_reading *reading, const char *reason, struct rcpt_text raw)
{
    reading->answered = true;
    add_drop(reading,
             (struct rcpt_intake_drop){.kind = RCPT_INTAKE_REJECTED, .reason = reason, .raw = raw});
}

struct rcpt_text rcpt_reading_value(const struct rcpt_reading *reading, const char *name)
{
    return rcpt_source_value(&reading->source, name);
}

struct rcpt_text rcpt_reading_header(const struct rcpt_reading *reading, const char *name)
{
    return rcpt_source_header(&reading->source, name);
}

/* ---- from draft to event ---- */

static bool fits(struct rcpt_text text, const char *pattern)
{
    size_t size = strlen(pattern);
    if (size > 0 && pattern[size - 1] == '*')
        return text.size >= size - 1 &&
               rcpt_text_equal_nocase(rcpt_text_part(text, 0, size - 1),
                                      (struct rcpt_text){pattern, size - 1});
    return rcpt_text_is_nocase(text, pattern);
}

bool rcpt_mapping_fits(const struct rcpt_mapping *mapping, const struct rcpt_draft *draft)
{
    return fits(draft->status, mapping->raw) &&
           (mapping->code == NULL || fits(draft->reason, mapping->code));
}

static const struct rcpt_mapping *find_mapping(const struct rcpt_gateway *gateway,
                                               const struct rcpt_draft *draft)
{
    for (size_t index = 0; index < gateway->status_count; index++)
        if (rcpt_mapping_fits(&gateway->statuses[index], draft))
            return &gateway->statuses[index];
    for (size_t index = 0; gateway->smpp_words && index < rcpt_smpp_status_count; index++)
        if (fits(draft->status, rcpt_smpp_statuses[index].raw))
            return &rcpt_smpp_statuses[index];
    return NULL;
}

static bool is_good_id(struct rcpt_text id)
{
    return rcpt_utf8_is_text(id.at, id.size);
}

/* Why the core could do nothing with the event; NULL: it can. */
static const char *find_fault(const struct rcpt_draft *draft)
{
    const struct rcpt_text texts[] = {draft->status, draft->event_id, draft->campaign_id,
                                      draft->channel};
    if (draft->id.size > RCPT_RECORD_MAX_ID_BYTES ||
        draft->message_id.size > RCPT_RECORD_MAX_ID_BYTES)
        return "id_too_long";
    if (draft->status.size > RCPT_RECORD_MAX_ID_BYTES)
        return "status_too_long";
    for (size_t index = 0; index < RCPT_COUNT_OF(texts); index++)
        if (texts[index].size > MAX_TEXT_BYTES)
            return "value_too_long";
        else if (texts[index].size > 0 && !rcpt_text_is_utf8(texts[index]))
            return "invalid_utf8";
    if (draft->id.size == 0 && draft->message_id.size == 0)
        return "missing_id";
    if (!is_good_id(draft->id) || !is_good_id(draft->message_id))
        return "invalid_id";
    return NULL;
}

/* "0", "000": gateways' way of saying that there was no error. */
static bool is_zero(struct rcpt_text code)
{
    for (size_t index = 0; index < code.size; index++)
        if (code.at[index] != '0')
            return false;
    return true;
}

static bool is_success(const char *status)
{
    static const char *const names[] = {"IN_GTW", "SENT", "DELIVERED", "OPENED", "CLICKED"};
    for (size_t index = 0; index < RCPT_COUNT_OF(names); index++)
        if (strcmp(status, names[index]) == 0)
            return true;
    return false;
}

static bool in_ladder(const struct rcpt_reading *reading, const char *name)
{
    return rcpt_ladder_find_name(reading->account->ladder, name, strlen(name), NULL, 0) >= 0;
}

static void set_flags(const struct rcpt_reading *reading, struct rcpt_intake_event *event,
                      const char *flag)
{
    if (flag != NULL && in_ladder(reading, flag) && event->flag_count < RCPT_INTAKE_MAX_FLAGS)
        event->flags[event->flag_count++] = rcpt_text_of(flag);
}

static void set_time(const struct rcpt_reading *reading, const struct rcpt_draft *draft,
                     struct rcpt_intake_event *event)
{
    struct rcpt_moment moment = {0};
    if (!rcpt_moment_read(draft->at, reading->gateway->time_format, reading->account->time_zone,
                          reading->arena, &moment))
        return;
    event->has_at = moment.exact;
    event->at_us = draft->whole_seconds ? moment.at_us - moment.at_us % 1000000 : moment.at_us;
    event->gateway_at = moment.local;
}

/* Gateways without an id for the event: what their own retry would repeat. Opens and clicks may
 * come several times and differ in time only. */
static struct rcpt_text make_event_id(const struct rcpt_reading *reading,
                                      const struct rcpt_draft *draft, const char *status)
{
    struct rcpt_text id = draft->id.size > 0 ? draft->id : draft->message_id;
    bool repeats = strcmp(status, "OPENED") == 0 || strcmp(status, "CLICKED") == 0;
    if (!repeats || draft->at.size == 0 || draft->at.size > RCPT_RECORD_MAX_ID_BYTES)
        return RCPT_TEXT_JOIN(reading->arena, id, RCPT_TEXT(":"), draft->status);
    return RCPT_TEXT_JOIN(reading->arena, id, RCPT_TEXT(":"), draft->status, RCPT_TEXT(":"),
                          draft->at);
}

static struct rcpt_text good_text(struct rcpt_text text)
{
    bool good = text.size > 0 && text.size <= MAX_TEXT_BYTES && rcpt_text_is_utf8(text);
    return good ? text : (struct rcpt_text){NULL, 0};
}

static void make_event(struct rcpt_reading *reading, const struct rcpt_draft *draft,
                       const struct rcpt_mapping *mapping)
{
    struct rcpt_intake_event event = {
        .message_id = draft->message_id,
        .gateway_message_id = draft->id,
        .gateway_status = draft->status,
        .status = rcpt_text_of(mapping->status),
        .campaign_id = draft->campaign_id,
        .channel = draft->channel,
        .client_ref = good_text(draft->client_ref),
        .link = good_text(draft->link),
        .cost = good_text(draft->cost),
        .event_id = draft->event_id,
    };
    set_time(reading, draft, &event);
    set_flags(reading, &event, mapping->flag);
    set_flags(reading, &event, draft->flag);
    if (!is_success(mapping->status))
        event.reason = good_text(draft->reason);
    if (is_zero(event.reason))
        event.reason = (struct rcpt_text){NULL, 0};
    if (event.event_id.size == 0)
        event.event_id = make_event_id(reading, draft, mapping->status);
    if (!rcpt_text_number(draft->part, &event.part))
        event.part = 0;
    add_event(reading, &event);
}

/* Where the URL signs the message's id, nothing else of the request says which message it is. */
static void keep_signed_id(const struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    const struct rcpt_text none = {NULL, 0};
    if (reading->signed_id.size == 0)
        return;
    draft->message_id = reading->signed_id;
    draft->campaign_id = reading->signed_campaign;
    draft->id = none;
    draft->event_id = none;
    draft->client_ref = none;
}

void rcpt_reading_add(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    keep_signed_id(reading, draft);
    const struct rcpt_mapping *mapping =
        draft->mapped.raw != NULL ? &draft->mapped : find_mapping(reading->gateway, draft);
    const char *fault = find_fault(draft);
    draft->done = true;
    if (draft->status.size == 0)
        drop_draft(reading, draft, RCPT_INTAKE_REJECTED, "missing_status");
    else if (mapping == NULL)
        drop_draft(reading, draft, RCPT_INTAKE_UNMAPPED, "unknown_status");
    else if (mapping->status == NULL)
        drop_draft(reading, draft, RCPT_INTAKE_IGNORED, "no_interest");
    else if (fault != NULL)
        drop_draft(reading, draft, RCPT_INTAKE_REJECTED, fault);
    else if (!in_ladder(reading, mapping->status))
        drop_draft(reading, draft, RCPT_INTAKE_REJECTED, "status_not_in_ladder");
    else if (reading->result->event_count >= MAX_EVENTS)
        drop_draft(reading, draft, RCPT_INTAKE_REJECTED, "too_many_events");
    else
        make_event(reading, draft, mapping);
}

/* ---- from item to draft ---- */

static struct rcpt_text value_or(struct rcpt_text value, const struct rcpt_template *template,
                                 const struct rcpt_source *source)
{
    return value.size > 0 ? value : rcpt_template_value(template, source);
}

static void fill_draft(const struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    const struct rcpt_intake_account *account = reading->account;
    const struct rcpt_source *source = &reading->source;
    draft->id = rcpt_template_value(account->fields.id, source);
    draft->status = rcpt_template_value(account->fields.status, source);
    draft->reason = rcpt_template_value(account->fields.reason, source);
    draft->at = rcpt_template_value(account->fields.at, source);
    draft->event_id = rcpt_template_value(account->fields.event_id, source);
    draft->part = rcpt_template_value(account->fields.part, source);
    draft->link = rcpt_template_value(account->fields.link, source);
    draft->cost = rcpt_template_value(account->fields.cost, source);
    draft->client_ref = rcpt_template_value(account->fields.client_ref, source);
    draft->message_id = value_or(rcpt_template_value(account->fields.message_id, source),
                                 account->url_message_id, source);
    draft->campaign_id = value_or(rcpt_template_value(account->fields.campaign_id, source),
                                  account->url_campaign_id, source);
    draft->channel = rcpt_text_of(account->channel);
    if (draft->channel.size == 0)
        draft->channel = rcpt_template_value(account->fields.channel, source);
    if (draft->channel.size == 0)
        draft->channel = rcpt_text_of(reading->gateway->channel);
}

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

/* ---- from document to items ---- */

static bool push(struct rcpt_source *source, const struct rcpt_node *node)
{
    if (source->items[source->level] == node)
        return false;
    RCPT_ASSERT(source->level + 1 < RCPT_ITEM_MAX_LEVELS);
    source->items[++source->level] = node;
    return true;
}

static bool walk(struct rcpt_reading *reading, const struct rcpt_node *node, struct rcpt_text path);

static bool walk_one(struct rcpt_reading *reading, const struct rcpt_node *node,
                     struct rcpt_text path)
{
    if (node->type != RCPT_NODE_OBJECT)
        return false;
    bool pushed = push(&reading->source, node);
    bool exists = walk(reading, node, path);
    reading->source.level -= pushed;
    return exists;
}

static bool walk_each(struct rcpt_reading *reading, const struct rcpt_node *container,
                      struct rcpt_text path)
{
    bool exists = container->first == NULL;
    for (const struct rcpt_node *node = container->first; node != NULL; node = node->next) {
        bool pushed = push(&reading->source, node);
        exists |= walk(reading, node, path);
        reading->source.level -= pushed;
    }
    return exists;
}

/* Takes each element that the path leads to: "*" stands for the elements of an array (a single
 * object in its place is its own only element), "@" for the members of an object. Returns whether
 * the path exists. */
static bool walk(struct rcpt_reading *reading, const struct rcpt_node *node, struct rcpt_text path)
{
    struct rcpt_source *source = &reading->source;
    if (path.size == 0) {
        bool pushed = push(source, node);
        read_item(reading, node);
        source->level -= pushed;
        return true;
    }
    path = rcpt_text_part(path, 1, path.size); /* the slash */
    struct rcpt_text step = rcpt_text_part(path, 0, rcpt_text_find(path, "/"));
    path = rcpt_text_part(path, step.size, path.size);
    if (rcpt_text_is(step, "*"))
        return node->type == RCPT_NODE_ARRAY ? walk_each(reading, node, path)
                                             : walk_one(reading, node, path);
    if (rcpt_text_is(step, "@"))
        return node->type == RCPT_NODE_OBJECT && walk_each(reading, node, path);
    node = rcpt_node_member(node, step);
    return node != NULL && walk(reading, node, path);
}

static void read_items(struct rcpt_reading *reading)
{
    struct rcpt_text paths = rcpt_text_of(reading->gateway->items);
    const struct rcpt_node *root = reading->source.root;
    while (paths.size > 0) {
        struct rcpt_text path = rcpt_text_part(paths, 0, rcpt_text_find(paths, " "));
        if (walk(reading, root, rcpt_text_is(path, "/") ? RCPT_TEXT("") : path))
            return;
        paths = rcpt_text_trim(rcpt_text_part(paths, path.size, paths.size));
    }
}

static void read_document(struct rcpt_reading *reading)
{
    struct rcpt_source *source = &reading->source;
    source->items[0] = source->root;
    source->level = 0;
    bool has_form = reading->gateway->items == NULL || reading->gateway->json_in != NULL;
    if (source->root == NULL && has_form)
        read_item(reading, NULL);
    else if (source->root != NULL && reading->gateway->items != NULL)
        read_items(reading);
    else if (source->root != NULL)
        walk(reading, source->root, RCPT_TEXT("/*"));
    if (reading->result->event_count == 0 && reading->result->drop_count == 0)
        rcpt_reading_ignore(reading, "no_receipt");
}

/* ---- from request to document ---- */

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
    if (rcpt_document_looks_like(body) || (wants_json && rcpt_text_trim(body).size > 0))
        parse_json(reading, body);
}

/* The parameter of the URL that is a credential; NULL: there is none. */
static const char *credential_of(const struct rcpt_intake_account *account)
{
    rcpt_verifier *verify = account->scheme->verify;
    if (verify == rcpt_verify_query)
        return account->auth_name;
    if (verify == rcpt_verify_url_hmac)
        return "sig";
    return verify == rcpt_verify_shared || verify == rcpt_verify_sns ? "token" : NULL;
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

/* What a body is shows in the body: a type is a header, which hardly any signature covers. */
static void parse_parameters(struct rcpt_reading *reading)
{
    const struct rcpt_intake_request *request = reading->source.request;
    struct rcpt_text type = rcpt_reading_header(reading, "content-type");
    reading->source.query = rcpt_form_parse(request->query, reading->arena);
    reading->raw = request->body.size > 0 ? request->body : query_to_show(reading);
    if (!rcpt_form_is_multipart(request->body) && !rcpt_document_looks_like(request->body))
        reading->source.form = rcpt_form_parse(rcpt_text_trim(request->body), reading->arena);
    else if (rcpt_text_begins_nocase(type, "multipart/form-data"))
        reading->source.form = rcpt_form_parse_multipart(type, request->body, reading->arena);
}

/* Nothing but a knock at the door: gateways try a URL when it is entered. */
static bool is_probe(const struct rcpt_intake_request *request)
{
    return rcpt_text_trim(request->body).size == 0 && request->query.size == 0;
}

/* A URL that signs one id brings one receipt. */
static void refuse_several(struct rcpt_reading *reading)
{
    struct rcpt_intake_result *result = reading->result;
    if (reading->signed_id.size == 0 || result->event_count + result->drop_count <= 1)
        return;
    *result = (struct rcpt_intake_result){.verdict = RCPT_INTAKE_BAD,
                                          .verdict_reason =
                                              "the URL signs one message, the body names several",
                                          .answer = {.code = 403}};
}

static void set_answer(struct rcpt_reading *reading)
{
    const struct rcpt_intake_account *account = reading->account;
    const struct rcpt_gateway *gateway = reading->gateway;
    reading->result->answer = (struct rcpt_intake_answer){
        .code = account->own_answer_code != 0 ? account->own_answer_code : 200,
        .content_type = gateway->answer_type,
        .body = rcpt_text_of(gateway->answer),
    };
}

void rcpt_intake_adapt(const struct rcpt_intake_account *account,
                       const struct rcpt_intake_request *request, struct rcpt_arena *arena,
                       struct rcpt_intake_result *result)
{
    struct rcpt_outer_values outer = {.next = 0};
    struct rcpt_reading reading = {.account = account,
                                   .gateway = account->gateway,
                                   .source = {.request = request, .arena = arena, .outer = &outer},
                                   .result = result,
                                   .arena = arena};
    memset(result, 0, sizeof(*result));
    result->verdict = RCPT_INTAKE_UNVERIFIED;
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
