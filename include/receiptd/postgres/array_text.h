/* Array literals ({1,2,NULL} as array_in reads them) for statements that are too rare for binary
 * parameters, and arrays in results. Pure. */
#ifndef RECEIPTD_POSTGRES_ARRAY_TEXT_H
#define RECEIPTD_POSTGRES_ARRAY_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "receiptd/base/text.h"

struct rcpt_array_text { /* embedded; private */
    FILE *out;
    char *text;
    size_t size;
    size_t count;
};

void rcpt_array_text_init(struct rcpt_array_text *array);
void rcpt_array_text_fini(struct rcpt_array_text *array);

void rcpt_array_text_add_null(struct rcpt_array_text *array);
void rcpt_array_text_add_int(struct rcpt_array_text *array, int64_t value);
void rcpt_array_text_add(struct rcpt_array_text *array, const char *bytes,
                         size_t size); /* text without NUL */
void rcpt_array_text_add_bytea(struct rcpt_array_text *array, const void *bytes, size_t size);

/* The literal; nothing may be added after it. Valid until fini. */
const char *rcpt_array_text_finish(struct rcpt_array_text *array);

/* The elements of an array of one dimension as array_out writes it. */
struct rcpt_array_reader { /* private */
    const char *at;
};

void rcpt_array_reader_init(struct rcpt_array_reader *reader, const char *array); /* NULL: empty */

/* False: there are no more. `at` NULL: SQL NULL. The text belongs to the array, or to the arena
 * where it had to be unescaped. */
bool rcpt_array_reader_next(struct rcpt_array_reader *reader, struct rcpt_arena *arena,
                            struct rcpt_text *element);
/* As rcpt_array_reader_next(), for an array of integers without NULL. */
bool rcpt_array_reader_next_int(struct rcpt_array_reader *reader, int64_t *element);

#endif
