/* The keys of a mapping against a table: unknown, given twice, missing. */
#ifndef RECEIPTD_CONFIG_KEYS_H
#define RECEIPTD_CONFIG_KEYS_H

#include "table.h"
#include "yaml.h"

struct rcpt_config_keys {
    const char *name; /* of the file */
    yaml_document_t *document;
    const struct rcpt_config_table *table;
    const char *label;   /* what the mapping is: "" or "ladder.statuses[3]" */
    yaml_node_t **nodes; /* out: value of each row, NULL where it is not given */
    bool partial;        /* required keys may be missing */
};

/* Walks the mapping (NULL or null: an empty one) and its sections. Errors name the key and, if one
 * is near, the name that was probably meant. */
RCPT_MUST_CHECK bool rcpt_config_collect(const struct rcpt_config_keys *keys, yaml_node_t *mapping,
                                         struct rcpt_error *error);

/* Line of an earlier pair with the same key; 0: there is none. The keys are scalars. */
unsigned rcpt_config_first_line(yaml_document_t *document, const yaml_node_t *mapping,
                                const yaml_node_pair_t *pair);

#endif
