/* Announced messages, the owner of a reader of topics (topics/topics.h). The records of a batch go
 * as they came into one statement (sql/functions/messages_announce.sql), which also moves the
 * positions.
 * Called by run.c and reload.c. */
#include "receiptd/messages/messages.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/base/log.h"
#include "receiptd/core/record.h"
#include "receiptd/topics/records.h"

struct messages {
    struct host_context *context;
    struct receipts *receipts;
    struct topics_reader *reader;
    struct topics_records records; /* that are not sent yet */
    struct host_ticker ticker;
    char *ignored; /* fields that no column takes, as they were logged last */
};

/* ---- records in ---- */

static bool has_capacity(void *owner)
{
    const struct messages *messages = owner;
    return topics_records_has_capacity(&messages->records);
}

static void on_message(void *owner, const struct rcpt_kafka_message *message)
{
    struct messages *messages = owner;
    topics_records_add(&messages->records, message);
}

static void forget(void *owner)
{
    struct messages *messages = owner;
    topics_records_forget(&messages->records);
}

/* ---- the transaction ---- */

/* The platform may not give what receiptd writes. */
static void put_owned(struct rcpt_pg_encoder *encoder)
{
    size_t count, owned = 0;
    const struct rcpt_inbox_column *columns = rcpt_inbox_columns(&count);
    for (size_t index = 0; index < count; index++)
        owned += columns[index].filler == RCPT_INBOX_RECEIPTD;
    rcpt_pg_begin_text_array(encoder, owned);
    for (size_t index = 0; index < count; index++)
        if (columns[index].filler == RCPT_INBOX_RECEIPTD)
            rcpt_pg_put_bytes(encoder, columns[index].name, strlen(columns[index].name));
}

static void add(void *owner, struct topics_batch *batch)
{
    struct messages *messages = owner;
    topics_records_put_places(&messages->records, batch->encoders[0]);
    topics_records_put_keys(&messages->records, batch->encoders[0]);
    topics_records_put_values(&messages->records, batch->encoders[0]);
    put_owned(batch->encoders[0]);
    forget(messages);
}

/* Each list of fields is logged once while it stays the same. */
static void note_ignored(struct messages *messages, const char *ignored)
{
    if (ignored == NULL || (messages->ignored != NULL && strcmp(messages->ignored, ignored) == 0))
        return;
    rcpt_log_warn("messages",
                  "messages: fields of announcements are left out, since the inbox has no such "
                  "columns for the platform: %.500s",
                  ignored);
    free(messages->ignored);
    messages->ignored = rcpt_strdup(ignored);
}

/* Columns of sql/messages/announce. */
enum { ANNOUNCED_FATE, ANNOUNCED_ITEMS, ANNOUNCED_IGNORED };

/* Receipts may have come before their message. */
static void on_committed(void *owner, const struct rcpt_pg_rows *rows)
{
    struct messages *messages = owner;
    struct rcpt_metrics *metrics = messages->context->metrics;
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++) {
        const char *fate = rcpt_pg_rows_text(rows, row, ANNOUNCED_FATE);
        int64_t items = rcpt_pg_rows_int(rows, row, ANNOUNCED_ITEMS);
        rcpt_metrics_add(metrics, RCPT_METRIC_ANNOUNCEMENTS, RCPT_LABELS(fate), (double)items);
        if (strcmp(fate, "announced") == 0)
            receipts_probe_soon(messages->receipts);
        if (rcpt_reject_is_name(fate)) {
            rcpt_metrics_add(metrics, RCPT_METRIC_EVENTS_DEAD, RCPT_LABELS(fate, "none"),
                             (double)items);
            rcpt_log_warn("messages", "messages: %lld announcements are dead letters: %s",
                          (long long)items, fate);
        }
        note_ignored(messages, rcpt_pg_rows_text(rows, row, ANNOUNCED_IGNORED));
    }
}

/* ---- life ---- */

static void on_left(void *owner)
{
    const struct messages *messages = owner;
    host_check_drain(messages->context);
}

static void tick(void *context)
{
    struct messages *messages = context;
    topics_tick(messages->reader);
}

struct messages *messages_new(struct host_context *context, struct receipts *receipts)
{
    if (context->config->kafka.message_topics_count == 0)
        return NULL;
    struct messages *messages = rcpt_calloc(1, sizeof(*messages));
    messages->context = context;
    messages->receipts = receipts;
    messages->ticker = (struct host_ticker){.tick = tick, .context = messages};
    return messages;
}

void messages_start(struct messages *messages)
{
    if (messages == NULL)
        return;
    const struct rcpt_config *config = messages->context->config;
    struct topics_settings settings = {
        .context = messages->context,
        .name = "messages",
        .topics_key = "kafka.message_topics",
        .connection = "messages",
        .work = "announced messages",
        .read_positions = "positions",
        .insert_positions = "begin",
        .move_positions = "announce",
        .fetch_budget_bytes = TOPICS_RECORDS_FETCH_BYTES,
        .owner = messages,
        .has_capacity = has_capacity,
        .on_message = on_message,
        .add = add,
        .on_committed = on_committed,
        .forget = forget,
        .on_left = on_left,
    };
    settings.statements = rcpt_message_statements(&settings.statement_count);
    messages->reader = topics_new(&settings);
    topics_open(messages->reader, (const char *const *)config->kafka.message_topics,
                config->kafka.message_topics_count);
    host_add_ticker(messages->context, &messages->ticker);
}

void messages_stop(struct messages *messages)
{
    if (!messages_are_settled(messages))
        topics_leave(messages->reader);
}

bool messages_are_settled(const struct messages *messages)
{
    return messages == NULL || messages->reader == NULL || !topics_is_open(messages->reader);
}

static void on_closed(void *context)
{
    struct messages *messages = context;
    messages->reader = NULL;
    host_closed(messages->context);
}

void messages_close(struct messages *messages)
{
    if (messages == NULL || messages->reader == NULL)
        return;
    host_open(messages->context);
    topics_close(messages->reader, on_closed, messages);
}

void messages_free(struct messages *messages)
{
    if (messages == NULL)
        return;
    topics_records_fini(&messages->records);
    free(messages->ignored);
    free(messages);
}

void messages_apply_config(struct messages *messages)
{
    if (messages != NULL)
        topics_apply_config(messages->reader);
}

const char *messages_reason(const struct messages *messages)
{
    return messages != NULL && messages->reader != NULL ? topics_reason(messages->reader) : NULL;
}
