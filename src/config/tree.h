/* A part of the file that has a grammar of its own (pipelines): kept as JSON, which is YAML too.
 *
 * Every scalar becomes a string, so that the text means the same when it is read again. */
#ifndef RECEIPTD_CONFIG_TREE_H
#define RECEIPTD_CONFIG_TREE_H

#include "yaml.h"

/* The caller frees it. */
char *rcpt_config_tree_text(yaml_document_t *document, yaml_node_t *node);
/* The same as YAML. */
void rcpt_config_tree_write(struct rcpt_config_writer *writer, const char *text);

#endif
