/* Redrive of dead letters: decodes stored payloads with the ladder of today and parks the receipts
 * that are valid now; the lanes then apply them like any parked receipt. Page by page, one
 * transaction each; a letter is deleted in the statement that parks its receipts, so a second run
 * does nothing twice. Called by dead_letters.c. */
#include "redrive.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/origin.h"
#include "core/record.h"
#include "core/timestamp.h"
#include "postgres/array_text.h"
#include "postgres/sql.h"

/* Texts, since they are parameters. Both bound a transaction: whichever is reached first. */
#define PAGE_LETTERS "500"
#define PAGE_BYTES   "16777216"

struct redriver {
    struct command_context *context;
    struct rcpt_decoder *decoder;
    char lanes[12];
    const char *reason;
    int64_t limit;
};

struct letter { /* texts of a row, and the key after which the next page begins */
    char *topic;
    char partition[16], offset[24], index[16];
};

/* The last letter's key is where the next page begins. */
static void remember(struct letter *letter, const struct rcpt_session_rows *rows, size_t row)
{
    free(letter->topic);
    letter->topic = rcpt_strdup(rcpt_session_rows_text(rows, row, "topic"));
    snprintf(letter->partition, sizeof(letter->partition), "%s",
             rcpt_session_rows_text(rows, row, "partition"));
    snprintf(letter->offset, sizeof(letter->offset), "%s",
             rcpt_session_rows_text(rows, row, "offset"));
    snprintf(letter->index, sizeof(letter->index), "%s",
             rcpt_session_rows_text(rows, row, "index"));
}

/* Pages are bounded by letters and by bytes. */
static struct rcpt_session_rows *read_page(const struct redriver *redriver,
                                           const struct letter *after)
{
    const char *const values[] = {redriver->reason, after->topic, after->partition, after->offset,
                                  after->index,     PAGE_LETTERS, PAGE_BYTES};
    return rcpt_session_query(redriver->context->session,
                              rcpt_sql("command/dead_letters_for_redrive"), 7, values,
                              &redriver->context->error);
}

/* The letter of one event holds that event's text alone: an array or an envelope in it was no event
 * in its record either. */
static bool is_one_event(const struct rcpt_record *record)
{
    static const char blanks[] = " \t\r\n";
    const char *value = record->value;
    size_t begin = 0, end = record->value_size;
    while (begin < end && memchr(blanks, value[begin], 4) != NULL)
        begin++;
    while (end > begin && memchr(blanks, value[end - 1], 4) != NULL)
        end--;
    return record->event_count == 1 && record->events[0].payload == begin &&
           record->events[0].payload_size == end - begin && value[begin] == '{';
}

/* NULL: not valid with the ladder of today either. A whole record is moved only when all of it is
 * valid, because its letter could not be left for the rest. */
static struct rcpt_record *decode(const struct redriver *redriver,
                                  const struct rcpt_session_rows *rows, size_t row)
{
    size_t size = 0;
    void *payload = rcpt_session_rows_bytes(rows, row, "payload", &size);
    const struct rcpt_record_input input = {
        .topic = rcpt_session_rows_text(rows, row, "topic"),
        .partition = (int32_t)rcpt_session_rows_int(rows, row, "partition"),
        .offset = rcpt_session_rows_int(rows, row, "offset"),
        .timestamp_ms = rcpt_session_rows_int(rows, row, "dead_at_ms"),
        .value = payload,
        .value_size = size,
    };
    struct rcpt_record *record = rcpt_record_decode(redriver->decoder, &input);
    free(payload);
    bool whole = rcpt_session_rows_int(rows, row, "index") < 0;
    if (record->event_count > 0 && record->reject_count == 0 && (whole || is_one_event(record)))
        return record;
    rcpt_record_free(record);
    return NULL;
}

struct event_arrays {
    struct rcpt_array_text indexes, ids, codes, times, payloads, flags, gateways, orgs, accounts,
        campaigns, gateway_ids, part_numbers, part_totals;
};

