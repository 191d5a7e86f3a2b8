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
/* Where the user name of a URL begins, and in `end` the @ behind it; NULL: it has none, or the text
 * is no URL. */
const char *rcpt_config_url_user(const char *text, const char **end);
/* A URL without its user name and without what stands behind `?` or `#`: both may hold credentials.
 * Any other text as it is. The caller frees it. */
char *rcpt_config_redact_url(const char *text);
/* Is the key a connection string, which holds more than its secret? */
bool rcpt_config_is_dsn(const char *path);

#endif
