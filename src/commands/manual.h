/* Pages and shell completion that are made from the tables of commands and of keys. */
#ifndef RECEIPTD_COMMANDS_MANUAL_H
#define RECEIPTD_COMMANDS_MANUAL_H

#include <stdio.h>

/* ---- manual.c ---- */
void manual_title(const char *name, int section, FILE *out);
/* A text of a table, escaped for man(7): nothing in it is taken for a request, `words` are bold. */
void manual_text(const char *text, FILE *out);
/* receiptd(1) */
void manual_write_commands(FILE *out);

/* ---- config_manual.c: receiptd.yaml(5) ---- */
void rcpt_config_write_manual(FILE *out);

/* ---- completion.c ---- */
void completion_write_bash(FILE *out);
void completion_write_zsh(FILE *out);

/* ---- generate_sql.c ---- */
void generate_sql(FILE *out);

#endif
