/* YAML in and out, by libyaml: reading into nodes that know their place, writing by small verbs. */
#ifndef RECEIPTD_CONFIG_YAML_H
#define RECEIPTD_CONFIG_YAML_H

#include <stdio.h>
#include <yaml.h>

#include "receiptd/base/error.h"

#define RCPT_CONFIG_MAX_BYTES (1u << 20)
#define RCPT_CONFIG_MAX_DEPTH 16

struct rcpt_config_place {
    unsigned line, column; /* from 1; line 0: not in the file */
};

/* Sets "NAME:LINE:COLUMN: text", FATAL with EX_CONFIG. Returns false. */
bool rcpt_config_error(struct rcpt_error *error, const char *name, struct rcpt_config_place place,
                       const char *format, ...) RCPT_PRINTF(4, 5);

/* Reads one document. Refuses forms that no configuration needs and that serve attacks: a file over
 * 1 MiB, nesting over 16, aliases, tags, a second document. On success the caller deletes the
 * document. */
RCPT_MUST_CHECK bool rcpt_config_read_yaml(const char *name, const char *text, size_t size,
                                           yaml_document_t *document, struct rcpt_error *error);

struct rcpt_config_place rcpt_config_place_of(const yaml_node_t *node);
/* The text of a scalar. */
const char *rcpt_config_scalar(const yaml_node_t *node);
/* Whether the value is missing, ~ or null without quotes. */
bool rcpt_config_is_null(const yaml_node_t *node);

/* ---- writing ---- */

struct rcpt_config_writer {
    yaml_emitter_t emitter;
    bool failed; /* `out` took no more; everything after that is dropped */
};

enum rcpt_config_style { RCPT_CONFIG_BLOCK, RCPT_CONFIG_FLOW };

void rcpt_config_writer_init(struct rcpt_config_writer *writer, FILE *out);
void rcpt_config_writer_fini(struct rcpt_config_writer *writer);
void rcpt_config_write_map(struct rcpt_config_writer *writer, enum rcpt_config_style style);
void rcpt_config_write_map_end(struct rcpt_config_writer *writer);
void rcpt_config_write_list(struct rcpt_config_writer *writer, enum rcpt_config_style style);
void rcpt_config_write_list_end(struct rcpt_config_writer *writer);
/* A key, number or name: without quotes. */
void rcpt_config_write_plain(struct rcpt_config_writer *writer, const char *text);
/* Text that must come back as it is: in quotes unless no reader could take it for something else.
 */
void rcpt_config_write_text(struct rcpt_config_writer *writer, const char *text);

#endif
