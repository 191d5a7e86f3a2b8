/* Texts with a length, and functions for readers of other people's formats. Pure; memory from an
 * arena. */
#ifndef RECEIPTD_BASE_TEXT_H
#define RECEIPTD_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "receiptd/base/arena.h"
#include "receiptd/base/utf8.h"

/* Bytes that another object owns; not terminated. at == NULL: not there. */
struct rcpt_text {
    const char *at;
    size_t size;
};

#define RCPT_TEXT(literal) ((struct rcpt_text){(literal), sizeof(literal) - 1})

static inline struct rcpt_text rcpt_text_of(const char *text)
{
    return (struct rcpt_text){text, text != NULL ? strlen(text) : 0};
}

static inline bool rcpt_text_equal(struct rcpt_text left, struct rcpt_text right)
{
    return left.size == right.size && (left.size == 0 || memcmp(left.at, right.at, left.size) == 0);
}

static inline bool rcpt_text_is(struct rcpt_text text, const char *other)
{
    return rcpt_text_equal(text, rcpt_text_of(other));
}

bool rcpt_text_is_nocase(struct rcpt_text text, const char *other); /* ASCII letters */
bool rcpt_text_equal_nocase(struct rcpt_text left, struct rcpt_text right);
bool rcpt_text_begins(struct rcpt_text text, const char *prefix);
bool rcpt_text_begins_nocase(struct rcpt_text text, const char *prefix);
int rcpt_text_hex_digit(int character); /* its value; -1: it is none */
/* Undoes percent escapes, in a query `+` too. NULL: an escape is malformed, or PostgreSQL cannot
 * hold the result as text. */
char *rcpt_text_unescape(struct rcpt_arena *arena, struct rcpt_text text, bool is_query);
bool rcpt_text_is_digits(struct rcpt_text text); /* at least one, and nothing else */
/* memcmp, then the shorter one first. */
int rcpt_text_compare(struct rcpt_text left, struct rcpt_text right);

/* "" for a text that is not there: a list of texts goes on behind it. */
static inline struct rcpt_text rcpt_text_or_empty(struct rcpt_text text)
{
    return text.at != NULL ? text : RCPT_TEXT("");
}

/* Well formed; NUL is a character here. */
static inline bool rcpt_text_is_utf8(struct rcpt_text text)
{
    return rcpt_utf8_is_valid(text.at, text.size);
}

/* Without blanks at either end. */
struct rcpt_text rcpt_text_trim(struct rcpt_text text);
/* Without the byte order mark that some editors and languages write in front of UTF-8. */
struct rcpt_text rcpt_text_skip_mark(struct rcpt_text text);
/* Part from `first` on, at most `size` bytes. */
struct rcpt_text rcpt_text_part(struct rcpt_text text, size_t first, size_t size);
/* Offset of the first `needle`, or text.size. */
size_t rcpt_text_find(struct rcpt_text text, const char *needle);
/* Decimal digits of an unsigned number up to 10^9; false: something else. */
bool rcpt_text_number(struct rcpt_text text, unsigned *number);

struct rcpt_text rcpt_text_copy(struct rcpt_arena *arena, struct rcpt_text text);
char *rcpt_text_terminated(struct rcpt_arena *arena, struct rcpt_text text);
/* Joins the texts; the list ends with a text whose `at` is NULL. */
struct rcpt_text rcpt_text_join(struct rcpt_arena *arena, const struct rcpt_text *texts);
#define RCPT_TEXT_JOIN(arena, ...)                                                                 \
    rcpt_text_join((arena), (const struct rcpt_text[]){__VA_ARGS__, {NULL, 0}})

/* FNV-1a: distinguishes texts, but is no protection. */
uint64_t rcpt_text_hash(struct rcpt_text text);

/* For hints: the one of `best` and `candidate` that is nearer to `text` by edits. `candidate`
 * counts only if it is near enough to be meant. `best` is NULL at first. */
const char *rcpt_text_nearer(const char *text, const char *best, const char *candidate);

#endif
