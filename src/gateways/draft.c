/* Drafts become events or drops. Adapters fill a draft from an item; rcpt_reading_add() looks up
 * its status, checks it and adds an event to the result. A draft that cannot become an event is a
 * drop with its reason. Called by adapter.c and by the hooks of adapters. */
#include "account.h"
#include "receiptd/core/record.h"

#define MAX_EVENTS     100000u /* of one request; a body of a megabyte has fewer */
#define MAX_TEXT_BYTES 16384u  /* of a value: what stands around many items comes again in each */

/* ---- the result ---- */

/* Memory for one element more than there are; the old one stays in the arena. */
static void *grow(struct rcpt_arena *arena, const void *old, size_t count, size_t *capacity,
                  size_t size)
{
    *capacity = *capacity > 0 ? *capacity * 2 : 8;
    void *larger = rcpt_arena_alloc(arena, *capacity * size);
    if (old != NULL)
        memcpy(larger, old, count * size);
    return larger;
}

/* The result sees the array at its present place after each addition. */
static void add_drop(struct rcpt_reading *reading, struct rcpt_gateway_drop drop)
{
    struct rcpt_gateway_result *result = reading->result;
    if (reading->drops == NULL || result->drop_count == reading->drop_capacity)
        reading->drops = grow(reading->arena, reading->drops, result->drop_count,
                              &reading->drop_capacity, sizeof(drop));
    drop.order = (uint32_t)(result->event_count + result->drop_count);
    reading->drops[result->drop_count++] = drop;
    result->drops = reading->drops;
}

static void add_event(struct rcpt_reading *reading, const struct rcpt_gateway_event *event)
{
    struct rcpt_gateway_result *result = reading->result;
    if (reading->events == NULL || result->event_count == reading->event_capacity)
        reading->events = grow(reading->arena, reading->events, result->event_count,
                               &reading->event_capacity, sizeof(*event));
    reading->events[result->event_count] = *event;
    reading->events[result->event_count].order =
        (uint32_t)(result->event_count + result->drop_count);
    result->event_count++;
    result->events = reading->events;
}

/* An id that cannot have a form of the account's stays as it is, and so does one that our URL
 * signs. */
static struct rcpt_text form_id(const struct rcpt_reading *reading, struct rcpt_text id)
{
    const struct rcpt_gateway_account *account = reading->account;
    char made[RCPT_ID_FORM_BYTES];
    for (size_t index = 0; index < account->id_form_count && reading->signed_id.size == 0; index++)
        if (rcpt_id_form_make(account->id_forms[index], id, made))
            id = rcpt_text_copy(reading->arena, rcpt_text_of(made));
    return id;
}

/* A draft that is done adds nothing more. */
static void drop_draft(struct rcpt_reading *reading, struct rcpt_draft *draft,
                       enum rcpt_gateway_drop_kind kind, const char *reason)
{
    struct rcpt_text id = draft->message_id.size > 0 ? draft->message_id : draft->id;
    draft->done = true;
    add_drop(reading, (struct rcpt_gateway_drop){kind, reason, draft->status, draft->raw,
                                                 .id = form_id(reading, id)});
}

/* Counted, but no dead letter: the gateway means no receipt by it. */
void rcpt_draft_ignore(struct rcpt_reading *reading, struct rcpt_draft *draft, const char *reason)
{
    drop_draft(reading, draft, RCPT_GATEWAY_IGNORED, reason);
}

/* A dead letter with this reason. */
void rcpt_draft_reject(struct rcpt_reading *reading, struct rcpt_draft *draft, const char *reason)
{
    drop_draft(reading, draft, RCPT_GATEWAY_REJECTED, reason);
}

/* If the item holds only empty lists and objects, it cannot be a receipt. */
void rcpt_draft_set_aside(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    if (rcpt_node_is_bare(draft->item)) {
        draft->raw.size = 0;
        rcpt_draft_ignore(reading, draft, "no_receipt");
    } else {
        drop_draft(reading, draft, RCPT_GATEWAY_UNKNOWN_FORM, "unknown_form");
    }
}

