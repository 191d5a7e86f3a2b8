/* The distinct texts of a batch: what counts by text compares places, and sorts by ranks.
 *
 * Pure. Texts are copied, so a row may go as soon as it is counted. A steady load allocates
 * nothing.
 */
#ifndef RECEIPTD_CORE_WORDS_H
#define RECEIPTD_CORE_WORDS_H

#include "receiptd/base/text.h"

/* One for each text; it stays where it is until the next begin. */
struct rcpt_word {
    struct rcpt_text text;
    uint32_t number;        /* in the order of appearance */
    uint32_t rank;          /* in that of memcmp, shorter first: after rcpt_words_rank() */
    struct rcpt_word *next; /* of the list of all */
};

struct rcpt_words;

struct rcpt_words *rcpt_words_new(void);
void rcpt_words_free(struct rcpt_words *words);

/* Begins without any. */
void rcpt_words_begin(struct rcpt_words *words);
/* A text that is not there counts as ''. */
const struct rcpt_word *rcpt_words_find(struct rcpt_words *words, struct rcpt_text text);
/* Of all words so far. */
void rcpt_words_rank(struct rcpt_words *words);

#endif