static void add_kept(struct rcpt_array_text *array, struct rcpt_text text)
{
    if (text.size > 0)
        rcpt_array_text_add(array, text.at, text.size);
    else
        rcpt_array_text_add_null(array);
}

static void add_number(struct rcpt_array_text *array, unsigned number)
{
    if (number > 0)
        rcpt_array_text_add_int(array, number);
    else
        rcpt_array_text_add_null(array);
}

/* As batches park it (src/postgres/encode_origin.c). */
static void add_origin(struct event_arrays *arrays, const struct rcpt_record *record,
                       const struct rcpt_event *event)
{
    struct rcpt_arena arena;
    rcpt_arena_init(&arena, 1024);
    struct rcpt_origin origin =
        rcpt_origin_read(record->value + event->payload, event->payload_size, &arena);
    bool waits = rcpt_origin_is_gateways(&origin, event);
    add_kept(&arrays->orgs, origin.org_id);
    add_kept(&arrays->accounts, origin.gateway);
    add_kept(&arrays->campaigns, origin.campaign_id);
    add_kept(&arrays->gateway_ids, waits ? origin.gateway_message_id : (struct rcpt_text){NULL, 0});
    add_number(&arrays->part_numbers, event->part);
    add_number(&arrays->part_totals, event->parts);
    rcpt_arena_fini(&arena);
}

/* The arrays are the parameters of command/redrive. */
static void add_event(struct event_arrays *arrays, const struct redriver *redriver,
                      const struct rcpt_record *record, const struct rcpt_event *event,
                      int64_t index)
{
    char at[28];
    const struct rcpt_ladder *ladder = redriver->context->config->ladder;
    rcpt_timestamp_format(event->at_us, at);
    rcpt_array_text_add_int(&arrays->indexes, index >= 0 ? index : (int64_t)event->index);
    rcpt_array_text_add(&arrays->ids, event->id, event->id_size);
    rcpt_array_text_add_int(&arrays->codes, rcpt_ladder_entry(ladder, event->entry)->code);
    rcpt_array_text_add(&arrays->times, at, strlen(at));
    rcpt_array_text_add_int(&arrays->flags, event->flags);
    rcpt_array_text_add_bytea(&arrays->payloads, record->value + event->payload,
                              event->payload_size);
    const char *gateway = rcpt_decoder_facet(redriver->decoder, RCPT_FACET_GATEWAY, event->gateway);
    if (event->gateway == RCPT_RECORD_NO_GATEWAY)
        rcpt_array_text_add_null(&arrays->gateways);
    else
        rcpt_array_text_add(&arrays->gateways, gateway, strlen(gateway));
    add_origin(arrays, record, event);
}

/* `taken` is false where another redrive was faster. */
static bool park(const struct redriver *redriver, const struct letter *letter,
                 const struct event_arrays *arrays, struct redrive_counts *counts)
{
    const char *const values[] = {letter->topic,
                                  letter->partition,
                                  letter->offset,
                                  letter->index,
                                  redriver->lanes,
                                  arrays->indexes.text,
                                  arrays->ids.text,
                                  arrays->codes.text,
                                  arrays->times.text,
                                  arrays->payloads.text,
                                  arrays->flags.text,
                                  arrays->gateways.text,
                                  arrays->orgs.text,
                                  arrays->accounts.text,
                                  arrays->campaigns.text,
                                  arrays->gateway_ids.text,
                                  arrays->part_numbers.text,
                                  arrays->part_totals.text};
    struct rcpt_session_rows *rows =
        rcpt_session_query(redriver->context->session, rcpt_sql("command/redrive"), 18, values,
                           &redriver->context->error);
    if (rows == NULL)
        return false;
    counts->moved += rcpt_session_rows_bool(rows, 0, "taken");
    counts->receipts += rcpt_session_rows_int(rows, 0, "moved");
    rcpt_session_rows_free(rows);
    return true;
}