bool rcpt_draft_is_inbound(const struct rcpt_reading *reading)
{
    return rcpt_template_value(reading->account->inbound, &reading->source).size > 0;
}

void rcpt_reading_ignore(struct rcpt_reading *reading, const char *reason)
{
    reading->answered = true;
    add_drop(reading, (struct rcpt_gateway_drop){.kind = RCPT_GATEWAY_IGNORED, .reason = reason});
}

void rcpt_reading_reject(struct rcpt_reading *reading, const char *reason, struct rcpt_text raw)
{
    reading->answered = true;
    add_drop(reading, (struct rcpt_gateway_drop){
                          .kind = RCPT_GATEWAY_REJECTED, .reason = reason, .raw = raw});
}

struct rcpt_text rcpt_reading_value(const struct rcpt_reading *reading, const char *name)
{
    return rcpt_source_value(&reading->source, name);
}

struct rcpt_text rcpt_reading_header(const struct rcpt_reading *reading, const char *name)
{
    return rcpt_source_header(&reading->source, name);
}

/* ---- codes and words of an error ---- */

bool rcpt_code_is_zero(struct rcpt_text code)
{
    for (size_t index = 0; index < code.size; index++)
        if (code.at[index] != '0')
            return false;
    return true;
}

/* Also adds the enhanced status code that is part of a text: "smtp; 550 5.7.1 blocked". */
void rcpt_draft_say(struct rcpt_draft *draft, struct rcpt_text text)
{
    struct rcpt_text texts[] = {text, rcpt_reason_enhanced(text)};
    if (rcpt_text_equal(texts[0], texts[1]))
        texts[1].size = 0;
    for (size_t index = 0; index < RCPT_COUNT_OF(texts); index++)
        if (texts[index].size > 0 && draft->said_count < RCPT_SAID_MOST)
            draft->said[draft->said_count++] = texts[index];
}

/* RFC 5965: reports that a message was not called spam, or that are about its signatures. */
static bool is_no_complaint(const struct rcpt_reading *reading)
{
    static const char *const words[] = {"not-spam", "not_spam",     "not spam",
                                        "notspam",  "auth-failure", "auth_failure"};
    static const char header[] = "Feedback-Type:";
    struct rcpt_text said =
        rcpt_template_value(reading->account->fields.feedback, &reading->source);
    size_t at = rcpt_text_find(said, header);
    if (at < said.size) { /* the report itself */
        said = rcpt_text_part(said, at + strlen(header), said.size);
        said = rcpt_text_trim(rcpt_text_part(said, 0, rcpt_text_find(said, "\n")));
    }
    for (size_t index = 0; index < RCPT_COUNT_OF(words); index++)
        if (rcpt_text_is_nocase(said, words[index]))
            return true;
    return false;
}

/* ---- from draft to event ---- */

/* A star at the end of a pattern stands for anything. */
bool rcpt_pattern_fits(struct rcpt_text text, const char *pattern)
{
    size_t size = strlen(pattern);
    if (size > 0 && pattern[size - 1] == '*')
        return text.size >= size - 1 &&
               rcpt_text_equal_nocase(rcpt_text_part(text, 0, size - 1),
                                      (struct rcpt_text){pattern, size - 1});
    return rcpt_text_is_nocase(text, pattern);
}

/* A row may ask for a code beside the status: any of the error's codes and words. */
bool rcpt_mapping_fits(const struct rcpt_mapping *mapping, const struct rcpt_draft *draft)
{
    if (!rcpt_pattern_fits(draft->status, mapping->raw))
        return false;
    if (mapping->code == NULL || rcpt_pattern_fits(draft->reason, mapping->code))
        return true;
    for (unsigned index = 0; index < draft->said_count; index++)
        if (rcpt_pattern_fits(draft->said[index], mapping->code))
            return true;
    return false;
}

