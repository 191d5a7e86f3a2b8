/* Values as YAML in the file's own form, and what must not be seen of them. */
#ifndef RECEIPTD_CONFIG_PRINT_H
#define RECEIPTD_CONFIG_PRINT_H

#include "table.h"
#include "yaml.h"

#define RCPT_CONFIG_REDACTED "<redacted>"

/* The list of a RECORDS row in `base`, as flow mappings. */
void rcpt_config_write_records(struct rcpt_config_writer *writer, const struct rcpt_config_row *row,
                               const struct rcpt_config *base);

/* A libpq connection string, keywords or URI, in which passwords are redacted; as a whole where it
 * is not clear which part is the password. The caller frees the text. */
char *rcpt_config_redact_dsn(const char *dsn);
/* Is the key a connection string, which holds more than its secret? */
bool rcpt_config_is_dsn(const char *path);

#endif
