/* The file as JSON Schema (draft 7), for editors: made from the table of keys. It refuses what an
 * editor can know, and nothing that the check (check.c) takes. Values may hold ${NAME}, so a text
 * that does is always good. */
#include <string.h>

#include "print.h"
#include "receiptd/base/json.h"
#include "receiptd/config/value.h"

#define VARIABLE "\\$\\{"

static void write_row(struct rcpt_json *json, const struct rcpt_config_row *row);

static void write_pattern(struct rcpt_json *json, const char *pattern)
{
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "type", "string");
    rcpt_json_put_text(json, "pattern", pattern);
    rcpt_json_end_object(json);
}

/* What YAML reads as a number or a boolean is a text, too, where a text is wanted. */
static void write_scalar_types(struct rcpt_json *json)
{
    rcpt_json_key(json, "type");
    rcpt_json_begin_array(json);
    rcpt_json_text(json, "string");
    rcpt_json_text(json, "number");
    rcpt_json_text(json, "boolean");
    rcpt_json_end_array(json);
}

static void write_scalar(struct rcpt_json *json)
{
    rcpt_json_begin_object(json);
    write_scalar_types(json);
    rcpt_json_end_object(json);
}

/* A number without a unit, within the range. A ratio's range is in millionths. */
static void write_number(struct rcpt_json *json, const struct rcpt_config_row *row)
{
    bool is_ratio = row->type == RCPT_CONFIG_RATIO;
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "type", is_ratio ? "number" : "integer");
    if (row->type == RCPT_CONFIG_DURATION) {
        rcpt_json_put_int(json, "const", 0);
    } else {
        rcpt_json_key(json, "minimum");
        rcpt_json_double(json, is_ratio ? (double)row->min / 1e6 : (double)row->min);
        rcpt_json_key(json, "maximum");
        rcpt_json_double(json, is_ratio ? (double)row->max / 1e6 : (double)row->max);
    }
    rcpt_json_end_object(json);
}

/* true and false are words to receiptd, and values of their own to YAML. */
static void write_choices(struct rcpt_json *json, const struct rcpt_config_row *row)
{
    rcpt_json_begin_object(json);
    rcpt_json_key(json, "enum");
    rcpt_json_begin_array(json);
    for (unsigned index = 0; index < row->choice_count; index++) {
        const char *word = row->choices[index].str;
        rcpt_json_text(json, word);
        if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
            rcpt_json_bool(json, word[0] == 't');
    }
    rcpt_json_end_array(json);
    rcpt_json_end_object(json);
}

static const char *pattern_of(enum rcpt_config_type type)
{
    static const char *const patterns[RCPT_CONFIG_TYPE__COUNT] = {
        [RCPT_CONFIG_IDENTIFIER] = "^[A-Za-z_][A-Za-z0-9_]{0,62}$|" VARIABLE,
        [RCPT_CONFIG_INTEGER] = "^-?[0-9]+$|" VARIABLE,
        [RCPT_CONFIG_SIZE] = "^[0-9]+ *(B|kB|MB|GB|KiB|MiB|GiB)?$|" VARIABLE,
        [RCPT_CONFIG_DURATION] = "^(0+|[0-9]+ *(ms|s|m|h|d))$|" VARIABLE,
        [RCPT_CONFIG_RATIO] = "^[0-9]+(\\.[0-9]+)?$|" VARIABLE,
        [RCPT_CONFIG_CHOICE] = VARIABLE,
    };
    return patterns[type];
}

/* Members "anyOf", or the types of a text. */
static void write_single(struct rcpt_json *json, const struct rcpt_config_row *row)
{
    const char *pattern = pattern_of(row->type);
    if (pattern == NULL) {
        write_scalar_types(json);
        return;
    }
    rcpt_json_key(json, "anyOf");
    rcpt_json_begin_array(json);
    if (row->type == RCPT_CONFIG_CHOICE)
        write_choices(json, row);
    else if (row->type >= RCPT_CONFIG_INTEGER && row->type <= RCPT_CONFIG_RATIO)
        write_number(json, row);
    else
        rcpt_json_raw(json, "{\"type\": \"boolean\"}"); /* true is a name like any other */
    write_pattern(json, pattern);
    rcpt_json_end_array(json);
}

/* Rows from `first` to `end` whose paths have the same beginning of `skip` bytes: members of one
 * mapping. Rows of a group stand side by side. */
static void write_members(struct rcpt_json *json, const struct rcpt_config_table *table,
                          size_t first, size_t end, size_t skip)
{
    rcpt_json_put_text(json, "type", "object");
    rcpt_json_put_bool(json, "additionalProperties", false);
    rcpt_json_key(json, "properties");
    rcpt_json_begin_object(json);
    for (size_t at = first; at < end;) {
        const char *name = rcpt_config_row(table, at)->path + skip;
        size_t size = strcspn(name, "."), next = at + 1;
        char key[64];
        snprintf(key, sizeof(key), "%.*s", (int)size, name);
        rcpt_json_key(json, key);
        rcpt_json_begin_object(json);
        if (name[size] == '\0') {
            write_row(json, rcpt_config_row(table, at));
        } else {
            while (next < end &&
                   strncmp(rcpt_config_row(table, next)->path + skip, name, size + 1) == 0)
                next++;
            write_members(json, table, at, next, skip + size + 1);
        }
        rcpt_json_end_object(json);
        at = next;
    }
    rcpt_json_end_object(json);
}

