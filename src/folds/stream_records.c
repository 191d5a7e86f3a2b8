/* A transition as a record (stream_records.h, docs/stream.md). Called by stream.c for every
 * message, so texts are put together in one place and copied once.
 */
#include "stream_records.h"

#include <stdio.h>

/* ---- words of the ladder ---- */

/* A code that the ladder has lost cannot be; it would stand as a number. */
static struct rcpt_text name_of(const struct folds_stream_form *form, int32_t code,
                                char number[static 12])
{
    int entry = rcpt_ladder_find_code(form->ladder, code, NULL, 0);
    if (entry >= 0)
        return rcpt_text_of(rcpt_ladder_entry(form->ladder, (size_t)entry)->name);
    snprintf(number, 12, "%d", code);
    return rcpt_text_of(number);
}

static void put_name(struct fold_text *text, const struct folds_stream_form *form, int32_t code)
{
    char number[12];
    struct rcpt_text name = name_of(form, code, number);
    fold_text_put(text, name.at, name.size);
}

/* Each flag's name behind `before`, and `behind` after it. */
static void put_flags(struct fold_text *text, const struct folds_stream_form *form, uint32_t flags,
                      const char *before, const char *behind)
{
    for (; flags != 0; flags &= flags - 1) {
        fold_text_put_words(text, before);
        put_name(text, form, RCPT_LADDER_FIRST_FLAG_CODE + __builtin_ctz(flags));
        fold_text_put_words(text, behind);
    }
}

/* ---- members ---- */

/* `name` is `,"name":`. */
static void put_member(struct fold_text *text, const char *name, struct rcpt_text value)
{
    if (value.at == NULL)
        return;
    fold_text_put_words(text, name);
    fold_text_put_whole(text, value);
}

static void put_status(struct fold_text *text, const struct folds_stream_form *form,
                       const char *name, int16_t code)
{
    fold_text_put_words(text, name);
    fold_text_put_char(text, '"');
    put_name(text, form, code);
    fold_text_put_char(text, '"');
}

static void put_flag_list(struct fold_text *text, const struct folds_stream_form *form,
                          const char *name, uint32_t flags)
{
    fold_text_put_words(text, name);
    put_flags(text, form, flags & (~flags + 1), "[\"", "\"");
    put_flags(text, form, flags & (flags - 1), ",\"", "\"");
    fold_text_put_words(text, flags != 0 ? "]" : "[]");
}

/* PostgreSQL's `2026-11-28 12:00:00.5+00` in the form of RFC 3339. */
static struct rcpt_text time_of(struct rcpt_text time, char shown[static 40])
{
    if (time.at == NULL || time.size < 22 || time.size >= 40 || time.at[10] != ' ')
        return (struct rcpt_text){NULL, 0};
    memcpy(shown, time.at, time.size);
    shown[10] = 'T';
    shown[time.size - 3] = 'Z';
    return (struct rcpt_text){shown, time.size - 2};
}

/* ---- the record ---- */

static void put_change(struct fold_text *text, const struct folds_stream_form *form,
                       const struct folds_stream_entry *entry, struct rcpt_text time)
{
    put_status(text, form, ",\"old\":", entry->old);
    put_status(text, form, ",\"new\":", entry->new);
    put_flag_list(text, form, ",\"gained\":", entry->gained);
    put_flag_list(text, form, ",\"flags\":", entry->flags);
    put_member(text, ",\"at\":", time);
    put_member(text, ",\"gateway\":", entry->gateway);
    put_member(text, ",\"reason\":", entry->reason);
}

static void put_state(struct fold_text *text, const struct folds_stream_form *form,
                      const struct folds_stream_entry *entry, struct rcpt_text time)
{
    put_status(text, form, ",\"status\":", entry->new);
    put_flag_list(text, form, ",\"flags\":", entry->flags);
    put_member(text, ",\"status_at\":", time);
}

static void put_body(struct fold_text *text, const struct folds_stream_form *form,
                     const struct folds_stream_entry *entry, struct rcpt_text time)
{
    fold_text_put_words(text, "{\"message_id\":");
    fold_text_put_whole(text, entry->id);
    if (form->is_state || entry->kind == FOLDS_STREAM_ROW)
        put_state(text, form, entry, time);
    else
        put_change(text, form, entry, time);
    put_member(text, ",\"campaign_id\":", entry->campaign);
    put_member(text, ",\"org_id\":", entry->org);
    if (entry->columns.at != NULL) {
        fold_text_put_words(text, ",\"columns\":");
        fold_text_put(text, entry->columns.at, entry->columns.size);
    }
    fold_text_put_char(text, '}');
}

/* The message and what it reached: statuses and flags only rise, so no message reaches it twice. */
static void put_id(struct fold_text *text, const struct folds_stream_form *form,
                   const struct folds_stream_entry *entry)
{
    fold_text_put(text, entry->id.at, entry->id.size);
    fold_text_put_char(text, '/');
    if (entry->kind == FOLDS_STREAM_GONE) {
        fold_text_put_words(text, "gone");
        return;
    }
    put_name(text, form, entry->new);
    put_flags(text, form, entry->flags, "+", "");
}

static struct rcpt_text type_of(const struct folds_stream_form *form,
                                const struct folds_stream_entry *entry)
{
    if (entry->kind == FOLDS_STREAM_GONE)
        return RCPT_TEXT("receiptd.message.gone");
    return form->is_state || entry->kind == FOLDS_STREAM_ROW
               ? RCPT_TEXT("receiptd.message.state")
               : RCPT_TEXT("receiptd.message.changed");
}

void folds_stream_record(const struct folds_stream_form *form,
                         const struct folds_stream_entry *entry, struct rcpt_arena *arena,
                         struct fold_text *scratch, struct rcpt_transactor_record *record)
{
    char shown[40];
    struct rcpt_text time = time_of(entry->time, shown), none = {NULL, 0};
    bool is_gone = entry->kind == FOLDS_STREAM_GONE;
    scratch->size = 0;
    put_id(scratch, form, entry);
    size_t id_size = scratch->size;
    if (!is_gone)
        put_body(scratch, form, entry, time);
    struct rcpt_text all = rcpt_text_copy(arena, (struct rcpt_text){scratch->at, scratch->size});
    record->key = entry->id;
    record->value = is_gone ? none : rcpt_text_part(all, id_size, all.size - id_size);
    const struct rcpt_transactor_header headers[RCPT_TRANSACTOR_HEADERS] = {
        {"ce_specversion", RCPT_TEXT("1.0")},
        {"ce_id", {all.at, id_size}},
        {"ce_source", rcpt_text_of(form->source)},
        {"ce_type", type_of(form, entry)},
        {"ce_subject", entry->id},
        {"ce_time", time.at != NULL ? rcpt_text_copy(arena, time) : none},
        {"content-type", is_gone ? none : RCPT_TEXT("application/json")},
        {"traceparent", entry->trace}};
    memcpy(record->headers, headers, sizeof(headers));
}
