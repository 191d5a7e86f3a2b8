/* The check of a file against the table: which keys there are, lists, maps and records, and the
 * normal form of the whole (check.h says why there is one). The order is: collect the nodes of all
 * rows (keys.c), then check and write row by row. The first mistake ends the check, since a later
 * one may be its consequence. Single values are checked by check_value.c. Called by config.c. */
#include "check_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "expand.h"
#include "keys.h"
#include "print.h"
#include "receiptd/config/value.h"
#include "tree.h"

/* Lists and records contain values, which may be lists and records again. */
static bool check_value(struct checker *checker, struct value *value);

static yaml_node_t *node_of(const struct checker *checker, int index)
{
    return yaml_document_get_node(&checker->file->document, index);
}

/* The words for the type of a node, in the order of libyaml's node types. */
static bool fail_type(struct checker *checker, const struct value *value)
{
    static const char *const found[] = {"nothing", "a single value", "a list", "a mapping"};
    char text[256];
    snprintf(text, sizeof(text), "expected %s%s, found %s", rcpt_config_expected(value->row->type),
             value->row->flags & RCPT_CONFIG_PLAIN ? " or names" : "", found[value->node->type]);
    return rcpt_config_fail_value(checker, value, text);
}

/* A key without a value is a mistake: nothing says whether the default or an empty text is
 * meant. */
static bool fail_empty(struct checker *checker, const struct value *value)
{
    rcpt_config_fail_value(checker, value, "has no value");
    if (value->row->example != NULL && value->row->flags & RCPT_CONFIG_REQUIRED)
        rcpt_error_hint(checker->file->error, "for example %s", value->row->example);
    else if (value->row->flags & RCPT_CONFIG_REQUIRED)
        rcpt_error_hint(checker->file->error, "it must be %s",
                        rcpt_config_expected(value->row->type));
    else
        rcpt_error_hint(checker->file->error, "give one, or remove the line to get the default");
    return false;
}

/* ---- lists and maps ---- */

/* For lists, min and max of the row count entries, not bytes. */
static bool check_count(struct checker *checker, const struct value *value, int64_t count)
{
    const struct rcpt_config_row *row = value->row;
    char text[128];
    if (count >= row->min && count <= row->max)
        return true;
    snprintf(text, sizeof(text), "must have %" PRId64 " to %" PRId64 " entries, has %" PRId64,
             row->min, row->max, count);
    return rcpt_config_fail_value(checker, value, text);
}

/* A text among others; the row says whether it is a secret. */
static bool check_entry(struct checker *checker, const struct value *list, yaml_node_t *node)
{
    static const struct rcpt_config_row row = {
        .type = RCPT_CONFIG_TEXT, .min = 1, .max = RCPT_CONFIG_MAX_VALUE};
    struct value entry = {&row, list->label, node, list->secret, NULL};
    if (node->type != YAML_SCALAR_NODE || rcpt_config_is_null(node))
        return rcpt_config_fail_value(checker, &entry, "every entry must be a text");
    return check_value(checker, &entry);
}

/* Every entry is a text of its own; a secret list notes each of them. */
static bool check_list(struct checker *checker, const struct value *value)
{
    const yaml_node_item_t *items = value->node->data.sequence.items.start;
    size_t count = (size_t)(value->node->data.sequence.items.top - items);
    if (!check_count(checker, value, (int64_t)count))
        return false;
    rcpt_config_write_list(&checker->writer, RCPT_CONFIG_BLOCK);
    for (size_t index = 0; index < count; index++)
        if (!check_entry(checker, value, node_of(checker, items[index])))
            return false;
    rcpt_config_write_list_end(&checker->writer);
    return true;
}

/* The place of each property is kept: librdkafka refuses properties later, and its error should say
 * where. */
static bool check_property(struct checker *checker, const struct value *map, const char *name,
                           yaml_node_t *node)
{
    static const struct rcpt_config_row row = {.type = RCPT_CONFIG_TEXT,
                                               .max = RCPT_CONFIG_MAX_VALUE};
    struct rcpt_config_place place = rcpt_config_place_of(node);
    struct rcpt_config_writer *writer = &checker->writer;
    char label[LABEL_BYTES], part[64];
    snprintf(label, sizeof(label), "%s.%s", map->label, rcpt_config_shown(name, part));
    struct value value = {&row, label, node, rcpt_config_is_secret_property(name), NULL};
    if (rcpt_config_is_null(node)) {
        rcpt_config_fail_value(checker, &value, "has no value");
        rcpt_error_hint(checker->file->error, "write \"\" for an empty one");
        return false;
    }
    rcpt_config_write_map(writer, RCPT_CONFIG_BLOCK);
    rcpt_config_write_plain(writer, "name");
    rcpt_config_write_text(writer, name);
    rcpt_config_write_plain(writer, "line");
    rcpt_config_write_number(checker, place.line);
    rcpt_config_write_plain(writer, "column");
    rcpt_config_write_number(checker, place.column);
    rcpt_config_write_plain(writer, "value");
    bool good = check_value(checker, &value);
    rcpt_config_write_map_end(writer);
    return good;
}