/* Events of one letter are parked by one statement, which also deletes the letter. */
static bool move_letter(const struct redriver *redriver, const struct letter *letter,
                        const struct rcpt_record *record, struct redrive_counts *counts)
{
    struct event_arrays arrays;
    struct rcpt_array_text *all[] = {&arrays.indexes,    &arrays.ids,         &arrays.codes,
                                     &arrays.times,      &arrays.payloads,    &arrays.flags,
                                     &arrays.gateways,   &arrays.orgs,        &arrays.accounts,
                                     &arrays.campaigns,  &arrays.gateway_ids, &arrays.part_numbers,
                                     &arrays.part_totals};
    for (size_t index = 0; index < sizeof(all) / sizeof(all[0]); index++)
        rcpt_array_text_init(all[index]);
    for (uint32_t event = 0; event < record->event_count; event++)
        add_event(&arrays, redriver, record, &record->events[event],
                  strtoll(letter->index, NULL, 10));
    for (size_t index = 0; index < sizeof(all) / sizeof(all[0]); index++)
        rcpt_array_text_finish(all[index]);
    bool good = park(redriver, letter, &arrays, counts);
    for (size_t index = 0; index < sizeof(all) / sizeof(all[0]); index++)
        rcpt_array_text_fini(all[index]);
    return good;
}

/* A letter that was cut when it was stored cannot be decoded and stays. */
static bool move_letters(const struct redriver *redriver, const struct rcpt_session_rows *rows,
                         struct letter *last, struct redrive_counts *counts)
{
    bool good = true;
    for (size_t row = 0;
         good && row < rcpt_session_rows_count(rows) && counts->moved < redriver->limit; row++) {
        remember(last, rows, row);
        bool cut = rcpt_session_rows_bool(rows, row, "cut");
        struct rcpt_record *record = cut ? NULL : decode(redriver, rows, row);
        if (record != NULL)
            good = move_letter(redriver, last, record, counts);
        else
            counts->left++, counts->cut += cut;
        rcpt_record_free(record);
    }
    return good;
}

/* One page in one transaction; the counts change only when it is durable. */
static bool move_page(const struct redriver *redriver, const struct rcpt_session_rows *rows,
                      struct letter *last, struct redrive_counts *counts)
{
    struct rcpt_session *session = redriver->context->session;
    struct rcpt_error *error = &redriver->context->error;
    struct redrive_counts after = *counts;
    bool good = rcpt_session_begin(session, "", error) &&
                rcpt_session_execute(session, rcpt_sql("control/synchronous"), error) &&
                move_letters(redriver, rows, last, &after) && rcpt_session_commit(session, error);
    if (good)
        *counts = after;
    else
        rcpt_session_rollback(session);
    return good;
}

/* Ends when a page is empty or the limit is reached. */
bool redrive(struct command_context *context, const char *reason, int64_t limit,
             struct redrive_counts *counts)
{
    struct redriver redriver = {.context = context, .reason = reason, .limit = limit};
    struct letter last = {
        .topic = rcpt_strdup(""), .partition = "-1", .offset = "-1", .index = "-1"};
    redriver.decoder = rcpt_decoder_new(context->config->ladder, 1);
    rcpt_decoder_set_machines(redriver.decoder, &context->config->machine);
    snprintf(redriver.lanes, sizeof(redriver.lanes), "%u", context->config->lanes);
    bool good = true, more = true;
    while (good && more && counts->moved < limit) {
        struct rcpt_session_rows *rows = read_page(&redriver, &last);
        good = rows != NULL;
        more = good && rcpt_session_rows_count(rows) > 0;
        good = good && (!more || move_page(&redriver, rows, &last, counts));
        rcpt_session_rows_free(rows);
    }
    rcpt_decoder_free(redriver.decoder);
    free(last.topic);
    return good;
}
