/* Events of a topic, as JSON, become groups with collected values: the fold in memory, before
 * anything goes to the database.
 *
 * Pure: no I/O, no clock. The caller bounds its size (_bytes). Its results are the parts that
 * sql/fold/gather merges.
 */
#ifndef RECEIPTD_FOLDS_COLLECT_H
#define RECEIPTD_FOLDS_COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receiptd/core/fold_kind.h"
#include "receiptd/core/record.h"

struct rcpt_fold_match {
    const char *path;   /* field, "a.b" inside an object */
    const char *values; /* texts, separated by | */
};

struct rcpt_fold_collect {
    const char *name, *path;
    enum rcpt_fold_kind kind;
};

struct rcpt_fold_spec { /* borrowed for the collector's life */
    const char *rule, *topic;
    const struct rcpt_fold_match *matches;
    size_t match_count;
    const char *const *keys; /* paths */
    size_t key_count;
    const struct rcpt_fold_collect *collects;
    size_t collect_count;
    size_t max_values; /* of a set */
};

struct rcpt_fold_event {
    const char *topic;
    const void *value; /* NULL: tombstone */
    size_t size;
    const char *traceparent; /* NULL: none */
    size_t traceparent_size;
};

struct rcpt_fold_group { /* borrowed for the call */
    const char *rule;
    const char *key;  /* JSON object of the group's fields */
    const char *part; /* {"v": {name: value}, "o": {name: values beyond max_values}} */
    uint64_t events;
};

struct rcpt_fold_collector;

struct rcpt_fold_collector *rcpt_fold_collector_new(const struct rcpt_fold_spec *specs,
                                                    size_t count);
void rcpt_fold_collector_free(struct rcpt_fold_collector *collector);

struct rcpt_fold_refusal { /* why an event is a dead letter */
    enum rcpt_reject_reason reason;
    char detail[120];
};

/* Adds the event to a group of each rule over its topic that it matches. False, and the refusal is
 * written: it is no JSON object, or a rule that it matches finds no usable group key in it; the
 * other rules have it. */
bool rcpt_fold_collector_add(struct rcpt_fold_collector *collector,
                             const struct rcpt_fold_event *event,
                             struct rcpt_fold_refusal *refusal);

/* The group key that the rule with this index gives the event, until the next call; NULL: it does
 * not match, or has no key. Adds nothing. */
const char *rcpt_fold_collector_key(struct rcpt_fold_collector *collector, size_t rule,
                                    const struct rcpt_fold_event *event);

size_t rcpt_fold_collector_groups(const struct rcpt_fold_collector *collector);
size_t rcpt_fold_collector_bytes(const struct rcpt_fold_collector *collector); /* roughly */

/* Gives out every group, in the order in which they came up. */
void rcpt_fold_collector_each(struct rcpt_fold_collector *collector,
                              void (*take)(void *context, const struct rcpt_fold_group *group),
                              void *context);
void rcpt_fold_collector_reset(struct rcpt_fold_collector *collector);

#endif
