/* Compares configurations, row by row of the table: a reload takes over the values that differ and
 * may change (operate/reload.c); the hash shows whether instances have the same settings. Both
 * configurations stay owned by the caller. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "table.h"

/* Rows are compared by their type, read through the offsets of the table. */
static const void *member(const struct rcpt_config_row *row, const void *base)
{
    return (const char *)base + row->offset;
}

static const char *text_of(const struct rcpt_config_row *row, const void *base)
{
    const char *text;
    memcpy(&text, member(row, base), sizeof(text));
    return text;
}

static bool same_text(const char *left, const char *right)
{
    return left == right || (left != NULL && right != NULL && strcmp(left, right) == 0);
}

/* Counts are unsigned or size_t, as libcyaml fills either. */
static size_t count_of(const struct rcpt_config_row *row, const void *base)
{
    unsigned count;
    size_t large;
    if (row->count_size == sizeof(large)) {
        memcpy(&large, (const char *)base + row->count_offset, sizeof(large));
        return large;
    }
    RCPT_ASSERT(row->count_size == sizeof(count));
    memcpy(&count, (const char *)base + row->count_offset, sizeof(count));
    return count;
}

/* Types up to TABLE are texts behind a pointer; all others stand in the member itself. The order of
 * the enum in table.h makes this one comparison. */
static bool same_single(const struct rcpt_config_row *row, const void *left, const void *right)
{
    if (row->type <= RCPT_CONFIG_TABLE)
        return same_text(text_of(row, left), text_of(row, right));
    return memcmp(member(row, left), member(row, right), row->size) == 0;
}

static bool same_texts(char *const *left, char *const *right, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        if (strcmp(left[index], right[index]) != 0)
            return false;
    }
    return true;
}

/* Line and column may differ: a comment above does not make a setting another one. */
static bool same_pairs(const struct rcpt_config_pair *left, const struct rcpt_config_pair *right,
                       size_t count)
{
    for (size_t index = 0; index < count; index++) {
        if (strcmp(left[index].name, right[index].name) != 0 ||
            strcmp(left[index].value, right[index].value) != 0)
            return false;
    }
    return true;
}

/* Lists of different length differ; otherwise entry by entry. */
static bool same_value(const struct rcpt_config_row *row, const void *left, const void *right);

/* Records are compared in order: order may mean something, as in the ladder. */
static bool same_records(const struct rcpt_config_table *fields, const char *left,
                         const char *right, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        const char *one = left + index * fields->record_size;
        const char *other = right + index * fields->record_size;
        for (size_t field = 0; field < fields->count; field++) {
            if (!same_value(&fields->rows[field], one, other))
                return false;
        }
    }
    return true;
}

static bool same_value(const struct rcpt_config_row *row, const void *left, const void *right)
{
    bool is_list = row->type == RCPT_CONFIG_TOPICS || row->type == RCPT_CONFIG_LIST;
    if (row->type < RCPT_CONFIG_MAP && !is_list)
        return same_single(row, left, right);
    size_t count = count_of(row, left);
    const void *ours = text_of(row, left), *theirs = text_of(row, right);
    if (count != count_of(row, right))
        return false;
    if (is_list)
        return same_texts(ours, theirs, count);
    if (row->type == RCPT_CONFIG_MAP)
        return same_pairs(ours, theirs, count);
    return same_records(row->record, ours, theirs, count);
}

/* Exchanging instead of copying keeps ownership simple: freeing `fresh` later frees the old values.
 * Members are at most two pointers wide. */
static void exchange(void *left, void *right, size_t size)
{
    char kept[16];
    RCPT_ASSERT(size <= sizeof(kept));
    memcpy(kept, left, size);
    memcpy(left, right, size);
    memcpy(right, kept, size);
}

static void exchange_value(const struct rcpt_config_row *row, struct rcpt_config *left,
                           struct rcpt_config *right)
{
    exchange((char *)left + row->offset, (char *)right + row->offset, row->size);
    if (row->count_size > 0)
        exchange((char *)left + row->count_offset, (char *)right + row->count_offset,
                 row->count_size);
}

/* Compiled pipelines are always exchanged: they belong to the text in effect, and the actions may
 * have taken the earlier ones already. */
void rcpt_config_take_over(struct rcpt_config *config, struct rcpt_config *fresh,
                           struct rcpt_config_changes *changes)
{
    const struct rcpt_config_table *table = rcpt_config_table();
    memset(changes, 0, sizeof(*changes));
    exchange(&config->compiled, &fresh->compiled, sizeof(fresh->compiled));
    exchange(&config->sources, &fresh->sources, sizeof(fresh->sources));
    for (size_t index = 0; index < table->count; index++) {
        const struct rcpt_config_row *row = &table->rows[index];
        if (same_value(row, config, fresh))
            continue;
        if (row->flags & RCPT_CONFIG_RELOADABLE) {
            exchange_value(row, config, fresh);
            changes->applied[changes->applied_count++] = row->path;
        } else {
            changes->needs_restart[changes->needs_restart_count++] = row->path;
        }
    }
}

/* FNV-1a over the printed form, in which secrets are redacted: equal hashes say nothing about
 * secrets. */
void rcpt_config_hash(const struct rcpt_config *config, char text[17])
{
    char *printed = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&printed, &size);
    rcpt_config_print(config, out);
    RCPT_ASSERT(fclose(out) == 0);
    uint64_t hash = rcpt_text_hash((struct rcpt_text){printed, size});
    free(printed);
    snprintf(text, 17, "%016" PRIx64, hash);
}
