/* The check of a file against the table, with line and column, and its normal form.
 *
 * libcyaml 1.3.1 loads structs well but knows no units, ranges, defaults or maps with free keys,
 * and takes 010 for 8 and 30s for 30. So the file is checked here, and libcyaml gets the normal
 * form: one flat mapping of every key of the table by its path. Defaults are filled in, numbers are
 * in base units, maps are lists of pairs.
 */
#ifndef RECEIPTD_CONFIG_CHECK_H
#define RECEIPTD_CONFIG_CHECK_H

#include "table.h"
#include "yaml.h"

/* A file on its way through the checks. */
struct rcpt_config_file {
    const char *name; /* for errors and relative paths */
    yaml_document_t document;
    yaml_node_t *nodes[RCPT_CONFIG_MAX_ROWS]; /* value of each row, NULL where it is not given */
    bool partial;                             /* required keys of the table may be missing */
    struct rcpt_secret_notes secret_notes;
    struct rcpt_config_sources sources;
    struct rcpt_error *error;
};

/* Where the value of a key of the table stands; for ladder.* where the key `ladder` does. Line 0:
 * the file does not give it. */
struct rcpt_config_place rcpt_config_place_of_key(struct rcpt_config_file *file, const char *path);

/* Notes where the secret `text` of `key` came from, unless it is known; weak.c. */
void rcpt_config_note_secret(struct rcpt_secret_notes *notes, const char *key,
                             enum rcpt_secret_source source, const char *text);

/* Whether the label of a value is that of a property of Kafka that names a file of TLS. */
bool rcpt_config_is_tls_file(const char *label);
/* Notes that `key` is read from the file; sources.c. */
void rcpt_config_note_source(struct rcpt_config_sources *sources, const char *key, const char *path,
                             const char *config_name);
void rcpt_config_free_sources(struct rcpt_config_sources *sources);

/* Finds the rows' nodes in the document, checks them and writes the normal form to `normal`. */
RCPT_MUST_CHECK bool rcpt_config_check(struct rcpt_config_file *file, FILE *normal);

#endif
