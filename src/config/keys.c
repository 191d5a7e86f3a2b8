/* The keys of one mapping against one table: unknown keys, keys given twice, missing keys. Used for
 * the whole file and for each record of a list. Fills an array with the node of each row; the
 * values are checked elsewhere. Called by check.c. */
#include "keys.h"

#include <string.h>

#include "receiptd/base/text.h"
#include "receiptd/config/value.h"

#define PATH_BYTES 128

static const char *dot(const char *path)
{
    return path[0] == '\0' ? "" : ".";
}

/* Name of the row's ancestor, or of the row itself, that stands directly in the section; false: not
 * in it. */
static bool name_in_section(const char *path, const char *section, char name[PATH_BYTES])
{
    size_t size = strlen(section);
    if (size > 0 && (strncmp(path, section, size) != 0 || path[size] != '.'))
        return false;
    const char *rest = path + size + (size > 0);
    snprintf(name, PATH_BYTES, "%.*s", (int)strcspn(rest, "."), rest);
    return true;
}

/* Candidates are the names that may stand in this section: keys, and sections below it. */
static bool find_nearest(const struct rcpt_config_table *table, const char *section,
                         const char *key, char best[PATH_BYTES])
{
    char name[PATH_BYTES];
    best[0] = '\0';
    for (size_t index = 0; index < rcpt_config_count(table); index++) {
        if (!name_in_section(rcpt_config_row(table, index)->path, section, name))
            continue;
        if (rcpt_text_nearer(key, best[0] != '\0' ? best : NULL, name) == name)
            memcpy(best, name, PATH_BYTES);
    }
    return best[0] != '\0';
}

/* A row of that name in another section. */
static const char *find_elsewhere(const struct rcpt_config_table *table, const char *key)
{
    for (size_t index = 0; index < rcpt_config_count(table); index++) {
        const char *last = strrchr(rcpt_config_row(table, index)->path, '.');
        if (last != NULL && strcmp(last + 1, key) == 0)
            return rcpt_config_row(table, index)->path;
    }
    return NULL;
}

/* Hints by likelihood: a typing error, the right name in the wrong section, a dotted path instead
 * of indentation. */
static bool fail_unknown(const struct rcpt_config_keys *keys, const char *section,
                         const yaml_node_t *key, struct rcpt_error *error)
{
    const char *name = rcpt_config_scalar(key), *elsewhere;
    char best[PATH_BYTES], part[64];
    rcpt_config_error(error, keys->name, rcpt_config_place_of(key), "%s%s%s%s%s: unknown key",
                      keys->label, dot(keys->label), section, dot(section),
                      rcpt_config_shown(name, part));
    if (keys->table == &rcpt_config_topic_record && section[0] == '\0' &&
        rcpt_config_find(&rcpt_config_account_record, name) >= 0)
        rcpt_error_hint(error, "that is a key of intake.accounts, about requests; who may write to "
                               "a topic is decided by Kafka (ACLs)");
    else if (find_nearest(keys->table, section, name, best))
        rcpt_error_hint(error, "did you mean \"%s\"?", best);
    else if ((elsewhere = find_elsewhere(keys->table, name)) != NULL)
        rcpt_error_hint(error, "did you mean %s? keys stand indented below their section",
                        elsewhere);
    else if (rcpt_config_find(keys->table, name) >= 0)
        rcpt_error_hint(error,
                        "keys stand indented below their section: not a.b: c, but a: {b: c}");
    else
        rcpt_error_hint(error, "docs/configuration.md lists all keys");
    return false;
}

/* Both places help: the error points to the second one, the hint to the first. 0: the key is
 * new. */
unsigned rcpt_config_first_line(yaml_document_t *document, const yaml_node_t *mapping,
                                const yaml_node_pair_t *pair)
{
    const char *name = rcpt_config_scalar(yaml_document_get_node(document, pair->key));
    for (const yaml_node_pair_t *other = mapping->data.mapping.pairs.start; other < pair; other++) {
        const yaml_node_t *key = yaml_document_get_node(document, other->key);
        if (strcmp(rcpt_config_scalar(key), name) == 0)
            return rcpt_config_place_of(key).line;
    }
    return 0;
}

