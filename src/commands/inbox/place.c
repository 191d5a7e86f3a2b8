/* Where the inbox is and what its columns are (place.h). Called by the commands that look at
 * the inbox, and by migrate/variables.c. */
#include "place.h"

#include <stdio.h>
#include <string.h>

#include "receiptd/base/json.h"

/* A mapped table is where the configuration says; our own is in the schema, under its columns'
 * names. */
void inbox_place_of(const struct rcpt_config *config, struct inbox_place *place)
{
    const char *const ours[] = {
#define COLUMN(column, ...) #column,
        RCPT_INBOX_COLUMNS(COLUMN)
#undef COLUMN
    };
    const char *const theirs[] = {
#define COLUMN(column, ...) config->inbox.column,
        RCPT_INBOX_COLUMNS(COLUMN)
#undef COLUMN
    };
    const char *table = config->inbox.table, *dot = table != NULL ? strchr(table, '.') : NULL;
    place->mapped = table != NULL;
    snprintf(place->schema, sizeof(place->schema), "%.*s", dot != NULL ? (int)(dot - table) : 127,
             dot != NULL ? table : config->postgres.schema);
    place->table = dot != NULL ? dot + 1 : table != NULL ? table : "message_inbox";
    memcpy(place->columns, place->mapped ? theirs : ours, sizeof(place->columns));
    place->created_at = place->mapped ? config->inbox.created_at : "created_at";
    if (place->created_at == NULL)
        place->created_at = "";
}

/* NULL: the table has none. */
static const char *theirs(const struct inbox_place *place, const struct rcpt_inbox_column *column,
                          size_t index)
{
    if (index < INBOX_COLUMNS)
        return place->columns[index];
    if (column->filler != RCPT_INBOX_POSTGRES)
        return column->name;
    return *place->created_at != '\0' ? place->created_at : NULL;
}

static bool is_wanted(const struct rcpt_config *config, const struct rcpt_inbox_column *column)
{
    return *column->feature == '\0' || config->counters.times;
}

static void write_column(struct rcpt_json *json, const struct rcpt_config *config,
                         const struct rcpt_inbox_column *column, const char *name, size_t index)
{
    char definition[64];
    snprintf(definition, sizeof(definition), "%s%s%s", column->type,
             *column->constraint != '\0' ? " " : "", column->constraint);
    rcpt_json_begin_object(json);
    rcpt_json_put_int(json, "n", (int64_t)index + 1);
    rcpt_json_put_text(json, "ours", column->name);
    rcpt_json_put_text(json, "theirs", name);
    rcpt_json_put_text(json, "type", column->type);
    rcpt_json_put_text(json, "definition", definition);
    rcpt_json_put_text(json, "filler", rcpt_inbox_filler_name(column->filler));
    rcpt_json_put_text(json, "feature", column->feature);
    rcpt_json_put_bool(json, "wanted", name != NULL && is_wanted(config, column));
    rcpt_json_put_bool(json, "named",
                       index < INBOX_COLUMNS && (config->inbox.named >> index & 1u) != 0);
    rcpt_json_end_object(json);
}

char *inbox_columns_json(const struct rcpt_config *config)
{
    char *text = NULL;
    size_t size, count;
    struct rcpt_json json;
    struct inbox_place place;
    const struct rcpt_inbox_column *columns = rcpt_inbox_columns(&count);
    FILE *out = rcpt_open_memory(&text, &size);
    inbox_place_of(config, &place);
    rcpt_json_init(&json, out);
    rcpt_json_begin_array(&json);
    for (size_t index = 0; index < count; index++)
        write_column(&json, config, &columns[index], theirs(&place, &columns[index], index), index);
    rcpt_json_end_array(&json);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

char *inbox_columns_definitions(void)
{
    char *text = NULL;
    size_t size, count;
    const struct rcpt_inbox_column *columns = rcpt_inbox_columns(&count);
    FILE *out = rcpt_open_memory(&text, &size);
    for (size_t index = 0; index < count; index++)
        fprintf(out, "%s%s %s%s%s", index > 0 ? ",\n    " : "", columns[index].name,
                columns[index].type, *columns[index].constraint != '\0' ? " " : "",
                columns[index].constraint);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

char *inbox_columns_filled_by(const struct rcpt_config *config, enum rcpt_inbox_filler filler)
{
    char *text = NULL;
    size_t size, count;
    const struct rcpt_inbox_column *columns = rcpt_inbox_columns(&count);
    FILE *out = rcpt_open_memory(&text, &size);
    const char *before = "";
    for (size_t index = 0; index < count; index++) {
        if (columns[index].filler != filler || !is_wanted(config, &columns[index]))
            continue;
        fprintf(out, "%s%s", before, columns[index].name);
        before = ", ";
    }
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}
