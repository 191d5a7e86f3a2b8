/* Watches how the inbox is laid out, since its partitions come and go. If an id has to be looked up
 * in too many of them, the instance is not ready (layout.h). Batches go on: slower, and just as
 * exact. Started by receipts.c.
 */
#include "receiptd/receipts/layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "internal.h"

#define POLL_MS 15000

struct layout_watch {
    struct receipts *receipts;
    struct rcpt_ask ask;
    struct host_ticker ticker;
    char reason[HOST_REASON_BYTES]; /* "": none */
};

/* ---- what may be used ---- */

static const char *table_of(const struct rcpt_config *config)
{
    return config->inbox.table != NULL ? config->inbox.table : "message_inbox";
}

/* ON CONFLICT needs a key on the id alone. */
static bool refuse_insert(const struct rcpt_config *config, const struct inbox_layout *layout,
                          struct rcpt_error *error)
{
    rcpt_error_fatal(error, EX_CONFIG,
                     "unknown is insert, but %s is partitioned by %s: two receipts of one unknown "
                     "message would make two rows",
                     table_of(config), layout->key);
    rcpt_error_hint(error, "set unknown to park");
    return false;
}

/* Text of the hint; the reason says what the layout is. */
static const char *better_layout(const struct inbox_layout *layout)
{
    if (layout->by_time)
        return "set inbox.recent_rows, so that receiptd maintain makes a recent set";
    if (layout->leads)
        return "partition it by ranges of created_at (inbox.columns.created_at) and only those "
               "partitions by hash of the id, so that a recent set has few of them; or by hash of "
               "the id alone";
    if (layout->by_range)
        return "if its ids begin with the time, say so in inbox.ids, so that receiptd maintain "
               "makes "
               "a recent set";
    if (layout->by_id)
        return "make the id a text, or partition it by ranges of time-ordered ids";
    return "if it is partitioned by the time of insertion, as timestamptz, name that column in "
           "inbox.columns.created_at; else partition it by hash of the id or by ranges of "
           "time-ordered ids";
}

/* The figure is that of docs/performance.md, "An inbox that grows for years". */
static bool refuse_probes(const struct rcpt_config *config, const struct inbox_layout *layout,
                          struct rcpt_error *error)
{
    const char *below = layout->leads && layout->below != NULL ? layout->below : NULL;
    rcpt_error_fatal(
        error, EX_CONFIG,
        "%s is partitioned by %s%s%s: each receipt would be looked up in all %" PRId64
        " partitions%s, and inbox.probe_partitions is %u",
        table_of(config), layout->key, below != NULL ? ", and each partition by " : "",
        below != NULL   ? below
        : layout->by_id ? ", but receipts bring the id as a text, and its column has another type"
                        : ", which does not follow from a message's id",
        layout->probes, below != NULL ? " below one" : "", config->inbox.probe_partitions);
    rcpt_error_hint(error,
                    "%s; or raise inbox.probe_partitions: at 30 partitions batches have 0.15 of "
                    "their rate",
                    better_layout(layout));
    return false;
}

/* Whether receipts are looked up in few partitions of it, since a recent set says in which first.
 */
static bool is_bounded(const struct rcpt_config *config, const struct inbox_layout *layout)
{
    bool ordered = layout->by_range && !layout->leads && config->inbox.ids != RCPT_ID_ANY;
    return (layout->by_time || ordered) && config->inbox.recent_rows > 0;
}

bool inbox_layout_check(const struct rcpt_config *config, const struct inbox_layout *layout,
                        struct rcpt_error *error)
{
    bool unique = layout->leads && layout->below == NULL;
    if (!unique && config->unknown == RCPT_UNKNOWN_INSERT)
        return refuse_insert(config, layout, error);
    if (layout->probes > (int64_t)config->inbox.probe_partitions && !is_bounded(config, layout))
        return refuse_probes(config, layout, error);
    return true;
}

/* ---- the watch ---- */

