/* The records of the status stream: a transition as a CloudEvent in binary mode. Pure. Private to
 * src/folds. */
#ifndef RECEIPTD_FOLDS_STREAM_RECORDS_H
#define RECEIPTD_FOLDS_STREAM_RECORDS_H

#include "receiptd/core/ladder.h"
#include "receiptd/kafka/transactor.h"
#include "text.h"

enum folds_stream_kind {
    FOLDS_STREAM_CHANGE, /* a transition */
    FOLDS_STREAM_ROW,    /* a message as it is */
    FOLDS_STREAM_GONE,   /* a message that was deleted: no value */
};

struct folds_stream_form {
    const struct rcpt_ladder *ladder;
    bool is_state;      /* changes become messages as they are then */
    const char *source; /* ce_source */
};

struct folds_stream_entry {
    enum folds_stream_kind kind;
    /* `at` NULL: none. `columns` is JSON. */
    struct rcpt_text id, org, campaign, gateway, reason, columns, trace;
    struct rcpt_text time; /* as PostgreSQL writes it, of UTC; `at` NULL: none */
    int16_t old, new;
    uint32_t flags, gained;
};

/* Everything but `topic`. The texts live in the arena, or are those of form and entry. `scratch` is
 * for texts on their way: of one caller. */
void folds_stream_record(const struct folds_stream_form *form,
                         const struct folds_stream_entry *entry, struct rcpt_arena *arena,
                         struct fold_text *scratch, struct rcpt_transactor_record *record);

#endif
