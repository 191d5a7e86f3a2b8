/* The schemas of bodies: one row for each component of the OpenAPI document. Rows of the table of
 * routes name them, and a test compares every route's answer with its component. So a column that a
 * statement of sql/serve gets or loses is a change here. Called by openapi.c.
 *
 * Members stand as "name: type, …". A type is a word of `words` below, the words that a value may
 * be (a|b|c), or a component. A suffix extends it: [] is a list of it, {} an object whose values
 * are of it, ? allows null. A name with ? behind it may be missing. "only" in front: there are no
 * other members; "either": the names of components, of which it is one. */
#include <stdio.h>

#include "internal.h"
#include "receiptd/base/error.h"
#include "receiptd/base/json.h"
#include "receiptd/core/record.h"

static const struct {
    const char *name, *doc, *members;
} schemas[] = {
    {"Problem", "why not (RFC 9457)",
     "type: text, title: text, status: integer, code: text, detail: text"},
    {"Campaigns", "a page of campaigns",
     "campaigns: Campaign[], next: text?, as_of: time?, behind_s: number?"},
    {"Campaign", "main counters of a campaign",
     "campaign_id: text, org_id: text?, name: text?, date: day?, targeted: integer, sent: integer, "
     "delivered: integer, "
     "opened: integer, clicked: integer, failed: integer, delivery_rate: number?, "
     "changed_at: time?, provisional: boolean?"},
    {"Funnel", "a campaign by its counters",
     "campaign_id: text, org_id: text?, name: text?, date: day?, as_of: time?, behind_s: number?, "
     "pending: Pending?, "
     "statuses: Status[], flags: Flag[], rates: Rate[], by: Share[], duplicates: integer"},
    {"Pending", "messages that wait for a final receipt", "messages: integer, until: time?"},
    {"Status", "a status of the ladder; current: messages that stand in it",
     "code: integer, name: text, parent: text?, messages: integer, events: integer, "
     "current: integer, customers: integer?, logical: integer?, terminal: boolean, "
     "kind: open|success|failure"},
    {"Flag",
     "messages and receipts of a flag; customers and logical messages, where they are counted",
     "code: integer, name: text, messages: integer, events: integer, customers: integer?, "
     "logical: integer?"},
    {"Count", "messages and receipts of a status",
     "code: integer, name: text, messages: integer, events: integer"},
    {"Rate", "numerator and denominator name statuses",
     "name: text, value: number?, numerator: text, denominator: text, label: text"},
    {"Share", "the counts of one value", "key: text, statuses: Count[]"},
    {"Timeline", "what each step added", "campaign_id: text, step: hour|minute, points: Point[]"},
    {"Point", "by names of statuses: messages, and receipts",
     "at: time, statuses: integer{}, events: integer{}"},
    {"Recipients", "messages of a campaign",
     "campaign_id: text, name: text?, recipients: Recipient[]"},
    {"Recipient", "a message",
     "message_id: text, status: text, status_at: time?, flags: text[], updated_at: time?, "
     "customer_id: text?, channel: text?"},
    {"Messages", "messages that were found", "messages: Found[]"},
    {"Found", "a message, and the field by which it was found",
     "message_id: text, campaign_id: text?, org_id: text?, status: text, status_at: time?, "
     "found_by: text"},
    {"Message", "what happened to a message",
     "message_id: text, campaign_id: text?, org_id: text?, customer: text?, logical: text?, "
     "parts: Parts?, status: text, status_code: integer, status_at: time?, updated_at: time?, "
     "flags: text[], path: text[], receipts: Receipt[], "
     "parked: Parked[], dead_letters: Letter[], actions: Due[]"},
    {"Receipt", "a receipt and its effect",
     "at: time?, recorded_at: time, topic: text, partition: integer, offset: integer, "
     "index: integer, status: text, old: text?, new: text?, gained: text[], gateway: text?, "
     "reason: text?, reason_class: text?, event_id: text?, part: integer?, parts: integer?, "
     "effect: waited|part|beside|refused|applied|flagged|duplicate|stale"},
    {"Parts", "which parts of a long message are delivered, and how many there are",
     "parts: integer, delivered: integer[]"},
    {"Parked", "a receipt that waits for its message",
     "status: text, at: time?, parked_at: time, gateway: text?, reason_class: text?, "
     "part: integer?, parts: integer?, topic: text, partition: integer, offset: integer, "
     "index: integer"},
    {"Letter", "a receipt of the message that could not be applied",
     "topic: text, partition: integer, offset: integer, index: integer, reason: text, "
     "detail: text?, dead_at: time"},
    {"Due", "an action that waits for a receipt",
     "id: integer, run: integer, pipeline: text, stage: text, op: text, status: text, "
     "attempt: integer, perform_at: time?"},
    {"Gateways", "figures by hour, and the times to deliver of all messages that were counted",
     "hours: integer, gateways: Gateway[], times: GatewayTime[]"},
    {"GatewayTime", "how long the gateway took to deliver",
     "gateway: text, messages: integer, deliver_p50_ms: number?, deliver_p99_ms: number?"},
    {"Gateway", "an hour of a gateway",
     "gateway: text, hour: time, receipts: integer, duplicates: integer, disorder: integer, "
     "contradictions_won: integer, contradictions_lost: integer, unknown: integer, "
     "coverage: number?, delay_p50_ms: number?, delay_p99_ms: number?"},
    {"Pipelines", "pipelines", "pipelines: Pipeline[]"},
    {"Pipeline", "a pipeline in all its wordings",
     "name: text, active: boolean, paused: boolean, wordings: integer, started: integer, "
     "repeated: integer"},
    {"Stages", "a pipeline's stages", "name: text, started: integer?, stages: Stage[]"},
    {"Stage", "its actions, by their status", "stage: text, op: text, actions: integer{}"},
    {"Actions", "a page of actions", "actions: Action[], next: text?"},
    {"Action", "an action, and why it does not run now",
     "id: integer, run: integer, pipeline: text, stage: text, op: text, target: text?, "
     "org_id: text?, message_id: text?, status: text, attempt: integer, perform_at: time?, "
     "because: text?, answer_status: integer?"},
    {"Letters", "a page of dead letters", "dead_letters: DeadLetter[], next: text?"},
    {"DeadLetter", "what could not be applied",
     "id: text, topic: text, partition: integer, offset: integer, index: integer, reason: text, "
     "detail: text?, receipts: integer, size: integer?, dead_at: time"},
    {"Redrive", "either a reason or ids", "either RedriveByReason, RedriveByIds"},
    {"RedriveByReason", "all letters of a reason; after: `next` of the answer before",
     "only reason: reason, after?: letter"},
    {"RedriveByIds", "some letters; after: `next` of the answer before",
     "only ids: letter[], after?: letter"},
    {"Redriven", "the result of a redrive; pass next as after to go on",
     "redriven: integer, receipts: integer, left: integer, letters_left: Left[], next: text?"},
    {"Left", "a letter that was not moved", "id: text, why: text, detail: text"},
    {"State", "the state by the database; parked and letters are exact up to 10 000",
     "instance: text?, ready: boolean, partitions: Partition[], parked: integer?, "
     "parked_is_estimate: boolean?, letters: integer?, letters_is_estimate: boolean?, daemons: "
     "Daemon[], instances: Instance[], as_of: time?, "
     "behind_s: number?"},
    {"Partition", "how far a partition is applied",
     "topic: text, partition: integer, position: integer, lag: integer?, newest_at: time?"},
    {"Daemon", "sessions of a daemon", "instance: text, sessions: integer"},
    {"Instance", "an instance by its own status document",
     "name: text, at: time, age_s: number, status: object"},
    {"Me", "who asks, and what is allowed",
     "organisation: text?, scopes: text[], link: Link?, redrive: boolean, version: text"},
    {"Link", "of a signed link", "campaign: text, expires: time"},
    {"Changed",
     "event `campaign`; campaign_id null: fetch everything again; funnel: of a stream of one "
     "campaign, "
     "without it fetch it; pause_s: between two requests for the same other part of the campaign",
     "campaign_id: text?, changed_at: time?, pause_s?: integer, funnel?: Funnel"},
    {"Health", "event `health`", "ok: boolean, behind_s: number?, database: up|down"},
};

