#include "effects.h"

#include <stdlib.h>

#define MOST_EFFECTS RCPT_LANE_MOST_EFFECTS

/* Columns of apply.sql and of wake.sql. */
enum {
    APPLY_DEAD = 3,
    APPLY_COUNTED,
    APPLY_WAS = 8,
    APPLY_IS,
    APPLY_GAINED,
    APPLY_SIGNATURE,
    APPLY_MESSAGES
};
enum { WAKE_OLD = 2, WAKE_NEW, WAKE_MESSAGES };

struct columns {
    int64_t old[MOST_EFFECTS], new[MOST_EFFECTS], gained[MOST_EFFECTS], signature[MOST_EFFECTS],
        messages[MOST_EFFECTS];
};

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

static uint32_t read_apply(const struct rcpt_pg_rows *rows, struct columns *columns)
{
    uint32_t count = read_column(rows, APPLY_WAS, columns->old);
    bool whole = read_column(rows, APPLY_IS, columns->new) == count &&
                 read_column(rows, APPLY_GAINED, columns->gained) == count &&
                 read_column(rows, APPLY_SIGNATURE, columns->signature) == count &&
                 read_column(rows, APPLY_MESSAGES, columns->messages) == count;
    return whole ? count : 0;
}

static uint32_t read_wake(const struct rcpt_pg_rows *rows, struct columns *columns)
{
    uint32_t count = read_column(rows, WAKE_OLD, columns->old);
    bool whole = read_column(rows, WAKE_NEW, columns->new) == count &&
                 read_column(rows, WAKE_MESSAGES, columns->messages) == count;
    for (uint32_t index = 0; index < count; index++)
        columns->gained[index] = columns->signature[index] = 0;
    return whole ? count : 0;
}

void rcpt_effects_tell(rcpt_lane_on_effects on_effects, void *context, uint32_t lane,
                       enum rcpt_batch_kind kind, const struct rcpt_pg_rows *rows)
{
    if (on_effects == NULL || (kind != RCPT_BATCH_APPLY && kind != RCPT_BATCH_WAKE))
        return;
    struct columns columns;
    struct rcpt_lane_effect effects[MOST_EFFECTS];
    struct rcpt_lane_effects told = {.rows = effects};
    told.count = kind == RCPT_BATCH_APPLY ? read_apply(rows, &columns) : read_wake(rows, &columns);
    if (kind == RCPT_BATCH_APPLY) {
        told.events_dead = (uint32_t)rcpt_pg_rows_int(rows, 0, APPLY_DEAD);
        told.events_counted = (uint32_t)rcpt_pg_rows_int(rows, 0, APPLY_COUNTED);
    }
    for (uint32_t index = 0; index < told.count; index++)
        effects[index] = (struct rcpt_lane_effect){
            .old = (int16_t)columns.old[index],
            .new = (int16_t)columns.new[index],
            .gained = (uint32_t)columns.gained[index],
            .signature = (int32_t)columns.signature[index] - 1, /* SQL counts from one */
            .messages = (uint32_t)columns.messages[index],
        };
    on_effects(context, lane, &told);
}
