/* Redrive of dead letters: decodes stored payloads with the ladder of today and parks the receipts
 * that are valid now; the lanes then apply them like any parked receipt. Page by page, one
 * transaction each; a letter is deleted in the statement that parks its receipts, so a second run
 * does nothing twice. Called by src/commands/dead_letters.c and src/serve/redrive.c. */
#include "receiptd/receipts/redrive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/core/origin.h"
#include "receiptd/core/record.h"
#include "receiptd/core/timestamp.h"
#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/sql.h"

static const char another[] = "there is no such letter, or another redrive was faster";

/* Texts, since they are parameters. Both bound a transaction: whichever is reached first. */
#define PAGE_LETTERS "500"
#define PAGE_BYTES   "16777216"

struct redriver {
    const struct redrive_settings *settings;
    struct rcpt_decoder *decoder;
    struct rcpt_error *error;
    char lanes[12];
    struct rcpt_array_text chosen[4]; /* keys, column by column */
};

/* ---- keys ---- */

/* An integer of SQL as it is written: no zeros in front, no plus. */
static bool is_integer(const char *text, long long least, long long most)
{
    char *end, written[24];
    long long number = strtoll(text, &end, 10);
    snprintf(written, sizeof(written), "%lld", number);
    return strcmp(written, text) == 0 && number >= least && number <= most;
}

/* Cuts the last part, behind a slash, off the text. False: there is none, or it is too long. */
static bool cut_part(char *text, char *part, size_t capacity)
{
    char *slash = strrchr(text, '/');
    if (slash == NULL || strlen(slash + 1) >= capacity)
        return false;
    snprintf(part, capacity, "%s", slash + 1);
    *slash = '\0';
    return true;
}

/* From the end, part by part, so that whatever is left is the topic. */
bool redrive_key_read(const char *text, struct redrive_key *key)
{
    char rest[REDRIVE_KEY_TEXT];
    if (strlen(text) >= sizeof(rest))
        return false;
    snprintf(rest, sizeof(rest), "%s", text);
    if (!cut_part(rest, key->index, sizeof(key->index)) ||
        !cut_part(rest, key->offset, sizeof(key->offset)) ||
        !cut_part(rest, key->partition, sizeof(key->partition)))
        return false;
    size_t size = strlen(rest);
    if (size < 1 || size > REDRIVE_MOST_TOPIC || !is_integer(key->partition, 0, INT32_MAX) ||
        !is_integer(key->offset, 0, INT64_MAX) || !is_integer(key->index, INT32_MIN, INT32_MAX))
        return false;
    memcpy(key->topic, rest, size + 1);
    return true;
}

/* TOPIC/PARTITION/OFFSET/INDEX, as lists of letters show it. */
void redrive_key_write(const struct redrive_key *key, char text[REDRIVE_KEY_TEXT])
{
    snprintf(text, REDRIVE_KEY_TEXT, "%s/%s/%s/%s", key->topic, key->partition, key->offset,
             key->index);
}

/* A row of either page. Numbers stay texts: they come from the database and go back to it. */
static void read_key(const struct rcpt_session_rows *rows, size_t row, struct redrive_key *key)
{
    snprintf(key->topic, sizeof(key->topic), "%s", rcpt_session_rows_text(rows, row, "topic"));
    snprintf(key->partition, sizeof(key->partition), "%s",
             rcpt_session_rows_text(rows, row, "partition"));
    snprintf(key->offset, sizeof(key->offset), "%s", rcpt_session_rows_text(rows, row, "offset"));
    snprintf(key->index, sizeof(key->index), "%s", rcpt_session_rows_text(rows, row, "index"));
}

/* Pages are bounded by letters and by bytes. */
static struct rcpt_session_rows *read_page(struct redriver *redriver,
                                           const struct redrive_key *after)
{
    const struct redrive_settings *settings = redriver->settings;
    const char *const by_reason[] = {settings->reason, after->topic, after->partition,
                                     after->offset,    after->index, PAGE_LETTERS,
                                     PAGE_BYTES};
    if (settings->chosen == NULL)
        return rcpt_session_query(settings->session, rcpt_sql("command/dead_letters_for_redrive"),
                                  7, by_reason, redriver->error);
    const char *const by_key[] = {redriver->chosen[0].text,
                                  redriver->chosen[1].text,
                                  redriver->chosen[2].text,
                                  redriver->chosen[3].text,
                                  after->topic,
                                  after->partition,
                                  after->offset,
                                  after->index,
                                  PAGE_BYTES};
    return rcpt_session_query(settings->session, rcpt_sql("command/dead_letters_chosen"), 9, by_key,
                              redriver->error);
}

/* ---- one letter ---- */

