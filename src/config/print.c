/* `check-config --print`: the configuration in effect as YAML in the file's own form, secrets
 * redacted. Also the normal form of the default ladder, and what the hash is computed from. Called
 * by commands, check.c, pages.c and diff.c. */
#include "print.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/config/value.h"
#include "tree.h"

#define PATH_BYTES 128

/* Text as the loader reads it back: ${ would be replaced from the environment. Of a URL no
 * credentials. */
static void write_escaped(struct rcpt_config_writer *writer, const char *value)
{
    char *shown = rcpt_config_redact_url(value);
    char *escaped = rcpt_malloc(2 * strlen(shown) + 1), *out = escaped;
    for (const char *text = shown; *text != '\0'; text++) {
        if (strncmp(text, "${", 2) == 0)
            *out++ = '$';
        *out++ = *text;
    }
    *out = '\0';
    rcpt_config_write_text(writer, escaped);
    free(escaped);
    free(shown);
}

/* The value came from the table, so the name is there. */
static const char *choice_name(const struct rcpt_config_row *row, int64_t value)
{
    unsigned index = 0;
    while (index < row->choice_count && row->choices[index].val != value)
        index++;
    RCPT_ASSERT(index < row->choice_count);
    return row->choices[index].str;
}

/* Members are read by memcpy: the table knows their offset, not their type. */
static const char *read_text(const struct rcpt_config_row *row, const void *base)
{
    const char *text;
    memcpy(&text, (const char *)base + row->offset, sizeof(text));
    return text;
}

/* Text members may be NULL where the key is not set; numbers always have a value. */
static void write_single(struct rcpt_config_writer *writer, const struct rcpt_config_row *row,
                         const void *base)
{
    char number[RCPT_CONFIG_NUMBER_BYTES];
    if (row->type <= RCPT_CONFIG_TABLE) {
        const char *text = read_text(row, base);
        if (text == NULL)
            rcpt_config_write_plain(writer, "null");
        else
            write_escaped(writer, text);
    } else if (row->type == RCPT_CONFIG_CHOICE) {
        rcpt_config_write_plain(writer, choice_name(row, rcpt_config_read_number(row, base)));
    } else {
        rcpt_config_format_number(row->type, rcpt_config_read_number(row, base), number);
        rcpt_config_write_plain(writer, number);
    }
}

/* Fields that are not set, or false, are left out: a ladder is easier to read without them. */
static bool is_telling(const struct rcpt_config_row *field, const char *record)
{
    if (!(field->flags & RCPT_CONFIG_NULLABLE))
        return true;
    return field->type == RCPT_CONFIG_CHOICE ? rcpt_config_read_number(field, record) != 0
                                             : read_text(field, record) != NULL;
}

static void write_record(struct rcpt_config_writer *writer, const struct rcpt_config_table *fields,
                         const char *record)
{
    rcpt_config_write_map(writer, RCPT_CONFIG_FLOW);
    for (size_t index = 0; index < rcpt_config_count(fields); index++) {
        if (!is_telling(rcpt_config_row(fields, index), record))
            continue;
        rcpt_config_write_plain(writer, rcpt_config_row(fields, index)->path);
        write_single(writer, rcpt_config_row(fields, index), record);
    }
    rcpt_config_write_map_end(writer);
}

void rcpt_config_write_records(struct rcpt_config_writer *writer, const struct rcpt_config_row *row,
                               const struct rcpt_config *base)
{
    const char *records = read_text(row, base);
    size_t count;
    RCPT_ASSERT(row->count_size == sizeof(count));
    memcpy(&count, (const char *)base + row->count_offset, sizeof(count));
    rcpt_config_write_list(writer, RCPT_CONFIG_BLOCK);
    for (size_t index = 0; index < count; index++)
        write_record(writer, row->record, records + index * row->record->record_size);
    rcpt_config_write_list_end(writer);
}

/* The list of a LIST, MAP or RECORDS row. */
static const char *read_list(const struct rcpt_config_row *row, const void *base, size_t *count)
{
    struct rcpt_config_row number = {.offset = row->count_offset, .size = row->count_size};
    *count = (size_t)rcpt_config_read_number(&number, base);
    return read_text(row, base);
}

/* The number of secrets is no secret; their text is. */
static void write_texts(struct rcpt_config_writer *writer, const struct rcpt_config_row *row,
                        const void *base)
{
    size_t count;
    const char *texts = read_list(row, base, &count);
    rcpt_config_write_list(writer, RCPT_CONFIG_FLOW);
    for (size_t index = 0; index < count; index++) {
        const char *text;
        memcpy(&text, texts + index * sizeof(text), sizeof(text));
        write_escaped(writer, row->flags & RCPT_CONFIG_SECRET ? RCPT_CONFIG_REDACTED : text);
    }
    rcpt_config_write_list_end(writer);
}

/* Properties of librdkafka are free: whether one is a secret is judged by its name. */
static void write_pairs(struct rcpt_config_writer *writer, const struct rcpt_config_row *row,
                        const void *base)
{
    size_t count;
    const char *pairs = read_list(row, base, &count);
    bool has_secrets = strcmp(row->path, "kafka.properties") == 0;
    rcpt_config_write_map(writer, RCPT_CONFIG_BLOCK);
    for (size_t index = 0; index < count; index++) {
        const char *pair = pairs + index * row->record->record_size;
        const char *name = read_text(rcpt_config_row(row->record, 0), pair);
        const char *value = read_text(rcpt_config_row(row->record, 1), pair);
        rcpt_config_write_text(writer, name);
        write_escaped(writer, has_secrets && rcpt_config_is_secret_property(name)
                                  ? RCPT_CONFIG_REDACTED
                                  : value);
    }
    rcpt_config_write_map_end(writer);
}