static const struct {
    const char *word, *type, *format;
} words[] = {
    {"text", "string", NULL},     {"integer", "integer", NULL},    {"number", "number", NULL},
    {"boolean", "boolean", NULL}, {"time", "string", "date-time"}, {"object", "object", NULL},
    {"reason", "string", NULL},   {"letter", "string", NULL},      {"day", "string", "date"},
};
#define LETTER_FORM                                                                                \
    "^[a-zA-Z0-9._-]{1,249}/(0|[1-9][0-9]{0,8})/(0|[1-9][0-9]{0,17})/(0|-?[1-9][0-9]{0,8})$"
#define MOST_LETTERS 500 /* of one request */
#define ONLY         "only "
#define EITHER       "either "

/* Takes it off, where it is there. */
static bool take_suffix(struct rcpt_text *type, const char *suffix)
{
    size_t size = strlen(suffix);
    if (type->size <= size || memcmp(type->at + type->size - size, suffix, size) != 0)
        return false;
    type->size -= size;
    return true;
}

/* The reasons for which letters are kept. */
static void put_reasons(struct rcpt_json *json)
{
    rcpt_json_key(json, "enum");
    rcpt_json_begin_array(json);
    for (int reason = 0; reason < RCPT_REJECT_REASON__COUNT; reason++)
        rcpt_json_text(json, rcpt_reject_name((enum rcpt_reject_reason)reason));
    rcpt_json_end_array(json);
}