/* Tells the caller of a letter that is not moved. */
static void leave(const struct redriver *redriver, const struct redrive_key *key, const char *why,
                  const char *detail)
{
    const struct redrive_settings *settings = redriver->settings;
    if (settings->on_left != NULL)
        settings->on_left(settings->context, key, why, detail);
}

/* The letter of one event holds that event's text alone: an array or an envelope in it was no event
 * in its record either. An adapter makes its own text of it. */
static bool is_one_event(const struct rcpt_record *record)
{
    static const char blanks[] = " \t\r\n";
    if (record->is_formed)
        return record->event_count + record->ignored_count == 1;
    const char *value = record->value;
    size_t begin = 0, end = record->value_size;
    while (begin < end && memchr(blanks, value[begin], 4) != NULL)
        begin++;
    while (end > begin && memchr(blanks, value[end - 1], 4) != NULL)
        end--;
    bool is_whole = record->event_count == 0 || (record->events[0].payload == begin &&
                                                 record->events[0].payload_size == end - begin);
    return record->event_count + record->ignored_count == 1 && is_whole && value[begin] == '{';
}

/* Reports why a record is not valid: the decoder's reason for its first invalid event. */
static void leave_record(const struct redriver *redriver, const struct redrive_key *key,
                         const struct rcpt_record *record)
{
    if (record->reject_count > 0)
        leave(redriver, key, rcpt_reject_name(record->rejects[0].reason),
              rcpt_record_detail(record, &record->rejects[0]));
    else
        leave(redriver, key, rcpt_reject_name(RCPT_REJECT_NOT_AN_EVENT),
              "the payload is not one event");
}

/* NULL: not valid with the ladder of today either. A whole record is moved only when all of it is
 * valid, because its letter could not be left for the rest. */
static struct rcpt_record *decode(const struct redriver *redriver, const struct redrive_key *key,
                                  const struct rcpt_session_rows *rows, size_t row)
{
    size_t size = 0;
    void *payload = rcpt_session_rows_bytes(rows, row, "payload", &size);
    bool is_item = rcpt_session_rows_int(rows, row, "index") >= 0;
    struct rcpt_record_input input = {
        .topic = rcpt_session_rows_text(rows, row, "topic"),
        .partition = (int32_t)rcpt_session_rows_int(rows, row, "partition"),
        .offset = rcpt_session_rows_int(rows, row, "offset"),
        .timestamp_ms = rcpt_session_rows_int(rows, row, "at_ms"),
        .value = payload,
        .value_size = size,
    };
    const struct rcpt_gateway_beside beside = {.is_item = is_item};
    if (rcpt_gateway_topics_has(redriver->settings->topics, input.topic))
        input.form = rcpt_gateway_topics_form(redriver->settings->topics, &input, &beside);
    struct rcpt_record *record = rcpt_record_decode(redriver->decoder, &input);
    free(payload);
    bool whole = !is_item || rcpt_session_rows_text(rows, row, "indexes") != NULL;
    if (record->event_count + record->ignored_count > 0 && record->reject_count == 0 &&
        (whole || is_one_event(record)))
        return record;
    leave_record(redriver, key, record);
    rcpt_record_free(record);
    return NULL;
}

/* The columns of a parked receipt: an array for each, in the order of command/redrive, from $6 on.
 * With topic, partition, offset, lane and traceparent, which the statement takes from the letter,
 * these are all columns of parked_event (tests/integration/test_carried.py). */
enum carried {
    CARRIED_INDEX,
    CARRIED_MESSAGE_ID,
    CARRIED_STATUS,
    CARRIED_AT,
    CARRIED_PAYLOAD,
    CARRIED_FLAGS,
    CARRIED_GATEWAY,
    CARRIED_ORG_ID,
    CARRIED_ACCOUNT,
    CARRIED_CAMPAIGN_ID,
    CARRIED_GATEWAY_ID,
    CARRIED_PART,
    CARRIED_PARTS,
    CARRIED_REASON_CLASS,
    CARRIED_EVENT_KEY,
    CARRIED_MACHINES,
    CARRIED__COUNT,
};
#define LETTER_PARAMS 5

static void add_text(struct rcpt_array_text *array, struct rcpt_text text)
{
    if (text.size > 0)
        rcpt_array_text_add(array, text.at, text.size);
    else
        rcpt_array_text_add_null(array);
}

static void add_number(struct rcpt_array_text *array, int64_t number)
{
    if (number != 0)
        rcpt_array_text_add_int(array, number);
    else
        rcpt_array_text_add_null(array);
}

