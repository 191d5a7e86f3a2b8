/* The recent set of the inbox: an index over its newest rows, or its newest partitions, which
 * `receiptd maintain` makes again when they have become too many. Every few seconds the database is
 * asked for the boundary, and lanes get it. A statement with an old boundary, or without the index,
 * is slower, but just as exact. Started by receipts.c.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define POLL_MS 5000

struct recent {
    struct receipts *receipts;
    struct rcpt_ask ask;
    struct host_ticker ticker;
    char *since, *column; /* as lanes have them; NULL: no recent set */
};

/* Columns of sql/control/recent_read. */
enum { RECENT_SINCE, RECENT_COLUMN };

static void follow(struct recent *recent, const char *since, const char *column)
{
    char *before = recent->since, *column_before = recent->column;
    rcpt_log_info("receipts", "recent set of the inbox: messages since %s (before: %s)",
                  since != NULL ? since : "never", before != NULL ? before : "never");
    recent->since = since != NULL ? rcpt_strdup(since) : NULL;
    recent->column = since != NULL ? rcpt_strdup(column) : NULL;
    lanes_set_recent(recent->receipts->lanes, recent->since, recent->column);
    free(before);
    free(column_before);
}

static void on_read(void *context, const struct rcpt_pg_rows *rows)
{
    struct recent *recent = context;
    bool found = rcpt_pg_rows_count(rows) > 0;
    const char *since = found ? rcpt_pg_rows_text(rows, 0, RECENT_SINCE) : NULL;
    bool same = since == NULL || recent->since == NULL ? since == recent->since
                                                       : strcmp(since, recent->since) == 0;
    if (!same && !host_is_stopping(recent->receipts->context))
        follow(recent, since, found ? rcpt_pg_rows_text(rows, 0, RECENT_COLUMN) : NULL);
}

static void on_tick(void *context)
{
    struct recent *recent = context;
    if (rcpt_ask_begin(&recent->ask) != NULL)
        rcpt_ask_send(&recent->ask);
}

struct recent *recent_new(struct receipts *receipts)
{
    struct recent *recent = rcpt_calloc(1, sizeof(*recent));
    recent->receipts = receipts;
    recent->ask = (struct rcpt_ask){.asker = &receipts->control,
                                    .statement = "recent_read",
                                    .what = "reading of the inbox's recent set",
                                    .context = recent,
                                    .on_answer = on_read,
                                    .every_ms = POLL_MS};
    recent->ticker = (struct host_ticker){.tick = on_tick, .context = recent};
    return recent;
}

void recent_start(struct recent *recent)
{
    host_add_ticker(recent->receipts->context, &recent->ticker);
}

void recent_free(struct recent *recent)
{
    free(recent->since);
    free(recent->column);
    free(recent);
}
