/* Reads the answer of sql/lane/wake (woken.h). Gateways and reasons come as texts and get numbers
 * of this batch, since another process may have parked them. Called by flights.c.
 */
#include "woken.h"

#include <stdlib.h>

#include "receiptd/core/batch_build.h"

/* Columns of sql/lane/wake. */
enum {
    WOKEN_FITS,
    WOKEN_GATEWAY,
    WOKEN_ACCOUNT,
    WOKEN_MESSAGE_ID,
    WOKEN_STATUS,
    WOKEN_FLAGS,
    WOKEN_MACHINES,
    WOKEN_AT,
    WOKEN_ORG,
    WOKEN_NAMED,
    WOKEN_TRACEPARENT,
    WOKEN_REASON_CLASS,
    WOKEN_EVENT_KEY,
    WOKEN_PAYLOAD,
    WOKEN_PART,
    WOKEN_WHOLE
};

/* Copies the text, because the answer is freed before the batch. */
static struct rcpt_text copy(struct rcpt_woken_batch *woken, const char *text)
{
    struct rcpt_text value = rcpt_text_of(text);
    return text != NULL ? rcpt_text_copy(&woken->batch.arena, value) : value;
}

/* 0: none. The last number stands for all names that found no place. */
static uint8_t number_of(struct rcpt_woken_batch *woken, enum rcpt_facet facet, const char *name)
{
    struct rcpt_text *names = woken->names[facet];
    uint32_t *count = &woken->name_counts[facet], at = 0;
    if (name == NULL || name[0] == '\0')
        return 0;
    while (at < *count && !rcpt_text_is(names[at], name))
        at++;
    if (at == RCPT_WOKEN_NAMES)
        return RCPT_WOKEN_NAMES;
    if (at == *count) {
        names[at] = copy(woken, at + 1 < RCPT_WOKEN_NAMES ? name : "other");
        ++*count;
    }
    return (uint8_t)(at + 1);
}

/* Counts for figures only, under the gateways with which receipts were parked; refused ones are
 * counted, too. */
static void count_gateway(struct rcpt_woken_batch *woken, struct rcpt_woken_gateways *gateways,
                          const char *name)
{
    gateways->events++;
    for (uint32_t at = 0; name != NULL && at < gateways->count; at++) {
        if (strcmp(gateways->all[at].name, name) == 0) {
            gateways->all[at].events++;
            return;
        }
    }
    if (name != NULL && gateways->count < RCPT_WOKEN_GATEWAYS)
        gateways->all[gateways->count++] =
            (struct rcpt_lane_gateway){.name = copy(woken, name).at, .events = 1};
}

static struct rcpt_woken read_row(struct rcpt_woken_batch *woken, const struct rcpt_pg_rows *rows,
                                  size_t row)
{
    const char *gateway = rcpt_pg_rows_text(rows, row, WOKEN_GATEWAY);
    if (gateway != NULL && strcmp(gateway, "other") == 0)
        gateway = rcpt_pg_rows_text(rows, row, WOKEN_ACCOUNT); /* its own; NULL: it names none */
    bool whole = rcpt_pg_rows_text(rows, row, WOKEN_WHOLE) != NULL;
    return (struct rcpt_woken){
        .id = copy(woken, rcpt_pg_rows_text(rows, row, WOKEN_MESSAGE_ID)),
        .org = copy(woken, rcpt_pg_rows_text(rows, row, WOKEN_ORG)),
        .named = rcpt_pg_rows_bool(rows, row, WOKEN_NAMED),
        .code = (int16_t)rcpt_pg_rows_int(rows, row, WOKEN_STATUS),
        .flags = (uint32_t)rcpt_pg_rows_int(rows, row, WOKEN_FLAGS),
        .machines = (uint8_t)rcpt_pg_rows_int(rows, row, WOKEN_MACHINES),
        .at_us = rcpt_pg_rows_int(rows, row, WOKEN_AT),
        .traceparent =
            rcpt_text_or_empty(copy(woken, rcpt_pg_rows_text(rows, row, WOKEN_TRACEPARENT))).at,
        .gateway = number_of(woken, RCPT_FACET_GATEWAY, gateway),
        .reason =
            number_of(woken, RCPT_FACET_REASON, rcpt_pg_rows_text(rows, row, WOKEN_REASON_CLASS)),
        .key = (uint64_t)rcpt_pg_rows_int(rows, row, WOKEN_EVENT_KEY),
        .payload = copy(woken, rcpt_pg_rows_text(rows, row, WOKEN_PAYLOAD)),
        .delivers_part = rcpt_pg_rows_text(rows, row, WOKEN_PART) != NULL,
        .whole_us = whole ? rcpt_pg_rows_int(rows, row, WOKEN_WHOLE) : INT64_MIN};
}

/* Rows whose `fits` is false are dead letters already: they are returned for figures, and are no
 * part of the batch. */
struct rcpt_woken_batch *rcpt_woken_batch_new(uint32_t lane, const struct rcpt_ladder *ladder,
                                              const struct rcpt_pg_rows *answer)
{
    struct rcpt_woken_batch *woken = rcpt_calloc(1, sizeof(*woken));
    size_t count = rcpt_pg_rows_count(answer), used = 0;
    rcpt_batch_init(&woken->batch, lane);
    rcpt_batch_reset(&woken->batch, RCPT_BATCH_WAKE);
    struct rcpt_woken *rows = rcpt_arena_alloc(&woken->batch.arena, (count + 1) * sizeof(*rows));
    for (size_t row = 0; row < count; row++) {
        bool fits = rcpt_pg_rows_bool(answer, row, WOKEN_FITS);
        count_gateway(woken, fits ? &woken->applied : &woken->refused,
                      rcpt_pg_rows_text(answer, row, WOKEN_GATEWAY));
        if (fits)
            rows[used++] = read_row(woken, answer, row);
    }
    rcpt_batch_fold_woken(&woken->batch, ladder, rows, (uint32_t)used);
    return woken;
}

void rcpt_woken_batch_free(struct rcpt_woken_batch *woken)
{
    if (woken == NULL)
        return;
    rcpt_batch_fini(&woken->batch);
    free(woken);
}

static const char *name_of(const void *context, enum rcpt_facet facet, uint32_t number)
{
    const struct rcpt_woken_batch *woken = context;
    return number > 0 && number <= woken->name_counts[facet] ? woken->names[facet][number - 1].at
                                                             : NULL;
}

struct rcpt_lane_names rcpt_woken_names(const struct rcpt_woken_batch *woken)
{
    return (struct rcpt_lane_names){.name = name_of, .context = woken};
}
