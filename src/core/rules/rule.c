/* The functions that rules share (rule.h). Called by the rules of this folder. */
#include "rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_US INT64_C(60000000)

/* A quote in an identifier is doubled. */
static void write_identifier(FILE *out, const char *name)
{
    fputc('"', out);
    for (; *name != '\0'; name++) {
        if (*name == '"')
            fputc('"', out);
        fputc(*name, out);
    }
    fputc('"', out);
}

/* A column of the platform's may have any name, so it is quoted. rcpt_rules_free() frees the text.
 * */
void rcpt_rule_want(struct rcpt_rule_columns *columns, const char *before, const char *column,
                    const char *behind, bool same)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    fprintf(out, "%sm.", before);
    write_identifier(out, column);
    fputs(behind, out);
    RCPT_ASSERT(fclose(out) == 0);
    rcpt_rule_want_text(columns, text);
    if (same)
        columns->list[columns->count - 1].same = text;
}

void rcpt_rule_want_text(struct rcpt_rule_columns *columns, char *text_taken)
{
    RCPT_ASSERT(columns->count < RCPT_RULE_MOST_COLUMNS);
    struct rcpt_rules_column *column = &columns->list[columns->count++];
    column->changed = text_taken;
    column->same = "NULL";
}

/* Looks each number up once a batch: every batch starts with an empty table of names. */
const struct rcpt_word *rcpt_rule_name(struct rcpt_rule_state *state, enum rcpt_facet facet,
                                       uint8_t number)
{
    const struct rcpt_word **word = &state->words_of[facet][number];
    if (*word == NULL)
        *word = rcpt_words_find(state->words,
                                rcpt_text_of(rcpt_lane_name(state->names, facet, number)));
    return *word;
}

/* A key with escapes is a key, too, and stands in a text with a backslash. */
struct rcpt_origin rcpt_rule_origin(struct rcpt_rule_state *state,
                                    const struct rcpt_batch_event *raw, const char *key)
{
    const struct rcpt_origin none = {.link = {NULL, 0}};
    if (raw->event->payload_size == 0 || raw->event->payload_size > RCPT_RULES_MOST_TEXT)
        return none;
    struct rcpt_text json = {raw->record->value + raw->event->payload, raw->event->payload_size};
    if (rcpt_text_find(json, key) == json.size && rcpt_text_find(json, "\\") == json.size)
        return none;
    return rcpt_origin_read(json.at, json.size, &state->arena);
}

uint32_t rcpt_rule_minute(const struct rcpt_rule_state *state, int64_t at_us)
{
    uint32_t minute = rcpt_tally_minute(at_us / MINUTE_US);
    return minute < state->last_minute ? minute : state->last_minute;
}

/* Statuses that the path enters gain the message, those that it leaves lose it. */
void rcpt_rule_add_steps(struct rcpt_rule_state *state, struct rcpt_tally_place place,
                         const struct rcpt_rule_row *row)
{
    for (uint32_t index = 0; index < row->step_count; index++) {
        place.status = row->steps[index].code;
        rcpt_tally_add(state->tally, place, row->steps[index].delta, 0);
    }
}

void rcpt_rule_add_codes(struct rcpt_rule_state *state, struct rcpt_tally_place place,
                         const struct rcpt_batch_event *raw, int64_t events)
{
    place.status = raw->code;
    rcpt_tally_add(state->tally, place, 0, events);
    int16_t beside[RCPT_RECORD_MOST_BESIDE];
    uint32_t count = rcpt_event_beside(raw->event, beside);
    for (uint32_t at = 0; at < count; at++) {
        place.status = beside[at];
        rcpt_tally_add(state->tally, place, 0, events);
    }
}

/* The first allocation has room for one item for each message of the batch: few messages have more
 * than one row. */
void *rcpt_rule_append(struct rcpt_rule_state *state, struct rcpt_rule_list *list, size_t size)
{
    if (list->count == list->capacity) {
        uint32_t capacity =
            list->capacity > 0 ? 2 * list->capacity : state->batch->message_count + 1;
        void *items = rcpt_arena_alloc(&state->arena, capacity * size);
        if (list->count > 0)
            memcpy(items, list->items, list->count * size);
        list->items = items;
        list->capacity = capacity;
    }
    return memset((char *)list->items + list->count++ * size, 0, size);
}

/* Sorts only if the list is not in order yet. */
void rcpt_rule_sort(struct rcpt_rule_list *list, size_t size,
                    int (*compare)(const void *left, const void *right))
{
    const char *item = list->items;
    uint32_t sorted = 1;
    while (sorted < list->count && compare(item, item + size) <= 0) {
        item += size;
        sorted++;
    }
    if (sorted < list->count)
        qsort(list->items, list->count, size, compare);
}
