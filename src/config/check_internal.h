/* A check that is under way: between check.c (rows, lists, maps, records) and check_value.c (single
 * values). Private to the two. */
#ifndef RECEIPTD_CONFIG_CHECK_INTERNAL_H
#define RECEIPTD_CONFIG_CHECK_INTERNAL_H

#include "check.h"

#define LABEL_BYTES 128

struct checker {
    struct rcpt_config_file *file;
    struct rcpt_config_writer writer;
};

/* A value that is being checked. */
struct value {
    const struct rcpt_config_row *row;
    const char *label; /* "kafka.brokers", "ladder.statuses[3].code" */
    yaml_node_t *node;
    bool secret;
    char *text; /* after expansion; owned by who resolved it */
};

/* "FILE:LINE:COLUMN: LABEL: text". Returns false. */
bool rcpt_config_fail_value(struct checker *checker, const struct value *value, const char *text);
/* The text that an error may show: the one of the file, since an expanded one may be secret. */
const char *rcpt_config_value_shown(const struct value *value, char out[64]);
/* Sets value->text: the environment and files of secrets are put in. */
RCPT_MUST_CHECK bool rcpt_config_resolve(struct checker *checker, struct value *value);
/* Checks a scalar by its row, and writes it to the normal form. */
RCPT_MUST_CHECK bool rcpt_config_check_scalar(struct checker *checker, struct value *value);
void rcpt_config_write_number(struct checker *checker, int64_t number);

#endif