/* As batches park it (src/postgres/encode_origin.c). */
static void add_origin(struct rcpt_array_text *arrays, const struct rcpt_record *record,
                       const struct rcpt_event *event)
{
    struct rcpt_arena arena;
    rcpt_arena_init(&arena, 1024);
    struct rcpt_origin origin =
        rcpt_origin_read(record->value + event->payload, event->payload_size, &arena);
    bool waits = rcpt_origin_is_gateways(&origin, event);
    add_text(&arrays[CARRIED_ORG_ID], origin.org_id);
    add_text(&arrays[CARRIED_ACCOUNT], origin.gateway);
    add_text(&arrays[CARRIED_CAMPAIGN_ID], origin.campaign_id);
    add_text(&arrays[CARRIED_GATEWAY_ID],
             waits ? origin.gateway_message_id : (struct rcpt_text){NULL, 0});
    rcpt_arena_fini(&arena);
}

/* Adds the fields that rules read. A receipt that came from a range is no copy of another. */
static void add_ruled(struct rcpt_array_text *arrays, const struct redriver *redriver,
                      const struct rcpt_record *record, const struct rcpt_event *event,
                      bool of_range)
{
    const char *gateway = rcpt_decoder_facet(redriver->decoder, RCPT_FACET_GATEWAY, event->gateway);
    const char *reason = rcpt_decoder_facet(redriver->decoder, RCPT_FACET_REASON, event->reason);
    add_text(&arrays[CARRIED_GATEWAY], rcpt_text_of(gateway));
    add_text(&arrays[CARRIED_REASON_CLASS], rcpt_text_of(reason));
    add_number(&arrays[CARRIED_EVENT_KEY],
               of_range ? 0 : (int64_t)rcpt_record_event_key(record, event));
}

static void add_event(struct rcpt_array_text *arrays, const struct redriver *redriver,
                      const struct rcpt_record *record, const struct rcpt_event *event,
                      int64_t index)
{
    char at[28];
    const struct rcpt_ladder *ladder = redriver->settings->ladder;
    rcpt_timestamp_format(event->at_us, at);
    rcpt_array_text_add_int(&arrays[CARRIED_INDEX], index);
    rcpt_array_text_add(&arrays[CARRIED_MESSAGE_ID], event->id, event->id_size);
    rcpt_array_text_add_int(&arrays[CARRIED_STATUS], rcpt_ladder_entry(ladder, event->entry)->code);
    rcpt_array_text_add(&arrays[CARRIED_AT], at, strlen(at));
    rcpt_array_text_add_int(&arrays[CARRIED_FLAGS], event->flags);
    rcpt_array_text_add_bytea(&arrays[CARRIED_PAYLOAD], record->value + event->payload,
                              event->payload_size);
    add_number(&arrays[CARRIED_PART], event->part);
    add_number(&arrays[CARRIED_PARTS], event->parts);
    add_number(&arrays[CARRIED_MACHINES], event->machines);
    add_origin(arrays, record, event);
    add_ruled(arrays, redriver, record, event, index >= RCPT_RECORD_RANGE_INDEX);
}

/* `taken` is false where another redrive was faster. */
static bool park(const struct redriver *redriver, const struct redrive_key *letter,
                 struct rcpt_array_text *arrays, struct redrive_counts *counts)
{
    const char *values[LETTER_PARAMS + CARRIED__COUNT] = {
        letter->topic, letter->partition, letter->offset, letter->index, redriver->lanes};
    for (size_t column = 0; column < CARRIED__COUNT; column++)
        values[LETTER_PARAMS + column] = rcpt_array_text_finish(&arrays[column]);
    struct rcpt_session_rows *rows =
        rcpt_session_query(redriver->settings->session, rcpt_sql("command/redrive"),
                           LETTER_PARAMS + CARRIED__COUNT, values, redriver->error);
    if (rows == NULL)
        return false;
    bool taken = rcpt_session_rows_bool(rows, 0, "taken");
    counts->moved += taken;
    counts->receipts += rcpt_session_rows_int(rows, 0, "moved");
    rcpt_session_rows_free(rows);
    if (!taken)
        leave(redriver, letter, "gone", another);
    return true;
}

/* Events of one letter are parked by one statement, which also deletes the letter. `indexes` are
 * those of a letter for many receipts; NULL: the letter is of one event, or of a whole record. */
static bool move_letter(const struct redriver *redriver, const struct redrive_key *letter,
                        const char *indexes, const struct rcpt_record *record,
                        struct redrive_counts *counts)
{
    struct rcpt_array_text arrays[CARRIED__COUNT];
    struct rcpt_array_reader reader;
    int64_t own = strtoll(letter->index, NULL, 10), index = own;
    uint32_t read = 0; /* of the indexes: an event may have become nothing */
    rcpt_array_reader_init(&reader, indexes);
    for (size_t column = 0; column < CARRIED__COUNT; column++)
        rcpt_array_text_init(&arrays[column]);
    for (uint32_t event = 0; event < record->event_count; event++) {
        if (own < 0)
            index = record->events[event].index;
        for (; indexes != NULL && read <= record->events[event].index; read++)
            RCPT_ASSERT(rcpt_array_reader_next_int(&reader, &index));
        add_event(arrays, redriver, record, &record->events[event], index);
    }
    bool good = park(redriver, letter, arrays, counts);
    for (size_t column = 0; column < CARRIED__COUNT; column++)
        rcpt_array_text_fini(&arrays[column]);
    return good;
}