/* The first row that fits: adapters put the special ones first. */
static const struct rcpt_mapping *find_mapping(const struct rcpt_gateway *gateway,
                                               const struct rcpt_draft *draft)
{
    for (size_t index = 0; index < gateway->status_count; index++)
        if (rcpt_mapping_fits(&gateway->statuses[index], draft))
            return &gateway->statuses[index];
    for (size_t index = 0; gateway->smpp_words && index < rcpt_smpp_status_count; index++)
        if (rcpt_pattern_fits(draft->status, rcpt_smpp_statuses[index].raw))
            return &rcpt_smpp_statuses[index];
    return NULL;
}

/* Ids that the core would refuse are refused here, with a reason that names the request. */
static bool is_good_id(struct rcpt_text id)
{
    return rcpt_utf8_is_text(id.at, id.size);
}

/* Whether the draft means all messages to a person up to a time, and names none. */
static bool is_range(const struct rcpt_draft *draft)
{
    return draft->id.size == 0 && draft->message_id.size == 0 && draft->recipient.size > 0 &&
           draft->until.size > 0;
}

/* NULL: the draft can become an event. */
static const char *find_fault(const struct rcpt_draft *draft)
{
    const struct rcpt_text texts[] = {draft->status, draft->event_id, draft->org_id,
                                      draft->campaign_id, draft->channel};
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
    if (is_range(draft))
        return draft->recipient.size > RCPT_RECORD_MAX_ID_BYTES ? "id_too_long"
               : is_good_id(draft->recipient)                   ? NULL
                                                                : "invalid_id";
    if (draft->id.size == 0 && draft->message_id.size == 0)
        return "missing_id";
    if (!is_good_id(draft->id) || !is_good_id(draft->message_id))
        return "invalid_id";
    return NULL;
}

/* A success has no reason: gateways write "no error" there. */
static bool is_success(const char *status)
{
    static const char *const names[] = {"IN_GTW", "SENT", "DELIVERED", "OPENED", "CLICKED"};
    for (size_t index = 0; index < RCPT_COUNT_OF(names); index++)
        if (strcmp(status, names[index]) == 0)
            return true;
    return false;
}

/* The platform may have a ladder of its own that lacks a status of the adapter's. */
static bool in_ladder(const struct rcpt_reading *reading, const char *name)
{
    return rcpt_ladder_find_name(reading->account->ladder, name, strlen(name), NULL, 0) >= 0;
}

/* Flags that the ladder lacks are left out. */
static void set_flags(const struct rcpt_reading *reading, struct rcpt_gateway_event *event,
                      const char *flag)
{
    if (flag != NULL && in_ladder(reading, flag) && event->flag_count < RCPT_GATEWAY_MAX_FLAGS)
        event->flags[event->flag_count++] = rcpt_text_of(flag);
}

static struct rcpt_clock clock_of(const struct rcpt_reading *reading)
{
    return (struct rcpt_clock){reading->account->time_zone, reading->source.request->received_us};
}

/* An inexact time is kept as text; without any, the core takes the time of receipt. */
static void set_time(const struct rcpt_reading *reading, const struct rcpt_draft *draft,
                     struct rcpt_gateway_event *event)
{
    struct rcpt_moment moment = {0};
    const struct rcpt_clock clock = clock_of(reading);
    if (!rcpt_moment_read(draft->at, reading->gateway->time_format, &clock, reading->arena,
                          &moment))
        return;
    event->has_at = moment.exact;
    event->at_us = draft->whole_seconds ? moment.at_us - moment.at_us % 1000000 : moment.at_us;
    event->gateway_at = moment.local;
}

/* For gateways without an id for the event: a hash over the values that their own retry would
 * repeat. Opens and clicks may come several times and differ in time only. */
