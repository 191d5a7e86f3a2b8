/* The distinct texts of a batch: code that counts by text compares addresses, and sorts by ranks.
 *
 * Pure. Texts are copied, so a row may be freed as soon as it is counted. A steady load allocates
 * nothing.
 */
#ifndef RECEIPTD_CORE_WORDS_H
#define RECEIPTD_CORE_WORDS_H

#include "receiptd/base/text.h"

/* There is one word for each text; its address stays the same until the next begin. */
struct rcpt_word {
    struct rcpt_text text;
    uint32_t number;        /* in the order of appearance */
    uint32_t rank;          /* in that of memcmp, shorter first: after rcpt_words_rank() */
    struct rcpt_word *next; /* of the list of all */
};

struct rcpt_words;

struct rcpt_words *rcpt_words_new(void);
void rcpt_words_free(struct rcpt_words *words);

/* Forgets all words. */
void rcpt_words_begin(struct rcpt_words *words);
/* Finds or adds the word of this text; a text whose `at` is NULL counts as ''. */
const struct rcpt_word *rcpt_words_find(struct rcpt_words *words, struct rcpt_text text);
/* Ranks all words found so far. */
void rcpt_words_rank(struct rcpt_words *words);

#endif