/* A letter that was cut when it was stored cannot be decoded and stays. */
static bool try_letter(const struct redriver *redriver, const struct rcpt_session_rows *rows,
                       size_t row, struct redrive_counts *counts)
{
    const struct redrive_key *key = &counts->last;
    bool cut = rcpt_session_rows_bool(rows, row, "cut"), good = true;
    if (rcpt_session_rows_bool(rows, row, "gone")) {
        leave(redriver, key, "gone", another);
        return true;
    }
    if (strtoll(key->index, NULL, 10) < -1)
        leave(redriver, key, "no_receipt",
              "the letter is of a topic that is folded or begins runs");
    else if (cut)
        leave(redriver, key, "cut", "only the first 64 KiB are kept: produce the receipts again");
    else {
        struct rcpt_record *record = decode(redriver, key, rows, row);
        if (record != NULL) {
            good = move_letter(redriver, key, rcpt_session_rows_text(rows, row, "indexes"), record,
                               counts);
            rcpt_record_free(record);
            return good;
        }
    }
    counts->left++;
    counts->cut += cut;
    return true;
}

/* One page in one transaction; the counts change only when it is durable. */
static bool move_page(const struct redriver *redriver, const struct rcpt_session_rows *rows,
                      struct redrive_counts *counts)
{
    struct rcpt_session *session = redriver->settings->session;
    struct rcpt_error *error = redriver->error;
    struct redrive_counts after = *counts;
    size_t row = 0, count = rcpt_session_rows_count(rows);
    bool good = rcpt_session_begin(session, "", error) &&
                rcpt_session_execute(session, rcpt_sql("control/synchronous"), error);
    for (; good && row < count && after.moved < redriver->settings->limit; row++) {
        read_key(rows, row, &after.last);
        good = try_letter(redriver, rows, row, &after);
    }
    good = good && rcpt_session_commit(session, error);
    if (good)
        *counts = after;
    else
        rcpt_session_rollback(session);
    return good;
}

/* Asked before each page, also the first. */
static bool goes_on(const struct redrive_settings *settings, const struct redrive_counts *counts)
{
    return !counts->whole && counts->moved < settings->limit &&
           (settings->goes_on == NULL || settings->goes_on(settings->context));
}

/* Without chosen letters the arrays are empty and unused. */
static void put_chosen(struct redriver *redriver)
{
    const struct redrive_settings *settings = redriver->settings;
    for (size_t column = 0; column < 4; column++)
        rcpt_array_text_init(&redriver->chosen[column]);
    for (size_t index = 0; index < settings->chosen_count; index++) {
        const struct redrive_key *key = &settings->chosen[index];
        const char *const texts[] = {key->topic, key->partition, key->offset, key->index};
        for (size_t column = 0; column < 4; column++)
            rcpt_array_text_add(&redriver->chosen[column], texts[column], strlen(texts[column]));
    }
    for (size_t column = 0; column < 4; column++)
        rcpt_array_text_finish(&redriver->chosen[column]);
}

/* Ends when a page is empty, the limit is reached or the caller says so. */
bool redrive_letters(const struct redrive_settings *settings, struct redrive_counts *counts,
                     struct rcpt_error *error)
{
    struct redriver redriver = {.settings = settings, .error = error};
    const struct redrive_key first = {.partition = "-1", .offset = "-1", .index = "-1"};
    *counts = (struct redrive_counts){.last = settings->after != NULL ? *settings->after : first};
    redriver.decoder = rcpt_decoder_new(settings->ladder, 1);
    rcpt_decoder_set_rules(redriver.decoder, true);
    rcpt_decoder_set_machines(redriver.decoder, settings->machines);
    snprintf(redriver.lanes, sizeof(redriver.lanes), "%u", settings->lanes);
    put_chosen(&redriver);
    bool good = true;
    while (good && goes_on(settings, counts)) {
        struct rcpt_session_rows *rows = read_page(&redriver, &counts->last);
        good = rows != NULL;
        counts->whole = good && rcpt_session_rows_count(rows) == 0;
        good = good && (counts->whole || move_page(&redriver, rows, counts));
        rcpt_session_rows_free(rows);
    }
    rcpt_decoder_free(redriver.decoder);
    for (size_t column = 0; column < 4; column++)
        rcpt_array_text_fini(&redriver.chosen[column]);
    return good;
}
