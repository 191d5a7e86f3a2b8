/* UTF-8 as Unicode defines it (table 3-7): no overlong forms, no surrogates, at most U+10FFFF. */
#ifndef RECEIPTD_BASE_UTF8_H
#define RECEIPTD_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Size of the sequence that begins here, 0 if it is not well formed; `size` is at least 1. */
size_t rcpt_utf8_sequence(const char *text, size_t size);

/* Well formed; NUL is a character like any other. */
bool rcpt_utf8_is_valid(const char *text, size_t size);

/* Well formed and free of NUL: PostgreSQL's type text takes it. */
bool rcpt_utf8_is_text(const char *text, size_t size);

#endif