/* The document keeps both of two equal keys; without this check the later one would win
 * silently. */
static bool check_property_name(struct checker *checker, const struct value *map,
                                const yaml_node_pair_t *pair)
{
    struct value key = {map->row, map->label, node_of(checker, pair->key), false, NULL};
    char text[128], part[64];
    if (key.node->type != YAML_SCALAR_NODE)
        return rcpt_config_fail_value(checker, &key, "a name must be plain text");
    const char *name = rcpt_config_scalar(key.node);
    if (name[0] == '\0' || strlen(name) > 255)
        return rcpt_config_fail_value(checker, &key, "a name must be 1 to 255 bytes long");
    unsigned line = rcpt_config_first_line(&checker->file->document, map->node, pair);
    if (line == 0)
        return true;
    snprintf(text, sizeof(text), "\"%s\" is given twice", rcpt_config_shown(name, part));
    rcpt_config_fail_value(checker, &key, text);
    rcpt_error_hint(checker->file->error, "it stands at line %u too", line);
    return false;
}

/* The normal form has a list of pairs: libcyaml knows no mapping with free keys. */
static bool check_map(struct checker *checker, const struct value *value)
{
    const yaml_node_pair_t *pairs = value->node->data.mapping.pairs.start;
    size_t count = (size_t)(value->node->data.mapping.pairs.top - pairs);
    if (!check_count(checker, value, (int64_t)count))
        return false;
    rcpt_config_write_list(&checker->writer, RCPT_CONFIG_BLOCK);
    for (size_t index = 0; index < count; index++) {
        if (!check_property_name(checker, value, &pairs[index]))
            return false;
        const char *name = rcpt_config_scalar(node_of(checker, pairs[index].key));
        if (!check_property(checker, value, name, node_of(checker, pairs[index].value)))
            return false;
    }
    rcpt_config_write_list_end(&checker->writer);
    return true;
}

/* ---- rows ---- */

/* [A,B]: names alone. */
static void write_default_texts(struct checker *checker, const char *initial)
{
    char name[64];
    for (size_t size; *initial != '\0'; initial += size + 1) {
        size = strcspn(initial, "[],{}");
        snprintf(name, sizeof(name), "%.*s", (int)size, initial);
        if (size > 0)
            rcpt_config_write_text(&checker->writer, name);
    }
}

/* Defaults stand in the table as one would write them, and go through the same parser. */
static void write_default(struct checker *checker, const struct rcpt_config_row *row)
{
    int64_t number = 0;
    if (row->type == RCPT_CONFIG_MAP || row->type == RCPT_CONFIG_LIST ||
        row->type == RCPT_CONFIG_RECORDS) {
        rcpt_config_write_list(&checker->writer, RCPT_CONFIG_BLOCK);
        write_default_texts(checker, row->initial);
        rcpt_config_write_list_end(&checker->writer);
    } else if (row->type == RCPT_CONFIG_CHOICE || row->type <= RCPT_CONFIG_TABLE) {
        rcpt_config_write_text(&checker->writer, row->initial);
    } else {
        RCPT_ASSERT(rcpt_config_parse_number(row->type, row->initial, &number));
        rcpt_config_write_number(checker, number);
    }
}

/* An explicit null means "not set" where that is a state of the key. For other keys it is a
 * mistake: fail_empty() says so. */
static bool is_unset(const struct rcpt_config_row *row, const yaml_node_t *node)
{
    if (node == NULL)
        return true;
    bool nullable = row->flags & RCPT_CONFIG_NULLABLE || row->type == RCPT_CONFIG_MAP ||
                    row->type == RCPT_CONFIG_LIST;
    return nullable && rcpt_config_is_null(node);
}

/* Required rows may be missing here when a partial configuration is loaded; keys.c has complained
 * otherwise. */
static bool check_row(struct checker *checker, const struct rcpt_config_row *row, const char *label,
                      yaml_node_t *node)
{
    struct value value = {row, label, node, (row->flags & RCPT_CONFIG_SECRET) != 0, NULL};
    bool unset = is_unset(row, node);
    const char *given = row->environment != NULL ? getenv(row->environment) : NULL;
    if (unset && given != NULL && given[0] != '\0') {
        rcpt_config_write_plain(&checker->writer, row->path);
        rcpt_config_write_text(&checker->writer, given);
        return true;
    }
    if (unset && row->flags & (RCPT_CONFIG_NULLABLE | RCPT_CONFIG_REQUIRED))
        return true;
    rcpt_config_write_plain(&checker->writer, row->path);
    if (!unset)
        return check_value(checker, &value);
    write_default(checker, row);
    return true;
}

