/* Measures how long deltas wait for their roll-up. They have ids and no time, so a mark is set at
 * the last id of each table. While a delta up to the mark exists, one has waited since then. When
 * the last of them is rolled up, the mark moves on. This works whichever instance rolls up. Started
 * by receipts.c.
 */
#include <stdlib.h>

#include "internal.h"

#define POLL_MS 5000
#define TABLES  2u

struct mark {
    int64_t gone; /* deltas up to this id are rolled up */
    int64_t last; /* one up to this id may wait */
    int64_t set_ms;
};

struct deltas {
    struct receipts *receipts;
    struct rcpt_ask ask;
    struct host_ticker ticker;
    struct mark marks[TABLES];
    int64_t oldest_ms;
};

/* Columns of sql/control/deltas. */
enum { DELTAS_N, DELTAS_WAITS, DELTAS_LAST };

static void on_read(void *context, const struct rcpt_pg_rows *rows)
{
    struct deltas *deltas = context;
    int64_t now = host_now(deltas->receipts->context);
    deltas->oldest_ms = 0;
    for (unsigned index = 0; index < TABLES; index++) {
        struct mark *mark = &deltas->marks[index];
        if (!rcpt_pg_rows_bool(rows, index, DELTAS_WAITS))
            *mark = (struct mark){mark->last, rcpt_pg_rows_int(rows, index, DELTAS_LAST),
                                  deltas->ask.sent_ms};
        else if (now - mark->set_ms > deltas->oldest_ms)
            deltas->oldest_ms = now - mark->set_ms;
    }
}

static void on_tick(void *context)
{
    struct deltas *deltas = context;
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&deltas->ask);
    if (encoder == NULL)
        return;
    for (unsigned index = 0; index < TABLES; index++) {
        rcpt_pg_add_int8(encoder, deltas->marks[index].gone);
        rcpt_pg_add_int8(encoder, deltas->marks[index].last);
    }
    rcpt_ask_send(&deltas->ask);
}

struct deltas *deltas_new(struct receipts *receipts)
{
    struct deltas *deltas = rcpt_calloc(1, sizeof(*deltas));
    deltas->receipts = receipts;
    deltas->oldest_ms = -1;
    deltas->ask = (struct rcpt_ask){.asker = &receipts->control,
                                    .statement = "deltas",
                                    .what = "reading of how long deltas wait",
                                    .context = deltas,
                                    .on_answer = on_read,
                                    .every_ms = POLL_MS};
    deltas->ticker = (struct host_ticker){.tick = on_tick, .context = deltas};
    return deltas;
}

void deltas_start(struct deltas *deltas)
{
    host_add_ticker(deltas->receipts->context, &deltas->ticker);
}

void deltas_free(struct deltas *deltas)
{
    free(deltas);
}

int64_t receipts_oldest_delta_ms(const struct receipts *receipts)
{
    return receipts->deltas->oldest_ms;
}
