/* Distinct texts (words.h). Called by the rules. */
#include "receiptd/core/words.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/base/table.h"
#include "receiptd/core/hash.h"

#define SEED 0 /* texts of the inbox are the platform's own */

struct rcpt_words {
    struct rcpt_table table;
    struct rcpt_arena arena;  /* of one batch: what follows */
    struct rcpt_word *newest; /* the others follow by next */
};

/* The first eight bytes as a number, shorter texts filled with zeros: most texts differ in it. */
struct ordered {
    uint64_t prefix;
    struct rcpt_word *word;
};

struct rcpt_words *rcpt_words_new(void)
{
    struct rcpt_words *words = rcpt_calloc(1, sizeof(*words));
    rcpt_arena_init(&words->arena, 256 * 1024);
    return words;
}

void rcpt_words_free(struct rcpt_words *words)
{
    if (words == NULL)
        return;
    rcpt_table_free(&words->table);
    rcpt_arena_fini(&words->arena);
    free(words);
}

void rcpt_words_begin(struct rcpt_words *words)
{
    rcpt_table_clear(&words->table);
    rcpt_arena_reset(&words->arena, SIZE_MAX);
    words->newest = NULL;
}

/* Numbers ascend from 0 in the order of finding. Hashes of cells are made of them, ranks are the
 * order of results. */
static struct rcpt_word *add(struct rcpt_words *words, struct rcpt_text text, uint64_t hash)
{
    struct rcpt_word *word = rcpt_arena_alloc(&words->arena, sizeof(*word));
    *word = (struct rcpt_word){.text = rcpt_text_copy(&words->arena, text),
                               .number = (uint32_t)words->table.count,
                               .next = words->newest};
    words->newest = word;
    rcpt_table_add(&words->table, hash, word);
    return word;
}

/* The caller's text may be freed afterwards. Equal texts are one word, so words are compared by
 * address. */
const struct rcpt_word *rcpt_words_find(struct rcpt_words *words, struct rcpt_text text)
{
    text = rcpt_text_or_empty(text);
    uint64_t hash = rcpt_hash_text_extended(text.at, text.size, SEED);
    size_t probes = 0;
    struct rcpt_word *word = rcpt_table_next(&words->table, hash, &probes);
    while (word != NULL && !rcpt_text_equal(word->text, text))
        word = rcpt_table_next(&words->table, hash, &probes);
    return word != NULL ? word : add(words, text, hash);
}

/* Orders as COLLATE "C" does. */
static int by_text(const void *left, const void *right)
{
    const struct ordered *a = left, *b = right;
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix ? -1 : 1;
    return rcpt_text_compare(a->word->text, b->word->text);
}

static struct ordered order_of(struct rcpt_word *word)
{
    uint64_t prefix = 0;
    size_t size = word->text.size;
    memcpy(&prefix, word->text.at, size < sizeof(prefix) ? size : sizeof(prefix));
    return (struct ordered){be64toh(prefix), word};
}

/* Allocates as much room as the table has, so that sizes stay the same from batch to batch. */
void rcpt_words_rank(struct rcpt_words *words)
{
    size_t count = 0;
    struct ordered *ordered = rcpt_arena_alloc(&words->arena, words->table.size * sizeof(*ordered));
    for (struct rcpt_word *word = words->newest; word != NULL; word = word->next)
        ordered[count++] = order_of(word);
    qsort(ordered, count, sizeof(*ordered), by_text);
    for (size_t rank = 0; rank < count; rank++)
        ordered[rank].word->rank = (uint32_t)rank;
}
