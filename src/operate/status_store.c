/* The document of /statusz in the table instance_status: `receiptd serve` is another process, often
 * on another machine, and shows the documents of all instances from there. A failure is logged
 * once, and the next document replaces the lost one. An instance that stops in order deletes its
 * row; one that was killed leaves it. Made by status.c. */
#include "status_store.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/base/json.h"
#include "receiptd/host/places.h"
#include "receiptd/operate/operate.h"
#include "receiptd/postgres/ask.h"

#define EVERY_MS 5000 /* docs/serve.md tells it */

struct status_store {
    const struct host_context *context;
    const struct status *status;
    const struct receipts *receipts;
    const struct measure *measure;
    struct rcpt_ask ask, leave;
    bool is_leaving; /* the end waits for the answer */
    struct host_ticker ticker;
};

/* To be freed. */
static char *document_of(const struct status *status)
{
    struct rcpt_json json;
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    status_write(status, &json);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

/* The number of partitions of the receipts' topics over all instances; 0: no survey has answered
 * yet. */
static int32_t all_partitions(const struct host_context *context)
{
    struct host_place place;
    size_t count = 0;
    for (const struct host_places *places = context->places; places != NULL;
         places = host_places_next(places))
        if (strcmp(host_places_reader(places), "receipts") == 0)
            while (host_places_get(places, count, &place))
                count++;
    return (int32_t)count;
}

/* The document is made only when it can be sent; a stopping instance stores none. */
static void on_tick(void *context)
{
    struct status_store *store = context;
    struct rcpt_pg_encoder *encoder =
        host_is_stopping(store->context) ? NULL : rcpt_ask_begin(&store->ask);
    if (encoder == NULL)
        return;
    char *document = document_of(store->status);
    rcpt_pg_add_text(encoder, store->context->instance);
    rcpt_pg_add_text(encoder, document);
    rcpt_pg_add_int4(encoder, (int32_t)receipts_assigned(store->receipts));
    rcpt_pg_add_int4(encoder, all_partitions(store->context));
    rcpt_pg_add_int8(encoder, (int64_t)(measure_lag_seconds(store->measure) * 1000));
    rcpt_ask_send(&store->ask);
    free(document);
}

static void on_left(void *context, const struct rcpt_pg_rows *rows)
{
    struct status_store *store = context;
    (void)rows;
    store->is_leaving = false;
    host_check_drain(store->context);
}

static void on_not_left(void *context, const struct rcpt_error *error)
{
    (void)error; /* the row goes after an hour */
    on_left(context, NULL);
}

struct status_store *status_store_new(struct host_context *context, struct receipts *receipts,
                                      const struct status *status, const struct measure *measure)
{
    struct status_store *store = rcpt_calloc(1, sizeof(*store));
    store->context = context;
    store->status = status;
    store->receipts = receipts;
    store->measure = measure;
    store->ask = (struct rcpt_ask){.asker = receipts_asker(receipts),
                                   .statement = "status_store",
                                   .what = "storing of this instance's state",
                                   .context = store,
                                   .every_ms = EVERY_MS};
    store->leave = (struct rcpt_ask){.asker = receipts_asker(receipts),
                                     .statement = "status_leave",
                                     .what = "removal of this instance's state",
                                     .context = store,
                                     .on_answer = on_left,
                                     .on_failed = on_not_left};
    store->ticker = (struct host_ticker){.tick = on_tick, .context = store};
    host_add_ticker(context, &store->ticker);
    return store;
}

/* One connection answers in order, so a document under way cannot arrive after the deletion. */
void status_store_leave(struct status_store *store)
{
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&store->leave);
    if (encoder == NULL)
        return; /* the database is away: the row goes after an hour */
    /* Behind another statement the deletion may take long, and the end does not wait for that. */
    store->is_leaving = store->leave.asker->in_flight == 0;
    rcpt_pg_add_text(encoder, store->context->instance);
    rcpt_ask_send(&store->leave);
}

bool status_store_is_settled(const struct status_store *store)
{
    return !store->is_leaving;
}

void status_store_free(struct status_store *store)
{
    free(store);
}