static struct rcpt_text make_event_id(const struct rcpt_reading *reading,
                                      const struct rcpt_draft *draft, const char *status)
{
    struct rcpt_text id = draft->id.size > 0 ? draft->id : draft->message_id;
    bool repeats = strcmp(status, "OPENED") == 0 || strcmp(status, "CLICKED") == 0;
    if (!repeats || draft->at.size == 0 || draft->at.size > RCPT_RECORD_MAX_ID_BYTES ||
        !rcpt_text_is_utf8(draft->at))
        return RCPT_TEXT_JOIN(reading->arena, id, RCPT_TEXT(":"), draft->status);
    return RCPT_TEXT_JOIN(reading->arena, id, RCPT_TEXT(":"), draft->status, RCPT_TEXT(":"),
                          draft->at);
}

/* Texts for people: one that is too long or no UTF-8 is left out rather than refusing the
 * receipt. */
static struct rcpt_text good_text(struct rcpt_text text)
{
    bool good = text.size > 0 && text.size <= MAX_TEXT_BYTES && rcpt_text_is_utf8(text);
    return good ? text : (struct rcpt_text){NULL, 0};
}

/* A range names no message, so only the fields that the core reads of a range are set. */
static void make_range(struct rcpt_reading *reading, const struct rcpt_draft *draft,
                       const struct rcpt_mapping *mapping)
{
    struct rcpt_moment until = {0};
    struct rcpt_gateway_event event = {.recipient = draft->recipient,
                                       .gateway_status = draft->status,
                                       .status = rcpt_text_of(mapping->status),
                                       .channel = draft->channel};
    const struct rcpt_clock clock = clock_of(reading);
    if (!rcpt_moment_read(draft->until, reading->gateway->time_format, &clock, reading->arena,
                          &until) ||
        !until.exact) {
        add_drop(reading, (struct rcpt_gateway_drop){.kind = RCPT_GATEWAY_REJECTED,
                                                     .reason = "invalid_range",
                                                     .status = draft->status,
                                                     .raw = draft->raw});
        return;
    }
    event.until_us = until.at_us;
    set_time(reading, draft, &event);
    add_event(reading, &event);
}

/* Uses all codes and words of the error; the reason that an adapter has chosen comes first. */
static const char *class_of(const struct rcpt_reading *reading, const struct rcpt_draft *draft,
                            const char *status)
{
    struct rcpt_text said[RCPT_SAID_MOST + 1] = {draft->reason};
    memcpy(said + 1, draft->said, draft->said_count * sizeof(said[0]));
    return rcpt_reason_class_of(reading->gateway->reasons, reading->gateway->reason_count, said,
                                draft->said_count + 1, draft->status, status);
}

/* 0: the gateway names none. Anything but a count is no receipt of a whole message. */
static bool read_count(struct rcpt_text text, unsigned *count)
{
    *count = 0;
    return text.size == 0 || (rcpt_text_number(text, count) && *count > 0);
}

/* A reason counts for failures only, and only if it is no "no error". */
static void make_event(struct rcpt_reading *reading, const struct rcpt_draft *draft,
                       const struct rcpt_mapping *mapping)
{
    struct rcpt_gateway_event event = {
        .message_id = form_id(reading, draft->message_id),
        .gateway_message_id = form_id(reading, draft->id),
        .gateway_status = draft->status,
        .status = rcpt_text_of(mapping->status),
        .org_id = draft->org_id,
        .campaign_id = draft->campaign_id,
        .channel = draft->channel,
        .client_ref = good_text(draft->client_ref),
        .link = good_text(draft->link),
        .cost = good_text(draft->cost),
        .currency = good_text(draft->currency),
        .event_id = draft->event_id,
    };
    set_time(reading, draft, &event);
    bool is_complaint = mapping->flag != NULL && strcmp(mapping->flag, "COMPLAINED") == 0;
    set_flags(reading, &event, is_complaint && is_no_complaint(reading) ? NULL : mapping->flag);
    set_flags(reading, &event, draft->machine);
    if (!is_success(mapping->status))
        event.reason = good_text(draft->reason);
    if (rcpt_code_is_zero(event.reason))
        event.reason = (struct rcpt_text){NULL, 0};
    event.reason_class = class_of(reading, draft, mapping->status);
    if (event.event_id.size == 0)
        event.event_id = make_event_id(reading, draft, mapping->status);
    if (read_count(draft->part, &event.part) && read_count(draft->parts, &event.parts))
        add_event(reading, &event);
    else
        add_drop(reading, (struct rcpt_gateway_drop){.kind = RCPT_GATEWAY_REJECTED,
                                                     .reason = "invalid_part",
                                                     .status = draft->status,
                                                     .raw = draft->raw,
                                                     .id = event.message_id.size > 0
                                                               ? event.message_id
                                                               : event.gateway_message_id});
}