static void write_secret(struct rcpt_config_writer *writer, const struct rcpt_config_row *row,
                         const void *base)
{
    const char *text = read_text(row, base);
    if (text == NULL) {
        rcpt_config_write_plain(writer, "null");
        return;
    }
    /* The parts of a connection string beside its password help the reader; other secrets have no
     * such parts. */
    bool is_dsn = rcpt_config_is_dsn(row->path);
    char *redacted = is_dsn ? rcpt_config_redact_dsn(text) : rcpt_strdup(RCPT_CONFIG_REDACTED);
    write_escaped(writer, redacted);
    free(redacted);
}

static void write_rows(struct rcpt_config_writer *writer, const struct rcpt_config_table *table,
                       const void *base, bool all);

/* Whether the entry says no more than its first field: the second one has its default. */
static bool is_plain(const struct rcpt_config_row *row, const void *record)
{
    const struct rcpt_config_row *second = rcpt_config_row(row->record, 1);
    return row->flags & RCPT_CONFIG_PLAIN &&
           strcmp(read_text(second, record), second->initial) == 0;
}

/* Fields of a record that are not set are left out; at the top every key is printed, so that the
 * reader sees what is possible. */
static void write_entries(struct rcpt_config_writer *writer, const struct rcpt_config_row *row,
                          const void *base)
{
    size_t count;
    const char *records = read_list(row, base, &count);
    rcpt_config_write_list(writer, RCPT_CONFIG_BLOCK);
    for (size_t index = 0; index < count; index++) {
        const char *record = records + index * row->record->record_size;
        if (is_plain(row, record))
            write_single(writer, rcpt_config_row(row->record, 0), record);
        else
            write_rows(writer, row->record, record, false);
    }
    rcpt_config_write_list_end(writer);
}

static void write_row(struct rcpt_config_writer *writer, const struct rcpt_config_row *row,
                      const void *base)
{
    if (row->type == RCPT_CONFIG_LIST)
        write_texts(writer, row, base);
    else if (row->type == RCPT_CONFIG_MAP)
        write_pairs(writer, row, base);
    else if (rcpt_config_is_ladder(row))
        rcpt_config_write_records(writer, row, base);
    else if (row->type == RCPT_CONFIG_RECORDS)
        write_entries(writer, row, base);
    else if (row->type == RCPT_CONFIG_TREE)
        rcpt_config_tree_write(writer, read_text(row, base));
    else if (row->flags & RCPT_CONFIG_SECRET)
        write_secret(writer, row, base);
    else
        write_single(writer, row, base);
}

/* ---- sections ---- */

/* Whether the path's last section is this one or below it. */
static bool is_within(const char *path, const char *section)
{
    size_t size = strlen(section);
    return size == 0 || (strncmp(path, section, size) == 0 && path[size] == '.');
}

/* "inbox.columns" becomes "inbox", and "inbox" becomes "". */
static void cut_last(char *section)
{
    char *dot = strrchr(section, '.');
    *(dot != NULL ? dot : section) = '\0';
}

/* Closes and opens mappings until `section` is where the path's last name belongs. Returns that
 * name. */
static const char *enter(struct rcpt_config_writer *writer, char section[PATH_BYTES],
                         const char *path)
{
    while (!is_within(path, section)) {
        rcpt_config_write_map_end(writer);
        cut_last(section);
    }
    size_t at = section[0] != '\0' ? strlen(section) + 1 : 0;
    const char *dot;
    while ((dot = strchr(path + at, '.')) != NULL) {
        char name[PATH_BYTES];
        snprintf(name, sizeof(name), "%.*s", (int)(dot - path - (ptrdiff_t)at), path + at);
        rcpt_config_write_plain(writer, name);
        rcpt_config_write_map(writer, RCPT_CONFIG_BLOCK);
        at = (size_t)(dot - path) + 1;
        snprintf(section, PATH_BYTES, "%.*s", (int)(dot - path), path);
    }
    return path + at;
}

/* Rows stand in the order of the table; sections open and close as the paths change. `all`: also
 * rows that are not set. */
static void write_rows(struct rcpt_config_writer *writer, const struct rcpt_config_table *table,
                       const void *base, bool all)
{
    char section[PATH_BYTES] = "";
    rcpt_config_write_map(writer, RCPT_CONFIG_BLOCK);
    for (size_t index = 0; index < rcpt_config_count(table); index++) {
        const struct rcpt_config_row *row = rcpt_config_row(table, index);
        if (!all && !is_telling(row, base))
            continue;
        rcpt_config_write_plain(writer, enter(writer, section, row->path));
        write_row(writer, row, base);
    }
    for (; section[0] != '\0'; cut_last(section))
        rcpt_config_write_map_end(writer);
    rcpt_config_write_map_end(writer);
}

/* The order is that of the table, in which all keys of a section stand together; enter() relies on
 * that. */
void rcpt_config_print(const struct rcpt_config *config, FILE *out)
{
    struct rcpt_config_writer writer;
    rcpt_config_writer_init(&writer, out);
    write_rows(&writer, rcpt_config_table(), config, true);
    rcpt_config_writer_fini(&writer);
}
