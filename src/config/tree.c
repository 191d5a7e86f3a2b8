/* Parts of the file with a grammar of their own (`pipelines`), as text: JSON, in which the
 * configuration keeps them for comparing and printing. Called by check.c and print.c. */
#include "tree.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/base/json.h"

/* Scalars become strings whatever they look like; `null` stays null, which pipelines take for a key
 * that is not there. */
static void write_json(struct rcpt_json *json, yaml_document_t *document, yaml_node_t *node)
{
    if (node->type == YAML_SEQUENCE_NODE) {
        rcpt_json_begin_array(json);
        for (const yaml_node_item_t *item = node->data.sequence.items.start;
             item < node->data.sequence.items.top; item++)
            write_json(json, document, yaml_document_get_node(document, *item));
        rcpt_json_end_array(json);
    } else if (node->type == YAML_MAPPING_NODE) {
        rcpt_json_begin_object(json);
        for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
             pair < node->data.mapping.pairs.top; pair++) {
            yaml_node_t *key = yaml_document_get_node(document, pair->key);
            rcpt_json_key(json, key->type == YAML_SCALAR_NODE ? rcpt_config_scalar(key) : "");
            write_json(json, document, yaml_document_get_node(document, pair->value));
        }
        rcpt_json_end_object(json);
    } else if (rcpt_config_is_null(node)) {
        rcpt_json_null(json);
    } else {
        rcpt_json_text(json, rcpt_config_scalar(node));
    }
}

/* The caller frees the text. */
char *rcpt_config_tree_text(yaml_document_t *document, yaml_node_t *node)
{
    char *text = NULL;
    size_t size = 0;
    struct rcpt_json json;
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    write_json(&json, document, node);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

/* The way back for `check-config --print`: the JSON is read as YAML and written in block style. */
static void write_node(struct rcpt_config_writer *writer, yaml_document_t *document,
                       yaml_node_t *node)
{
    if (node->type == YAML_SEQUENCE_NODE) {
        rcpt_config_write_list(writer, RCPT_CONFIG_BLOCK);
        for (const yaml_node_item_t *item = node->data.sequence.items.start;
             item < node->data.sequence.items.top; item++)
            write_node(writer, document, yaml_document_get_node(document, *item));
        rcpt_config_write_list_end(writer);
    } else if (node->type == YAML_MAPPING_NODE) {
        rcpt_config_write_map(writer, RCPT_CONFIG_BLOCK);
        for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
             pair < node->data.mapping.pairs.top; pair++) {
            rcpt_config_write_text(writer,
                                   rcpt_config_scalar(yaml_document_get_node(document, pair->key)));
            write_node(writer, document, yaml_document_get_node(document, pair->value));
        }
        rcpt_config_write_map_end(writer);
    } else if (rcpt_config_is_null(node)) {
        rcpt_config_write_plain(writer, "null");
    } else {
        rcpt_config_write_text(writer, rcpt_config_scalar(node));
    }
}

/* Our own JSON is always valid YAML, so an error here is a bug. */
void rcpt_config_tree_write(struct rcpt_config_writer *writer, const char *text)
{
    yaml_document_t document;
    struct rcpt_error error;
    RCPT_ASSERT(rcpt_config_read_yaml("pipelines", text, strlen(text), &document, &error));
    write_node(writer, &document, yaml_document_get_root_node(&document));
    yaml_document_delete(&document);
}