/* Sections nest: inbox.columns.status is two deep. */
static bool collect_section(const struct rcpt_config_keys *keys, yaml_node_t *mapping,
                            const char *section, struct rcpt_error *error);

/* A key is a row, or the section of some rows; a dot in a key would make a path ambiguous, so it is
 * unknown. */
static bool collect_pair(const struct rcpt_config_keys *keys, yaml_node_t *mapping,
                         const yaml_node_pair_t *pair, const char *section,
                         struct rcpt_error *error)
{
    const yaml_node_t *key = yaml_document_get_node(keys->document, pair->key);
    struct rcpt_config_place place = rcpt_config_place_of(key);
    char path[PATH_BYTES];
    if (key->type != YAML_SCALAR_NODE)
        return rcpt_config_error(error, keys->name, place, "%s: a key must be plain text",
                                 section[0] != '\0' ? section : "configuration");
    const char *name = rcpt_config_scalar(key);
    int size = snprintf(path, sizeof(path), "%s%s%s", section, dot(section), name);
    bool known = size < PATH_BYTES && name[0] != '\0' && strchr(name, '.') == NULL;
    int index = known ? rcpt_config_find(keys->table, path) : -1;
    if (!known || (index < 0 && !rcpt_config_is_section(keys->table, path)))
        return fail_unknown(keys, section, key, error);
    unsigned line = rcpt_config_first_line(keys->document, mapping, pair);
    if (line > 0) {
        rcpt_config_error(error, keys->name, place, "%s%s%s: is given twice", keys->label,
                          dot(keys->label), path);
        rcpt_error_hint(error, "it stands at line %u too", line);
        return false;
    }
    yaml_node_t *value = yaml_document_get_node(keys->document, pair->value);
    if (index < 0)
        return collect_section(keys, value, path, error);
    keys->nodes[index] = value;
    return true;
}

/* A section without keys ("kafka:" with all lines below commented out) is empty and no mistake. */
static bool collect_section(const struct rcpt_config_keys *keys, yaml_node_t *mapping,
                            const char *section, struct rcpt_error *error)
{
    if (mapping == NULL || rcpt_config_is_null(mapping))
        return true;
    if (mapping->type != YAML_MAPPING_NODE)
        return rcpt_config_error(error, keys->name, rcpt_config_place_of(mapping),
                                 "%s: expected keys with values, found %s",
                                 section[0] != '\0' ? section : "configuration",
                                 mapping->type == YAML_SEQUENCE_NODE ? "a list" : "a single value");
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
         pair < mapping->data.mapping.pairs.top; pair++)
        if (!collect_pair(keys, mapping, pair, section, error))
            return false;
    return true;
}

/* One error names all missing keys; the hint shows an example of the first. */
static bool check_missing(const struct rcpt_config_keys *keys, const yaml_node_t *mapping,
                          struct rcpt_error *error)
{
    const struct rcpt_config_row *first = NULL;
    char missing[256] = "";
    for (size_t index = 0; index < rcpt_config_count(keys->table); index++) {
        const struct rcpt_config_row *row = rcpt_config_row(keys->table, index);
        if (!(row->flags & RCPT_CONFIG_REQUIRED) || keys->nodes[index] != NULL)
            continue;
        size_t used = strlen(missing);
        snprintf(missing + used, sizeof(missing) - used, "%s %s%s%s", used > 0 ? "," : "",
                 keys->label, dot(keys->label), row->path);
        first = first != NULL ? first : row;
    }
    if (first == NULL)
        return true;
    struct rcpt_config_place place = {1, 1};
    if (mapping != NULL)
        place = rcpt_config_place_of(mapping);
    rcpt_config_error(error, keys->name, place, "missing required key%s%s",
                      strchr(missing, ',') != NULL ? "s" : "", missing);
    if (first->example != NULL)
        rcpt_error_hint(error, "for example %s: %s", first->path, first->example);
    else
        rcpt_error_hint(error, "%s: %s", first->path, first->doc);
    return false;
}

/* Missing keys are searched last: a mistyped required key should be reported as unknown, with the
 * right name as hint, and not as missing. */
bool rcpt_config_collect(const struct rcpt_config_keys *keys, yaml_node_t *mapping,
                         struct rcpt_error *error)
{
    return collect_section(keys, mapping, "", error) &&
           (keys->partial || check_missing(keys, mapping, error));
}
