/* A text that grows, and scalars in it as JSON that PostgreSQL takes. Written for each event, so
 * nothing here is a stream. */
#ifndef RECEIPTD_FOLDS_TEXT_H
#define RECEIPTD_FOLDS_TEXT_H

#include "receiptd/base/document.h"

struct fold_text {
    char *at;
    size_t size, capacity;
};

void fold_text_free(struct fold_text *text);
void fold_text_put(struct fold_text *text, const char *bytes, size_t size);
void fold_text_put_char(struct fold_text *text, char byte);
void fold_text_put_words(struct fold_text *text, const char *words); /* terminated */

/* A JSON string; cut at 1 000 bytes, and where a NUL is, which no text of PostgreSQL holds. */
void fold_text_put_string(struct fold_text *text, struct rcpt_text string);

void fold_text_put_whole(struct fold_text *text, struct rcpt_text string); /* uncut */

/* A scalar as JSON; an object or array becomes a text. False: null, nothing was written. */
bool fold_text_put_value(struct fold_text *text, const struct rcpt_node *node);

/* The node as a number within the bounds of PostgreSQL; false: it is none. */
bool fold_number(const struct rcpt_node *node, double *number);
bool fold_integer(const struct rcpt_node *node, int64_t *integer); /* of up to 18 digits */

#endif