/* An entry of a list of records, without its first `skipped` fields. */
static void write_record(struct rcpt_json *json, const struct rcpt_config_table *record,
                         size_t skipped)
{
    rcpt_json_begin_object(json);
    write_members(json, record, skipped, rcpt_config_count(record), 0);
    rcpt_json_key(json, "required");
    rcpt_json_begin_array(json);
    for (size_t index = skipped; index < rcpt_config_count(record); index++)
        if (rcpt_config_row(record, index)->flags & RCPT_CONFIG_REQUIRED &&
            strchr(rcpt_config_row(record, index)->path, '.') == NULL)
            rcpt_json_text(json, rcpt_config_row(record, index)->path);
    rcpt_json_end_array(json);
    rcpt_json_end_object(json);
}

/* Members: an entry is a mapping, or also a name (PLAIN). */
static void write_entries(struct rcpt_json *json, const struct rcpt_config_row *row)
{
    rcpt_json_put_text(json, "type", "array");
    rcpt_json_put_int(json, "minItems", row->min);
    rcpt_json_put_int(json, "maxItems", row->max);
    rcpt_json_key(json, "items");
    if (row->flags & RCPT_CONFIG_PLAIN) {
        rcpt_json_begin_object(json);
        rcpt_json_key(json, "anyOf");
        rcpt_json_begin_array(json);
        write_scalar(json);
        write_record(json, row->record, 0);
        rcpt_json_end_array(json);
        rcpt_json_end_object(json);
    } else {
        write_record(json, row->record, 0);
    }
}

/* Records are a list, or one mapping by their first field (NAMED). */
static void write_records(struct rcpt_json *json, const struct rcpt_config_row *row)
{
    if (!(row->flags & RCPT_CONFIG_NAMED)) {
        write_entries(json, row);
        return;
    }
    rcpt_json_key(json, "anyOf");
    rcpt_json_begin_array(json);
    rcpt_json_begin_object(json);
    write_entries(json, row);
    rcpt_json_end_object(json);
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "type", "object");
    rcpt_json_key(json, "additionalProperties");
    write_record(json, row->record, 1);
    rcpt_json_end_object(json);
    rcpt_json_end_array(json);
}

/* A list of texts, or of mappings that have a grammar of their own (pipelines). */
static void write_list(struct rcpt_json *json, const struct rcpt_config_row *row)
{
    rcpt_json_key(json, "type");
    rcpt_json_begin_array(json);
    rcpt_json_text(json, "array");
    if (row->type == RCPT_CONFIG_LIST)
        rcpt_json_text(json, "null");
    rcpt_json_end_array(json);
    rcpt_json_put_int(json, "minItems", row->min);
    rcpt_json_put_int(json, "maxItems", row->max);
    rcpt_json_key(json, "items");
    if (row->type == RCPT_CONFIG_LIST)
        write_scalar(json);
    else
        rcpt_json_raw(json, "{\"type\": \"object\"}");
}

static void write_map(struct rcpt_json *json, const struct rcpt_config_row *row)
{
    rcpt_json_key(json, "type");
    rcpt_json_begin_array(json);
    rcpt_json_text(json, "object");
    rcpt_json_text(json, "null");
    rcpt_json_end_array(json);
    rcpt_json_put_int(json, "maxProperties", row->max);
    rcpt_json_key(json, "additionalProperties");
    write_scalar(json);
}

/* Members of the schema of one key. */
static void write_row(struct rcpt_json *json, const struct rcpt_config_row *row)
{
    rcpt_json_put_text(json, "description", row->doc);
    if (row->flags & RCPT_CONFIG_NULLABLE) {
        rcpt_json_key(json, "oneOf");
        rcpt_json_begin_array(json);
        rcpt_json_raw(json, "{\"type\": \"null\"}");
        rcpt_json_begin_object(json);
    }
    if (row->type == RCPT_CONFIG_RECORDS)
        write_records(json, row);
    else if (row->type == RCPT_CONFIG_LIST || row->type == RCPT_CONFIG_TREE)
        write_list(json, row);
    else if (row->type == RCPT_CONFIG_MAP)
        write_map(json, row);
    else
        write_single(json, row);
    if (row->flags & RCPT_CONFIG_NULLABLE) {
        rcpt_json_end_object(json);
        rcpt_json_end_array(json);
    }
}

void rcpt_config_write_schema(FILE *out)
{
    const struct rcpt_config_table *table = rcpt_config_table();
    struct rcpt_json json;
    rcpt_json_init(&json, out);
    rcpt_json_begin_object(&json);
    rcpt_json_put_text(&json, "$schema", "http://json-schema.org/draft-07/schema#");
    rcpt_json_put_text(&json, "title", "receiptd.yaml");
    write_members(&json, table, 0, rcpt_config_count(table), 0);
    rcpt_json_end_object(&json);
    fputc('\n', out);
}
