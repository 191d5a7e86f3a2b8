/* Manual pages in man(7). For pages made from tables of commands and of keys. Pure. */
#ifndef RECEIPTD_BASE_ROFF_H
#define RECEIPTD_BASE_ROFF_H

#include <stdio.h>

/* Begins a page. It has no date: builds of one version are equal byte by byte. */
void rcpt_roff_title(const char *name, int section, FILE *out);
/* Escapes the text, so that roff takes nothing in it for a request. Words in backticks are bold. */
void rcpt_roff_text(const char *text, FILE *out);

#endif