/* `type` with its null: ["string", "null"]. */
static void put_word(struct rcpt_json *json, size_t word, bool or_null)
{
    rcpt_json_key(json, "type");
    if (or_null)
        rcpt_json_begin_array(json);
    rcpt_json_text(json, words[word].type);
    if (or_null) {
        rcpt_json_text(json, "null");
        rcpt_json_end_array(json);
    }
    if (words[word].format != NULL)
        rcpt_json_put_text(json, "format", words[word].format);
    if (strcmp(words[word].word, "letter") == 0)
        rcpt_json_put_text(json, "pattern", LETTER_FORM);
    if (strcmp(words[word].word, "reason") == 0)
        put_reasons(json);
}

static void put_choices(struct rcpt_json *json, struct rcpt_text choices)
{
    rcpt_json_key(json, "enum");
    rcpt_json_begin_array(json);
    while (choices.size > 0) {
        size_t size = rcpt_text_find(choices, "|");
        rcpt_json_bytes(json, choices.at, size);
        choices = rcpt_text_part(choices, size + 1, choices.size);
    }
    rcpt_json_end_array(json);
}

static void put_reference(struct rcpt_json *json, struct rcpt_text name)
{
    char path[96];
    snprintf(path, sizeof(path), "#/components/schemas/%.*s", (int)name.size, name.at);
    rcpt_json_put_text(json, "$ref", path);
}

/* A component that may be null is one of two. */
static void put_component(struct rcpt_json *json, struct rcpt_text name, bool or_null)
{
    if (!or_null) {
        put_reference(json, name);
        return;
    }
    rcpt_json_key(json, "anyOf");
    rcpt_json_begin_array(json);
    rcpt_json_begin_object(json);
    put_reference(json, name);
    rcpt_json_end_object(json);
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "type", "null");
    rcpt_json_end_object(json);
    rcpt_json_end_array(json);
}

/* One value: neither a list nor a map. */
static void put_single(struct rcpt_json *json, struct rcpt_text type, bool or_null)
{
    for (size_t index = 0; index < RCPT_COUNT_OF(words); index++)
        if (rcpt_text_is(type, words[index].word)) {
            put_word(json, index, or_null);
            return;
        }
    if (memchr(type.at, '|', type.size) != NULL)
        put_choices(json, type);
    else
        put_component(json, type, or_null);
}

