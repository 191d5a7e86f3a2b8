/* Records of topics whose form is not ours. The way of a record: envelope (CloudEvents) → units,
 * each one body for the adapter → events as JSON in one array, refusals with their bytes. Units
 * and their events keep the record's order, in which everything has its index. The form's text is
 * JSON, then the payloads of letters. Called by receipts/consume.c, receipts/redrive.c and
 * `receiptd run --try`. */
#include "receiptd/gateways/topics.h"

#include <stdlib.h>

#include "crypto.h"
#include "receiptd/base/buffer.h"
#include "receiptd/core/hash.h"
#include "receiptd/core/timestamp.h"
#include "topics.h"

#define ARENA_CHUNK_BYTES 16384u
#define KEPT_BYTES        262144u /* of scratch memory, from one record to the next */
#define MOST_JSON_BYTES   (32u << 20)
#define MOST_ATTRIBUTES   64u

struct topic {
    char *name;
    struct rcpt_gateway_account *account;
};

struct rcpt_gateway_topics {
    struct topic *all;
    size_t count;
    /* Of the record in hand. */
    const struct rcpt_gateway_account *account;
    const struct rcpt_record_input *input;
    const struct rcpt_network_set *scanners;
    struct rcpt_arena arena;
    struct rcpt_buffer text;
    struct rcpt_record_form form;
    uint32_t *indexes;
    struct rcpt_record_refusal *refusals;
    struct words { /* of refusals */
        struct rcpt_text payload;
        const char *detail;
    } * words;
    size_t index_count, index_capacity, refusal_capacity;
    uint32_t outcomes;             /* so far: events, refusals and what is ignored */
    enum rcpt_reject_reason limit; /* that the record exceeds; RCPT_REJECT_REASON__COUNT: none */
};

/* A body for the adapter, and the bytes that stand for it in a letter. */
struct unit {
    struct rcpt_text body, raw;
    const struct rcpt_gateway_header *headers;
    size_t header_count;
    bool is_item;
};

/* ---- the accounts ---- */

struct rcpt_gateway_topics *rcpt_gateway_topics_new(
    const struct rcpt_gateway_account_config *configs, size_t count,
    const struct rcpt_ladder *ladder, struct rcpt_error *error)
{
    struct rcpt_gateway_topics *topics = rcpt_calloc(1, sizeof(*topics));
    topics->all = rcpt_calloc(count + 1, sizeof(*topics->all));
    rcpt_arena_init(&topics->arena, ARENA_CHUNK_BYTES);
    for (size_t index = 0; index < count; index++) {
        if (strcmp(configs[index].gateway, RCPT_GATEWAY_NATIVE) == 0)
            continue;
        struct topic *topic = &topics->all[topics->count];
        topic->account = rcpt_gateway_account_new(&configs[index], ladder, error);
        if (topic->account == NULL) {
            rcpt_gateway_topics_free(topics);
            return NULL;
        }
        topic->name = rcpt_strdup(configs[index].name);
        topics->count++;
    }
    return topics;
}

void rcpt_gateway_topics_free(struct rcpt_gateway_topics *topics)
{
    if (topics == NULL)
        return;
    for (size_t index = 0; index < topics->count; index++) {
        rcpt_gateway_account_free(topics->all[index].account);
        free(topics->all[index].name);
    }
    rcpt_arena_fini(&topics->arena);
    rcpt_buffer_free(&topics->text);
    free(topics->indexes);
    free(topics->refusals);
    free(topics->words);
    free(topics->all);
    free(topics);
}

static const struct rcpt_gateway_account *find(const struct rcpt_gateway_topics *topics,
                                               const char *name)
{
    for (size_t index = 0; topics != NULL && index < topics->count; index++)
        if (strcmp(topics->all[index].name, name) == 0)
            return topics->all[index].account;
    return NULL;
}

bool rcpt_gateway_topics_has(const struct rcpt_gateway_topics *topics, const char *topic)
{
    return find(topics, topic) != NULL;
}

/* ---- what a unit gives ---- */

static struct rcpt_text header(const struct unit *unit, const char *name)
{
    for (size_t index = 0; index < unit->header_count; index++)
        if (rcpt_text_is_nocase(unit->headers[index].name, name))
            return rcpt_text_trim(unit->headers[index].value);
    return (struct rcpt_text){NULL, 0};
}

/* An event whose data has no time happened when its envelope says. */
static void take_event(struct rcpt_gateway_topics *topics, const struct unit *unit,
                       const struct rcpt_gateway_event *from, uint32_t index)
{
    struct rcpt_gateway_event event = *from;
    struct rcpt_text at = header(unit, "ce_time");
    if (!event.has_at && event.gateway_at.size == 0 && at.size > 0)
        event.has_at = rcpt_timestamp_parse(at.at, at.size, &event.at_us);
    struct rcpt_text id = event.message_id.size > 0 ? event.message_id : event.gateway_message_id;
    struct rcpt_text json = rcpt_gateway_event_json(topics->account, &event, id, &topics->arena);
    if (topics->text.size + json.size > MOST_JSON_BYTES) {
        topics->limit = RCPT_REJECT_RECORD_TOO_LARGE;
        return;
    }
    rcpt_buffer_append(&topics->text, topics->index_count == 0 ? "[" : ",", 1);
    rcpt_buffer_append(&topics->text, json.at, json.size);
    if (topics->index_count == topics->index_capacity)
        RCPT_GROW(topics->indexes, topics->index_capacity, 64);
    topics->indexes[topics->index_count++] = index;
}

