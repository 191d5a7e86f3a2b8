/* The check of a file against the table, with line and column, and its normal form.
 *
 * libcyaml 1.3.1 loads structs well but knows no units, ranges, defaults or maps with free keys,
 * and takes 010 for 8 and 30s for 30. So the file is checked here, and what libcyaml gets is the
 * normal form: one flat mapping with every key of the table by its path, defaults filled in,
 * numbers in base units, maps as lists of pairs.
 */
#ifndef RECEIPTD_CONFIG_CHECK_H
#define RECEIPTD_CONFIG_CHECK_H

#include "table.h"
#include "yaml.h"

/* Where each row's value stands in the file; for ladder.* where the key `ladder` stands. */
struct rcpt_config_places {
    struct rcpt_config_place at[RCPT_CONFIG_MAX_ROWS];
    struct rcpt_secret_notes secret_notes;
};

/* Notes where the secret `text` of `key` came from, unless it is known; config_weak.c. */
void rcpt_config_note_secret(struct rcpt_secret_notes *notes, const char *key,
                             enum rcpt_secret_source source, const char *text);

/* Writes the normal form to `normal`. `name` is the file's, for errors and relative paths.
 * `partial`: required keys of the table may be missing. */
RCPT_MUST_CHECK bool rcpt_config_check(const char *name, yaml_document_t *document, bool partial,
                                       FILE *normal, struct rcpt_config_places *places,
                                       struct rcpt_error *error);

#endif
