/* Pages and shell completion that are made from the table of commands. */
#ifndef RECEIPTD_COMMANDS_MANUAL_H
#define RECEIPTD_COMMANDS_MANUAL_H

#include <stdio.h>

/* ---- manual.c ---- */
/* receiptd(1) */
void manual_write_commands(FILE *out);

/* ---- completion.c ---- */
void completion_write_bash(FILE *out);
void completion_write_zsh(FILE *out);

/* ---- generate_sql.c ---- */
void generate_sql(FILE *out);

#endif
