/* Progress of `receiptd maintain`, for the metrics. It is another process, so the database is asked
 * for its backlog and its last run. Started by receipts.c.
 */
#include <stdlib.h>

#include "internal.h"
#include "receiptd/core/id_time.h"

#define POLL_MS 15000

struct maintenance {
    struct receipts *receipts;
    struct rcpt_ask ask;
    struct host_ticker ticker;
    struct receipts_maintenance found;
    int64_t until_ms; /* where the last partition ends; -1: not known */
};

/* Columns of sql/control/maintenance. */
enum {
    MAINTENANCE_WALKED_MS,
    MAINTENANCE_OTHER,
    MAINTENANCE_UNBOOKED,
    MAINTENANCE_UPPER,
    MAINTENANCE_PROVEN_MS,
    MAINTENANCE_DRIFTING
};

static int64_t int_or(const struct rcpt_pg_rows *rows, int column, int64_t otherwise)
{
    return rcpt_pg_rows_text(rows, 0, column) != NULL ? rcpt_pg_rows_int(rows, 0, column)
                                                      : otherwise;
}

/* Absent figures are -1 in the answer and no series on the page. */
static void on_read(void *context, const struct rcpt_pg_rows *rows)
{
    struct maintenance *maintenance = context;
    enum rcpt_id_kind ids = maintenance->receipts->context->config->inbox.ids;
    const char *upper = rcpt_pg_rows_text(rows, 0, MAINTENANCE_UPPER);
    maintenance->found =
        (struct receipts_maintenance){.is_known = true,
                                      .walked_ms = int_or(rows, MAINTENANCE_WALKED_MS, 0),
                                      .other = int_or(rows, MAINTENANCE_OTHER, -1),
                                      .unbooked = int_or(rows, MAINTENANCE_UNBOOKED, 0),
                                      .proven_ms = int_or(rows, MAINTENANCE_PROVEN_MS, -1),
                                      .drifting = int_or(rows, MAINTENANCE_DRIFTING, 0)};
    if (upper == NULL || !rcpt_id_has_bounds(ids) ||
        !rcpt_id_time(ids, upper, &maintenance->until_ms))
        maintenance->until_ms = -1;
}

static void on_tick(void *context)
{
    struct maintenance *maintenance = context;
    if (rcpt_ask_begin(&maintenance->ask) != NULL)
        rcpt_ask_send(&maintenance->ask);
}

struct maintenance *maintenance_new(struct receipts *receipts)
{
    struct maintenance *maintenance = rcpt_calloc(1, sizeof(*maintenance));
    maintenance->receipts = receipts;
    maintenance->ask = (struct rcpt_ask){.asker = &receipts->control,
                                         .statement = "maintenance",
                                         .what = "reading the progress of receiptd maintain",
                                         .context = maintenance,
                                         .on_answer = on_read,
                                         .every_ms = POLL_MS};
    maintenance->ticker = (struct host_ticker){.tick = on_tick, .context = maintenance};
    return maintenance;
}

void maintenance_start(struct maintenance *maintenance)
{
    host_add_ticker(maintenance->receipts->context, &maintenance->ticker);
}

void maintenance_free(struct maintenance *maintenance)
{
    free(maintenance);
}

/* Whether the configuration leaves anything to a timer. A recent set does not count: it is made for
 * large tables only, and without it they are slow, not wrong. */
static bool is_wanted(const struct rcpt_config *config)
{
    return config->inbox.retention_ms > 0 || config->inbox.overrides_count > 0 ||
           config->inbox.alias_retention_ms > 0 || config->inbox.expiry_count > 0 ||
           config->inbox.partitions != RCPT_PARTITIONS_NONE;
}

struct receipts_maintenance receipts_look_at_maintenance(const struct receipts *receipts)
{
    const struct maintenance *maintenance = receipts->maintenance;
    const struct rcpt_config *config = receipts->context->config;
    struct receipts_maintenance view = maintenance->found;
    view.is_wanted = is_wanted(config);
    if (config->inbox.partitions != RCPT_PARTITIONS_EXTERNAL)
        view.unbooked = -1;
    view.has_partitions =
        maintenance->until_ms >= 0 && config->inbox.partitions != RCPT_PARTITIONS_NONE;
    view.spans_ahead =
        (double)(maintenance->until_ms - host_wall_ms()) / (double)config->inbox.partition_span_ms;
    return view;
}