/* The lane is that of the message. Otherwise a receipt could be lost, or be a letter as well, if
 * its word gets a meaning before the record is read once more. */
static void refuse(struct rcpt_gateway_topics *topics, enum rcpt_reject_reason reason,
                   int32_t index, struct words words, struct rcpt_text id)
{
    if (topics->form.refusal_count == topics->refusal_capacity) {
        RCPT_GROW(topics->refusals, topics->refusal_capacity, 16);
        topics->words =
            rcpt_realloc(topics->words, topics->refusal_capacity * sizeof(*topics->words));
    }
    topics->words[topics->form.refusal_count] = words;
    topics->refusals[topics->form.refusal_count++] = (struct rcpt_record_refusal){
        .reason = reason,
        .index = index,
        .hash = id.size > 0 ? rcpt_hash_text_extended(id.at, id.size, 0) : 0,
    };
}

/* The letter of a unit's only outcome has the unit, with its envelope; of several each has its
 * item. */
static void take_drop(struct rcpt_gateway_topics *topics, const struct unit *unit,
                      const struct rcpt_gateway_drop *drop, bool alone, uint32_t index)
{
    if (drop->kind == RCPT_GATEWAY_IGNORED)
        return;
    struct words words = {
        alone || drop->raw.size == 0 ? unit->raw : drop->raw,
        rcpt_topic_detail(topics->account, topics->input->topic, drop, &topics->arena)};
    refuse(topics, rcpt_topic_reason(drop->reason), (int32_t)index, words, drop->id);
}

/* Events and drops have a common order. */
static void take_unit(struct rcpt_gateway_topics *topics, const struct unit *unit)
{
    struct rcpt_gateway_result result;
    const struct rcpt_gateway_request request = {
        .method = RCPT_TEXT("POST"),
        .headers = unit->headers,
        .header_count = unit->header_count,
        .body = unit->body,
        .received_us = rcpt_record_bound_ms(topics->input->timestamp_ms) * 1000,
        .scanners = topics->scanners,
        .is_item = unit->is_item,
    };
    rcpt_gateway_adapt(topics->account, &request, &topics->arena, &result);
    size_t count = result.event_count + result.drop_count, event = 0, drop = 0;
    uint32_t first = topics->outcomes;
    if (first + count > RCPT_RECORD_MAX_EVENTS)
        topics->limit = RCPT_REJECT_TOO_MANY_EVENTS;
    for (uint32_t order = 0; order < count && topics->limit == RCPT_REJECT_REASON__COUNT; order++)
        if (event < result.event_count && result.events[event].order == order)
            take_event(topics, unit, &result.events[event++], first + order);
        else
            take_drop(topics, unit, &result.drops[drop++], count == 1, first + order);
    topics->outcomes += (uint32_t)count;
}

/* ---- CloudEvents ---- */

static bool is_envelope(const struct rcpt_node *node)
{
    return rcpt_node_text_of(node, "specversion").size > 0 &&
           rcpt_node_text_of(node, "type").size > 0;
}

/* The data as the producer had it: JSON as it stands, a text (a form, or JSON in quotes) decoded,
 * bytes from base64. Without any, the envelope itself, for a refusal that shows it. */
static struct rcpt_text data_of(const struct rcpt_node *envelope, struct rcpt_arena *arena)
{
    const struct rcpt_node *data = rcpt_node_get(envelope, "data");
    if (data != NULL && data->type != RCPT_NODE_NULL)
        return data->type == RCPT_NODE_STRING ? data->text : data->raw;
    struct rcpt_text bytes = rcpt_base64_decode(rcpt_node_text_of(envelope, "data_base64"), arena);
    return bytes.size > 0 ? bytes : envelope->raw;
}

/* In structured mode attributes are members; then adapters find them where binary mode has them. An
 * envelope is never an item alone. */
static void take_envelope(struct rcpt_gateway_topics *topics, const struct rcpt_node *envelope)
{
    struct rcpt_gateway_header headers[MOST_ATTRIBUTES];
    struct unit unit = {
        .body = data_of(envelope, &topics->arena), .raw = envelope->raw, .headers = headers};
    for (const struct rcpt_node *node = envelope->first;
         node != NULL && unit.header_count < MOST_ATTRIBUTES; node = node->next) {
        bool is_type = rcpt_text_is(node->key, "datacontenttype");
        if (node->text.size == 0 || rcpt_text_begins(node->key, "data_") ||
            rcpt_text_is(node->key, "data"))
            continue;
        headers[unit.header_count++] = (struct rcpt_gateway_header){
            is_type ? RCPT_TEXT("content-type")
                    : RCPT_TEXT_JOIN(&topics->arena, RCPT_TEXT("ce_"), node->key),
            node->text};
    }
    take_unit(topics, &unit);
}