/* Columns of sql/control/layout. */
enum {
    LAYOUT_KEY,
    LAYOUT_LEADS,
    LAYOUT_PROBES,
    LAYOUT_BY_TIME,
    LAYOUT_BY_ID,
    LAYOUT_BY_RANGE,
    LAYOUT_BELOW
};

/* The same rule and words as those of migrate and check-config. */
static void find_reason(const struct layout_watch *watch, const struct rcpt_pg_rows *rows,
                        char reason[HOST_REASON_BYTES])
{
    struct rcpt_error error = {0};
    const struct inbox_layout layout = {.key = rcpt_pg_rows_text(rows, 0, LAYOUT_KEY),
                                        .leads = rcpt_pg_rows_bool(rows, 0, LAYOUT_LEADS),
                                        .probes = rcpt_pg_rows_int(rows, 0, LAYOUT_PROBES),
                                        .by_time = rcpt_pg_rows_bool(rows, 0, LAYOUT_BY_TIME),
                                        .by_id = rcpt_pg_rows_bool(rows, 0, LAYOUT_BY_ID),
                                        .by_range = rcpt_pg_rows_bool(rows, 0, LAYOUT_BY_RANGE),
                                        .below = rcpt_pg_rows_text(rows, 0, LAYOUT_BELOW)};
    if (!inbox_layout_check(watch->receipts->context->config, &layout, &error))
        host_set_reason(reason, "the inbox's layout", &error);
}

/* A table that is not partitioned has no row. */
static void on_read(void *context, const struct rcpt_pg_rows *rows)
{
    struct layout_watch *watch = context;
    char reason[HOST_REASON_BYTES] = "";
    if (rcpt_pg_rows_count(rows) > 0)
        find_reason(watch, rows, reason);
    if (strcmp(reason, watch->reason) == 0)
        return;
    if (reason[0] != '\0')
        rcpt_log_warn("receipts", "%s", reason);
    memcpy(watch->reason, reason, sizeof(reason));
    host_update_readiness(watch->receipts->context);
}

/* The parameters of sql/control/layout.sql. */
static void put_table(const struct rcpt_config *config, struct rcpt_pg_encoder *encoder)
{
    const char *table = config->inbox.table, *dot = table != NULL ? strchr(table, '.') : NULL;
    char schema[128];
    snprintf(schema, sizeof(schema), "%.*s", dot != NULL ? (int)(dot - table) : 127,
             dot != NULL ? table : config->postgres.schema);
    rcpt_pg_add_text(encoder, schema);
    rcpt_pg_add_text(encoder, dot != NULL ? dot + 1 : table_of(config));
    rcpt_pg_add_text(encoder, table != NULL ? config->inbox.message_id : "message_id");
    rcpt_pg_add_text(encoder, table == NULL                      ? "created_at"
                              : config->inbox.created_at != NULL ? config->inbox.created_at
                                                                 : "");
}

/* Partitions come and go by the hour at most, so the interval is that of a probe, not of a batch.
 */
static void on_tick(void *context)
{
    struct layout_watch *watch = context;
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&watch->ask);
    if (encoder == NULL)
        return;
    put_table(watch->receipts->context->config, encoder);
    rcpt_ask_send(&watch->ask);
}

struct layout_watch *layout_watch_new(struct receipts *receipts)
{
    struct layout_watch *watch = rcpt_calloc(1, sizeof(*watch));
    watch->receipts = receipts;
    watch->ask = (struct rcpt_ask){.asker = &receipts->control,
                                   .statement = "layout",
                                   .what = "reading of the inbox's layout",
                                   .context = watch,
                                   .on_answer = on_read,
                                   .every_ms = POLL_MS};
    watch->ticker = (struct host_ticker){.tick = on_tick, .context = watch};
    return watch;
}

void layout_watch_start(struct layout_watch *watch)
{
    host_add_ticker(watch->receipts->context, &watch->ticker);
}

void layout_watch_free(struct layout_watch *watch)
{
    free(watch);
}

const char *layout_watch_reason(const struct layout_watch *watch)
{
    return watch->reason;
}