/* Says which fields it must have; the first `skipped` of them come from elsewhere. */
static bool fail_record(struct checker *checker, const struct value *record, size_t skipped)
{
    const struct rcpt_config_table *fields = record->row->record;
    char text[256] = "must be a mapping with";
    size_t used = strlen(text);
    const char *separator = " ";
    for (size_t index = skipped; index < rcpt_config_count(fields) && used < sizeof(text);
         index++) {
        if ((rcpt_config_row(fields, index)->flags & RCPT_CONFIG_REQUIRED) == 0)
            continue;
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", separator,
                                 rcpt_config_row(fields, index)->path);
        separator = ", ";
    }
    return rcpt_config_fail_value(checker, record, text);
}

/* Records have tables of their own; their fields are checked like keys of the file. */
static bool check_record(struct checker *checker, const struct value *list, size_t number,
                         yaml_node_t *name, yaml_node_t *node)
{
    const struct rcpt_config_table *fields = list->row->record;
    yaml_node_t *nodes[RCPT_CONFIG_MAX_ROWS] = {NULL};
    char label[LABEL_BYTES], field[LABEL_BYTES + 64], part[64];
    if (name != NULL)
        snprintf(label, sizeof(label), "%s.%s", list->label,
                 rcpt_config_shown(rcpt_config_scalar(name), part));
    else
        snprintf(label, sizeof(label), "%s[%zu]", list->label, number);
    struct value record = {list->row, label, node, false, NULL};
    bool is_plain = list->row->flags & RCPT_CONFIG_PLAIN && node->type == YAML_SCALAR_NODE;
    if (node->type != YAML_MAPPING_NODE && !is_plain)
        return fail_record(checker, &record, name != NULL);
    struct rcpt_config_keys keys = {
        checker->file->name, &checker->file->document, fields, label, nodes, false};
    nodes[0] = is_plain ? node : name;
    if (!is_plain && !rcpt_config_collect(&keys, node, checker->file->error))
        return false;
    rcpt_config_write_map(&checker->writer, RCPT_CONFIG_BLOCK);
    for (size_t index = 0; index < rcpt_config_count(fields); index++) {
        snprintf(field, sizeof(field), "%s.%s", label, rcpt_config_row(fields, index)->path);
        if (!check_row(checker, rcpt_config_row(fields, index), field, nodes[index]))
            return false;
    }
    rcpt_config_write_map_end(&checker->writer);
    return true;
}

/* `collect` may be a mapping from names to the rest: the name becomes the record's first field. */
static bool check_named_records(struct checker *checker, const struct value *value)
{
    const yaml_node_pair_t *pairs = value->node->data.mapping.pairs.start;
    size_t count = (size_t)(value->node->data.mapping.pairs.top - pairs);
    if (!check_count(checker, value, (int64_t)count))
        return false;
    rcpt_config_write_list(&checker->writer, RCPT_CONFIG_BLOCK);
    for (size_t index = 0; index < count; index++)
        if (!check_property_name(checker, value, &pairs[index]) ||
            !check_record(checker, value, index, node_of(checker, pairs[index].key),
                          node_of(checker, pairs[index].value)))
            return false;
    rcpt_config_write_list_end(&checker->writer);
    return true;
}

/* Records come as a list of mappings, or, where the row is NAMED, as one mapping. */
static bool check_records(struct checker *checker, const struct value *value)
{
    if (value->node->type == YAML_MAPPING_NODE)
        return check_named_records(checker, value);
    const yaml_node_item_t *items = value->node->data.sequence.items.start;
    size_t count = (size_t)(value->node->data.sequence.items.top - items);
    if (!check_count(checker, value, (int64_t)count))
        return false;
    rcpt_config_write_list(&checker->writer, RCPT_CONFIG_BLOCK);
    for (size_t index = 0; index < count; index++)
        if (!check_record(checker, value, index, NULL, node_of(checker, items[index])))
            return false;
    rcpt_config_write_list_end(&checker->writer);
    return true;
}

/* The grammar of a tree needs the ladder and the endpoints, so pipelines.c checks it after the
 * rest. Here the node becomes text, which the configuration keeps for comparing and printing. */
static bool check_tree(struct checker *checker, const struct value *value)
{
    const yaml_node_item_t *items = value->node->data.sequence.items.start;
    if (!check_count(checker, value, value->node->data.sequence.items.top - items))
        return false;
    char *text = rcpt_config_tree_text(&checker->file->document, value->node);
    rcpt_config_write_text(&checker->writer, text);
    free(text);
    return true;
}