/* The envelopes of the value; NULL: it is none. Only a value with the attribute that each envelope
 * has is parsed for it. */
static const struct rcpt_node *find_envelopes(struct rcpt_text value, struct rcpt_arena *arena)
{
    static const char attribute[] = "\"specversion\"";
    const char *reason;
    if (!rcpt_document_looks_like(value) ||
        memmem(value.at, value.size, attribute, sizeof(attribute) - 1) == NULL)
        return NULL;
    const struct rcpt_node *root = rcpt_document_parse(value, arena, &reason);
    if (root != NULL && root->type == RCPT_NODE_ARRAY)
        return is_envelope(root->first) ? root : NULL;
    return is_envelope(root) ? root : NULL;
}

/* Elements of an array that begins with an envelope may be others, too. */
static void take_value(struct rcpt_gateway_topics *topics, const struct unit *whole)
{
    const struct rcpt_node *root = find_envelopes(whole->body, &topics->arena);
    if (root == NULL)
        take_unit(topics, whole);
    else if (root->type == RCPT_NODE_OBJECT)
        take_envelope(topics, root);
    else
        for (const struct rcpt_node *node = root->first; node != NULL; node = node->next) {
            struct unit other = *whole;
            other.body = other.raw = node->raw;
            if (is_envelope(node))
                take_envelope(topics, node);
            else
                take_unit(topics, &other);
        }
}

/* ---- the form ---- */

/* The record as a whole is refused: by a limit, or because its only outcome is a refusal. */
static void judge_whole(struct rcpt_gateway_topics *topics, struct rcpt_text value)
{
    if (topics->limit != RCPT_REJECT_REASON__COUNT) {
        bool many = topics->limit == RCPT_REJECT_TOO_MANY_EVENTS;
        topics->text.size = topics->index_count = topics->form.refusal_count = 0;
        refuse(topics, topics->limit, -1,
               (struct words){value, many ? "the record has more than 10000 receipts"
                                          : "its receipts take more than 32 MiB"},
               (struct rcpt_text){NULL, 0});
    } else if (topics->outcomes == 1 && topics->form.refusal_count == 1) {
        topics->refusals[0].index = -1;
        topics->words[0].payload = value;
    }
}

/* Closes the array, and puts the letters' bytes behind it. */
static void finish(struct rcpt_gateway_topics *topics)
{
    struct rcpt_record_form *form = &topics->form;
    if (topics->index_count == 0)
        rcpt_buffer_append(&topics->text, "[", 1);
    rcpt_buffer_append(&topics->text, "]", 1);
    form->json_size = topics->text.size;
    for (size_t index = 0; index < form->refusal_count; index++) {
        struct rcpt_record_refusal *refusal = &topics->refusals[index];
        const struct words *words = &topics->words[index];
        size_t size = words->payload.size;
        refusal->full_size = (uint32_t)size;
        refusal->payload = (uint32_t)topics->text.size;
        refusal->payload_size =
            (uint32_t)(size < RCPT_RECORD_MAX_LETTER_BYTES ? size : RCPT_RECORD_MAX_LETTER_BYTES);
        rcpt_buffer_append(&topics->text, words->payload.at, refusal->payload_size);
        refusal->detail = (uint32_t)topics->text.size;
        rcpt_buffer_append(&topics->text, words->detail, strlen(words->detail) + 1);
    }
    form->text = topics->text.bytes;
    form->text_size = topics->text.size;
    form->indexes = topics->indexes;
    form->refusals = topics->refusals;
}

/* One large record must not keep its memory. */
static void begin(struct rcpt_gateway_topics *topics)
{
    rcpt_arena_reset(&topics->arena, KEPT_BYTES);
    if (topics->text.capacity > KEPT_BYTES)
        rcpt_buffer_free(&topics->text);
    topics->text.size = topics->index_count = topics->outcomes = 0;
    topics->form = (struct rcpt_record_form){.text = NULL};
    topics->limit = RCPT_REJECT_REASON__COUNT;
}

const struct rcpt_record_form *rcpt_gateway_topics_form(struct rcpt_gateway_topics *topics,
                                                        const struct rcpt_record_input *input,
                                                        const struct rcpt_gateway_beside *beside)
{
    const struct rcpt_gateway_account *account = find(topics, input->topic);
    if (account == NULL || input->unreadable != NULL || input->value == NULL ||
        input->value_size == 0 || input->value_size > RCPT_RECORD_MAX_BYTES)
        return NULL;
    struct rcpt_text value = {input->value, input->value_size};
    const struct unit whole = {value, value, beside->headers, beside->header_count,
                               beside->is_item};
    begin(topics);
    topics->account = account;
    topics->input = input;
    topics->scanners = beside->scanners;
    take_value(topics, &whole);
    judge_whole(topics, value);
    finish(topics);
    return &topics->form;
}
