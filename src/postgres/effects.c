/* The effects of a committed batch, read from the answers of expire and discard for the observer of
 * the lane's sender (metrics). statements.c calls this before the engine takes the result.
 */
#include "effects.h"

#include <stdlib.h>
#include <string.h>

#define MOST_GATEWAYS 64u

/* A line for each gateway: its rows, a blank, its name. Cuts the text in place. */
uint32_t rcpt_effects_read_gateways(char *text, struct rcpt_lane_gateway *gateways,
                                    uint32_t capacity)
{
    uint32_t count = 0;
    for (char *rest, *line = strtok_r(text, "\n", &rest); line != NULL && count < capacity;
         line = strtok_r(NULL, "\n", &rest)) {
        char *name;
        uint64_t events = strtoull(line, &name, 10);
        if (name != line && *name == ' ')
            gateways[count++] =
                (struct rcpt_lane_gateway){.name = name + 1, .events = (uint32_t)events};
    }
    return count;
}

/* The effects borrow the names for the call. refused_at: the column of refused receipts, with their
 * gateways in the next; -1: there is none. */
static void report_gateways(rcpt_lane_on_effects on_effects, void *context, uint32_t lane,
                            const struct rcpt_pg_rows *rows, struct rcpt_lane_effects report,
                            int column, int refused_at)
{
    struct rcpt_lane_gateway gateways[MOST_GATEWAYS], refused[MOST_GATEWAYS];
    const char *text = rcpt_pg_rows_text(rows, 0, column);
    const char *refused_text = refused_at >= 0 ? rcpt_pg_rows_text(rows, 0, refused_at + 1) : NULL;
    char *copy = rcpt_strdup(text != NULL ? text : "");
    char *refused_copy = rcpt_strdup(refused_text != NULL ? refused_text : "");
    report.gateways = gateways;
    report.gateway_count = rcpt_effects_read_gateways(copy, gateways, MOST_GATEWAYS);
    report.refused_gateways = refused;
    report.refused_gateway_count = rcpt_effects_read_gateways(refused_copy, refused, MOST_GATEWAYS);
    report.events_refused = refused_at >= 0 ? (uint32_t)rcpt_pg_rows_int(rows, 0, refused_at) : 0;
    report.events_handled =
        (uint32_t)rcpt_pg_rows_int(rows, 0, EXPIRE_ROWS) - report.events_refused;
    on_effects(context, lane, &report);
    free(copy);
    free(refused_copy);
}

void rcpt_effects_report(rcpt_lane_on_effects on_effects, void *context, uint32_t lane,
                         enum rcpt_batch_kind kind, const struct rcpt_pg_rows *rows)
{
    struct rcpt_lane_effects report = {.count = 0};
    bool expires = kind == RCPT_BATCH_EXPIRE;
    if (on_effects == NULL || (!expires && kind != RCPT_BATCH_DISCARD))
        return;
    report_gateways(on_effects, context, lane, rows, report,
                    expires ? EXPIRE_GATEWAYS : DISCARD_GATEWAYS, expires ? EXPIRE_RETIRED : -1);
}