/* From the outside in: `integer[]?` is a list, or null. */
void serve_schema_put(struct rcpt_json *json, struct rcpt_text type)
{
    bool or_null = take_suffix(&type, "?"), is_list = take_suffix(&type, "[]");
    bool is_map = take_suffix(&type, "{}");
    rcpt_json_begin_object(json);
    if (is_list || is_map) {
        rcpt_json_put_text(json, "type", is_list ? "array" : "object");
        if (is_list && rcpt_text_is(type, "letter")) {
            rcpt_json_put_int(json, "minItems", 1);
            rcpt_json_put_int(json, "maxItems", MOST_LETTERS);
        }
        rcpt_json_key(json, is_list ? "items" : "additionalProperties");
        serve_schema_put(json, type);
    } else {
        put_single(json, type, or_null);
    }
    rcpt_json_end_object(json);
}

/* Cuts the next member off. */
static struct rcpt_text next_member(struct rcpt_text *rest, struct rcpt_text *name, bool *optional)
{
    size_t size = rcpt_text_find(*rest, ", ");
    struct rcpt_text member = rcpt_text_part(*rest, 0, size);
    size_t name_size = rcpt_text_find(member, ": ");
    *rest = rcpt_text_part(*rest, size + 2, rest->size);
    *name = rcpt_text_part(member, 0, name_size);
    *optional = take_suffix(name, "?");
    return rcpt_text_part(member, name_size + 2, member.size);
}

/* Names of those that are always there, or all with their types. */
static void put_members(struct rcpt_json *json, const char *members, bool names)
{
    struct rcpt_text rest = rcpt_text_of(members), name;
    bool optional;
    while (rest.size > 0) {
        struct rcpt_text type = next_member(&rest, &name, &optional);
        char key[48];
        if (names && !optional)
            rcpt_json_bytes(json, name.at, name.size);
        if (names)
            continue;
        snprintf(key, sizeof(key), "%.*s", (int)name.size, name.at);
        rcpt_json_key(json, key);
        serve_schema_put(json, type);
    }
}

static void put_either(struct rcpt_json *json, struct rcpt_text names)
{
    rcpt_json_key(json, "oneOf");
    rcpt_json_begin_array(json);
    while (names.size > 0) {
        size_t size = rcpt_text_find(names, ", ");
        rcpt_json_begin_object(json);
        put_reference(json, rcpt_text_part(names, 0, size));
        rcpt_json_end_object(json);
        names = rcpt_text_part(names, size + 2, names.size);
    }
    rcpt_json_end_array(json);
}

static void put_object(struct rcpt_json *json, const char *members)
{
    bool only = strncmp(members, ONLY, sizeof(ONLY) - 1) == 0;
    if (only)
        members += sizeof(ONLY) - 1;
    rcpt_json_put_text(json, "type", "object");
    if (only)
        rcpt_json_put_bool(json, "additionalProperties", false);
    rcpt_json_key(json, "required");
    rcpt_json_begin_array(json);
    put_members(json, members, true);
    rcpt_json_end_array(json);
    rcpt_json_key(json, "properties");
    rcpt_json_begin_object(json);
    put_members(json, members, false);
    rcpt_json_end_object(json);
}

/* Members may be added in a later release, so others are not forbidden. */
void serve_schemas_put(struct rcpt_json *json)
{
    rcpt_json_begin_object(json);
    for (size_t index = 0; index < RCPT_COUNT_OF(schemas); index++) {
        rcpt_json_key(json, schemas[index].name);
        rcpt_json_begin_object(json);
        rcpt_json_put_text(json, "description", schemas[index].doc);
        if (strncmp(schemas[index].members, EITHER, sizeof(EITHER) - 1) == 0)
            put_either(json, rcpt_text_of(schemas[index].members + sizeof(EITHER) - 1));
        else
            put_object(json, schemas[index].members);
        rcpt_json_end_object(json);
    }
    rcpt_json_end_object(json);
}
