/* Shared by collect.c (events into groups) and collect_values.c (values that groups collect of
 * fields). */
#ifndef RECEIPTD_FOLDS_COLLECT_INTERNAL_H
#define RECEIPTD_FOLDS_COLLECT_INTERNAL_H

#include "collect.h"
#include "receiptd/base/arena.h"
#include "receiptd/base/decimal.h"
#include "receiptd/base/error.h"
#include "receiptd/base/table.h"
#include "text.h"

/* A scalar as JSON. */
struct collect_item {
    uint64_t hash;
    struct rcpt_text json;
};

/* Distinct values; `overflow` counts those beyond max_values. */
struct collect_set {
    struct collect_item *items;
    uint32_t count, capacity;
    uint64_t overflow;
};

/* The values that a group has collected of one field. */
struct collect_kept {
    struct collect_set set;
    struct rcpt_text json; /* first, last, min, max */
    double number;         /* min, max; a sum that is inexact */
    struct rcpt_decimal sum;
    uint64_t count;
    bool has, inexact;
};

struct collect_group {
    struct collect_group *next; /* in the order of arrival */
    uint32_t rule;
    struct rcpt_text key;
    uint64_t events;
    struct collect_set traces;
    struct collect_kept kept[];
};

struct rcpt_fold_collector {
    const struct rcpt_fold_spec *specs;
    size_t count;
    struct rcpt_arena groups_arena, event_arena;
    struct rcpt_table groups;
    size_t bytes;
    struct collect_group *first, **last;
    struct fold_text out; /* the key, value or part that is being written */
};

/* ---- collect.c ---- */
/* Zeroed memory of the groups; counts its bytes. */
void *collect_take(struct rcpt_fold_collector *collector, size_t bytes);
struct rcpt_text collect_keep(struct rcpt_fold_collector *collector, struct rcpt_text text);
/* The scratch text, emptied; its content is borrowed until the next call. */
struct fold_text *collect_begin(struct rcpt_fold_collector *collector);
struct rcpt_text collect_written(const struct rcpt_fold_collector *collector);

/* ---- collect_values.c ---- */
void collect_into_set(struct rcpt_fold_collector *collector, struct collect_set *set, size_t most,
                      struct rcpt_text json);
void collect_value(struct rcpt_fold_collector *collector, struct collect_kept *kept, size_t most,
                   enum rcpt_fold_kind kind, const struct rcpt_node *node);
void collect_write_set(struct fold_text *out, const struct collect_set *set);
void collect_write_integer(struct fold_text *out, int64_t integer);
void collect_write(struct fold_text *out, enum rcpt_fold_kind kind,
                   const struct collect_kept *kept);

#endif
