/* From the normal form (config_check.h) to struct rcpt_config, by libcyaml. */
#ifndef RECEIPTD_CONFIG_SCHEMA_H
#define RECEIPTD_CONFIG_SCHEMA_H

#include "receiptd/config/config.h"

/* Everything but `ladder`. `name` is the file's, for errors. */
RCPT_MUST_CHECK struct rcpt_config *rcpt_config_load_normal(const char *name, const char *normal,
                                                            size_t size, struct rcpt_error *error);

/* Frees what load_normal has made. */
void rcpt_config_free_loaded(struct rcpt_config *config);

#endif