/* The type of the node first, then the value: an error about the type is easier to understand. */
static bool check_value(struct checker *checker, struct value *value)
{
    yaml_node_type_t expected = YAML_SCALAR_NODE;
    if (value->row->type == RCPT_CONFIG_LIST || value->row->type == RCPT_CONFIG_RECORDS ||
        value->row->type == RCPT_CONFIG_TREE)
        expected = YAML_SEQUENCE_NODE;
    else if (value->row->type == RCPT_CONFIG_MAP)
        expected = YAML_MAPPING_NODE;
    if (rcpt_config_is_null(value->node))
        return fail_empty(checker, value);
    if (value->row->type == RCPT_CONFIG_RECORDS && value->row->flags & RCPT_CONFIG_NAMED &&
        value->node->type == YAML_MAPPING_NODE)
        expected = YAML_MAPPING_NODE;
    if (value->node->type != expected)
        return fail_type(checker, value);
    switch (value->row->type) {
    case RCPT_CONFIG_LIST:
        return check_list(checker, value);
    case RCPT_CONFIG_MAP:
        return check_map(checker, value);
    case RCPT_CONFIG_RECORDS:
        return check_records(checker, value);
    case RCPT_CONFIG_TREE:
        return check_tree(checker, value);
    default:
        return rcpt_config_check_scalar(checker, value);
    }
}

/* ---- the whole ---- */

/* A ladder in the file replaces the default one as a whole: a list that the file leaves out is
 * empty then, and not the default list. */
static bool check_ladder(struct checker *checker, const struct rcpt_config_row *row,
                         yaml_node_t *node, bool given)
{
    struct rcpt_config defaults = {.ladder_definition = {0}};
    if (node != NULL)
        return check_row(checker, row, row->path, node);
    if (!given)
        defaults.ladder_definition = *rcpt_ladder_default_definition();
    rcpt_config_write_plain(&checker->writer, row->path);
    rcpt_config_write_records(&checker->writer, row, &defaults);
    return true;
}

/* One of the three lists is enough. */
static bool is_ladder_given(yaml_node_t *const *nodes)
{
    const struct rcpt_config_table *table = rcpt_config_table();
    for (size_t index = 0; index < rcpt_config_count(table); index++)
        if (rcpt_config_is_ladder(rcpt_config_row(table, index)) && nodes[index] != NULL)
            return true;
    return false;
}

/* Rows are written in the table's order, so that the normal form of two equal files is equal. */
static bool check_rows(struct checker *checker)
{
    yaml_node_t *const *nodes = checker->file->nodes;
    const struct rcpt_config_table *table = rcpt_config_table();
    bool ladder_given = is_ladder_given(nodes);
    rcpt_config_write_map(&checker->writer, RCPT_CONFIG_BLOCK);
    for (size_t index = 0; index < rcpt_config_count(table); index++) {
        const struct rcpt_config_row *row = rcpt_config_row(table, index);
        if (!(rcpt_config_is_ladder(row) ? check_ladder(checker, row, nodes[index], ladder_given)
                                         : check_row(checker, row, row->path, nodes[index])))
            return false;
    }
    rcpt_config_write_map_end(&checker->writer);
    return true;
}

/* An error of the ladder often concerns two of its lists, so it gets the place of the key `ladder`
 * above all three. */
struct rcpt_config_place rcpt_config_place_of_key(struct rcpt_config_file *file, const char *path)
{
    int row = rcpt_config_find(rcpt_config_table(), path);
    yaml_node_t *root = yaml_document_get_root_node(&file->document);
    if (file->nodes[row] == NULL)
        return (struct rcpt_config_place){0};
    if (!rcpt_config_is_ladder(rcpt_config_row(rcpt_config_table(), (size_t)row)))
        return rcpt_config_place_of(file->nodes[row]);
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;; pair++) {
        const yaml_node_t *key = yaml_document_get_node(&file->document, pair->key);
        if (strcmp(rcpt_config_scalar(key), "ladder") == 0)
            return rcpt_config_place_of(key);
    }
}

/* The writer may fail only when memory or disk is full; `normal` is memory, so a failure is a
 * bug. */
bool rcpt_config_check(struct rcpt_config_file *file, FILE *normal)
{
    struct rcpt_config_keys keys = {file->name, &file->document, rcpt_config_table(),
                                    "",         file->nodes,     file->partial};
    struct checker checker = {.file = file};
    if (!rcpt_config_collect(&keys, yaml_document_get_root_node(&file->document), file->error))
        return false;
    rcpt_config_writer_init(&checker.writer, normal);
    bool good = check_rows(&checker);
    rcpt_config_writer_fini(&checker.writer);
    RCPT_ASSERT(!good || !checker.writer.failed);
    return good;
}
