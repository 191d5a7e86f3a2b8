/* libcyaml's side of loading: its schema is built from the table, so that a key is declared once.
 * The normal form (check.h) goes in, struct rcpt_config comes out; freeing walks the same schema.
 * Called by config.c. */
#include "schema.h"

#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "yaml.h"

/* Both are asserted while the schema is built; raise them when a table outgrows them. */
#define MAX_RECORDS 20u
#define MAX_FIELDS  48

/* libcyaml's view of the table. Points into itself: build it where it stays. */
struct schema {
    cyaml_schema_value_t top;
    cyaml_schema_field_t fields[RCPT_CONFIG_MAX_ROWS + 1];
    cyaml_schema_value_t text; /* entry of a list of texts */
    struct {
        cyaml_schema_value_t value;
        cyaml_schema_field_t fields[MAX_FIELDS + 1];
    } records[MAX_RECORDS];
    size_t record_count;
};

/* libcyaml's allocator; like ours elsewhere it aborts when memory is out. */
static void *allocate(void *context, void *pointer, size_t size)
{
    (void)context;
    if (size > 0)
        return rcpt_realloc(pointer, size);
    free(pointer);
    return NULL;
}

static const cyaml_config_t settings = {
    .mem_fn = allocate,
    .log_level = CYAML_LOG_ERROR,
    .flags = CYAML_CFG_NO_ALIAS,
};

/* Length and contents have been checked by now, so the schema bounds nothing. */
static cyaml_schema_value_t text_value(void)
{
    return (cyaml_schema_value_t){
        .type = CYAML_STRING,
        .flags = CYAML_FLAG_POINTER,
        .data_size = sizeof(char *),
        .string = {.min = 0, .max = CYAML_UNLIMITED},
    };
}

static cyaml_schema_value_t number_value(const struct rcpt_config_row *row)
{
    /* Signed for all members: no value is negative, and unsigned members of four bytes hold no more
     * than INT32_MAX here. */
    return (cyaml_schema_value_t){.type = CYAML_INT, .data_size = (uint32_t)row->size};
}

/* Strict: a name that the table does not have is an error, though check.c has refused it before. */
static cyaml_schema_value_t choice_value(const struct rcpt_config_row *row)
{
    return (cyaml_schema_value_t){
        .type = CYAML_ENUM,
        .flags = CYAML_FLAG_STRICT,
        .data_size = (uint32_t)row->size,
        .enumeration = {.strings = row->choices, .count = row->choice_count},
    };
}

static cyaml_schema_value_t list_value(const cyaml_schema_value_t *entry, size_t entry_size)
{
    return (cyaml_schema_value_t){
        .type = CYAML_SEQUENCE,
        .flags = CYAML_FLAG_POINTER,
        .data_size = (uint32_t)entry_size,
        .sequence = {.entry = entry, .min = 0, .max = CYAML_UNLIMITED},
    };
}

static void build_fields(struct schema *schema, const struct rcpt_config_table *table,
                         cyaml_schema_field_t *fields);

/* Each list of records needs a schema of its own, which must stay where it is while libcyaml points
 * at it. */
static cyaml_schema_value_t records_value(struct schema *schema, const struct rcpt_config_row *row)
{
    RCPT_ASSERT(schema->record_count < MAX_RECORDS && rcpt_config_count(row->record) <= MAX_FIELDS);
    size_t index = schema->record_count++;
    cyaml_schema_value_t *entry = &schema->records[index].value;
    *entry = (cyaml_schema_value_t){
        .type = CYAML_MAPPING,
        .data_size = (uint32_t)row->record->record_size,
        .mapping = {.fields = schema->records[index].fields},
    };
    build_fields(schema, row->record, schema->records[index].fields);
    return list_value(entry, row->record->record_size);
}

static cyaml_schema_value_t value_of(struct schema *schema, const struct rcpt_config_row *row)
{
    switch (row->type) {
    case RCPT_CONFIG_TEXT:
    case RCPT_CONFIG_IDENTIFIER:
    case RCPT_CONFIG_TREE:
    case RCPT_CONFIG_TOPIC:
    case RCPT_CONFIG_TABLE:
        return text_value();
    case RCPT_CONFIG_LIST:
        return list_value(&schema->text, sizeof(char *));
    case RCPT_CONFIG_CHOICE:
        return choice_value(row);
    case RCPT_CONFIG_MAP:
    case RCPT_CONFIG_RECORDS:
        return records_value(schema, row);
    default:
        return number_value(row);
    }
}

/* Keys without a default may be missing from the normal form: their members stay NULL, 0 or
 * false. */
static void build_fields(struct schema *schema, const struct rcpt_config_table *table,
                         cyaml_schema_field_t *fields)
{
    for (size_t index = 0; index < rcpt_config_count(table); index++) {
        const struct rcpt_config_row *row = rcpt_config_row(table, index);
        fields[index] = (cyaml_schema_field_t){
            .key = row->path,
            .data_offset = (uint32_t)row->offset,
            .count_offset = (uint32_t)row->count_offset,
            .count_size = (uint8_t)row->count_size,
            .value = value_of(schema, row),
        };
        if (row->flags & (RCPT_CONFIG_NULLABLE | RCPT_CONFIG_REQUIRED))
            fields[index].value.flags |= CYAML_FLAG_OPTIONAL;
    }
}

/* Takes some 80 KiB of the caller's stack. A schema is needed for loading and for freeing only. */
static void build(struct schema *schema)
{
    const struct rcpt_config_table *table = rcpt_config_table();
    memset(schema, 0, sizeof(*schema));
    schema->text = text_value();
    schema->top = (cyaml_schema_value_t){
        .type = CYAML_MAPPING,
        .flags = CYAML_FLAG_POINTER,
        .data_size = (uint32_t)table->record_size,
        .mapping = {.fields = schema->fields},
    };
    build_fields(schema, table, schema->fields);
}

/* The check has passed, so an error here is a bug of ours, or memory; it has no line. */
struct rcpt_config *rcpt_config_load_normal(const char *name, const char *normal, size_t size,
                                            struct rcpt_error *error)
{
    struct schema schema;
    cyaml_data_t *config = NULL;
    build(&schema);
    cyaml_err_t result =
        cyaml_load_data((const uint8_t *)normal, size, &settings, &schema.top, &config, NULL);
    if (result == CYAML_OK)
        return config;
    rcpt_config_error(error, name, (struct rcpt_config_place){0}, "libcyaml cannot load it: %s",
                      cyaml_strerror(result));
    return NULL;
}

/* libcyaml frees what it has allocated by walking the same schema. Values that a reload exchanged
 * are of the same types, so they are freed here too. */
void rcpt_config_free_loaded(struct rcpt_config *config)
{
    struct schema schema;
    build(&schema);
    cyaml_free(&settings, &schema.top, config, 0);
}
