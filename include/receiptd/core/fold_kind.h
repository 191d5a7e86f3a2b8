/* The ways in which a fold collects a field of its events. The configuration names them; they are
 * carried out by fold_collect.h and sql/fold/gather.sql. */
#ifndef RECEIPTD_CORE_FOLD_KIND_H
#define RECEIPTD_CORE_FOLD_KIND_H

enum rcpt_fold_kind {
    RCPT_FOLD_SET,   /* distinct scalars; of an array its elements, of an object its names */
    RCPT_FOLD_SUM,   /* of numbers */
    RCPT_FOLD_MIN,   /* likewise */
    RCPT_FOLD_MAX,   /* likewise */
    RCPT_FOLD_COUNT, /* of events that have the field */
    RCPT_FOLD_FIRST, /* scalar of the first event that has one */
    RCPT_FOLD_LAST,
    RCPT_FOLD_KIND__COUNT,
};

#endif
