/* What a committed batch did, read from the answers of apply, wake, expire and discard for the
 * observer of the lane's sender (metrics). statements.c calls this before the engine
 * takes the result.
 */
#include "effects.h"

#include <stdlib.h>
#include <string.h>

#define MOST_EFFECTS  RCPT_LANE_MOST_EFFECTS
#define MOST_GATEWAYS 64u

/* One transaction's effects in groups: element i of each array belongs to group i. */
struct columns {
    int64_t old[MOST_EFFECTS], new[MOST_EFFECTS], gained[MOST_EFFECTS], signature[MOST_EFFECTS],
        messages[MOST_EFFECTS];
};

/* Numbers of a one-dimensional array in text format; what does not fit the capacity is left out. */
uint32_t rcpt_effects_read_array(const char *text, int64_t *values, uint32_t capacity)
{
    uint32_t count = 0;
    if (text == NULL || *text != '{')
        return 0;
    for (text++; *text != '\0' && *text != '}' && count < capacity; count++) {
        char *end;
        values[count] = strtoll(text, &end, 10);
        if (end == text)
            return count; /* no number: nothing that our statements return */
        text = *end == ',' ? end + 1 : end;
    }
    return count;
}

static uint32_t read_column(const struct rcpt_pg_rows *rows, int column, int64_t *values)
{
    return rcpt_effects_read_array(rcpt_pg_rows_text(rows, 0, column), values, MOST_EFFECTS);
}

/* 0 where the arrays differ in length: figures may be missing, a wrong pairing must not happen. */
static uint32_t read_apply(const struct rcpt_pg_rows *rows, struct columns *columns)
{
    uint32_t count = read_column(rows, APPLY_WAS, columns->old);
    bool whole = read_column(rows, APPLY_IS, columns->new) == count &&
                 read_column(rows, APPLY_GAINED, columns->gained) == count &&
                 read_column(rows, APPLY_KIND, columns->signature) == count &&
                 read_column(rows, APPLY_MESSAGES, columns->messages) == count;
    return whole ? count : 0;
}

/* The answer of a wake has neither gained flags nor signatures. */
static uint32_t read_wake(const struct rcpt_pg_rows *rows, struct columns *columns)
{
    uint32_t count = read_column(rows, WAKE_OLD, columns->old);
    bool whole = read_column(rows, WAKE_NEW, columns->new) == count &&
                 read_column(rows, WAKE_N, columns->messages) == count;
    for (uint32_t index = 0; index < count; index++)
        columns->gained[index] = columns->signature[index] = 0;
    return whole ? count : 0;
}

/* Receipts of unknown messages, or refused ones, by signature: two columns. Uses columns whose
 * content has been copied out. */
static uint32_t read_unknown(const struct rcpt_pg_rows *rows, int column, struct columns *columns,
                             struct rcpt_lane_unknown *unknown)
{
    uint32_t count = read_column(rows, column, columns->signature);
    if (read_column(rows, column + 1, columns->messages) != count)
        return 0;
    for (uint32_t index = 0; index < count; index++)
        unknown[index] = (struct rcpt_lane_unknown){
            .signature = (int32_t)columns->signature[index] - 1,
            .events = (uint32_t)columns->messages[index],
        };
    return count;
}

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

/* The effects borrow the names for the call. refused_at: the column of those that were refused,
 * with their gateways in the next; -1: there is none. */
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
    report.events_handled = (uint32_t)rcpt_pg_rows_int(rows, 0, WAKE_ROWS) - report.events_refused;
    on_effects(context, lane, &report);
    free(copy);
    free(refused_copy);
}

/* A signature is an index into the batch's list of what receipts named; -1: not known. */
static void report_rows(rcpt_lane_on_effects on_effects, void *context, uint32_t lane,
                        enum rcpt_batch_kind kind, const struct rcpt_pg_rows *rows)
{
    struct columns columns;
    struct rcpt_lane_effect effects[MOST_EFFECTS];
    struct rcpt_lane_unknown unknown[MOST_EFFECTS], refused[MOST_EFFECTS], retired[MOST_EFFECTS];
    struct rcpt_lane_effects report = {
        .rows = effects, .unknown = unknown, .refused = refused, .retired = retired};
    report.count =
        kind == RCPT_BATCH_APPLY ? read_apply(rows, &columns) : read_wake(rows, &columns);
    for (uint32_t index = 0; index < report.count; index++)
        effects[index] = (struct rcpt_lane_effect){
            .old = (int16_t)columns.old[index],
            .new = (int16_t)columns.new[index],
            .gained = (uint32_t)columns.gained[index],
            .signature = (int32_t)columns.signature[index] - 1, /* SQL counts from one */
            .messages = (uint32_t)columns.messages[index],
        };
    if (kind == RCPT_BATCH_WAKE) {
        report_gateways(on_effects, context, lane, rows, report, WAKE_GATEWAYS, WAKE_REFUSED);
        return;
    }
    report.events_dead = (uint32_t)rcpt_pg_rows_int(rows, 0, APPLY_EVENTS_DEAD);
    report.events_counted = (uint32_t)rcpt_pg_rows_int(rows, 0, APPLY_EVENTS_COUNTED);
    report.events_parked = (uint32_t)rcpt_pg_rows_int(rows, 0, APPLY_EVENTS_PARKED);
    report.events_refused = (uint32_t)rcpt_pg_rows_int(rows, 0, APPLY_EVENTS_REFUSED);
    report.unknown_count = read_unknown(rows, APPLY_UNKNOWN, &columns, unknown);
    report.refused_count = read_unknown(rows, APPLY_REFUSED, &columns, refused);
    report.events_retired = (uint32_t)rcpt_pg_rows_int(rows, 0, APPLY_EVENTS_RETIRED);
    report.retired_count = read_unknown(rows, APPLY_RETIRED, &columns, retired);
    on_effects(context, lane, &report);
}

/* A probe is rolled back and has no effects. */
void rcpt_effects_report(rcpt_lane_on_effects on_effects, void *context, uint32_t lane,
                         enum rcpt_batch_kind kind, const struct rcpt_pg_rows *rows)
{
    if (on_effects == NULL || kind == RCPT_BATCH_PROBE)
        return;
    if (kind == RCPT_BATCH_APPLY || kind == RCPT_BATCH_WAKE) {
        report_rows(on_effects, context, lane, kind, rows);
        return;
    }
    struct rcpt_lane_effects report = {.count = 0};
    bool expires = kind == RCPT_BATCH_EXPIRE;
    report_gateways(on_effects, context, lane, rows, report,
                    expires ? EXPIRE_GATEWAYS : DISCARD_GATEWAYS, expires ? EXPIRE_RETIRED : -1);
}