/* If the URL signs the id, the body must not name another. */
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

/* The flag of an open or click that comes from a scanner's network; NULL: it does not, or no list
 * is configured. The address is compared here and goes no further. */
static const char *scanner_of(const struct rcpt_reading *reading, const struct rcpt_draft *draft,
                              const struct rcpt_mapping *mapping)
{
    const struct rcpt_network_set *scanners = reading->source.request->scanners;
    struct rcpt_address address;
    if (scanners == NULL || mapping == NULL || mapping->status == NULL || draft->ip.size == 0 ||
        !rcpt_address_parse(draft->ip.at, draft->ip.size, &address) ||
        !rcpt_network_set_has(scanners, &address))
        return NULL;
    if (strcmp(mapping->status, "OPENED") == 0)
        return "MACHINE_OPEN";
    return strcmp(mapping->status, "CLICKED") == 0 ? "BOT_CLICK" : NULL;
}

static const struct rcpt_mapping *mapping_of(const struct rcpt_reading *reading,
                                             const struct rcpt_draft *draft)
{
    return draft->mapped.raw != NULL ? &draft->mapped : find_mapping(reading->gateway, draft);
}

/* Adapters only tell. The daemon's policy decides how a machine's open counts (core/machine.h).
 * Without a flag for it in the ladder, the core would take the open for a person's. So it then
 * proves only delivery. */
static void keep_machine(const struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    if (draft->machine != NULL && !in_ladder(reading, draft->machine))
        draft->mapped = (struct rcpt_mapping){.raw = "*", .status = "DELIVERED"};
}

/* The order of the checks decides which reason a dead letter gets. */
void rcpt_reading_add(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    keep_signed_id(reading, draft);
    if (draft->machine == NULL)
        draft->machine = scanner_of(reading, draft, mapping_of(reading, draft));
    keep_machine(reading, draft);
    const struct rcpt_mapping *mapping = mapping_of(reading, draft);
    const char *fault = find_fault(draft);
    draft->done = true;
    if (mapping == NULL && rcpt_draft_is_inbound(reading))
        drop_draft(reading, draft, RCPT_GATEWAY_IGNORED, "inbound");
    else if (draft->status.size == 0 && draft->id.size == 0)
        rcpt_draft_set_aside(reading, draft);
    else if (draft->status.size == 0)
        drop_draft(reading, draft, RCPT_GATEWAY_REJECTED, "missing_status");
    else if (mapping == NULL)
        drop_draft(reading, draft, RCPT_GATEWAY_UNMAPPED, "unknown_status");
    else if (mapping->status == NULL)
        drop_draft(reading, draft, RCPT_GATEWAY_IGNORED, "no_interest");
    else if (fault != NULL)
        drop_draft(reading, draft, RCPT_GATEWAY_REJECTED, fault);
    else if (!in_ladder(reading, mapping->status))
        drop_draft(reading, draft, RCPT_GATEWAY_REJECTED, "status_not_in_ladder");
    else if (reading->result->event_count >= MAX_EVENTS)
        drop_draft(reading, draft, RCPT_GATEWAY_REJECTED, "too_many_events");
    else if (is_range(draft) && !reading->account->ranges)
        drop_draft(reading, draft, RCPT_GATEWAY_IGNORED, "range_receipt");
    else if (is_range(draft))
        make_range(reading, draft, mapping);
    else
        make_event(reading, draft, mapping);
}
